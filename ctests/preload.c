/*
 * Loaded before the server when a test has put its own `falloc` in: fails the making of files of
 * the binlog as the test would have it.
 *
 * The server sets room aside once for each file, and this stands in the way of that call. What to
 * answer for one file after another stands in CTESTS_FALLOC_PLAN: errnos with commas between, 0
 * for room; the last one stands for all that follow. The spare file, which the server keeps for
 * cleaning a full disk and which no job waits for, is no part of the plan.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define SPARE "spare"

/* How many files of the plan were asked for. */
static atomic_size_t asked;

static int is_spare(int fd)
{
    char link[64], path[4096];
    ssize_t len;
    const char *name;

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof path - 1);
    if (len < 0)
        return 0;
    path[len] = '\0';
    name = strrchr(path, '/');
    return strcmp(name ? name + 1 : path, SPARE) == 0;
}

/* The errno that the plan has for the next file. */
static int planned(void)
{
    const char *plan = getenv("CTESTS_FALLOC_PLAN");
    size_t at = atomic_fetch_add(&asked, 1);

    if (!plan)
        return 0;
    for (; at > 0; at--) {
        const char *comma = strchr(plan, ',');
        if (!comma)
            break;
        plan = comma + 1;
    }
    return atoi(plan);
}

typedef int Allocate(int, off64_t, off64_t);

static int allocate(const char *name, int fd, off64_t offset, off64_t len)
{
    int error = is_spare(fd) ? 0 : planned();
    Allocate *next;

    if (error)
        return error;
    *(void **)&next = dlsym(RTLD_NEXT, name);
    return next ? next(fd, offset, len) : ENOSYS;
}

/* On systems where both are the same, off_t has 64 bits. */
int posix_fallocate(int fd, off_t offset, off_t len)
{
    return allocate("posix_fallocate", fd, offset, len);
}

int posix_fallocate64(int fd, off64_t offset, off64_t len)
{
    return allocate("posix_fallocate64", fd, offset, len);
}
