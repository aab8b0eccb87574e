/* analyze_suspects_test.c - which launches may have made an illegal access that was not caught:
 * what waits and marks exclude, and what they do not. */
#include "analyze_suspects.h"

/* ---- Streams -------------------------------------------------------------------------------- */

/* No kernel came after the first stream's, and none waited: it may have ended, or not. */
static void a_stream_not_waited_for_stays_suspected(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add"),
             swiglu = scene_launch(&scene, SECOND, "swiglu");
    scene_enter(&scene, FIRST, add);
    scene_enter(&scene, SECOND, swiglu);
    const struct analysis *analysis = scene_fault_at(&scene, 0);
    assert_int_equal(analysis->root, -1);
    CHECK_SEVERAL(&scene, add, swiglu);
}

/* A launch of another device, on a stream of the same number, has not ended either. */
static void another_device_is_never_suspected(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    struct event elsewhere = script_launch_event(&scene.script, FIRST, "add");
    elsewhere.device_index = 1;
    script_operand(&elsewhere, A, 0, BUFFER_BYTES, EVENT_READ);
    script_add(&scene.script, &elsewhere);
    uint64_t swiglu = scene_launch(&scene, FIRST, "swiglu");
    scene_enter(&scene, FIRST, swiglu);
    const struct analysis *analysis = scene_fault_at(&scene, 0);
    assert_int_equal(analysis->root, 0);
    check_single(&scene, swiglu);
}

static void a_stream_waited_for_is_excluded(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add"),
             swiglu = scene_launch(&scene, SECOND, "swiglu");
    script_sync(&scene.script, FIRST);
    scene_enter(&scene, FIRST, add);
    scene_enter(&scene, SECOND, swiglu);
    const struct analysis *analysis = scene_fault_at(&scene, 0);
    assert_int_equal(analysis->root, 0);
    check_single(&scene, swiglu);
}

/* A wait that failed proves nothing, nor does one that ended when the device was lost. */
static void a_wait_that_failed_excludes_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add"),
             swiglu = scene_launch(&scene, SECOND, "swiglu");
    struct event sync = script_event(&scene.script, EVENT_STREAM_SYNC);
    sync.stream_index = FIRST;
    sync.outcome = EVENT_FAILED;
    script_add(&scene.script, &sync);
    scene_enter(&scene, FIRST, add);
    scene_enter(&scene, SECOND, swiglu);
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
    scene_open(&scene, CRUMB_ORDER_NEXT);
    scene_launch(&scene, FIRST, "add");
    script_sync(&scene.script, FIRST);
    uint64_t norm = scene_launch(&scene, FIRST, "norm"),
             swiglu = scene_launch(&scene, SECOND, "swiglu");
    scene_enter(&scene, FIRST, norm);
    scene_enter(&scene, SECOND, swiglu);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, swiglu);
}

static void a_redeemed_ticket_excludes_what_came_before_its_copy(void **state)
{
    (void)state;
    for (int waited = 0; waited < 2; waited++) {
        struct scene scene;
        scene_open(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = scene_launch(&scene, FIRST, "add");
        uint64_t copy = script_copy(&scene.script, EVENT_COPY_OUT, FIRST, B, 0, 64, 3);
        uint64_t swiglu = scene_launch(&scene, SECOND, "swiglu");
        script_redeem(&scene.script, 3, copy, waited, 0);
        scene_enter(&scene, FIRST, add);
        scene_enter(&scene, SECOND, swiglu);
        scene_fault_at(&scene, 0);
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
        scene_open(&scene, CRUMB_ORDER_NEXT);
        uint64_t add = scene_launch(&scene, FIRST, "add"),
                 swiglu = scene_launch(&scene, SECOND, "swiglu");
        scene_enter(&scene, FIRST, add);
        scene_enter(&scene, SECOND, swiglu);
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
            scene_fault_at(&scene, 0);
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
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_WAIT, SECOND, 5);
    uint64_t norm = scene_launch(&scene, SECOND, "norm");
    script_call(&scene.script, EVENT_MARK_RECORD, SECOND, 6);
    script_call(&scene.script, EVENT_MARK_WAIT, THIRD, 6);
    uint64_t rope = scene_launch(&scene, THIRD, "rope");
    scene_enter(&scene, FIRST, add);
    scene_enter(&scene, SECOND, norm);
    scene_enter(&scene, THIRD, rope);
    scene_fault_at(&scene, 0);
    check_single(&scene, rope);
}

/* The stream that waits for the mark has not begun: the first may run, or what waits for it. */
static void a_mark_not_known_to_be_passed_excludes_nothing(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    uint64_t add = scene_launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_WAIT, SECOND, 5);
    uint64_t norm = scene_launch(&scene, SECOND, "norm");
    scene_enter(&scene, FIRST, add);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, add, norm);
}

/* A mark that is recorded again: the wait was for its place at that time. */
static void a_mark_counts_where_it_was_when_it_was_waited_for(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    scene_launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    script_call(&scene.script, EVENT_MARK_SYNC, EVENT_NO_STREAM, 5);
    uint64_t norm = scene_launch(&scene, FIRST, "norm");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    uint64_t rope = scene_launch(&scene, SECOND, "rope");
    scene_enter(&scene, FIRST, norm);
    scene_enter(&scene, SECOND, rope);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, rope);
}

/* Another thread recorded the mark while this one waited for it: which came first is not known, and
 * the recording before is what counts. */
static void a_mark_recorded_during_the_wait_does_not_count(void **state)
{
    (void)state;
    struct scene scene;
    scene_open(&scene, CRUMB_ORDER_NEXT);
    scene_launch(&scene, FIRST, "add");
    script_call(&scene.script, EVENT_MARK_RECORD, FIRST, 5);
    uint64_t norm = scene_launch(&scene, FIRST, "norm");
    struct event again = script_event(&scene.script, EVENT_MARK_RECORD);
    again.stream_index = FIRST;
    again.mark.mark = 5;
    again.thread_index = 1;
    again.end_ns = again.begin_ns + 10 * SCRIPT_NS;
    script_add(&scene.script, &again);
    script_call(&scene.script, EVENT_MARK_SYNC, EVENT_NO_STREAM, 5);
    uint64_t rope = scene_launch(&scene, SECOND, "rope");
    scene_enter(&scene, FIRST, norm);
    scene_enter(&scene, SECOND, rope);
    scene_fault_at(&scene, 0);
    CHECK_SEVERAL(&scene, norm, rope);
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
