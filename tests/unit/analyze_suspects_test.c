/* analyze_suspects_test.c - which launches may have made an illegal access that was not caught:
 * what waits, marks and crumbs exclude, and what they do not. */
#include "analyze_fixture.h"

#include "base/text.h"

enum { FIRST, SECOND, THIRD }; /* streams */
enum { A = 1, B, C, D };       /* buffers */

struct scene {
    struct script script;
    struct crumb_page crumbs;
    const struct finding *finding;
};

static void open_scene(struct scene *scene, enum crumb_order order)
{
    memset(scene, 0, sizeof(*scene));
    script_open(&scene->script, AUDIT_GUARD);
    crumb_set_order(&scene->crumbs, order);
    for (uint32_t i = A; i <= D; i++)
        script_buffer(&scene->script, i, "buffer", true);
}

static uint64_t launch(struct scene *scene, uint32_t stream, const char *op)
{
    return script_launch(&scene->script, stream, op, A, B + stream);
}

static void enter(struct scene *scene, uint32_t stream, uint64_t id)
{
    crumb_enter(&scene->crumbs.streams[stream], id);
}

/* A fault; address 0: not known. */
static const struct analysis *fault_at(struct scene *scene, uint64_t address)
{
    script_remark(&scene->script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0,
                  address ? EVENT_ADDRESS_KERNEL_LOG : EVENT_ADDRESS_UNKNOWN, address);
    const struct analysis *analysis = script_finish(&scene->script, &scene->crumbs);
    scene->finding = find_finding(analysis, HYPOTHESIS_KERNEL_FAULT);
    assert_non_null(scene->finding);
    return analysis;
}

static void check_single(struct scene *scene, uint64_t id)
{
    assert_int_equal(scene->finding->certainty, FINDING_DIRECT);
    assert_int_equal(scene->finding->candidate_count, 1);
    assert_int_equal(scene->finding->cause.event_id, id);
    script_close(&scene->script);
}

/* Ids in their order; ended by 0. */
static void check_several(struct scene *scene, const uint64_t *ids)
{
    uint32_t count = 0;
    assert_int_equal(scene->finding->certainty, FINDING_POSSIBLE);
    assert_int_not_equal(scene->finding->reason, REASON_NONE);
    for (; ids[count]; count++)
        assert_int_equal(scene->finding->candidates[count].event_id, ids[count]);
    assert_int_equal(scene->finding->candidate_count, count);
    assert_int_equal(scene->finding->cause.event_id, ids[0]);
    script_close(&scene->script);
}
#define CHECK_SEVERAL(scene, ...) check_several((scene), (const uint64_t[]){ __VA_ARGS__, 0 })

/* ---- Streams -------------------------------------------------------------------------------- */

/* No kernel came after the first stream's, and none waited: it may have ended, or not. */
static void a_stream_not_waited_for_stays_suspected(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add"), swiglu = launch(&scene, SECOND, "swiglu");
    enter(&scene, FIRST, add);
    enter(&scene, SECOND, swiglu);
    const struct analysis *analysis = fault_at(&scene, 0);
    assert_int_equal(analysis->root, -1);
    CHECK_SEVERAL(&scene, add, swiglu);
}

/* A launch of another device, on a stream of the same number, has not ended either. */
static void another_device_is_never_suspected(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    struct event elsewhere = script_launch_event(&scene.script, FIRST, "add");
    elsewhere.device_index = 1;
    script_operand(&elsewhere, A, 0, BUFFER_BYTES, EVENT_READ);
    script_add(&scene.script, &elsewhere);
    uint64_t swiglu = launch(&scene, FIRST, "swiglu");
    enter(&scene, FIRST, swiglu);
    const struct analysis *analysis = fault_at(&scene, 0);
    assert_int_equal(analysis->root, 0);
    check_single(&scene, swiglu);
}

static void a_stream_waited_for_is_excluded(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add"), swiglu = launch(&scene, SECOND, "swiglu");
    script_sync(&scene.script, FIRST);
    enter(&scene, FIRST, add);
    enter(&scene, SECOND, swiglu);
    const struct analysis *analysis = fault_at(&scene, 0);
    assert_int_equal(analysis->root, 0);
    check_single(&scene, swiglu);
}

/* A wait that failed proves nothing, nor does one that ended when the device was lost. */
static void a_wait_that_failed_excludes_nothing(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add"), swiglu = launch(&scene, SECOND, "swiglu");
    struct event sync = script_event(&scene.script, EVENT_STREAM_SYNC);
    sync.stream_index = FIRST;
    sync.outcome = EVENT_FAILED;
    script_add(&scene.script, &sync);
    enter(&scene, FIRST, add);
    enter(&scene, SECOND, swiglu);
    script_remark(&scene.script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0, 0, 0);
    script_sync(&scene.script, FIRST);
    scene.finding = find_finding(script_finish(&scene.script, &scene.crumbs),
                                 HYPOTHESIS_KERNEL_FAULT);
    CHECK_SEVERAL(&scene, add, swiglu);
}

/* The wait is for what came before it, not for what came after. */
static void work_after_a_wait_stays_suspected(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    launch(&scene, FIRST, "add");
    script_sync(&scene.script, FIRST);
    uint64_t norm = launch(&scene, FIRST, "norm"), swiglu = launch(&scene, SECOND, "swiglu");
    enter(&scene, FIRST, norm);
    enter(&scene, SECOND, swiglu);
    fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, swiglu);
}

static void a_redeemed_ticket_excludes_what_came_before_its_copy(void **state)
{
    (void)state;
    for (int waited = 0; waited < 2; waited++) {
        struct scene scene;
        open_scene(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = launch(&scene, FIRST, "add");
        uint64_t copy = script_copy(&scene.script, EVENT_COPY_OUT, FIRST, B, 0, 64, 3);
        uint64_t swiglu = launch(&scene, SECOND, "swiglu");
        script_redeem(&scene.script, 3, copy, waited, 0);
        enter(&scene, FIRST, add);
        enter(&scene, SECOND, swiglu);
        fault_at(&scene, 0);
        if (waited)
            check_single(&scene, swiglu);
        else
            CHECK_SEVERAL(&scene, add, swiglu);
    }
}

static void a_completion_excludes_and_one_after_the_fault_does_not(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct scene scene;
        open_scene(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = launch(&scene, FIRST, "add"), swiglu = launch(&scene, SECOND, "swiglu");
        enter(&scene, FIRST, add);
        enter(&scene, SECOND, swiglu);
        if (late)
            script_remark(&scene.script, EVENT_FAULT, 0, EVENT_NO_OPERAND, 0, 0, 0);
        struct event done = script_event(&scene.script, EVENT_COMPLETION);
        done.stream_index = FIRST;
        done.cause_id = add;
        script_add(&scene.script, &done);
        if (late)
            scene.finding = find_finding(script_finish(&scene.script, &scene.crumbs),
                                         HYPOTHESIS_KERNEL_FAULT);
        else
            fault_at(&scene, 0);
        if (late)
            CHECK_SEVERAL(&scene, add, swiglu);
        else
            check_single(&scene, swiglu);
    }
}

/* ---- Marks ---------------------------------------------------------------------------------- */

/* The third stream's launch has begun: it waited for the second, which waited for the first. */
static void marks_carry_order_through_streams(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_WAIT, SECOND, 5);
    uint64_t norm = launch(&scene, SECOND, "norm");
    script_call(&scene.script, EVENT_MARK_RECORD, SECOND, 6);
    script_call(&scene.script, EVENT_MARK_WAIT, THIRD, 6);
    uint64_t rope = launch(&scene, THIRD, "rope");
    enter(&scene, FIRST, add);
    enter(&scene, SECOND, norm);
    enter(&scene, THIRD, rope);
    fault_at(&scene, 0);
    check_single(&scene, rope);
}

/* The stream that waits for the mark has not begun: the first may run, or what waits for it. */
static void a_mark_not_known_to_be_passed_excludes_nothing(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_WAIT, SECOND, 5);
    uint64_t norm = launch(&scene, SECOND, "norm");
    enter(&scene, FIRST, add);
    fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, add, norm);
}

/* A mark that is recorded again: the wait was for its place at that time. */
static void a_mark_counts_where_it_was_when_it_was_waited_for(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_SYNC, EVENT_NO_STREAM, 5);
    uint64_t norm = launch(&scene, FIRST, "norm");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    uint64_t rope = launch(&scene, SECOND, "rope");
    enter(&scene, FIRST, norm);
    enter(&scene, SECOND, rope);
    fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, rope);
}

/* Another thread recorded the mark while this one waited for it: which came first is not known, and
 * the recording before is what counts. */
static void a_mark_recorded_during_the_wait_does_not_count(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    uint64_t norm = launch(&scene, FIRST, "norm");
    struct event again = script_event(&scene.script, EVENT_MARK_RECORD);
    again.stream_index = FIRST;
    again.mark.mark = 5;
    again.thread_index = 1;
    again.end_ns = again.begin_ns + 10 * SCRIPT_NS;
    script_add(&scene.script, &again);
    script_call(&scene.script, EVENT_MARK_SYNC, EVENT_NO_STREAM, 5);
    uint64_t rope = launch(&scene, SECOND, "rope");
    enter(&scene, FIRST, norm);
    enter(&scene, SECOND, rope);
    fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, rope);
}

/* ---- How far a stream may be ---------------------------------------------------------------- */

/* The first block of a kernel leaves the crumb: others may have faulted before. */
static void the_next_launch_is_suspected_too(void **state)
{
    (void)state;
    static const struct {
        enum crumb_order order;
        uint32_t count;
    } rows[] = { { CRUMB_ORDER_EXACT, 1 },
                 { CRUMB_ORDER_NEXT, 2 },
                 { CRUMB_ORDER_EARLY, 4 },
                 { CRUMB_ORDER_UNKNOWN, 4 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct scene scene;
        uint64_t ids[6] = { 0 };
        open_scene(&scene, rows[i].order);
        launch(&scene, FIRST, "embed");
        ids[0] = launch(&scene, FIRST, "norm");
        for (int n = 1; n < 4; n++)
            ids[n] = launch(&scene, FIRST, "add");
        enter(&scene, FIRST, ids[0]);
        fault_at(&scene, 0);
        for (uint32_t n = rows[i].count; n < 4; n++)
            ids[n] = 0;
        if (rows[i].count == 1)
            check_single(&scene, ids[0]);
        else
            check_several(&scene, ids);
    }
}

/* A copy may lie between; what comes after the next launch and a copy cannot run yet. */
static void copies_are_passed_and_stop_what_begins_early(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_EARLY);
    uint64_t norm = launch(&scene, FIRST, "norm");
    script_copy(&scene.script, EVENT_COPY_OUT, FIRST, B, 0, 64, 3);
    uint64_t add = launch(&scene, FIRST, "add"), rope = launch(&scene, FIRST, "rope");
    script_copy(&scene.script, EVENT_FILL, FIRST, C, 0, 64, 0);
    launch(&scene, FIRST, "swiglu");
    enter(&scene, FIRST, norm);
    fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, add, rope);
}

static void a_stream_that_has_no_crumb_may_have_begun(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add");
    launch(&scene, FIRST, "norm");
    fault_at(&scene, 0);
    check_single(&scene, add);
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* A copy touches what it declares: it is suspected where that is gone, or the hardware says so. */
static void copies_are_suspected_with_reason(void **state)
{
    (void)state;
    for (int row = 0; row < 3; row++) {
        struct scene scene;
        open_scene(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = launch(&scene, FIRST, "add");
        uint64_t copy = script_copy(&scene.script, EVENT_COPY_OUT, FIRST, C, 0, 64, 3);
        enter(&scene, FIRST, add);
        if (row == 1)
            script_destroy(&scene.script, C, "buffer");
        struct event fault = script_event(&scene.script, EVENT_FAULT);
        fault.outcome = EVENT_FAILED;
        fault.flags = row == 2 ? EVENT_COPY_ENGINE : 0;
        script_add(&scene.script, &fault);
        script_destroy(&scene.script, B, "buffer"); /* after the fault: says nothing */
        scene.finding = find_finding(script_finish(&scene.script, &scene.crumbs),
                                     HYPOTHESIS_KERNEL_FAULT);
        assert_non_null(scene.finding);
        if (row == 1)
            CHECK_SEVERAL(&scene, add, copy);
        else
            check_single(&scene, row ? copy : add);
    }
}

/* ---- Graphs --------------------------------------------------------------------------------- */

/* A graph of `count` launches on the first stream; its id. */
static uint64_t record(struct scene *scene, uint32_t count)
{
    static const char *const ops[] = { "norm", "rope", "add", "swiglu", "scale" };
    uint64_t id = script_call(&scene->script, EVENT_GRAPH_BEGIN, FIRST, 0);
    for (uint32_t i = 0; i < count; i++) {
        struct event event = script_launch_event(&scene->script, FIRST, ops[i]);
        script_operand(&event, A, 0, BUFFER_BYTES, EVENT_UPDATE);
        event.launch.graph_id = id;
        script_add(&scene->script, &event);
    }
    struct event end = script_event(&scene->script, EVENT_GRAPH_END);
    end.stream_index = FIRST;
    end.graph.handle = 1;
    end.cause_id = id;
    script_add(&scene->script, &end);
    return id;
}

static uint64_t replay(struct scene *scene, uint64_t graph)
{
    struct event event = script_event(&scene->script, EVENT_GRAPH_REPLAY);
    event.stream_index = FIRST;
    event.graph.handle = 1;
    event.cause_id = graph;
    return script_add(&scene->script, &event);
}

static void check_nodes(struct scene *scene, const uint32_t *nodes)
{
    uint32_t count = 0;
    for (; nodes[count]; count++)
        assert_int_equal(scene->finding->candidates[count].node, nodes[count]);
    assert_int_equal(scene->finding->candidate_count, count);
    script_close(&scene->script);
}
#define CHECK_NODES(scene, ...) check_nodes((scene), (const uint32_t[]){ __VA_ARGS__, 0 })

static void a_crumb_of_a_graph_names_a_node(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 3), id = replay(&scene, graph);
    enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(3, 1);
    fault_at(&scene, 0);
    assert_string_equal(scene.finding->cause.op, "add");
    assert_int_equal(scene.finding->cause.node, 3);
    check_single(&scene, id);
}

/* One kernel may do several launches, and so may the next. */
static void joined_launches_are_suspected_together(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 5), id = replay(&scene, graph);
    enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(1, 2);
    fault_at(&scene, 0);
    CHECK_NODES(&scene, 1, 2, 3, 4, 5);
}

/* The replay stored its id and not yet the number of its first node: what stands there is of the
 * replay before. */
static void a_number_left_by_the_replay_before_is_not_believed(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 5);
    replay(&scene, graph);
    uint64_t id = replay(&scene, graph);
    enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(5, 1);
    fault_at(&scene, 0);
    CHECK_NODES(&scene, 5, 1, 2, 3);
}

/* ---- Ranks ---------------------------------------------------------------------------------- */

static void memory_near_the_address_comes_first(void **state)
{
    (void)state;
    const uint64_t addresses[] = { BUFFER_ADDRESS(D) + BUFFER_BYTES + 8,
                                   BUFFER_ADDRESS(D) - (UINT64_C(1) << 32) + 8 };
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        struct scene scene;
        open_scene(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = launch(&scene, FIRST, "add");
        uint64_t norm = launch(&scene, FIRST, "norm");
        uint64_t rope = script_launch(&scene.script, SECOND, "rope", C, D);
        enter(&scene, FIRST, add);
        fault_at(&scene, addresses[i]);
        assert_int_equal(scene.finding->reason, REASON_NEAR_ADDRESS);
        assert_int_equal(scene.finding->cause.operand, 1);
        CHECK_SEVERAL(&scene, rope, add, norm);
    }
}

/* No possible culprit goes unsaid: what is not kept is counted, and it is the least likely. */
static void candidates_that_are_not_kept_are_counted(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_EARLY);
    uint64_t first = launch(&scene, FIRST, "norm");
    for (uint32_t i = 0; i < FINDING_CANDIDATE_LIMIT + 4; i++)
        launch(&scene, FIRST, "add");
    uint64_t second = launch(&scene, SECOND, "rope");
    enter(&scene, FIRST, first);
    enter(&scene, SECOND, second);
    fault_at(&scene, 0);
    assert_int_equal(scene.finding->candidate_count, FINDING_CANDIDATE_LIMIT);
    assert_int_equal(scene.finding->candidates_left_out, 6);
    assert_int_equal(scene.finding->candidates[0].event_id, first);
    assert_int_equal(scene.finding->candidates[1].event_id, second);
    script_close(&scene.script);
}

/* The memory at the address was freed: that is known; which launch touched it is not. */
static void freed_memory_has_candidates_as_well(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    script_destroy(&scene.script, D, "buffer");
    uint64_t add = launch(&scene, FIRST, "add"), rope = launch(&scene, SECOND, "rope");
    enter(&scene, FIRST, add);
    enter(&scene, SECOND, rope);
    const struct analysis *analysis = fault_at(&scene, BUFFER_ADDRESS(D) + 16);
    const struct finding *freed = find_finding(analysis, HYPOTHESIS_USE_AFTER_FREE);
    assert_non_null(freed);
    assert_int_equal(freed->certainty, FINDING_POSSIBLE);
    assert_int_equal(freed->candidate_count, 2);
    assert_int_equal(analysis->root, -1);
    script_close(&scene.script);
}

/* A call that was refused after the launches of a fault never ran: it is not the root cause. */
static void a_refusal_after_the_candidates_is_no_root(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = launch(&scene, FIRST, "add");
    launch(&scene, SECOND, "rope");
    enter(&scene, FIRST, add);
    script_refuse(&scene.script, script_launch_event(&scene.script, FIRST, "matmul"),
                  EVENT_CHECK_POINTER, 0, 64, 0);
    const struct analysis *analysis = fault_at(&scene, 0);
    assert_non_null(find_finding(analysis, HYPOTHESIS_BAD_POINTER));
    assert_int_equal(analysis->root, -1);
    script_close(&scene.script);
}

/* The runtime does not know the operand's memory any more: the launch that is refused is a symptom.
 */
static void memory_that_is_gone_has_no_culprit(void **state)
{
    (void)state;
    struct script script;
    script_open(&script, AUDIT_GUARD);
    script_buffer(&script, A, "buffer", true);
    script_refuse(&script, script_launch_event(&script, FIRST, "matmul"), EVENT_CHECK_POINTER, 0,
                  64, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_BAD_POINTER);
    assert_non_null(finding);
    assert_int_equal(finding->certainty, FINDING_DIRECT);
    assert_int_equal(finding->attribution, FINDING_SEEN_AT);
    assert_int_equal(analysis->root, -1);
    assert_int_equal(analysis->defect, 0);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_not_waited_for_stays_suspected),
        cmocka_unit_test(another_device_is_never_suspected),
        cmocka_unit_test(a_stream_waited_for_is_excluded),
        cmocka_unit_test(a_wait_that_failed_excludes_nothing),
        cmocka_unit_test(work_after_a_wait_stays_suspected),
        cmocka_unit_test(a_redeemed_ticket_excludes_what_came_before_its_copy),
        cmocka_unit_test(a_completion_excludes_and_one_after_the_fault_does_not),
        cmocka_unit_test(marks_carry_order_through_streams),
        cmocka_unit_test(a_mark_not_known_to_be_passed_excludes_nothing),
        cmocka_unit_test(a_mark_counts_where_it_was_when_it_was_waited_for),
        cmocka_unit_test(a_mark_recorded_during_the_wait_does_not_count),
        cmocka_unit_test(the_next_launch_is_suspected_too),
        cmocka_unit_test(copies_are_passed_and_stop_what_begins_early),
        cmocka_unit_test(a_stream_that_has_no_crumb_may_have_begun),
        cmocka_unit_test(copies_are_suspected_with_reason),
        cmocka_unit_test(a_crumb_of_a_graph_names_a_node),
        cmocka_unit_test(joined_launches_are_suspected_together),
        cmocka_unit_test(a_number_left_by_the_replay_before_is_not_believed),
        cmocka_unit_test(memory_near_the_address_comes_first),
        cmocka_unit_test(candidates_that_are_not_kept_are_counted),
        cmocka_unit_test(freed_memory_has_candidates_as_well),
        cmocka_unit_test(a_refusal_after_the_candidates_is_no_root),
        cmocka_unit_test(memory_that_is_gone_has_no_culprit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
