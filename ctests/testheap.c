/*
 * The heap: order, places told to the elements, removal from the middle.
 */
#include <stdlib.h>

#include "ct/ct.h"
#include "dat.h"

#define MANY 20
#define ROUND_JOBS 50
#define ROUNDS 50

static Heap empty_heap(void)
{
    return (Heap){.less = job_pri_less, .setpos = job_setpos};
}

static Job *job_of(uint pri)
{
    Job *j = make_job(pri, 0, 1, 0, NULL);

    assert(j);
    return j;
}

static void insert(Heap *h, Job *j)
{
    size_t len = h->len;

    assert(heapinsert(h, j) == 1);
    assert(h->len == len + 1);
    assertf(h->data[j->heap_index] == j, "job %llu is not where it was told",
            (unsigned long long)j->r.id);
}

/* Takes the first out and demands that it is `want`. */
static void remove_first(Heap *h, Job *want)
{
    size_t len = h->len;

    assert(heapremove(h, 0) == want);
    assert(h->len == len - 1);
}

/* Fills the heap with jobs of priorities that rand gives, the same in every run. */
static void insert_random(Heap *h, int count)
{
    for (int i = 0; i < count; i++)
        insert(h, job_of(1 + (uint)rand() % 8192));
}

/* Takes `count` jobs out and demands that they come in order and are all there were. */
static void remove_in_order(Heap *h, int count)
{
    Job *before = NULL;

    for (int i = 0; i < count; i++) {
        Job *j = heapremove(h, 0);
        assert(j);
        assertf(!before || job_pri_less(before, j), "pri %u came before pri %u",
                before->r.pri, j->r.pri);
        job_free(before);
        before = j;
    }
    job_free(before);
    assert(h->len == 0);
    assert(heapremove(h, 0) == NULL);
}

void cttest_heap_insert_one(void)
{
    Heap h = empty_heap();
    Job *j = job_of(1);

    j->heap_index = 99;
    insert(&h, j);
    assert(h.len == 1);
    assert(j->heap_index == 0);
    assert(heapremove(&h, 0) != NULL);
    job_free(j);
    free(h.data);
}

void cttest_heap_insert_and_remove_one(void)
{
    Heap h = empty_heap();
    Job *j = job_of(1);

    insert(&h, j);
    remove_first(&h, j);
    assert(h.len == 0);
    job_free(j);
    free(h.data);
}

void cttest_heap_priority(void)
{
    Heap h = empty_heap();
    Job *first = job_of(1), *second = job_of(2), *third = job_of(3);

    insert(&h, second);
    assert(second->heap_index == 0);

    insert(&h, third);
    assert(second->heap_index == 0);
    assert(third->heap_index == 1);

    insert(&h, first);
    assert(first->heap_index == 0);
    assert(third->heap_index == 1);
    assert(second->heap_index == 2);

    remove_first(&h, first);
    assert(second->heap_index == 0);
    assert(third->heap_index == 1);

    remove_first(&h, second);
    assert(third->heap_index == 0);

    remove_first(&h, third);
    free(h.data);
}

void cttest_heap_fifo_property(void)
{
    Heap h = empty_heap();
    Job *jobs[3];

    for (size_t i = 0; i < 3; i++) {
        jobs[i] = job_of(3);
        insert(&h, jobs[i]);
        for (size_t k = 0; k <= i; k++) {
            assert(h.data[k] == jobs[k]);
            assert(jobs[k]->heap_index == k);
        }
    }

    remove_first(&h, jobs[0]);
    assert(jobs[1]->heap_index == 0);
    assert(jobs[2]->heap_index == 1);

    remove_first(&h, jobs[1]);
    assert(jobs[2]->heap_index == 0);

    remove_first(&h, jobs[2]);
    free(h.data);
}

void cttest_heap_many_jobs(void)
{
    Heap h = empty_heap();

    insert_random(&h, MANY);
    remove_in_order(&h, MANY);
    free(h.data);
}

void cttest_heap_remove_k(void)
{
    Heap h = empty_heap();

    for (int round = 0; round < ROUNDS; round++) {
        insert_random(&h, ROUND_JOBS);
        Job *middle = h.data[ROUND_JOBS / 2];
        assert(heapremove(&h, ROUND_JOBS / 2) == middle);
        for (size_t k = 0; k < h.len; k++) {
            Job *j = h.data[k];
            assert(j != middle);
            assert(j->heap_index == k);
        }
        job_free(middle);
        remove_in_order(&h, ROUND_JOBS - 1);
    }
    free(h.data);
}

static Job **jobs_for(int n)
{
    Job **jobs = calloc((size_t)n, sizeof *jobs);

    assert(jobs);
    return jobs;
}

/* Each new job rises from the last place to the first. */
void ctbench_heap_insert(int n)
{
    Heap h = empty_heap();
    Job **jobs = jobs_for(n);

    for (int i = 0; i < n; i++)
        jobs[i] = job_of((uint)-(i + 1));
    ctresettimer();
    for (int i = 0; i < n; i++)
        heapinsert(&h, jobs[i]);
    ctstoptimer();

    for (int i = 0; i < n; i++)
        job_free(jobs[i]);
    free(jobs);
    free(h.data);
}

void ctbench_heap_remove(int n)
{
    Heap h = empty_heap();
    Job **jobs = jobs_for(n);

    for (int i = 0; i < n; i++) {
        jobs[i] = job_of(1);
        insert(&h, jobs[i]);
    }
    ctresettimer();
    for (int i = 0; i < n; i++)
        heapremove(&h, 0);
    ctstoptimer();

    for (int i = 0; i < n; i++)
        job_free(jobs[i]);
    free(jobs);
    free(h.data);
}
