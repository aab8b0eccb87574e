/* analyze_copies_test.c - copies and their staging: bytes read before their ticket is due, copies
 * without order into the same bytes, slots that are taken again too early. */
#include "analyze_model.h"

/* ---- Order ---------------------------------------------------------------------------------- */

static void reading_a_ticket_early_is_missing_sync(void **state)
{
    (void)state;
    for (int waited = 0; waited < 3; waited++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        script_launch(&script, MAIN, "output", WEIGHTS, LOGITS);
        script.tensor = "logits";
        uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, LOGITS, 0, 1024, 1);
        if (waited == 2)
            script_sync(&script, MAIN); /* the host waited by other means */
        script_redeem(&script, 1, copy, waited == 1, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        if (waited) {
            assert_int_equal(analysis->finding_count, 0);
        } else {
            CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, copy);
            assert_string_equal(analysis->findings[0].cause.scope.tensor, "logits");
        }
        script_close(&script);
    }
}

static void unordered_copies_are_overlapping_copies(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    uint64_t in = script_copy(&script, EVENT_COPY_IN, MAIN, X, 0, 1024, 9);
    uint64_t out = script_copy(&script, EVENT_COPY_OUT, SIDE, X, 512, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_OVERLAPPING_COPIES, out);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_OVERLAPPING_COPIES);
    assert_int_equal(finding->other.event_id, in);
    assert_int_equal(finding->cause.bytes, 512);
    assert_null(find_finding(analysis, HYPOTHESIS_MISSING_SYNC));
    script_close(&script);
}

static void two_copies_out_into_one_slot_overlap(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
    script_sync(&script, MAIN);
    uint64_t first = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    uint64_t second = script_copy(&script, EVENT_COPY_OUT, SIDE, X, 0, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    CHECK_FINDING(analysis, HYPOTHESIS_OVERLAPPING_COPIES, second);
    assert_int_equal(analysis->findings[0].other.event_id, first);
    script_close(&script);
}

/* ---- Staging -------------------------------------------------------------------------------- */

static void slot_of_an_open_ticket_taken_again(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
    script.tensor = "logits";
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    script_redeem(&script, 1, copy, true, 0);
    uint64_t again = script_copy(&script, EVENT_COPY_OUT, MAIN, X, 0, 1024, 1);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_STAGING_REUSE, again);
    assert_int_equal(analysis->findings[0].other.event_id, copy);
    script_close(&script);
}

/* The slot of a copy in: taken again with the generation it had, or before its completion. */
static void slot_of_a_copy_in_rewritten(void **state)
{
    (void)state;
    static const struct {
        uint16_t generation; /* of the second copy; the first has 5 */
        bool completions;    /* are reported at all */
        bool completed;      /* the first copy was */
        bool found;
    } rows[] = {
        { 5, false, false, true },  /* never free in between */
        { 7, false, false, false }, /* free in between, as the device says */
        { 7, true, false, true },   /* the device says so, but it was not done */
        { 7, true, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script, AUDIT_LOG);
        struct event before = script_copy_event(&script, EVENT_COPY_IN, MAIN, Y, 0, 64, 3);
        uint64_t earlier = script_add(&script, &before);
        struct event first = script_copy_event(&script, EVENT_COPY_IN, MAIN, X, 0, 64, 9);
        first.copy.generation = 5;
        uint64_t id = script_add(&script, &first);
        if (rows[i].completions)
            script_remark(&script, EVENT_COMPLETION, earlier, EVENT_NO_OPERAND, 0, 0, 0);
        if (rows[i].completed)
            script_remark(&script, EVENT_COMPLETION, id, EVENT_NO_OPERAND, 0, 0, 0);
        struct event second = script_copy_event(&script, EVENT_COPY_IN, MAIN, X, 64, 64, 9);
        second.copy.generation = rows[i].generation;
        uint64_t again = script_add(&script, &second);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, rows[i].found);
        if (rows[i].found)
            CHECK_FINDING(analysis, HYPOTHESIS_STAGING_REUSE, again);
        script_close(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_a_ticket_early_is_missing_sync),
        cmocka_unit_test(unordered_copies_are_overlapping_copies),
        cmocka_unit_test(two_copies_out_into_one_slot_overlap),
        cmocka_unit_test(slot_of_an_open_ticket_taken_again),
        cmocka_unit_test(slot_of_a_copy_in_rewritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
