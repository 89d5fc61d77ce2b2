/*
 * A program of its own: the compiler checks offsets and sizes, and running it proves that the
 * library links with C and that both agree on what lies where.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "dat.h"

#define SIZE(type, bytes) _Static_assert(sizeof(type) == (bytes), "size of " #type)
#define AT(type, member, place) \
    _Static_assert(offsetof(type, member) == (place), "place of " #type "." #member)

SIZE(byte, 1);
SIZE(uint, 4);
SIZE(int64, 8);
SIZE(uint64, 8);
SIZE(size_t, 8);

SIZE(Jobrec, 80);
AT(Jobrec, id, 0);
AT(Jobrec, pri, 8);
AT(Jobrec, delay, 16);
AT(Jobrec, ttr, 24);
AT(Jobrec, body_size, 32);
AT(Jobrec, created_at, 40);
AT(Jobrec, deadline_at, 48);
AT(Jobrec, reserve_ct, 56);
AT(Jobrec, timeout_ct, 60);
AT(Jobrec, release_ct, 64);
AT(Jobrec, bury_ct, 68);
AT(Jobrec, kick_ct, 72);
AT(Jobrec, state, 76);

SIZE(Job, 176);
AT(Job, r, 0);
AT(Job, pad, 80);
AT(Job, tube, 88);
AT(Job, prev, 96);
AT(Job, next, 104);
AT(Job, ht_next, 112);
AT(Job, heap_index, 120);
AT(Job, file, 128);
AT(Job, fnext, 136);
AT(Job, fprev, 144);
AT(Job, reserver, 152);
AT(Job, walresv, 160);
AT(Job, walused, 164);
AT(Job, body, 168);

SIZE(Heap, 40);
AT(Heap, cap, 0);
AT(Heap, len, 8);
AT(Heap, data, 16);
AT(Heap, less, 24);
AT(Heap, setpos, 32);

SIZE(Ms, 48);
AT(Ms, len, 0);
AT(Ms, cap, 8);
AT(Ms, last, 16);
AT(Ms, items, 24);
AT(Ms, oninsert, 32);
AT(Ms, onremove, 40);

SIZE(Tube, 592);
AT(Tube, refs, 0);
AT(Tube, name, 4);
SIZE(((Tube *)0)->name, 201);
AT(Tube, ready, 208);
AT(Tube, delay, 248);
AT(Tube, waiting_conns, 288);
AT(Tube, stat, 336);
AT(Tube, using_ct, 392);
AT(Tube, watching_ct, 396);
AT(Tube, pause, 400);
AT(Tube, unpause_at, 408);
AT(Tube, buried, 416);

SIZE(File, 224);
AT(File, next, 0);
AT(File, refs, 8);
AT(File, seq, 12);
AT(File, iswopen, 16);
AT(File, fd, 20);
AT(File, free, 24);
AT(File, resv, 28);
AT(File, path, 32);
AT(File, w, 40);
AT(File, jlist, 48);

SIZE(Wal, 104);
AT(Wal, filesize, 0);
AT(Wal, use, 4);
AT(Wal, dir, 8);
AT(Wal, head, 16);
AT(Wal, cur, 24);
AT(Wal, tail, 32);
AT(Wal, nfile, 40);
AT(Wal, next, 44);
AT(Wal, resv, 48);
AT(Wal, alive, 56);
AT(Wal, nmig, 64);
AT(Wal, nrec, 72);
AT(Wal, wantsync, 80);
AT(Wal, syncrate, 88);
AT(Wal, lastsync, 96);

SIZE(Socket, 32);
AT(Socket, fd, 0);
AT(Socket, f, 8);
AT(Socket, x, 16);
AT(Socket, added, 24);

SIZE(Server, 200);
AT(Server, port, 0);
AT(Server, addr, 8);
AT(Server, user, 16);
AT(Server, wal, 24);
AT(Server, sock, 128);
AT(Server, conns, 160);

SIZE(Conn, 848);

static int failures;

/* Not named assert: this program has no runner behind it. */
#define CHECK(x) ((void)((x) || (fprintf(stderr, "layout.c:%d: %s\n", __LINE__, #x), ++failures)))

static void check_settings(void)
{
    CHECK(strcmp(srv.port, Portdef) == 0);
    CHECK(!srv.addr && !srv.user);
    CHECK(srv.wal.filesize == Filesizedef);
    CHECK(!srv.wal.use && !srv.wal.dir);
    CHECK(srv.wal.wantsync == 1);
    CHECK(srv.wal.syncrate == DEFAULT_FSYNC_MS * (int64)1000000);
    CHECK(job_data_size_limit == JOB_DATA_SIZE_LIMIT_DEFAULT);
    CHECK(verbose == 0);
    CHECK(falloc == rawfalloc);
}

static void check_jobs(void)
{
    Tube *tube = make_tube("layout");
    Job *j = make_job_with_id(7, 2, 3, 4, tube, 12345);

    CHECK(strcmp(tube->name, "layout") == 0);
    CHECK(tube->refs == 1);
    CHECK(j->r.id == 12345 && j->r.pri == 7);
    CHECK(j->r.delay == 2 && j->r.ttr == 3 && j->r.body_size == 4);
    CHECK(j->tube == tube);
    CHECK(!j->ht_next);
    CHECK(job_find(12345) == j);
    job_setpos(j, 99);
    CHECK(j->heap_index == 99);

    tube_iref(tube);
    job_free(j);
    CHECK(!job_find(12345));
    CHECK(tube->refs == 1);
    tube_dref(tube);
}

static void check_heap(void)
{
    Heap h = {.less = job_pri_less, .setpos = job_setpos};
    Job *a = make_job(2, 0, 1, 0, NULL), *b = make_job(1, 0, 1, 0, NULL);

    CHECK(heapinsert(&h, a) == 1 && heapinsert(&h, b) == 1);
    CHECK(h.len == 2 && h.cap >= 2);
    CHECK(h.data[0] == b && h.data[1] == a);
    CHECK(a->heap_index == 1);
    CHECK(heapremove(&h, 1) == a && heapremove(&h, 0) == b);
    CHECK(h.len == 0);
    job_free(a);
    job_free(b);
    free(h.data);
}

static size_t inserted_at, removed_at;

static void on_insert(Ms *a, void *item, size_t at)
{
    UNUSED_PARAMETER(a);
    UNUSED_PARAMETER(item);
    inserted_at = at;
}

static void on_remove(Ms *a, void *item, size_t at)
{
    UNUSED_PARAMETER(a);
    UNUSED_PARAMETER(item);
    removed_at = at;
}

static void check_multiset(void)
{
    Ms *a = new(Ms);
    int x, y;

    ms_init(a, on_insert, on_remove);
    CHECK(a->oninsert == on_insert && a->onremove == on_remove);
    CHECK(ms_append(a, &x) && ms_append(a, &y));
    CHECK(a->len == 2 && a->cap >= 2);
    CHECK(a->items[0] == &x && a->items[1] == &y);
    CHECK(inserted_at == 1);
    CHECK(ms_remove(a, &y));
    CHECK(removed_at == 1);
    CHECK(ms_take(a) == &x);
    CHECK(a->last == 1);
    ms_clear(a);
    CHECK(a->len == 0 && !a->items);
    free(a);
}

int main(void)
{
    check_settings();
    check_jobs();
    check_heap();
    check_multiset();
    CHECK(nanoseconds() > 1500000000LL * 1000000000);
    printf("%s\n", failures ? "the library and dat.h differ" : "the library and dat.h agree");
    return failures != 0;
}
