/*
 * The protocol over a socket, against a server that keeps nothing on disk.
 */
#include "client.h"

/* Not numbers: what looks like one at either end, and what looks like none. */
#define TOO_BIG_U64 "18446744073709551616"
#define FAR_TOO_BIG "184467440737095516161844674407370955161618446744"
#define PUNCTUATION "!#$%^&*()"

/* A client of a fresh server with default settings. */
static Client *new_server(void)
{
    start_server();
    return dial();
}

static char *unix_host(void)
{
    char *host = fmtalloc("unix:%s/socket", ctdir());

    assert(host);
    return host;
}

static const char *unix_path(void)
{
    return unix_host() + strlen("unix:");
}

static int is_socket(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

/* ---- Lines and connections. */

void cttest_unknown_command(void)
{
    Client *c = new_server();

    ask(c, "frobnicate", "UNKNOWN_COMMAND");
}

void cttest_too_long_commandline(void)
{
    Client *c = new_server();
    char letters[50];

    memset(letters, 'w', sizeof letters);
    for (int i = 0; i < 10; i++)
        send_bytes(c, letters, sizeof letters);
    ask(c, "", "BAD_FORMAT");
    /* Nothing of the long line is left over. */
    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
}

void cttest_longest_command(void)
{
    Client *c = new_server();
    char name[201] = "";

    memset(name, 'a', 200);
    tell(c, "use %s", name);
    expect(c, "USING %s", name);
    /* With CR LF this is as long as the buffer for a line. */
    tell(c, "pause-tube %s 4294967295", name);
    expect(c, "PAUSED");
}

void cttest_2cmdpacket(void)
{
    Client *c = new_server();

    ask(c, "use a\r\nuse b", "USING a\r\nUSING b");
}

void cttest_peek_ok_unix(void)
{
    start_server_on(unix_host(), NULL);
    assert(is_socket(unix_path()));
    Client *c = dial();
    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ask(c, "peek @1", "FOUND @1 1\r\na");
}

void cttest_unix_auto_removal(void)
{
    start_server_on(unix_host(), NULL);
    ask(dial(), "use before", "USING before");
    stop_server();
    assert(is_socket(unix_path()));

    start_server_on(unix_host(), NULL);
    assert(is_socket(unix_path()));
    ask(dial(), "use after", "USING after");
}

void cttest_put_in_drain(void)
{
    enter_drain_mode(SIGUSR1);
    Client *c = new_server();
    ask(c, "put 0 0 1 1\r\nx", "DRAINING");
}

/* ---- What put takes. */

void cttest_negative_delay(void)
{
    Client *c = new_server();

    ask(c, "put 512 -1 100 0", "BAD_FORMAT");
}

void cttest_garbage_priority(void)
{
    Client *c = new_server();

    /* Whether the body behind it is skipped or is a line of its own is not looked at here. */
    ask(c, "put -1kkdj9djjkd9 0 100 1\r\na", "BAD_FORMAT");
}

void cttest_negative_priority(void)
{
    Client *c = new_server();

    ask(c, "put -1 0 100 0", "BAD_FORMAT");
}

void cttest_max_priority(void)
{
    Client *c = new_server();

    ask(c, "put 4294967295 0 100 0\r\n", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "pri: 4294967295");
}

void cttest_too_big_priority(void)
{
    Client *c = new_server();

    ask(c, "put 4294967296 0 100 0", "BAD_FORMAT");
}

void cttest_too_big(void)
{
    job_data_size_limit = 10;
    Client *c = new_server();

    /* The body of 11 bytes looks like a command, but is none: there is no reply to it. */
    ask(c, "put 0 0 0 11\r\ndelete 9999\r\nput 0 0 0 1\r\nx", "JOB_TOO_BIG\r\nINSERTED @1");
}

void cttest_job_size_invalid(void)
{
    job_data_size_limit = JOB_DATA_SIZE_LIMIT_MAX;
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "put 0 0 0 4294967296", "put 0 0 0 10b", "put 0 0 0 " PUNCTUATION);
    ask(c, "put 0 0 0 1\r\nx", "INSERTED @1");
}

void cttest_job_size_max_plus_1(void)
{
    static char block[1 << 20];

    job_data_size_limit = JOB_DATA_SIZE_LIMIT_MAX;
    Client *c = new_server();
    EXPECT_STATS(c, "stats", "max-job-size: 1073741824");

    memset(block, 'x', sizeof block);
    tell(c, "put 0 0 0 %d", JOB_DATA_SIZE_LIMIT_MAX + 1);
    for (size_t sent = 0; sent < JOB_DATA_SIZE_LIMIT_MAX; sent += sizeof block)
        send_bytes(c, block, sizeof block);
    ask(c, "x", "JOB_TOO_BIG");
    ask(c, "put 0 0 0 1\r\nx", "INSERTED @1");
}

void cttest_zero_delay(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 0\r\n", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "state: ready");
}

void cttest_small_delay(void)
{
    Client *c = new_server();

    ask(c, "put 0 1 1 0\r\n", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "state: delayed", "delay: 1");
}

void cttest_delayed_to_ready(void)
{
    Client *c = new_server();

    ask(c, "put 0 1 1 0\r\n", "INSERTED @1");
    EXPECT_STATS(c, "stats-tube default", "current-jobs-ready: 0", "current-jobs-delayed: 1",
                 "total-jobs: 1");
    sleep_ms(1010);
    EXPECT_STATS(c, "stats-tube default", "current-jobs-ready: 1", "current-jobs-delayed: 0",
                 "total-jobs: 1");
}

void cttest_ttrlarge(void)
{
    static const int ttrs[] = {120, 4294, 4295, 4296, 4297, 5000, 21600};
    Client *c = new_server();

    for (int i = 0; i < (int)(sizeof ttrs / sizeof *ttrs); i++) {
        char *command = fmtalloc("stats-job @%d", i + 1);
        char *line = fmtalloc("ttr: %d", ttrs[i]);
        tell(c, "put 0 0 %d 1\r\na", ttrs[i]);
        expect(c, "INSERTED @%d", i + 1);
        EXPECT_STATS(c, command, line);
        free(command);
        free(line);
    }
}

void cttest_ttr_small(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 0 1\r\na", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "ttr: 1");
}

/* ---- Peek, touch, bury, kick, delete. */

void cttest_peek_ok(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ask(c, "peek @1", "FOUND @1 1\r\na");
}

void cttest_peek_not_found(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ASK_EACH(c, "NOT_FOUND", "peek @2", "peek 18446744073709551615");
}

void cttest_peek_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "peek " TOO_BIG_U64, "peek " FAR_TOO_BIG, "peek foo111",
             "peek 111foo");
}

void cttest_peek_delayed(void)
{
    Client *c = new_server();

    ask(c, "peek-delayed", "NOT_FOUND");
    ask(c, "put 0 0 1 1\r\nA", "INSERTED @1");
    ask(c, "put 0 99 1 1\r\nB", "INSERTED @2");
    ask(c, "put 0 1 1 1\r\nC", "INSERTED @3");

    ask(c, "peek-delayed", "FOUND @3 1\r\nC");
    ask(c, "delete @3", "DELETED");
    ask(c, "peek-delayed", "FOUND @2 1\r\nB");
    ask(c, "delete @2", "DELETED");
    ask(c, "peek-delayed", "NOT_FOUND");
}

void cttest_peek_buried_kick(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\nA", "INSERTED @1");
    ask(c, "bury @1 0", "NOT_FOUND");
    ask(c, "peek-buried", "NOT_FOUND");

    ask(c, "reserve-with-timeout 0", "RESERVED @1 1\r\nA");
    ask(c, "bury @1 0", "BURIED");
    ask(c, "peek-buried", "FOUND @1 1\r\nA");

    ask(c, "kick 1", "KICKED 1");
    ask(c, "peek-buried", "NOT_FOUND");
    ask(c, "peek-ready", "FOUND @1 1\r\nA");
    ask(c, "kick 1", "KICKED 0");
}

void cttest_touch_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "touch a111", "touch 111a", "touch " PUNCTUATION);
}

void cttest_touch_not_found(void)
{
    Client *c = new_server();

    ASK_EACH(c, "NOT_FOUND", "touch 1", "touch 100000000000000");
}

void cttest_bury_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "bury 111abc 2", "bury 111", "bury 111 222abc");
}

void cttest_kickjob_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "kick-job a111", "kick-job 111a", "kick-job " PUNCTUATION);
}

void cttest_kickjob_buried(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ask(c, "reserve", "RESERVED @1 1\r\na");
    ask(c, "bury @1 0", "BURIED");

    ask(c, "kick-job @100", "NOT_FOUND");
    ask(c, "kick-job @1", "KICKED");
    ask(c, "kick-job @1", "NOT_FOUND");
}

void cttest_kickjob_delayed(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ask(c, "put 0 10 1 1\r\na", "INSERTED @2");

    ask(c, "kick-job @1", "NOT_FOUND");
    ask(c, "kick-job @2", "KICKED");
    ask(c, "kick-job @2", "NOT_FOUND");
}

void cttest_delete_ready(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 0 0\r\n", "INSERTED @1");
    ask(c, "delete @1", "DELETED");
    ask(c, "delete @1", "NOT_FOUND");
}

void cttest_delete_reserved_by_other(void)
{
    Client *producer = new_server(), *worker = dial();

    ask(producer, "put 0 0 100 1\r\na", "INSERTED @1");
    ask(worker, "reserve", "RESERVED @1 1\r\na");
    ask(producer, "delete @1", "NOT_FOUND");
    ask(worker, "delete @1", "DELETED");
}

void cttest_delete_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "delete " TOO_BIG_U64, "delete " FAR_TOO_BIG, "delete foo111",
             "delete 111foo");
}

void cttest_release_bad_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "release " TOO_BIG_U64 " 1 1", "release " FAR_TOO_BIG " 1 1",
             "release foo111 1 1", "release 111foo 1 1", "release 18 abc 1", "release 18 1 abc");
}

void cttest_release_not_found(void)
{
    Client *c = new_server();

    ask(c, "release 1 1 1", "NOT_FOUND");
}

/* ---- Reserve. */

void cttest_reserve_with_timeout_2conns(void)
{
    Client *waiting = new_server(), *other = dial();

    ask(waiting, "watch foo", "WATCHING 2");
    int64 start = nanoseconds();
    tell(waiting, "reserve-with-timeout 1");
    ask(other, "watch foo", "WATCHING 2");

    reply_wait_ms = 1100;
    expect(waiting, "TIMED_OUT");
    assert(nanoseconds() - start >= SECOND);
}

void cttest_reserve_ttr_deadline_soon(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 1 1\r\na", "INSERTED @1");
    ask(c, "reserve-with-timeout 1", "RESERVED @1 1\r\na");
    sleep_ms(200);
    EXPECT_STATS(c, "stats-job @1", "state: reserved");

    ask(c, "reserve-with-timeout 1", "DEADLINE_SOON");
    EXPECT_STATS(c, "stats-job @1", "state: reserved");
    ask(c, "release @1 0 0", "RELEASED");
    EXPECT_STATS(c, "stats-job @1", "state: ready");
}

void cttest_reserve_job_ttr_deadline_soon(void)
{
    Client *c = new_server();

    ask(c, "put 0 5 1 1\r\na", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "state: delayed");
    ask(c, "reserve-job @1", "RESERVED @1 1\r\na");
    sleep_ms(100);
    EXPECT_STATS(c, "stats-job @1", "state: reserved");

    ask(c, "reserve-with-timeout 1", "DEADLINE_SOON");
    EXPECT_STATS(c, "stats-job @1", "state: reserved");

    sleep_ms(1000);
    ask(c, "put 0 5 1 1\r\na", "INSERTED @2");
    EXPECT_STATS(c, "stats-job @1", "state: ready", "timeouts: 1");
}

void cttest_reserve_job_already_reserved(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 100 1\r\na", "INSERTED @1");
    ask(c, "reserve-job @1", "RESERVED @1 1\r\na");
    ask(c, "reserve-job @1", "NOT_FOUND");
    EXPECT_STATS(c, "stats-job @1", "state: reserved", "reserves: 1");
}

void cttest_reserve_job_ready(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 100 1\r\na", "INSERTED @1");
    ask(c, "put 0 0 100 1\r\nb", "INSERTED @2");

    ask(c, "reserve-job @2", "RESERVED @2 1\r\nb");
    ask(c, "reserve-job @3", "NOT_FOUND");
    ask(c, "release @1 0 0", "NOT_FOUND");
    ask(c, "release @2 0 0", "RELEASED");
}

void cttest_reserve_job_delayed(void)
{
    Client *c = new_server();

    ask(c, "put 0 100 100 1\r\na", "INSERTED @1");
    ask(c, "put 0 100 100 1\r\nb", "INSERTED @2");
    ask(c, "put 0 100 100 1\r\nc", "INSERTED @3");

    ask(c, "reserve-job @2", "RESERVED @2 1\r\nb");
    ask(c, "release @2 0 0", "RELEASED");
    EXPECT_STATS(c, "stats-job @2", "state: ready");
    EXPECT_STATS(c, "stats-job @1", "state: delayed");
}

void cttest_reserve_job_buried(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 100 1\r\na", "INSERTED @1");
    ask(c, "put 0 0 100 1\r\nb", "INSERTED @2");
    ask(c, "reserve-job @1", "RESERVED @1 1\r\na");
    ask(c, "bury @1 1", "BURIED");
    ask(c, "reserve-job @2", "RESERVED @2 1\r\nb");
    ask(c, "bury @2 1", "BURIED");

    ask(c, "reserve-job @2", "RESERVED @2 1\r\nb");
    ask(c, "reserve-job @1", "RESERVED @1 1\r\na");
    ask(c, "release @2 1 0", "RELEASED");
    EXPECT_STATS(c, "stats-job @2", "state: ready");
    ask(c, "release @1 1 0", "RELEASED");
    EXPECT_STATS(c, "stats-job @1", "state: ready");
}

/* A client that has waited for the job of another, and got it. */
static Client *worker_of_first_job(Client *producer)
{
    Client *worker = dial();

    tell(worker, "reserve");
    await_stat(producer, "stats-tube default", "current-waiting: 1");
    ask(producer, "put 0 0 100 1\r\na", "INSERTED @1");
    expect(worker, "RESERVED @1 1\r\na");
    EXPECT_STATS(producer, "stats-job @1", "state: reserved");
    return worker;
}

void cttest_close_releases_job(void)
{
    Client *c = new_server();

    hang_up(worker_of_first_job(c));
    ask(c, "reserve-with-timeout 1", "RESERVED @1 1\r\na");
}

void cttest_quit_releases_job(void)
{
    Client *c = new_server();

    tell(worker_of_first_job(c), "quit");
    ask(c, "reserve-with-timeout 1", "RESERVED @1 1\r\na");
}

/* ---- Tubes. */

void cttest_underscore(void)
{
    Client *c = new_server();

    ask(c, "use x_y", "USING x_y");
}

void cttest_use_tube_long(void)
{
    Client *c = new_server();
    char name[202] = "";

    memset(name, '0', 200);
    tell(c, "use %s", name);
    expect(c, "USING %s", name);
    name[200] = '0';
    ask(c, fmtalloc("use %s", name), "BAD_FORMAT");
}

void cttest_multi_tube(void)
{
    Client *c = new_server();

    ask(c, "use abc", "USING abc");
    ask(c, "put 999999 0 0 0\r\n", "INSERTED @1");
    ask(c, "use def", "USING def");
    ask(c, "put 99 0 0 0\r\n", "INSERTED @2");
    ask(c, "watch abc", "WATCHING 2");
    ask(c, "watch def", "WATCHING 3");
    ask(c, "reserve", "RESERVED @2 0\r\n");
}

void cttest_list_tube(void)
{
    Client *c = new_server();

    ask(c, "watch w", "WATCHING 2");
    ask(c, "use u", "USING u");
    expect_data(c, "list-tubes", "---\n- default\n- w\n- u\n");
    ask(c, "list-tube-used", "USING u");
    expect_data(c, "list-tubes-watched", "---\n- default\n- w\n");

    ask(c, "ignore default", "WATCHING 1");
    expect_data(c, "list-tubes-watched", "---\n- w\n");
    ask(c, "ignore w", "NOT_IGNORED");
}

void cttest_pause(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 0 1\r\nx", "INSERTED @1");
    int64 start = nanoseconds();
    ask(c, "pause-tube default 1", "PAUSED");
    ask(c, "reserve", "RESERVED @1 1\r\nx");
    assert(nanoseconds() - start >= SECOND);
}

void cttest_unpause_tube(void)
{
    Client *c = new_server(), *waiting = dial();

    ask(c, "put 0 0 0 0\r\n", "INSERTED @1");
    ask(c, "pause-tube default 86400", "PAUSED");
    tell(waiting, "reserve");
    await_stat(c, "stats-tube default", "current-waiting: 1");
    EXPECT_STATS(c, "stats-tube default", "current-jobs-ready: 1", "pause: 86400");

    ask(c, "pause-tube default 0", "PAUSED");
    expect(waiting, "RESERVED @1 0\r\n");
}

/* ---- Statistics. */

void cttest_omit_time_left(void)
{
    Client *c = new_server();

    ask(c, "put 0 0 5 1\r\na", "INSERTED @1");
    EXPECT_STATS(c, "stats-job @1", "state: ready", "time-left: 0");
}

void cttest_statsjob_ck_format(void)
{
    Client *c = new_server();

    ASK_EACH(c, "BAD_FORMAT", "stats-job 111ABC", "stats-job 111 222");
    ask(c, "stats-job 111", "NOT_FOUND");
}

/* All that stats-tube says of a tube; what is not given is 0. */
typedef struct {
    const char *name;
    int total_jobs;
    int using_count;
    int watching_count;
    int delete_count;
} TubeStats;

static void expect_tube_stats(Client *c, TubeStats want)
{
    char *command = fmtalloc("stats-tube %s", want.name);
    char *data = fmtalloc("---\n"
                          "name: \"%s\"\n"
                          "current-jobs-urgent: 0\n"
                          "current-jobs-ready: 0\n"
                          "current-jobs-reserved: 0\n"
                          "current-jobs-delayed: 0\n"
                          "current-jobs-buried: 0\n"
                          "total-jobs: %d\n"
                          "current-using: %d\n"
                          "current-watching: %d\n"
                          "current-waiting: 0\n"
                          "cmd-delete: %d\n"
                          "cmd-pause-tube: 0\n"
                          "pause: 0\n"
                          "pause-time-left: 0\n",
                          want.name, want.total_jobs, want.using_count, want.watching_count,
                          want.delete_count);

    expect_data(c, command, data);
    free(command);
    free(data);
}

void cttest_stats_tube(void)
{
    Client *c = new_server();

    ask(c, "use tubea", "USING tubea");
    ask(c, "put 0 0 0 1\r\nx", "INSERTED @1");
    ask(c, "delete @1", "DELETED");

    TubeStats used = {"tubea", .total_jobs = 1, .using_count = 1, .delete_count = 1};
    expect_tube_stats(c, used);
    expect_tube_stats(c, (TubeStats){"default", .watching_count = 1});
}
