/*
 * A server in a child process, and clients that talk to it in transcripts.
 *
 * Everything is static, so that these tests can be linked with others of the same interface.
 *
 * In texts that are sent or expected, `@3` stands for the id of the third job. The server of one
 * process counts ids from 1, and then `@3` is 3 and nothing else. A sharded server has ids of
 * another shape (CTESTS_MODE=sharded): there the first id that is met where `@3` is expected is the
 * third job's from then on.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ct/ct.h"
#include "dat.h"

#define SECOND 1000000000LL

/* Longest text of one call, and longest reply line. */
#define TEXT_LEN_MAX 1024
/* Most data of one statistics reply. */
#define DATA_LEN_MAX 8192
/* Jobs that one test can name. */
#define JOBS_MAX 128

#define TCP_HOST "127.0.0.1"
#define TCP_PORT "0"

/* How long a client waits for a line. */
static int reply_wait_ms = 5000;
/* Whether what is said is shown, for whoever reads the output of a failed test. */
static int chatty = 1;

/* ---- The server. */

static pid_t server_pid;

/* Ends the server, if there is one. It has to go at once and for no reason of its own. */
static inline void stop_server(void)
{
    int status = 0;

    if (server_pid == 0)
        return;
    kill(server_pid, SIGTERM);
    waitpid(server_pid, &status, 0);
    server_pid = 0;
    int killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM;
    assertf(killed || status == 0, "the server had ended by itself, status %#x", (uint)status);
}

static inline void on_sigterm(int signal)
{
    UNUSED_PARAMETER(signal);
    _exit(0);
}

/*
 * Starts a server with the settings of `srv` and its kin, on a socket that is open before it runs:
 * clients can connect at once. The socket of a server before it stays open, as a crash of the
 * parent's other children would leave it.
 */
static inline void start_server_on(char *host, char *port)
{
    static int stop_is_registered;

    progname = "ctests";
    srv.sock.fd = make_server_socket(host, port);
    assert(srv.sock.fd >= 0);

    /* What is still in a buffer would be printed by the child as well. */
    fflush(NULL);
    pid_t pid = fork();
    assert(pid >= 0);
    if (pid == 0) {
        signal(SIGTERM, on_sigterm);
        prot_init();
        srv_acquire_wal(&srv);
        srvserve(&srv);
        _exit(1);
    }
    server_pid = pid;
    if (!stop_is_registered)
        stop_is_registered = atexit(stop_server) == 0;
}

static inline void start_server(void)
{
    start_server_on(TCP_HOST, TCP_PORT);
}

/* Lets the servers from now on keep a binlog in the test's directory. */
static inline void use_binlog(int file_bytes, int wantsync, int sync_ms)
{
    srv.wal.use = 1;
    srv.wal.dir = ctdir();
    srv.wal.filesize = file_bytes;
    srv.wal.wantsync = wantsync;
    srv.wal.syncrate = sync_ms * (int64)1000000;
}

/* ---- Ids of jobs. */

static uint64 job_ids[JOBS_MAX];

static inline int ids_are_counted(void)
{
    const char *mode = getenv("CTESTS_MODE");

    return !mode || strcmp(mode, "sharded") != 0;
}

/* The id of a job that was met, or the number itself, which is then no job's id in any mode. */
static inline uint64 id_of(uint64 number)
{
    assert(number < JOBS_MAX);
    return ids_are_counted() || job_ids[number] == 0 ? number : job_ids[number];
}

/* Whether `id` is the job's, which it becomes if the job has none yet. */
static inline int is_id_of(uint64 number, uint64 id)
{
    assert(number < JOBS_MAX);
    if (ids_are_counted())
        return id == number;
    if (job_ids[number] == 0) {
        for (int i = 0; i < JOBS_MAX; i++)
            assertf(job_ids[i] != id, "id %llu was given twice", (unsigned long long)id);
        job_ids[number] = id;
    }
    return job_ids[number] == id;
}

/* Appends `text` to nothing in `out`, with ids in the places of jobs. */
static inline void put_ids_in(char *out, size_t size, const char *text)
{
    size_t len = 0;

    while (*text) {
        assert(len + 21 < size);
        if (*text == '@') {
            char *end;
            uint64 id = id_of(strtoul(text + 1, &end, 10));
            len += (size_t)sprintf(out + len, "%llu", (unsigned long long)id);
            text = end;
        } else {
            out[len++] = *text++;
        }
    }
    out[len] = '\0';
}

/* Whether a reply is the one that is wanted. */
static inline int matches(const char *want, const char *got)
{
    while (*want) {
        if (*want != '@') {
            if (*want++ != *got++)
                return 0;
            continue;
        }
        char *want_end, *got_end;
        uint64 number = strtoul(want + 1, &want_end, 10);
        uint64 id = strtoull(got, &got_end, 10);
        if (got_end == got || !is_id_of(number, id))
            return 0;
        want = want_end;
        got = got_end;
    }
    return *got == '\0';
}

/* ---- Clients. */

typedef struct {
    int fd;
    size_t start; /* first byte of `in` that is not read yet */
    size_t end;
    char in[4096];
} Client;

/* A client connected to the socket that was made last, of whatever kind. */
static inline Client *dial(void)
{
    struct sockaddr_storage addr;
    socklen_t len = sizeof addr;
    const int on = 1;
    Client *c = calloc(1, sizeof *c);

    assert(c);
    assert(getsockname(srv.sock.fd, (struct sockaddr *)&addr, &len) == 0);
    c->fd = socket(addr.ss_family, SOCK_STREAM, 0);
    assert(c->fd >= 0);
    assert(connect(c->fd, (struct sockaddr *)&addr, len) == 0);
    /* A body sent after its line must not wait for the line to be acknowledged. */
    if (addr.ss_family != AF_UNIX)
        assert(setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0);
    return c;
}

static inline void hang_up(Client *c)
{
    close(c->fd);
    free(c);
}

static inline void send_bytes(Client *c, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t sent = send(c->fd, bytes, len, MSG_NOSIGNAL);
        assertf(sent > 0, "the server has closed the connection");
        bytes += sent;
        len -= (size_t)sent;
    }
}

/* Sends a line, or several with CR LF between them, and the last CR LF. */
static inline void __attribute__((format(printf, 2, 3)))
tell(Client *c, const char *format, ...)
{
    char text[TEXT_LEN_MAX], line[TEXT_LEN_MAX];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof text);
    put_ids_in(line, sizeof line - 2, text);
    if (chatty)
        printf("%d> %s\n", c->fd, line);
    strcat(line, "\r\n");
    send_bytes(c, line, strlen(line));
}

static inline int64 monotonic_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline char read_byte(Client *c, int64 deadline_ms)
{
    if (c->start == c->end) {
        int64 left_ms = deadline_ms - monotonic_ms();
        struct pollfd ready = {.fd = c->fd, .events = POLLIN};
        int count = poll(&ready, 1, left_ms > 0 ? (int)left_ms : 0);
        assertf(count == 1, "no reply within %d ms", reply_wait_ms);
        ssize_t len = recv(c->fd, c->in, sizeof c->in, 0);
        assertf(len > 0, "the server has closed the connection");
        c->start = 0;
        c->end = (size_t)len;
    }
    return c->in[c->start++];
}

/* The next line without its CR LF, in memory that the next call uses again. */
static inline const char *read_line(Client *c)
{
    static char line[TEXT_LEN_MAX];
    int64 deadline_ms = monotonic_ms() + reply_wait_ms;
    size_t len = 0;

    while (len < 2 || line[len - 2] != '\r' || line[len - 1] != '\n') {
        assertf(len < sizeof line, "a line of more than %zu bytes", sizeof line);
        line[len++] = read_byte(c, deadline_ms);
    }
    line[len - 2] = '\0';
    if (chatty)
        printf("%d< %s\n", c->fd, line);
    return line;
}

/* Reads a line, or several where CR LF is in the text, and demands these. */
static inline void __attribute__((format(printf, 2, 3)))
expect(Client *c, const char *format, ...)
{
    char want[TEXT_LEN_MAX];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(want, sizeof want, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < sizeof want);
    for (char *line = want; line;) {
        char *line_end = strstr(line, "\r\n");
        if (line_end)
            *line_end = '\0';
        const char *got = read_line(c);
        assertf(matches(line, got), "wanted `%s`, got `%s`", line, got);
        line = line_end ? line_end + 2 : NULL;
    }
}

/* One command and its reply. */
static inline void ask(Client *c, const char *command, const char *reply)
{
    tell(c, "%s", command);
    expect(c, "%s", reply);
}

/* Commands that all get the same reply. */
#define ASK_EACH(c, reply, ...) ask_each((c), (reply), (const char *[]){__VA_ARGS__, NULL})

static inline void ask_each(Client *c, const char *reply, const char *const *commands)
{
    for (; *commands; commands++)
        ask(c, *commands, reply);
}

/* Puts a job with `len` bytes of body and a TTR of 100 s, and demands the reply. */
static inline void ask_put(Client *c, int len, const char *reply)
{
    char body[TEXT_LEN_MAX / 2];

    assert((size_t)len < sizeof body);
    memset(body, 'x', (size_t)len);
    tell(c, "put 0 0 100 %d\r\n%.*s", len, len, body);
    expect(c, "%s", reply);
}

/* ---- Statistics. */

/* Sends a command whose reply has data, and gives the data. */
static inline const char *ask_data(Client *c, const char *command)
{
    static char data[DATA_LEN_MAX];
    size_t len;

    tell(c, "%s", command);
    const char *line = read_line(c);
    assertf(sscanf(line, "OK %zu", &len) == 1, "wanted `OK <n>`, got `%s`", line);
    assert(len < sizeof data);
    int64 deadline_ms = monotonic_ms() + reply_wait_ms;
    for (size_t i = 0; i < len; i++)
        data[i] = read_byte(c, deadline_ms);
    data[len] = '\0';
    if (chatty)
        printf("%s", data);
    expect(c, "%s", "");
    return data;
}

static inline void expect_data(Client *c, const char *command, const char *want)
{
    const char *got = ask_data(c, command);

    assertf(strcmp(got, want) == 0, "wanted\n%s, got\n%s", want, got);
}

/* Whether `line` is one of the lines of the data. */
static inline int has_line(const char *data, const char *line)
{
    char whole[TEXT_LEN_MAX];

    snprintf(whole, sizeof whole, "\n%s\n", line);
    return strstr(data, whole) != NULL;
}

/* Demands each of the lines among the statistics that a command gives. */
#define EXPECT_STATS(c, command, ...) \
    expect_stats((c), (command), (const char *[]){__VA_ARGS__, NULL})

static inline void expect_stats(Client *c, const char *command, const char *const *lines)
{
    const char *data = ask_data(c, command);

    for (; *lines; lines++)
        assertf(has_line(data, *lines), "no line `%s` in\n%s", *lines, data);
}

static inline void sleep_ms(int ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000L};

    nanosleep(&time, NULL);
}

/* Asks until the line is there, as long as one waits for a reply. */
static inline void await_stat(Client *c, const char *command, const char *line)
{
    int64 deadline_ms = monotonic_ms() + reply_wait_ms;

    while (!has_line(ask_data(c, command), line)) {
        assertf(monotonic_ms() < deadline_ms, "`%s` never came to be", line);
        sleep_ms(5);
    }
}

#endif
