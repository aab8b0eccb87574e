/* analyze_order_test.c - happens-before: which pairs of accesses, and which frees, are ordered by
 * streams, marks and waits, and which are not. */
#include "analyze_order.h"

static void same_stream_is_ordered(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_launch(&script, A, "read", A, B);
    script_launch(&script, A, "write", B, A);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void two_streams_race(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    uint64_t read = script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void write_after_unordered_read_races(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    uint64_t read = script_launch(&script, A, "read", A, B);
    uint64_t write = script_launch(&script, B, "write", 0, A);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, write, read);
}

static void two_reads_do_not_race(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "read", A, B);
    script_launch(&script, B, "read", A, C);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void disjoint_bytes_do_not_race(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    struct event left = script_launch_event(&script, A, "left");
    script_operand(&left, A, 0, 4096, EVENT_WRITE);
    script_add(&script, &left);
    struct event right = script_launch_event(&script, B, "right");
    script_operand(&right, A, 4096, 4096, EVENT_WRITE);
    script_add(&script, &right);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void one_common_byte_races(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    struct event left = script_launch_event(&script, A, "left");
    script_operand(&left, A, 0, 4097, EVENT_WRITE);
    uint64_t first = script_add(&script, &left);
    struct event right = script_launch_event(&script, B, "right");
    script_operand(&right, A, 4096, 4096, EVENT_READ);
    uint64_t second = script_add(&script, &right);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_MISSING_SYNC);
    assert_non_null(finding);
    assert_int_equal(finding->cause.event_id, second);
    assert_int_equal(finding->other.event_id, first);
    assert_int_equal(finding->cause.address, BUFFER_ADDRESS(A) + 4096);
    assert_int_equal(finding->cause.bytes, 1);
    assert_string_equal(finding->cause.buffer, "a");
    script_close(&script);
}

static void mark_orders_two_streams(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

/* The mark was recorded before the write: waiting for it orders nothing. */
static void mark_recorded_too_early_races(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    uint64_t read = script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void chain_of_marks_is_transitive(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_call(&script, EVENT_MARK_RECORD, B, 8);
    script_call(&script, EVENT_MARK_WAIT, C, 8);
    script_launch(&script, C, "read", A, C);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

/* The second link is missing: what B waited for, C did not. */
static void broken_chain_races(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, B, 8);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_call(&script, EVENT_MARK_WAIT, C, 8);
    uint64_t read = script_launch(&script, C, "read", A, C);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void recording_again_moves_a_mark(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_launch(&script, A, "write", 0, A);
    script_call(&script, EVENT_MARK_RECORD, A, 7);
    script_call(&script, EVENT_MARK_WAIT, B, 7);
    script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
}

static void host_waits_order(void **state)
{
    (void)state;
    enum event_kind waits[] = { EVENT_STREAM_SYNC, EVENT_STREAM_DESTROY, EVENT_MARK_SYNC };
    for (size_t i = 0; i < COUNT_OF(waits); i++) {
        struct script script;
        order_begin(&script);
        script_launch(&script, A, "write", 0, A);
        script_call(&script, EVENT_MARK_RECORD, A, 7);
        script_call(&script, waits[i], waits[i] == EVENT_MARK_SYNC ? EVENT_NO_STREAM : A,
                    waits[i] == EVENT_MARK_SYNC ? 7 : 0);
        script_launch(&script, B, "read", A, B);
        order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);
    }
}

/* A wait that has not returned orders nothing. */
static void pending_wait_does_not_order(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    struct event wait = script_event(&script, EVENT_STREAM_SYNC);
    wait.stream_index = A;
    wait.phase = EVENT_BEGIN;
    wait.outcome = EVENT_PENDING;
    wait.end_ns = 0;
    script_add(&script, &wait);
    script.thread = 1; /* another thread goes on */
    uint64_t read = script_launch(&script, B, "read", A, B);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_MISSING_SYNC, read);
    assert_int_equal(find_finding(analysis, HYPOTHESIS_MISSING_SYNC)->other.event_id, write);
    script_close(&script);
}

static void redeeming_waits_for_the_stream_so_far(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "write", 0, A);
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, A, A, 0, 64, 1);
    script_redeem(&script, 1, copy, true, 0);
    script_launch(&script, B, "read", A, B);
    uint64_t late = script_launch(&script, A, "late", 0, C);
    uint64_t read = script_launch(&script, B, "read_late", C, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, read, late);
}

static void another_threads_wait_counts_once_it_is_over(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "write", 0, A);
    script_sync(&script, A);
    script.thread = 3;
    script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, 0, 0);

    order_begin(&script);
    uint64_t write = script_launch(&script, A, "write", 0, A);
    struct event wait = script_event(&script, EVENT_STREAM_SYNC);
    wait.stream_index = A;
    wait.end_ns = wait.begin_ns + 100u * SCRIPT_NS; /* still waiting when the other calls */
    script_add(&script, &wait);
    script.thread = 3;
    uint64_t read = script_launch(&script, B, "read", A, B);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, read, write);
}

static void free_after_a_wait_is_fine(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "read", A, B);
    script_sync(&script, A);
    script_destroy(&script, A, "a");
    order_end(&script, HYPOTHESIS_USE_AFTER_FREE, 0, 0);
}

static void free_of_queued_work_is_found(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    script_launch(&script, A, "first", A, B);
    uint64_t last = script_launch(&script, A, "last", A, B);
    uint64_t destroyed = script_destroy(&script, A, "a");
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_USE_AFTER_FREE, last);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_USE_AFTER_FREE);
    assert_int_equal(finding->other.event_id, destroyed);
    assert_int_equal(finding->other.kind, EVENT_BUFFER_DESTROY);
    assert_string_equal(finding->cause.buffer, "a");
    script_close(&script);
}

static void waiting_for_another_stream_is_not_enough(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    uint64_t use = script_launch(&script, B, "read", A, B);
    script_sync(&script, C);
    uint64_t destroyed = script_destroy(&script, A, "a");
    order_end(&script, HYPOTHESIS_USE_AFTER_FREE, use, destroyed);
}

/* Two threads: the place of a buffer is given again before its destruction is reported. */
static void late_destruction_spares_the_successor(void **state)
{
    (void)state;
    struct script script;
    order_begin(&script);
    struct event made = script_event(&script, EVENT_BUFFER_CREATE);
    made.access_count = 1;
    made.accesses[0] = script_access(A, 0, BUFFER_BYTES, EVENT_UPDATE, 0);
    made.accesses[0].generation = 3;
    script_add(&script, &made);
    script_destroy(&script, A, "a"); /* of generation 1 */
    struct event write = script_launch_event(&script, A, "write");
    script_operand(&write, A, 0, BUFFER_BYTES, EVENT_WRITE);
    write.accesses[0].generation = 3;
    uint64_t first = script_add(&script, &write);
    struct event read = script_launch_event(&script, B, "read");
    script_operand(&read, A, 0, BUFFER_BYTES, EVENT_READ);
    read.accesses[0].generation = 3;
    uint64_t second = script_add(&script, &read);
    order_end(&script, HYPOTHESIS_MISSING_SYNC, second, first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_stream_is_ordered),
        cmocka_unit_test(two_streams_race),
        cmocka_unit_test(write_after_unordered_read_races),
        cmocka_unit_test(two_reads_do_not_race),
        cmocka_unit_test(disjoint_bytes_do_not_race),
        cmocka_unit_test(one_common_byte_races),
        cmocka_unit_test(mark_orders_two_streams),
        cmocka_unit_test(mark_recorded_too_early_races),
        cmocka_unit_test(chain_of_marks_is_transitive),
        cmocka_unit_test(broken_chain_races),
        cmocka_unit_test(recording_again_moves_a_mark),
        cmocka_unit_test(host_waits_order),
        cmocka_unit_test(pending_wait_does_not_order),
        cmocka_unit_test(redeeming_waits_for_the_stream_so_far),
        cmocka_unit_test(another_threads_wait_counts_once_it_is_over),
        cmocka_unit_test(free_after_a_wait_is_fine),
        cmocka_unit_test(free_of_queued_work_is_found),
        cmocka_unit_test(waiting_for_another_stream_is_not_enough),
        cmocka_unit_test(late_destruction_spares_the_successor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
