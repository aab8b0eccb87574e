/* analyze_suspects_crumb_test.c - which launches may have made an illegal access, by how far their
 * streams may be: the launch of the crumb, what may begin early after it, and nodes of graphs. */
#include "analyze_suspects.h"

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
        scene_open(&scene, rows[i].order);
        scene_launch(&scene, FIRST, "embed");
        ids[0] = scene_launch(&scene, FIRST, "norm");
        for (int n = 1; n < 4; n++)
            ids[n] = scene_launch(&scene, FIRST, "add");
        scene_enter(&scene, FIRST, ids[0]);
        scene_fault_at(&scene, 0);
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
    scene_open(&scene, CRUMB_ORDER_EARLY);
    uint64_t norm = scene_launch(&scene, FIRST, "norm");
    script_copy(&scene.script, EVENT_COPY_OUT, FIRST, B, 0, 64, 3);
    uint64_t add = scene_launch(&scene, FIRST, "add"), rope = scene_launch(&scene, FIRST, "rope");
    script_copy(&scene.script, EVENT_FILL, FIRST, C, 0, 64, 0);
    scene_launch(&scene, FIRST, "swiglu");
    scene_enter(&scene, FIRST, norm);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, add, rope);
}

static void a_stream_that_has_no_crumb_may_have_begun(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add");
    scene_launch(&scene, FIRST, "norm");
    scene_fault_at(&scene, 0);
    check_single(&scene, add);
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* A copy touches what it declares: it is suspected where that is gone, or the hardware says so. */
static void copies_are_suspected_with_reason(void **state)
{
    (void)state;
    for (int row = 0; row < 3; row++) {
        struct scene scene;
        scene_open(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = scene_launch(&scene, FIRST, "add");
        uint64_t copy = script_copy(&scene.script, EVENT_COPY_OUT, FIRST, C, 0, 64, 3);
        scene_enter(&scene, FIRST, add);
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
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 3), id = replay(&scene, graph);
    scene_enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(3, 1);
    scene_fault_at(&scene, 0);
    assert_string_equal(scene.finding->cause.op, "add");
    assert_int_equal(scene.finding->cause.node, 3);
    check_single(&scene, id);
}

/* One kernel may do several launches, and so may the next. */
static void joined_launches_are_suspected_together(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 5), id = replay(&scene, graph);
    scene_enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(1, 2);
    scene_fault_at(&scene, 0);
    CHECK_NODES(&scene, 1, 2, 3, 4, 5);
}

/* The replay stored its id and not yet the number of its first node: what stands there is of the
 * replay before. */
static void a_number_left_by_the_replay_before_is_not_believed(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t graph = record(&scene, 5);
    replay(&scene, graph);
    uint64_t id = replay(&scene, graph);
    scene_enter(&scene, FIRST, id);
    scene.crumbs.streams[FIRST].node = crumb_node_of(5, 1);
    scene_fault_at(&scene, 0);
    CHECK_NODES(&scene, 5, 1, 2, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_launch_is_suspected_too),
        cmocka_unit_test(copies_are_passed_and_stop_what_begins_early),
        cmocka_unit_test(a_stream_that_has_no_crumb_may_have_begun),
        cmocka_unit_test(copies_are_suspected_with_reason),
        cmocka_unit_test(a_crumb_of_a_graph_names_a_node),
        cmocka_unit_test(joined_launches_are_suspected_together),
        cmocka_unit_test(a_number_left_by_the_replay_before_is_not_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
