/*
 * Jobs and the table of ids.
 */
#include "ct/ct.h"
#include "dat.h"

/* Two ids of one bucket: the table starts with 12289 buckets, and an id's is its remainder. */
#define ID 97
#define ID_IN_SAME_BUCKET (ID + 12289)

static Tube *tube;

static Job *job_in_tube(uint pri, uint64 id)
{
    if (!tube)
        TUBE_ASSIGN(tube, make_tube("default"));
    assert(tube);
    Job *j = make_job_with_id(pri, 0, 1, 0, tube, id);
    assert(j);
    return j;
}

void cttest_job_creation(void)
{
    Job *j = job_in_tube(1, 0);

    assert(j->r.pri == 1);
    assert(j->r.id == 1);
}

void cttest_job_cmp_pris(void)
{
    Job *urgent = job_in_tube(1, 0), *other = job_in_tube(1 << 27, 0);

    assert(job_pri_less(urgent, other));
    assert(!job_pri_less(other, urgent));
}

void cttest_job_cmp_ids(void)
{
    Job *older = job_in_tube(1, 0), *newer = job_in_tube(1, 0);

    /* Cut to 32 bits the new id would be 0, and so the lesser one. */
    newer->r.id <<= 49;
    assert(job_pri_less(older, newer));
    assert(!job_pri_less(newer, older));
}

void cttest_job_large_pris(void)
{
    Job *urgent = job_in_tube(1, 0), *large = job_in_tube((uint)-5, 0);

    assert(large->r.pri == 4294967291u);
    assert(job_pri_less(urgent, large));
    assert(!job_pri_less(large, urgent));
}

void cttest_job_hash_free(void)
{
    Job *j = job_in_tube(0, 83);

    assert(job_find(83) == j);
    job_free(j);
    assert(job_find(83) == NULL);
}

void cttest_job_hash_free_next(void)
{
    Job *first = job_in_tube(0, ID_IN_SAME_BUCKET), *second = job_in_tube(0, ID);

    assert(second->ht_next == first);
    assert(first->ht_next == NULL);

    job_free(first);
    assert(second->ht_next == NULL);
    assert(job_find(ID) == second);
    assert(job_find(ID_IN_SAME_BUCKET) == NULL);
}

void cttest_job_all_jobs_used(void)
{
    assert(get_all_jobs_used() == 0);
    Job *j = job_in_tube(0, 0);
    assert(get_all_jobs_used() == 1);

    Job *outside = allocate_job(10);
    assert(outside);
    assert(outside->r.id == 0);
    assert(get_all_jobs_used() == 1);
    job_free(outside);
    assert(get_all_jobs_used() == 1);

    job_free(j);
    assert(get_all_jobs_used() == 0);
    job_free(NULL);
    assert(get_all_jobs_used() == 0);
}

void cttest_job_100_000_jobs(void)
{
    const uint64 count = 100000;

    for (uint64 id = 1; id <= count; id++)
        assert(job_in_tube(0, 0)->r.id == id);
    assert(get_all_jobs_used() == count);

    for (uint64 id = 1; id <= count; id++) {
        Job *j = job_find(id);
        assertf(j, "job %llu is gone", (unsigned long long)id);
        assert(j->r.id == id);
        job_free(j);
    }
    assert(get_all_jobs_used() == 0);
}

static Job **jobs_for(int n)
{
    Job **jobs = calloc((size_t)n, sizeof *jobs);

    assert(jobs);
    return jobs;
}

void ctbench_job_make(int n)
{
    Job **jobs = jobs_for(n);

    ctresettimer();
    for (int i = 0; i < n; i++)
        jobs[i] = make_job(0, 0, 1, 0, NULL);
    ctstoptimer();

    for (int i = 0; i < n; i++)
        job_free(jobs[i]);
    free(jobs);
}

void ctbench_job_free(int n)
{
    Job **jobs = jobs_for(n);

    for (int i = 0; i < n; i++)
        jobs[i] = make_job(0, 0, 1, 0, NULL);
    ctresettimer();
    for (int i = 0; i < n; i++)
        job_free(jobs[i]);
    ctstoptimer();
    free(jobs);
}
