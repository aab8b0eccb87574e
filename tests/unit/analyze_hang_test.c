/* analyze_hang_test.c - what does not come back: a hang says who waits for what, and a long wait is
 * one only where nothing moved. */
#include "analyze_model.h"

/* A thread followed the recording until now, and nothing moved in that time. */
static void watched(struct crumb_page *crumbs, uint64_t now_ns, uint64_t still_ns)
{
    crumbs->watched_ns = now_ns;
    crumbs->still_ns = still_ns;
    crumbs->moved_ns = crumb_entered(&crumbs->streams[MAIN]) ? now_ns - still_ns : 0;
    crumbs->moved_stream = MAIN;
}

static void hang_says_who_waits_for_what(void **state)
{
    (void)state;
    static const struct {
        enum finding_reason reason;
        bool entered, finished, waits;
    } rows[] = {
        { REASON_STREAM_INSIDE, true, false, false },
        { REASON_LOST_WAKEUP, true, true, false },
        { REASON_WAITS_FOR_MARK, false, false, true },
        { REASON_NOT_STARTED, false, false, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        static struct crumb_page crumbs;
        memset(&crumbs, 0, sizeof(crumbs));
        crumb_set_order(&crumbs, CRUMB_ORDER_EXACT);
        begin(&script, AUDIT_LOG);
        script_copy(&script, EVENT_FILL, MAIN, X, 0, BUFFER_BYTES, 0);
        script_call(&script, EVENT_MARK_RECORD, SIDE, 7);
        script.layer = LAYER;
        uint64_t launch = script_launch(&script, MAIN, "rope", X, Y);
        if (rows[i].waits)
            script_call(&script, EVENT_MARK_WAIT, MAIN, 7);
        if (rows[i].entered)
            crumb_enter(&crumbs.streams[MAIN], launch);
        if (rows[i].finished)
            crumb_finish(&crumbs.streams[MAIN], launch);
        struct event wait = script_event(&script, EVENT_STREAM_SYNC);
        wait.stream_index = MAIN;
        wait.outcome = EVENT_PENDING;
        wait.phase = EVENT_BEGIN;
        wait.end_ns = 0;
        uint64_t sync = script_add(&script, &wait);
        script.ns += 2000000000u;
        watched(&crumbs, script.ns, 1900000000u);
        const struct analysis *analysis = script_finish(&script, &crumbs);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_HANG);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, FINDING_DIRECT);
        assert_int_equal(finding->moved.event_id, rows[i].entered ? launch : 0);
        assert_int_equal(finding->moved_ago_ns, rows[i].entered ? 1900000000u : 0);
        assert_int_equal(finding->reason, rows[i].reason);
        assert_int_equal(finding->seen.event_id, sync);
        if (i == 0)
            check_culprit(finding, "rope", LAYER, STEP);
        assert_int_equal(analysis->coverage[HYPOTHESIS_HANG].checked + 1,
                         analysis->coverage[HYPOTHESIS_HANG].total);
        script_close(&script);
    }
}

static void a_short_wait_is_no_hang(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    struct event wait = script_event(&script, EVENT_STREAM_SYNC);
    wait.stream_index = MAIN;
    wait.outcome = EVENT_PENDING;
    wait.phase = EVENT_BEGIN;
    script_add(&script, &wait);
    script.ns += 900000000u;
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 0);
    script_close(&script);
}

static void add_wait(struct script *script, enum event_kind kind)
{
    struct event wait = script_event(script, kind);
    wait.stream_index = MAIN;
    wait.outcome = EVENT_PENDING;
    wait.phase = EVENT_BEGIN;
    script_add(script, &wait);
}

/* A wait says nothing by its length: launches went on until a moment ago. */
static void a_long_wait_for_launches_that_go_on_is_no_hang(void **state)
{
    (void)state;
    struct script script;
    static struct crumb_page crumbs;
    memset(&crumbs, 0, sizeof(crumbs));
    crumb_set_order(&crumbs, CRUMB_ORDER_EXACT);
    begin(&script, AUDIT_LOG);
    uint64_t launch = script_launch(&script, MAIN, "rope", 0, Y);
    crumb_enter(&crumbs.streams[MAIN], launch);
    add_wait(&script, EVENT_STREAM_SYNC);
    script.ns += UINT64_C(3600000000000);
    watched(&crumbs, script.ns, 900000000u);
    const struct analysis *analysis = script_finish(&script, &crumbs);
    assert_int_equal(analysis->finding_count, 0);
    script_close(&script);
}

/* Compiling kernels for a minute moves no crumb. */
static void work_of_the_host_is_no_hang(void **state)
{
    (void)state;
    static const enum event_kind kinds[] = { EVENT_DEVICE_OPEN, EVENT_BUFFER_CREATE,
                                             EVENT_MODULE_LOAD, EVENT_GRAPH_END };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct script script;
        static struct crumb_page crumbs;
        memset(&crumbs, 0, sizeof(crumbs));
        crumb_set_order(&crumbs, CRUMB_ORDER_EXACT);
        begin(&script, AUDIT_LOG);
        add_wait(&script, kinds[i]);
        script.ns += UINT64_C(60000000000);
        watched(&crumbs, script.ns, UINT64_C(60000000000));
        assert_null(find_finding(script_finish(&script, &crumbs), HYPOTHESIS_HANG));
        script_close(&script);
    }
}

/* Another program's device leaves no crumbs, and no thread may have followed the recording. */
static void without_evidence_of_progress_a_long_wait_is_a_hang_possibly(void **state)
{
    (void)state;
    static const struct {
        enum crumb_order order;
        bool watched, late;
    } rows[] = { { CRUMB_ORDER_UNKNOWN, true, false },
                 { CRUMB_ORDER_EXACT, false, false },
                 { CRUMB_ORDER_NEXT, true, true } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        static struct crumb_page crumbs;
        memset(&crumbs, 0, sizeof(crumbs));
        crumb_set_order(&crumbs, rows[i].order);
        crumb_set_late(&crumbs, rows[i].late);
        begin(&script, AUDIT_LOG);
        uint64_t launch = script_launch(&script, MAIN, "rope", 0, Y);
        crumb_enter(&crumbs.streams[MAIN], launch);
        add_wait(&script, EVENT_STREAM_SYNC);
        script.ns += UINT64_C(40000000000);
        if (rows[i].watched)
            watched(&crumbs, script.ns, UINT64_C(40000000000));
        const struct analysis *analysis = script_finish(&script, &crumbs);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_HANG);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, FINDING_POSSIBLE);
        assert_int_equal(finding->attribution, FINDING_SEEN_AT);
        assert_int_equal(analysis->defect, -1);
        assert_int_equal(finding->reason, REASON_UNWATCHED);
        assert_in_range(finding->found, UINT64_C(40000000000), UINT64_C(40100000000));
        script_close(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hang_says_who_waits_for_what),
        cmocka_unit_test(a_short_wait_is_no_hang),
        cmocka_unit_test(a_long_wait_for_launches_that_go_on_is_no_hang),
        cmocka_unit_test(work_of_the_host_is_no_hang),
        cmocka_unit_test(without_evidence_of_progress_a_long_wait_is_a_hang_possibly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
