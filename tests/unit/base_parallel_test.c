/* base_parallel_test.c - every part is done exactly once, whatever the number of threads. */
#include "test.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <stdatomic.h>

#define PART_LIMIT 1000

struct job {
    atomic_uint done[PART_LIMIT];
    atomic_uint out_of_range;
    uint64_t part_count;
};

static void count_part(void *context, uint64_t part_index)
{
    struct job *job = context;
    if (part_index >= job->part_count)
        atomic_fetch_add(&job->out_of_range, 1);
    else
        atomic_fetch_add(&job->done[part_index], 1);
}

static void test_each_part_once(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t part_count;
        uint32_t thread_count;
    } rows[] = {
        { "nothing to do", 0, 4 },
        { "nothing to do, all processors", 0, 0 },
        { "one part", 1, 1 },
        { "one part, many threads", 1, 16 },
        { "more threads than parts", 5, 64 },
        { "as many", 8, 8 },
        { "one thread", 1000, 1 },
        { "three threads", 1000, 3 },
        { "all processors", 1000, 0 },
        { "more threads than are kept", 1000, 100000 },
        { "the largest number", 3, UINT32_MAX },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        static struct job job;
        job = (struct job){ .part_count = rows[i].part_count };
        parallel_run(rows[i].part_count, rows[i].thread_count, count_part, &job);
        if (atomic_load(&job.out_of_range))
            fail_msg("%s: a part that does not exist", rows[i].name);
        for (uint64_t part = 0; part < rows[i].part_count; part++)
            if (atomic_load(&job.done[part]) != 1)
                fail_msg("%s: part %d done %u times", rows[i].name, (int)part,
                         atomic_load(&job.done[part]));
    }
}

static void add_plain(void *context, uint64_t part_index)
{
    ((uint64_t *)context)[part_index] = part_index * part_index;
}

/* What parts wrote is seen by the caller afterwards without any atomics. */
static void test_results_are_visible(void **state)
{
    (void)state;
    static uint64_t results[PART_LIMIT];
    parallel_run(PART_LIMIT, 4, add_plain, results);
    for (uint64_t i = 0; i < PART_LIMIT; i++)
        assert_true(results[i] == i * i);
}

static void test_processors_and_clock(void **state)
{
    (void)state;
    assert_in_range(parallel_processor_count(), 1, 65536);
    uint64_t before = clock_ns();
    uint64_t after = clock_ns();
    assert_true(after >= before && before > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_part_once),
        cmocka_unit_test(test_results_are_visible),
        cmocka_unit_test(test_processors_and_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
