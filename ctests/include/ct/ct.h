/*
 * What a C test says to its runner.
 *
 * A test is a function `void cttest_NAME(void)`, a benchmark `void ctbench_NAME(int n)`. Each runs
 * in a process and a directory of its own and fails by abort, so nothing has to be cleaned up.
 */
#ifndef CT_CT_H
#define CT_CT_H

/* The standard assert would vanish with NDEBUG. */
#undef assert

#define assert(x) ((void)((x) || (ctlog("failed: %s", #x), ctfailnow(), 0)))

/* The same with a line that says more. */
#define assertf(x, format, ...) \
    ((void)((x) || (ctlog("failed: %s", #x), ctlog(format, ##__VA_ARGS__), ctfailnow(), 0)))

#define ctlog(format, ...) ctlogpn(__FILE__, __LINE__, format, ##__VA_ARGS__)

void ctlogpn(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The test has failed, but may go on: it is aborted at its end. */
void ctfail(void);
/* The test has failed and ends here. */
void ctfailnow(void) __attribute__((noreturn));

/* The test's own directory, empty at first. Later than the test nobody looks at it. */
char *ctdir(void);

/* The clock of a benchmark runs from the start of its function. */
void ctresettimer(void); /* from 0 again */
void ctstarttimer(void);
void ctstoptimer(void);
/* Bytes that each of the n rounds moves, for a figure in MB/s. */
void ctsetbytes(int bytes);

/* For the harness only; ct.c says what they do. */
void ct_run_test(void (*test)(void));
void ct_run_bench(void (*bench)(int), int n);

#endif
