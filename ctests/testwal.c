/*
 * The binlog over restarts and on full disks, and benchmarks of put and delete with and without it.
 */
#include <errno.h>

#include "client.h"

/* Size of a file in the test's directory, or -1 where none is. */
static long long file_size(const char *name)
{
    struct stat st;
    char *path = fmtalloc("%s/%s", ctdir(), name);
    int found = stat(path, &st) == 0;

    free(path);
    return found ? (long long)st.st_size : -1;
}

static Client *new_server(void)
{
    start_server();
    return dial();
}

/* Kills the server of `c` and gives a client of a new one with the same binlog. */
static Client *restart(Client *c)
{
    hang_up(c);
    stop_server();
    return new_server();
}

/* Puts the jobs from `first` to `last`, each with a body of `len` bytes. */
static void put_jobs(Client *c, int first, int last, int len)
{
    for (int i = first; i <= last; i++) {
        char *reply = fmtalloc("INSERTED @%d", i);
        ask_put(c, len, reply);
        free(reply);
    }
}

static void delete_jobs(Client *c, int first, int last)
{
    for (int i = first; i <= last; i++) {
        tell(c, "delete @%d", i);
        expect(c, "DELETED");
    }
}

void cttest_binlog_empty_exit(void)
{
    use_binlog(Filesizedef, 1, 0);
    Client *c = new_server();
    /* A server that answers has its file. */
    ask(c, "use a", "USING a");
    assert(file_size("binlog.1") == Filesizedef);

    c = restart(c);
    ask(c, "put 0 0 0 0\r\n", "INSERTED @1");
    assert(file_size("binlog.2") == Filesizedef);
}

void cttest_binlog_bury(void)
{
    use_binlog(Filesizedef, 1, 0);
    Client *c = new_server();

    ask(c, "put 0 0 100 0\r\n", "INSERTED @1");
    ask(c, "reserve", "RESERVED @1 0\r\n");
    ask(c, "bury @1 7", "BURIED");

    c = restart(c);
    ask(c, "peek-buried", "FOUND @1 0\r\n");
    EXPECT_STATS(c, "stats-job @1", "state: buried", "pri: 7");
}

void cttest_binlog_basic(void)
{
    use_binlog(Filesizedef, 1, 0);
    Client *c = new_server();

    ask(c, "put 0 0 100 0\r\n", "INSERTED @1");
    c = restart(c);
    ask(c, "delete @1", "DELETED");
}

void cttest_binlog_size_limit(void)
{
    /* The body, 2 bytes of line end, 7 of the tube's name, 84 of the rest of the record. */
    const int len = 50, record_len = len + 2 + 7 + 84, size = 4096;
    int count = 0;

    use_binlog(size, 1, 0);
    Client *c = new_server();
    while (file_size("binlog.2") < 0) {
        count++;
        assertf(count <= size / record_len + 1, "%d jobs in one file", count);
        put_jobs(c, count, count, len);
    }
    assert(count > 1);
    /* Files are as long as they will be from the start, and the first is not left yet. */
    assertf(file_size("binlog.1") == size, "binlog.1 has %lld bytes", file_size("binlog.1"));
    assertf(file_size("binlog.2") == size, "binlog.2 has %lld bytes", file_size("binlog.2"));
}

void cttest_binlog_allocation(void)
{
    const int count = 96;

    /* A file has room for three of these jobs and the records of their ends, to the byte. */
    use_binlog(601, 1, 0);
    Client *c = new_server();
    put_jobs(c, 1, count, 22);
    delete_jobs(c, 1, count);
}

void cttest_binlog_read(void)
{
    use_binlog(Filesizedef, 1, 0);
    Client *c = new_server();

    ask(c, "use test", "USING test");
    ask(c, "put 0 0 120 4\r\ntes1", "INSERTED @1");
    ask(c, "put 0 0 120 4\r\ntes2", "INSERTED @2");
    ask(c, "watch test", "WATCHING 2");
    ask(c, "reserve", "RESERVED @1 4\r\ntes1");
    ask(c, "release @1 1 1", "RELEASED");
    EXPECT_STATS(c, "stats-job @1", "state: delayed");
    ask(c, "reserve", "RESERVED @2 4\r\ntes2");
    ask(c, "delete @2", "DELETED");

    c = restart(c);
    ask(c, "watch test", "WATCHING 2");
    ask(c, "reserve", "RESERVED @1 4\r\ntes1");
    EXPECT_STATS(c, "stats-job @1", "pri: 1", "delay: 1", "releases: 1");
    ask(c, "delete @1", "DELETED");
    ask(c, "delete @2", "NOT_FOUND");
}

/* ---- Full disks. */

/*
 * A disk that has room for some files. What it has for each new file stands in `plan`, one letter
 * an attempt: `y` for room, `n` for none. Attempts beyond the plan find none.
 */
static const char *plan;
static size_t attempt;

static int planned_falloc(int fd, int len)
{
    size_t this = attempt++;
    int has_room = this < strlen(plan) && plan[this] == 'y';

    return has_room ? rawfalloc(fd, len) : ENOSPC;
}

static Client *new_server_on_disk(const char *with)
{
    plan = with;
    falloc = planned_falloc;
    use_binlog(1000, 1, 0);
    return new_server();
}

void cttest_binlog_disk_full(void)
{
    Client *c = new_server_on_disk("yny");

    put_jobs(c, 1, 4, 50);
    /* The second file is tried for once, not again for the same job, whose id is lost. */
    ask_put(c, 50, "OUT_OF_MEMORY");
    put_jobs(c, 6, 9, 50);

    delete_jobs(c, 1, 4);
    delete_jobs(c, 6, 9);
}

void cttest_binlog_disk_full_delete(void)
{
    Client *c = new_server_on_disk("yy");

    put_jobs(c, 1, 8, 50);
    ask_put(c, 50, "OUT_OF_MEMORY");
    assert(file_size("binlog.1") >= 0);

    /* The room for the end of each job was set aside when it was put. */
    delete_jobs(c, 1, 8);
}

/* ---- A binlog of the years before 1.5. */

/* Format 5: microseconds, an 8-byte length of the name, no padding at a record's end. */
typedef struct __attribute__((packed)) {
    uint64 name_len;
    char name[4];
    uint64 id;
    uint32_t pri;
    uint32_t padding;
    uint64 delay_us;
    uint64 ttr_us;
    int32_t body_len;
    uint32_t more_padding;
    uint64 created_us;
    uint64 deadline_us;
    uint32_t counts[5];
    byte state;
    char body[6];
} Record5;

#define DELAYED_STATE 4

/* A delayed job of tube `test`. */
static Record5 delayed5(uint64 id, uint32_t pri, int delay, int ttr, const char *body)
{
    const uint64 second_us = 1000000;
    uint64 now_us = (uint64)nanoseconds() / 1000;
    Record5 r = {
        .name_len = sizeof r.name,
        .name = "test",
        .id = id,
        .pri = pri,
        .delay_us = (uint64)delay * second_us,
        .ttr_us = (uint64)ttr * second_us,
        .body_len = sizeof r.body,
        .created_us = now_us - 10 * second_us,
        .deadline_us = now_us + (uint64)delay * second_us - 10 * second_us,
        .state = DELAYED_STATE,
    };

    memcpy(r.body, body, sizeof r.body);
    return r;
}

static void write_binlog5(const Record5 *records, size_t count)
{
    const int32_t version = 5;
    char *path = fmtalloc("%s/binlog.1", ctdir());
    FILE *file = fopen(path, "w");

    assert(file);
    assert(fwrite(&version, sizeof version, 1, file) == 1);
    assert(fwrite(records, sizeof *records, count, file) == count);
    assert(fclose(file) == 0);
    free(path);
}

/* Demands that a number in the statistics of a job is neither less nor more. */
static void expect_stat_within(Client *c, int id, const char *key, int least, int most)
{
    char *command = fmtalloc("stats-job %d", id);
    char *start = fmtalloc("\n%s: ", key);
    const char *found = strstr(ask_data(c, command), start);

    assertf(found, "no %s", key);
    int value = atoi(found + strlen(start));
    assertf(value >= least && value <= most, "%s is %d", key, value);
    free(command);
    free(start);
}

void cttest_binlog_v5(void)
{
    const Record5 records[] = {
        delayed5(1, 2, 60, 100, "one1\r\n"),
        delayed5(2, 4294967295u, 7200, 5000, "two2\r\n"),
    };

    assert(sizeof records[0] == 85 + 4 + 6);
    write_binlog5(records, 2);
    use_binlog(Filesizedef, 1, 0);
    Client *c = new_server();
    EXPECT_STATS(c, "stats-job 1", "id: 1", "tube: \"test\"", "state: delayed", "pri: 2",
                 "delay: 60", "ttr: 100", "file: 1", "reserves: 0", "timeouts: 0", "releases: 0",
                 "buries: 0", "kicks: 0");
    EXPECT_STATS(c, "stats-job 2", "id: 2", "tube: \"test\"", "state: delayed",
                 "pri: 4294967295", "delay: 7200", "ttr: 5000", "file: 1", "reserves: 0",
                 "timeouts: 0", "releases: 0", "buries: 0", "kicks: 0");
    /* Ten seconds have gone by for both, and a few more if the machine is slow. */
    expect_stat_within(c, 1, "age", 10, 20);
    expect_stat_within(c, 1, "time-left", 39, 50);
    expect_stat_within(c, 2, "age", 10, 20);
    expect_stat_within(c, 2, "time-left", 7179, 7190);
    ask(c, "peek 1", "FOUND 1 4\r\none1");
    ask(c, "peek 2", "FOUND 2 4\r\ntwo2");
}

/* ---- Benchmarks. */

/* A whole put, line and body, with `len` bytes of body. */
static char *put_of(int len)
{
    char *body = malloc((size_t)len + 1);

    assert(body);
    memset(body, 'a', (size_t)len);
    body[len] = '\0';
    char *text = fmtalloc("put 0 0 0 %d\r\n%s\r\n", len, body);
    assert(text);
    free(body);
    return text;
}

/* The id in the reply to a put. */
static unsigned long long inserted_id(Client *c)
{
    unsigned long long id;
    const char *reply = read_line(c);

    assertf(sscanf(reply, "INSERTED %llu", &id) == 1, "got `%s`", reply);
    return id;
}

/* n jobs of `len` bytes, each deleted before the next is put. */
static void put_and_delete(int n, int len)
{
    char *put = put_of(len);
    size_t put_len = strlen(put);

    job_data_size_limit = JOB_DATA_SIZE_LIMIT_MAX;
    Client *c = new_server();
    chatty = 0;
    ctsetbytes(len);
    ctresettimer();
    for (int i = 0; i < n; i++) {
        send_bytes(c, put, put_len);
        unsigned long long id = inserted_id(c);
        assert(!ids_are_counted() || id == (unsigned long long)i + 1);
        tell(c, "delete %llu", id);
        expect(c, "DELETED");
    }
    ctstoptimer();
    free(put);
}

static void put_and_delete_logged(int n, int len, int wantsync, int sync_ms)
{
    use_binlog(512000, wantsync, sync_ms);
    put_and_delete(n, len);
}

void ctbench_put_delete_0008(int n)
{
    put_and_delete(n, 8);
}

void ctbench_put_delete_1024(int n)
{
    put_and_delete(n, 1024);
}

void ctbench_put_delete_8192(int n)
{
    put_and_delete(n, 8192);
}

void ctbench_put_delete_81920(int n)
{
    put_and_delete(n, 81920);
}

void ctbench_put_delete_wal_1024_fsync_000ms(int n)
{
    put_and_delete_logged(n, 1024, 1, 0);
}

void ctbench_put_delete_wal_1024_fsync_050ms(int n)
{
    put_and_delete_logged(n, 1024, 1, 50);
}

void ctbench_put_delete_wal_1024_fsync_200ms(int n)
{
    put_and_delete_logged(n, 1024, 1, 200);
}

void ctbench_put_delete_wal_1024_no_fsync(int n)
{
    put_and_delete_logged(n, 1024, 0, 0);
}

void ctbench_put_delete_wal_8192_fsync_000ms(int n)
{
    put_and_delete_logged(n, 8192, 1, 0);
}

void ctbench_put_delete_wal_8192_fsync_050ms(int n)
{
    put_and_delete_logged(n, 8192, 1, 50);
}

void ctbench_put_delete_wal_8192_fsync_200ms(int n)
{
    put_and_delete_logged(n, 8192, 1, 200);
}

void ctbench_put_delete_wal_8192_no_fsync(int n)
{
    put_and_delete_logged(n, 8192, 0, 0);
}
