/* analyze_order_limit_test.c - happens-before at its limits: long runs, a table of accesses that is
 * full, events that were lost. */
#include "analyze_order.h"

/* A long run of a ring buffer, as a cache is: memory stays bounded, nothing is forgotten. */
static void long_runs_forget_nothing(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    for (uint32_t step = 0; step < 20000; step++) {
        struct event append = script_launch_event(&script, A, "append");
        script_operand(&append, A, (step * 8u) % BUFFER_BYTES, 8, EVENT_WRITE);
        script_add(&script, &append);
        script_launch(&script, A, "attend", A, B);
        script_sync(&script, A);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 0);
    const struct hypothesis_coverage *coverage = &analysis->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_int_equal(coverage->checked, coverage->total);
    assert_true(coverage->total > 60000);
    script_close(&script);
}

/* Ranges that never settle fill the table: then accesses count as not checked. */
static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    for (uint32_t i = 0; i < 10000; i++) {
        struct event event = script_launch_event(&script, i % 2 ? A : B, "scatter");
        script_operand(&event, i % 2 ? A : B, (i * 6u) % BUFFER_BYTES, 3, EVENT_WRITE);
        script_add(&script, &event);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct hypothesis_coverage *coverage = &analysis->coverage[HYPOTHESIS_MISSING_SYNC];
    assert_true(coverage->checked < coverage->total);
    assert_int_equal(analysis->finding_count, 0);
    script_close(&script);
}

/* What was lost may have been the wait, the completion or the release: no claims across it. What
 * comes later is looked at as ever. */
static void nothing_is_claimed_across_a_loss(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct script script;
        order_begin(&script);
        uint64_t write = script_launch(&script, A, "write", 0, A);
        struct event first = script_copy_event(&script, EVENT_COPY_IN, A, B, 0, 64, 9);
        first.copy.generation = 5;
        uint64_t copy = script_add(&script, &first);
        if (lost)
            analyze_lost(script.analyzer, 1);
        uint64_t read = script_launch(&script, B, "read", A, C);
        struct event second = script_copy_event(&script, EVENT_COPY_IN, A, B, 64, 64, 9);
        second.copy.generation = 5; /* the same slot */
        script_add(&script, &second);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, lost ? 0 : 2);
        if (!lost) {
            CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, read);
            assert_int_equal(find_finding(analysis, HYPOTHESIS_MISSING_SYNC)->other.event_id,
                             write);
            assert_int_equal(find_finding(analysis, HYPOTHESIS_STAGING_REUSE)->other.event_id,
                             copy);
        }
        script_close(&script);
    }
    struct script script;
    order_begin(&script);
    analyze_lost(script.analyzer, 1);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, script_launch(&script, B, "read", A, C), write);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_claimed_across_a_loss),
        cmocka_unit_test(long_runs_forget_nothing),
        cmocka_unit_test(what_does_not_fit_is_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
