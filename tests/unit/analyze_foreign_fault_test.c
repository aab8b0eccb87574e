/* analyze_foreign_fault_test.c - faults of foreign programs: the launches since the last wait are
 * the window that a fault leaves open. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"

/* Launches since the last wait, up to the call that reported the fault. */
static void a_fault_leaves_a_window(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    kernel(&script, A, A);
    call(&script, EVENT_STREAM_SYNC, A, 0, 0);
    uint64_t first = kernel(&script, A, A);
    uint64_t second = kernel(&script, B, B);
    struct event reported = script_event(&script, EVENT_STREAM_SYNC);
    reported.flags = EVENT_FOREIGN;
    reported.stream_index = A;
    reported.outcome = EVENT_FAILED;
    reported.check = EVENT_CHECK_LOST;
    reported.code = 700;
    uint64_t seen = script_add(&script, &reported);
    call(&script, EVENT_FAULT, EVENT_NO_STREAM, 0, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    const struct finding *finding = &analysis->findings[0];
    assert_int_equal(finding->hypothesis, HYPOTHESIS_KERNEL_FAULT);
    assert_int_equal(finding->certainty, FINDING_POSSIBLE);
    assert_int_equal(finding->candidate_count, 2);
    assert_int_equal(finding->candidates[0].event_id, first);
    assert_int_equal(finding->candidates[1].event_id, second);
    assert_int_equal(finding->seen.event_id, seen);
    script_close(&script);
}

/* One launch since the last wait is the culprit, unless something else may have run as well. */
enum window_extra {
    WINDOW_ONE_LAUNCH,
    WINDOW_LOST_RECORDS,
    WINDOW_CALL_NOT_RETURNED, /* a second launch, whose call had not returned */
    WINDOW_COPY_OF_FREED,     /* a copy out of memory that was freed meanwhile */
    WINDOW_COPY,              /* a copy of live memory: it touches what it declares */
    WINDOW_EXTRA_COUNT
};

static void a_window_of_one_launch(void **state)
{
    (void)state;
    static const struct {
        enum finding_certainty certainty;
        uint32_t candidate_count;
    } wanted[WINDOW_EXTRA_COUNT] = {
        [WINDOW_ONE_LAUNCH] = { FINDING_DIRECT, 1 },
        [WINDOW_LOST_RECORDS] = { FINDING_POSSIBLE, 1 },
        [WINDOW_CALL_NOT_RETURNED] = { FINDING_POSSIBLE, 2 },
        [WINDOW_COPY_OF_FREED] = { FINDING_POSSIBLE, 2 },
        [WINDOW_COPY] = { FINDING_DIRECT, 1 },
    };
    for (int extra = 0; extra < WINDOW_EXTRA_COUNT; extra++) {
        struct script script;
        begin(&script);
        kernel(&script, A, A);
        call(&script, EVENT_STREAM_SYNC, A, 0, 0);
        uint64_t culprit = kernel(&script, A, A);
        if (extra == WINDOW_LOST_RECORDS)
            analyze_lost(script.analyzer, 1);
        if (extra == WINDOW_CALL_NOT_RETURNED) {
            struct event pending = kernel_event(&script, B, B);
            pending.phase = EVENT_BEGIN;
            pending.outcome = EVENT_PENDING;
            script_add(&script, &pending);
        }
        if (extra == WINDOW_COPY || extra == WINDOW_COPY_OF_FREED)
            copy(&script, B, B, C, 0);
        if (extra == WINDOW_COPY_OF_FREED) {
            struct event freed = script_event(&script, EVENT_BUFFER_DESTROY);
            freed.flags = EVENT_FOREIGN;
            freed.access_count = 1;
            freed.accesses[0] = script_access(B, 0, BUFFER_BYTES, 0, 0);
            script_add(&script, &freed);
        }
        call(&script, EVENT_FAULT, EVENT_NO_STREAM, 0, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
        if (!finding || finding->certainty != wanted[extra].certainty ||
            finding->candidate_count != wanted[extra].candidate_count ||
            finding->cause.event_id != culprit ||
            finding_is_culprit(finding) != (wanted[extra].certainty == FINDING_DIRECT))
            fail_msg("row %d: certainty %d, %u candidates", extra,
                     finding ? (int)finding->certainty : -1,
                     finding ? finding->candidate_count : 0);
        script_close(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fault_leaves_a_window),
        cmocka_unit_test(a_window_of_one_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
