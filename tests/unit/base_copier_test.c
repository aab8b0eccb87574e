/* base_copier_test.c - copies by several threads: every byte once, whatever else is under way, and
 * memory that cannot be read is an error, not a crash. */
#define _GNU_SOURCE /* sched_setaffinity, MAP_ANONYMOUS */
#include "test.h"

#include "base/clock.h"
#include "base/copier.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#define LARGE ((size_t)3 << 20)

static uint8_t *make_bytes(size_t count, uint32_t seed)
{
    uint8_t *bytes = malloc(count + 1);
    assert_non_null(bytes);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 11);
    return bytes;
}

static struct copier *open_copier(uint32_t threads)
{
    struct copier *copier;
    struct error err;
    CHECK_OK(copier_create(threads, &copier, &err), &err);
    return copier;
}

static void test_sizes(void **state)
{
    (void)state;
    static const size_t sizes[] = { 0, 1, 4095, 262143, 262144, 262145, LARGE, LARGE + 7 };
    static const uint32_t threads[] = { 0, 1, 8, 1000 };
    uint8_t *source = make_bytes(LARGE + 7, 1), *target = malloc(LARGE + 8);
    assert_non_null(target);
    for (size_t t = 0; t < COUNT_OF(threads); t++) {
        struct copier *copier = open_copier(threads[t]);
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            struct copier_job job;
            memset(target, 0xEE, LARGE + 8);
            copier_start(copier, &job, target, source, sizes[i]);
            assert_true(copier_wait(copier, &job));
            assert_memory_equal(target, source, sizes[i]);
            assert_int_equal(target[sizes[i]], 0xEE);
        }
        copier_destroy(copier);
    }
    free(source);
    free(target);
}

/* Waited for in another order than they were given. */
static void test_many_at_once(void **state)
{
    (void)state;
    enum { JOBS = 12 };
    struct copier *copier = open_copier(8);
    struct copier_job jobs[JOBS];
    uint8_t *sources[JOBS], *targets[JOBS];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < JOBS; i++) {
            size_t bytes = (size_t)(i + 1) * 100003;
            sources[i] = make_bytes(bytes, (uint32_t)(round * JOBS + i));
            targets[i] = malloc(bytes);
            assert_non_null(targets[i]);
            copier_start(copier, &jobs[i], targets[i], sources[i], bytes);
        }
        for (int i = 0; i < JOBS; i++) {
            int which = (i * 5 + round) % JOBS;
            assert_true(copier_wait(copier, &jobs[which]));
            assert_memory_equal(targets[which], sources[which], (size_t)(which + 1) * 100003);
        }
        for (int i = 0; i < JOBS; i++) {
            free(sources[i]);
            free(targets[i]);
        }
    }
    copier_destroy(copier);
}

/* One copy that cannot be read harms no other. */
static void test_unreadable(void **state)
{
    (void)state;
    struct copier *copier = open_copier(8);
    uint8_t *good = make_bytes(LARGE, 3), *target = malloc(LARGE), *other = malloc(LARGE);
    uint8_t *bad = mmap(NULL, LARGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(target && other && bad != MAP_FAILED);
    assert_int_equal(mprotect(bad + LARGE / 2, LARGE / 2, PROT_NONE), 0);
    for (int i = 0; i < 3; i++) {
        struct copier_job jobs[2];
        copier_start(copier, &jobs[0], target, bad, LARGE);
        copier_start(copier, &jobs[1], other, good, LARGE);
        assert_false(copier_wait(copier, &jobs[0]));
        assert_true(copier_wait(copier, &jobs[1]));
        assert_memory_equal(other, good, LARGE);
    }
    copier_destroy(copier);
    munmap(bad, LARGE);
    free(good);
    free(target);
    free(other);
}

/* No thread to spare: who waits does it all. */
static void test_one_processor(void **state)
{
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &before) && CPU_COUNT(&one) == 0)
            CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    test_sizes(state);
    test_many_at_once(state);
    test_unreadable(state);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

static volatile sig_atomic_t interrupts;

/* As if somebody else had the processor for a while. */
static void interrupt(int signal_number)
{
    (void)signal_number;
    uint64_t begin_ns = clock_ns();
    while (clock_ns() - begin_ns < 300000)
        ;
    if (++interrupts > 5000) { /* since something was done: a wait that nothing ends */
        static const char text[] = "a copy that no thread does is waited for\n";
        _exit(write(STDERR_FILENO, text, sizeof(text) - 1) < 0 ? 2 : 1);
    }
}

/* A thread that waits without helpers does not stop, however late it looks at the clock. */
static void test_interrupted(void **state)
{
    (void)state;
    struct copier *copier = open_copier(0);
    struct itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = SA_RESTART }, before;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    uint64_t begin_ns = clock_ns();
    uint8_t source = 7, target = 0;
    while (clock_ns() - begin_ns < 300000000) {
        struct copier_job job;
        copier_start(copier, &job, &target, &source, 1);
        assert_true(copier_wait(copier, &job));
        interrupts = 0;
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(target, 7);
    copier_destroy(copier);
}

static void test_nothing_given(void **state)
{
    (void)state;
    copier_destroy(open_copier(8));
    copier_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_unreadable),  cmocka_unit_test(test_one_processor),
        cmocka_unit_test(test_interrupted), cmocka_unit_test(test_nothing_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
