/*
 * The multiset: members by identity, and the order in which they are taken.
 */
#include "ct/ct.h"
#include "dat.h"

/* Things to put in. Only their addresses count. */
static int thing[7];

static Ms *empty_set(void)
{
    Ms *a = new(Ms);

    assert(a);
    ms_init(a, NULL, NULL);
    assert(a->len == 0);
    return a;
}

static void free_set(Ms *a)
{
    ms_clear(a);
    assert(a->len == 0);
    free(a);
}

void cttest_ms_append(void)
{
    Ms *a = empty_set();

    assert(ms_append(a, &thing[0]) == 1);
    assert(a->len == 1);
    assert(ms_append(a, &thing[0]) == 1);
    assert(a->len == 2);
    assert(a->items[0] == &thing[0]);
    assert(a->items[1] == &thing[0]);

    ms_clear(a);
    assert(a->len == 0);
    /* A set that was cleared is as good as a new one. */
    assert(ms_append(a, &thing[1]) == 1);
    assert(a->len == 1);
    assert(a->items[0] == &thing[1]);
    free_set(a);
}

void cttest_ms_remove(void)
{
    Ms *a = empty_set();

    ms_append(a, &thing[0]);
    assert(ms_remove(a, &thing[1]) == 0);
    assert(a->len == 1);
    assert(ms_remove(a, &thing[0]) == 1);
    assert(a->len == 0);
    assert(ms_remove(a, &thing[0]) == 0);
    assert(a->len == 0);
    free_set(a);
}

void cttest_ms_contains(void)
{
    Ms *a = empty_set();

    /* Both are 0, but they are two. */
    ms_append(a, &thing[0]);
    assert(ms_contains(a, &thing[0]));
    assert(!ms_contains(a, &thing[1]));
    ms_remove(a, &thing[0]);
    assert(!ms_contains(a, &thing[0]));
    free_set(a);
}

void cttest_ms_clear_empty(void)
{
    Ms *a = empty_set();

    ms_clear(a);
    assert(a->len == 0);
    ms_clear(a);
    assert(a->len == 0);
    free_set(a);
}

void cttest_ms_take(void)
{
    Ms *a = empty_set();

    ms_append(a, &thing[0]);
    ms_append(a, &thing[1]);
    assert(ms_take(a) == &thing[0]);
    assert(ms_take(a) == &thing[1]);
    assert(ms_take(a) == NULL);
    assert(a->len == 0);
    free_set(a);
}

void cttest_ms_take_sequence(void)
{
    static const int order[] = {1, 2, 3, 6, 5, 4};
    Ms *a = empty_set();

    for (int i = 1; i <= 6; i++)
        ms_append(a, &thing[i]);
    for (int i = 0; i < 6; i++)
        assertf(ms_take(a) == &thing[order[i]], "take %d is not %d", i + 1, order[i]);
    assert(a->len == 0);
    free_set(a);
}
