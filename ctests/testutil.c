/*
 * Options and formatting.
 */
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ct/ct.h"
#include "dat.h"

/* Exit status of a command-line error. */
#define USAGE_STATUS 5

/* Parses the words, which may be none. */
#define PARSE(...) optparse(&srv, (char *[]){__VA_ARGS__})

static void same(const char *got, const char *want)
{
    assertf(got && strcmp(got, want) == 0, "wanted %s, got %s", want, got ? got : "null");
}

void cttest_allocf(void)
{
    char *text = fmtalloc("%s has %d tubes", "a server", 12);

    same(text, "a server has 12 tubes");
    free(text);
}

void cttest_opt_none(void)
{
    PARSE(NULL);
    same(srv.port, Portdef);
    assert(srv.addr == NULL);
    assert(srv.user == NULL);
    assert(job_data_size_limit == JOB_DATA_SIZE_LIMIT_DEFAULT);
    assert(srv.wal.filesize == Filesizedef);
    assert(srv.wal.wantsync == 1);
    assert(srv.wal.syncrate == DEFAULT_FSYNC_MS * (int64)1000000);
    assert(srv.wal.dir == NULL);
    assert(srv.wal.use == 0);
    assert(verbose == 0);
}

static int exit_pipe[2];

static void tell_of_exit(void)
{
    if (write(exit_pipe[1], "x", 1) != 1)
        _exit(1);
}

/* Has to leave by the C exit: with the status of a bad command line, and through atexit. */
void cttest_optminus(void)
{
    char seen = 0;
    int status;

    assert(pipe(exit_pipe) == 0);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        atexit(tell_of_exit);
        PARSE("-", NULL);
        _exit(0);
    }
    close(exit_pipe[1]);
    assert(read(exit_pipe[0], &seen, 1) == 1);
    assert(waitpid(child, &status, 0) == child);
    assertf(WIFEXITED(status) && WEXITSTATUS(status) == USAGE_STATUS, "status %d", status);
}

void cttest_optp(void)
{
    PARSE("-p1234", NULL);
    same(srv.port, "1234");
}

void cttest_optl(void)
{
    PARSE("-llocalhost", NULL);
    same(srv.addr, "localhost");
}

void cttest_optlseparate(void)
{
    PARSE("-l", "localhost", NULL);
    same(srv.addr, "localhost");
}

void cttest_optz(void)
{
    PARSE("-z1234", NULL);
    assert(job_data_size_limit == 1234);
}

void cttest_optz_more_than_max(void)
{
    PARSE("-z1073741825", NULL);
    assert(job_data_size_limit == 1073741824);
}

void cttest_opts(void)
{
    PARSE("-s1234", NULL);
    assert(srv.wal.filesize == 1234);
}

void cttest_optf(void)
{
    PARSE("-f1234", NULL);
    assert(srv.wal.syncrate == 1234000000);
    assert(srv.wal.wantsync == 1);
}

void cttest_optF(void)
{
    PARSE("-f1234", "-F", NULL);
    assert(srv.wal.wantsync == 0);
}

void cttest_optu(void)
{
    PARSE("-ukr", NULL);
    same(srv.user, "kr");
}

void cttest_optb(void)
{
    PARSE("-bfoo", NULL);
    same(srv.wal.dir, "foo");
    assert(srv.wal.use == 1);
}

void cttest_optV(void)
{
    PARSE("-V", NULL);
    assert(verbose == 1);
}

void cttest_optV_V(void)
{
    PARSE("-V", "-V", NULL);
    assert(verbose == 2);
}

void cttest_optVVV(void)
{
    PARSE("-VVV", NULL);
    assert(verbose == 3);
}

void cttest_optVFVu(void)
{
    PARSE("-VFVukr", NULL);
    assert(verbose == 2);
    assert(srv.wal.wantsync == 0);
    same(srv.user, "kr");
}
