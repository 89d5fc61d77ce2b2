/*
 * What C tests of this interface may touch: types, constants and the library's symbols.
 *
 * The library is written in Rust and declares the same structures with `repr(C)`, so offsets and
 * sizes here are a contract: LP64 only, checked by layout.c. Members that no test reads are there
 * for their size; their names are as good as any, their places are not.
 */
#ifndef DAT_H
#define DAT_H

#include <stdint.h>
#include <stdlib.h>

typedef unsigned char byte;
typedef unsigned int uint;
typedef int64_t int64;
typedef uint64_t uint64;

typedef struct Jobrec Jobrec;
typedef struct Job Job;
typedef struct Tube Tube;
typedef struct Heap Heap;
typedef struct Ms Ms;
typedef struct File File;
typedef struct Wal Wal;
typedef struct Socket Socket;
typedef struct Server Server;
typedef struct Conn Conn;

/* Port to listen at when -p is not given. */
#define Portdef "11300"
/* Bytes of a binlog file when -s is not given. */
#define Filesizedef 10485760
/* Milliseconds between syncs of the binlog when -f is not given. */
#define DEFAULT_FSYNC_MS 50
/* Most bytes of a body, its CR LF not counted: without -z, and with any -z. */
#define JOB_DATA_SIZE_LIMIT_DEFAULT 65535
#define JOB_DATA_SIZE_LIMIT_MAX 1073741824

#define UNUSED_PARAMETER(x) ((void)(x))

/* A zeroed T of one's own; given back by free. */
#define new(T) ((T *)zalloc(sizeof(T)))

/* Warnings that say where they come from. */
#define twarn(format, ...) \
    warn("%s:%d in %s: " format, __FILE__, __LINE__, __func__, ##__VA_ARGS__)
#define twarnx(format, ...) \
    warnx("%s:%d in %s: " format, __FILE__, __LINE__, __func__, ##__VA_ARGS__)

/* Lets variable `a` refer to tube `b` instead of the one before. `b` is evaluated once. */
#define TUBE_ASSIGN(a, b) (tube_dref(a), (a) = (b), tube_iref(a))

/* A job with the next id. */
#define make_job(pri, delay, ttr, body_size, tube) \
    make_job_with_id((pri), (delay), (ttr), (body_size), (tube), 0)

/* Binary heap of any things. All zero but for the two functions is a valid empty one. */
struct Heap {
    size_t cap;
    size_t len;
    void **data; /* from malloc; whoever made the heap frees it */
    int (*less)(void *, void *);
    void (*setpos)(void *, size_t); /* told each new place of an element */
};

/* Multiset that is taken from in turn. */
struct Ms {
    size_t len;
    size_t cap;
    size_t last; /* where the next is taken */
    void **items;
    void (*oninsert)(Ms *, void *, size_t);
    void (*onremove)(Ms *, void *, size_t);
};

/* The part of a job that the binlog keeps, as it lies on disk. Times are nanoseconds. */
struct Jobrec {
    uint64 id;
    uint32_t pri;
    int64 delay;
    int64 ttr;
    int32_t body_size; /* with CR LF */
    int64 created_at;
    int64 deadline_at;
    uint32_t reserve_ct;
    uint32_t timeout_ct;
    uint32_t release_ct;
    uint32_t bury_ct;
    uint32_t kick_ct;
    byte state;
};

struct Job {
    Jobrec r;
    byte pad[8];
    Tube *tube;
    Job *prev;
    Job *next;
    Job *ht_next; /* next in the same bucket of the table of ids */
    size_t heap_index;
    File *file;
    Job *fnext;
    Job *fprev;
    void *reserver;
    int walresv;
    int walused;
    char *body;
};

struct Tube {
    uint refs;
    char name[201];
    Heap ready;
    Heap delay;
    Ms waiting_conns;
    uint64 stat[7]; /* urgent, waiting, buried, reserved, pause, deletes, total jobs */
    uint using_ct;
    uint watching_ct;
    int64 pause;
    int64 unpause_at;
    Job buried; /* head of a list */
};

struct File {
    File *next;
    uint refs;
    int seq;
    int iswopen;
    int fd;
    int free;
    int resv;
    char *path;
    Wal *w;
    Job jlist; /* head of a list */
};

struct Wal {
    int filesize;
    int use;
    char *dir;
    File *head;
    File *cur;
    File *tail;
    int nfile;
    int next;
    int64 resv;
    int64 alive;
    int64 nmig;
    int64 nrec;
    int wantsync;
    int64 syncrate; /* nanoseconds */
    int64 lastsync;
};

struct Socket {
    int fd;
    void (*f)(void *, int);
    void *x;
    int added;
};

struct Server {
    char *port;
    char *addr;
    char *user;
    Wal wal;
    Socket sock;
    Heap conns;
};

/* No test looks into a connection: only its size is part of the interface. */
struct Conn {
    uint64 opaque[106];
};

/* The one server. Tests write to it before they start it. */
extern Server srv;
/* First part of a warning. Tests store the name of a function, hence the const. */
extern const char *progname;
/* How often -V was given. */
extern int verbose;
/* Limit of a body's bytes, in force from the next put on. */
extern size_t job_data_size_limit;

/* Makes room for `len` bytes in a new binlog file: 0 or an errno. Tests put their own in. */
extern int (*falloc)(int fd, int len);
/* What falloc is at first. */
int rawfalloc(int fd, int len);

/* A listening descriptor or -1. `host` may be "unix:PATH", with null for `port`. */
int make_server_socket(char *host, char *port);
void prot_init(void);
void enter_drain_mode(int signal);
void srv_acquire_wal(Server *s);
/* Never returns. */
void srvserve(Server *s);

/* The wall clock. */
int64 nanoseconds(void);
/* `words` are those behind the program's name; null ends them. Errors leave by exit. */
void optparse(Server *s, char **words);

void *zalloc(int size);
char *fmtalloc(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void warnx(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A tube nobody refers to yet. */
Tube *make_tube(const char *name);
void tube_iref(Tube *t);
void tube_dref(Tube *t);

/* A job in the table of ids. Id 0 stands for the next one; `tube` may be null. */
Job *make_job_with_id(uint32_t pri, int64 delay, int64 ttr, int body_size, Tube *tube, uint64 id);
/* A job outside the table, with id 0. */
Job *allocate_job(int body_size);
Job *job_find(uint64 id);
void job_free(Job *j);
int job_pri_less(void *a, void *b);
void job_setpos(void *job, size_t at);
size_t get_all_jobs_used(void);

/* 1, or 0 without memory. */
int heapinsert(Heap *h, void *x);
/* The element at `k`, taken out, or null. */
void *heapremove(Heap *h, size_t k);

void ms_init(Ms *a, void (*oninsert)(Ms *, void *, size_t), void (*onremove)(Ms *, void *, size_t));
int ms_append(Ms *a, void *item);
int ms_remove(Ms *a, void *item);
int ms_contains(Ms *a, void *item);
void ms_clear(Ms *a);
void *ms_take(Ms *a);

#endif
