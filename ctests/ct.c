/*
 * The part of the test runner that lives in the process of one test or one benchmark run.
 *
 * The harness (main.rs) does the rest: it starts itself anew for each run, with a fresh directory
 * in CT_DIR and both output streams in a file, and judges by the wait status: 0 is a pass, SIGABRT
 * a failure, anything else an error.
 *
 * A benchmark run says what it has measured in one line, `n nanoseconds bytes-per-round`, on the
 * descriptor that CT_REPORT_FD names, or on stdout if there is none.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ct/ct.h"

static int failed;

static struct {
    int running;
    int64_t since_ns;
    int64_t elapsed_ns;
    int bytes;
} timing;

void ctlogpn(const char *file, int line, const char *format, ...)
{
    va_list args;

    printf("%s:%d: ", file, line);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void ctfail(void)
{
    failed = 1;
}

void ctfailnow(void)
{
    fflush(NULL);
    abort();
}

char *ctdir(void)
{
    char *dir = getenv("CT_DIR");

    assertf(dir, "CT_DIR is not set: tests are started by the harness");
    return dir;
}

static int64_t monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void ctstoptimer(void)
{
    if (timing.running) {
        timing.elapsed_ns += monotonic_ns() - timing.since_ns;
        timing.running = 0;
    }
}

void ctstarttimer(void)
{
    if (!timing.running) {
        timing.running = 1;
        timing.since_ns = monotonic_ns();
    }
}

void ctresettimer(void)
{
    timing.elapsed_ns = 0;
    timing.running = 0;
    ctstarttimer();
}

void ctsetbytes(int bytes)
{
    timing.bytes = bytes;
}

/* Runs `test` and returns if it passes. */
void ct_run_test(void (*test)(void))
{
    /* A test that is killed for taking too long should have shown how far it came. */
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);
    test();
    if (failed)
        ctfailnow();
    fflush(NULL);
}

/* Where the figures go. No server that the benchmark starts may keep it open. */
static int report_fd(void)
{
    const char *text = getenv("CT_REPORT_FD");
    int fd;

    if (!text)
        return STDOUT_FILENO;
    fd = atoi(text);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    return fd;
}

/* Runs `bench` with `n` rounds, reports, and returns if it has not failed. */
void ct_run_bench(void (*bench)(int), int n)
{
    int fd = report_fd();

    ctresettimer();
    bench(n);
    ctstoptimer();
    if (failed)
        ctfailnow();
    fflush(NULL);
    dprintf(fd, "%d %lld %d\n", n, (long long)timing.elapsed_ns, timing.bytes);
}
