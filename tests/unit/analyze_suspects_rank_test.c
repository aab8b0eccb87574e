/* analyze_suspects_rank_test.c - the candidates of a fault as a finding has them: the likeliest
 * first, those that are not kept counted, and none made a root or a culprit without evidence. */
#include "analyze_suspects.h"

static void memory_near_the_address_comes_first(void **state)
{
    (void)state;
    const uint64_t addresses[] = { BUFFER_ADDRESS(D) + BUFFER_BYTES + 8,
                                   BUFFER_ADDRESS(D) - (UINT64_C(1) << 32) + 8 };
    for (size_t i = 0; i < COUNT_OF(addresses); i++) {
        struct scene scene;
        scene_open(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = scene_launch(&scene, FIRST, "add");
        uint64_t norm = scene_launch(&scene, FIRST, "norm");
        uint64_t rope = script_launch(&scene.script, SECOND, "rope", C, D);
        scene_enter(&scene, FIRST, add);
        scene_fault_at(&scene, addresses[i]);
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
    scene_open(&scene, CRUMB_ORDER_EARLY);
    uint64_t first = scene_launch(&scene, FIRST, "norm");
    for (uint32_t i = 0; i < FINDING_CANDIDATE_LIMIT + 4; i++)
        scene_launch(&scene, FIRST, "add");
    uint64_t second = scene_launch(&scene, SECOND, "rope");
    scene_enter(&scene, FIRST, first);
    scene_enter(&scene, SECOND, second);
    scene_fault_at(&scene, 0);
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
    scene_open(&scene, CRUMB_ORDER_NEXT);
    script_destroy(&scene.script, D, "buffer");
    uint64_t add = scene_launch(&scene, FIRST, "add"), rope = scene_launch(&scene, SECOND, "rope");
    scene_enter(&scene, FIRST, add);
    scene_enter(&scene, SECOND, rope);
    const struct analysis *analysis = scene_fault_at(&scene, BUFFER_ADDRESS(D) + 16);
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
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add");
    scene_launch(&scene, SECOND, "rope");
    scene_enter(&scene, FIRST, add);
    script_refuse(&scene.script, script_launch_event(&scene.script, FIRST, "matmul"),
                  EVENT_CHECK_POINTER, 0, 64, 0);
    const struct analysis *analysis = scene_fault_at(&scene, 0);
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
        cmocka_unit_test(memory_near_the_address_comes_first),
        cmocka_unit_test(candidates_that_are_not_kept_are_counted),
        cmocka_unit_test(freed_memory_has_candidates_as_well),
        cmocka_unit_test(a_refusal_after_the_candidates_is_no_root),
        cmocka_unit_test(memory_that_is_gone_has_no_culprit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
