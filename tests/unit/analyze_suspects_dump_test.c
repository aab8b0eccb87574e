/* analyze_suspects_dump_test.c - launches of greta's own that a GPU core dump names: of those that
 * may have made an illegal access, only they are left. */
#include "analyze_suspects.h"

#include "analyze/analyze_impl.h"

/* What the arguments of the failing kernel name; 0: no more. */
static void dump_names(struct scene *scene, uint64_t first, uint64_t second)
{
    static struct hardware_evidence evidence;
    evidence = (struct hardware_evidence){ .grid_count = 1 };
    evidence.grids[0].launches[0] = first;
    evidence.grids[0].launches[1] = second;
    analyzer_set_hardware(scene->script.analyzer, &evidence);
}

/* Four launches may have begun early; the third is named. */
static void the_named_launch_is_left(void **state)
{
    (void)state;
    for (int gap = 0; gap < 2; gap++) {
        struct scene scene;
        uint64_t ids[4];
        scene_open(&scene, CRUMB_ORDER_EARLY);
        scene.script.id += gap; /* a record that is missing is of another launch */
        for (int i = 0; i < 4; i++)
            ids[i] = scene_launch(&scene, FIRST, "add");
        scene_enter(&scene, FIRST, ids[0]);
        dump_names(&scene, ids[2], 0);
        scene_fault_at(&scene, 0);
        assert_true(scene.finding->hardware != NULL);
        assert_true(finding_is_culprit(scene.finding));
        check_single(&scene, ids[2]);
    }
}

static void joined_launches_are_left_together(void **state)
{
    (void)state;
    struct scene scene;
    uint64_t ids[4];
    scene_open(&scene, CRUMB_ORDER_EARLY);
    for (int i = 0; i < 4; i++)
        ids[i] = scene_launch(&scene, FIRST, "add");
    scene_enter(&scene, FIRST, ids[0]);
    dump_names(&scene, ids[1], ids[2]);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, ids[1], ids[2]);
}

/* A graph's kernel names the recorded launch: which replay it was, the crumbs say. */
static void a_node_of_a_replay(void **state)
{
    (void)state;
    struct scene scene;
    uint64_t recorded[3], replays[2];
    scene_open(&scene, CRUMB_ORDER_EARLY);
    uint64_t graph = script_call(&scene.script, EVENT_GRAPH_BEGIN, FIRST, 0);
    for (int i = 0; i < 3; i++) {
        struct event event = script_launch_event(&scene.script, FIRST, "rope");
        script_operand(&event, A, 0, BUFFER_BYTES, EVENT_UPDATE);
        event.launch.graph_id = graph;
        recorded[i] = script_add(&scene.script, &event);
    }
    struct event end = script_event(&scene.script, EVENT_GRAPH_END);
    end.stream_index = FIRST;
    end.graph.handle = 1;
    end.cause_id = graph;
    script_add(&scene.script, &end);
    for (int i = 0; i < 2; i++) {
        struct event event = script_event(&scene.script, EVENT_GRAPH_REPLAY);
        event.stream_index = FIRST;
        event.graph.handle = 1;
        event.cause_id = graph;
        replays[i] = script_add(&scene.script, &event);
        if (i == 0)
            script_call(&scene.script, EVENT_STREAM_SYNC, FIRST, 0);
    }
    scene_enter(&scene, FIRST, replays[1]);
    scene.crumbs.streams[FIRST].node = crumb_node_of(1, 1);
    dump_names(&scene, recorded[1], 0);
    scene_fault_at(&scene, 0);
    assert_int_equal(scene.finding->cause.node, 2);
    check_single(&scene, replays[1]);
}

/* The dump names a launch that the host waited for: one of the two is wrong, and nothing is
 * certain.
 */
static void a_dump_of_something_else(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_EXACT);
    uint64_t done = scene_launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_STREAM_SYNC, FIRST, 0);
    uint64_t id = scene_launch(&scene, FIRST, "rope");
    scene_enter(&scene, FIRST, id);
    dump_names(&scene, done, 0);
    scene_fault_at(&scene, 0);
    assert_int_equal(scene.finding->reason, REASON_DUMP_DIFFERS);
    CHECK_SEVERAL(&scene, id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_named_launch_is_left),
        cmocka_unit_test(joined_launches_are_left_together),
        cmocka_unit_test(a_node_of_a_replay),
        cmocka_unit_test(a_dump_of_something_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
