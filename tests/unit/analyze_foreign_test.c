/* analyze_foreign_test.c - calls of foreign programs: what their runtimes order and what they do
 * not, what rests on a kernel's pointers, graphs with memory that was freed. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"

/* ---- Certainty ------------------------------------------------------------------------------ */

static void copies_are_certain(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    uint64_t second = copy(&script, B, B, C, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_DIRECT, second, first);
}

static void kernels_are_possible(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t launch = kernel(&script, A, B);
    uint64_t read = copy(&script, B, B, C, 0);
    end(&script, HYPOTHESIS_MISSING_SYNC, FINDING_POSSIBLE, read, launch);
    begin(&script);
    uint64_t write = copy(&script, A, A, B, 0);
    launch = kernel(&script, B, B);
    end(&script, HYPOTHESIS_MISSING_SYNC, FINDING_POSSIBLE, launch, write);
}

/* A kernel between two copies does not make them less unordered. */
static void kernels_hide_nothing(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    kernel(&script, A, B);
    uint64_t second = copy(&script, B, B, C, 0);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_OVERLAPPING_COPIES);
    assert_non_null(finding);
    assert_int_equal(finding->certainty, FINDING_DIRECT);
    assert_int_equal(finding->cause.event_id, second);
    assert_int_equal(finding->other.event_id, first);
    script_close(&script);
}

/* What a check says of a call that was made is as direct as a refusal; but a runtime that takes the
 * address of freed memory, or a destroyed stream, may know of one that was made unseen. */
static void checks_are_direct(void **state)
{
    (void)state;
    static const struct {
        enum event_check check;
        enum hypothesis hypothesis;
    } rows[] = {
        { EVENT_CHECK_VIEW_END, HYPOTHESIS_SIZE_MISMATCH },
        { EVENT_CHECK_GENERATION, HYPOTHESIS_USE_AFTER_FREE },
        { EVENT_CHECK_DIRECTION, HYPOTHESIS_BAD_POINTER },
        { EVENT_CHECK_HANDLE, HYPOTHESIS_BAD_POINTER },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int failed = 0; failed < 2; failed++) {
            struct script script;
            begin(&script);
            struct event event = script_event(&script, EVENT_COPY_OUT);
            event.flags = EVENT_FOREIGN;
            event.stream_index = A;
            event.check = (uint8_t)rows[i].check;
            event.outcome = failed ? EVENT_FAILED : EVENT_DONE;
            uint64_t id = script_add(&script, &event);
            bool direct = failed || (rows[i].check != EVENT_CHECK_GENERATION &&
                                     rows[i].check != EVENT_CHECK_HANDLE);
            end(&script, rows[i].hypothesis, direct ? FINDING_DIRECT : FINDING_POSSIBLE, id, 0);
        }
}

/* ---- What the runtime orders ---------------------------------------------------------------- */

static void default_streams_order(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, EVENT_BLOCKING);
    copy(&script, C, B, C, EVENT_LEGACY_STREAM); /* after the blocking stream */
    copy(&script, A, C, A, EVENT_BLOCKING);      /* and that after it */
    nothing(&script);
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0); /* not a blocking one */
    uint64_t second = copy(&script, C, B, C, EVENT_LEGACY_STREAM);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_DIRECT, second, first);
}

static void synchronous_copies_order(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, EVENT_SYNCHRONOUS);
    copy(&script, B, B, C, 0);
    nothing(&script);
}

static void a_wait_for_all_orders(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, 0);
    copy(&script, C, A, C, 0);
    call(&script, EVENT_STREAM_SYNC, EVENT_NO_STREAM, 0, EVENT_ALL_STREAMS);
    copy(&script, B, B, C, 0);
    nothing(&script);
}

static void frees(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, 0);
    release(&script, B, EVENT_NO_STREAM, EVENT_SYNCHRONOUS); /* waits for the device */
    copy(&script, B, A, C, 0);
    nothing(&script);
    begin(&script);
    copy(&script, A, A, B, 0);
    release(&script, B, A, EVENT_STREAM_ORDERED); /* after it in the same stream */
    nothing(&script);
    begin(&script);
    uint64_t work = copy(&script, A, A, B, 0);
    uint64_t free_id = release(&script, B, C, EVENT_STREAM_ORDERED); /* of another stream */
    end(&script, HYPOTHESIS_USE_AFTER_FREE, FINDING_DIRECT, work, free_id);
    begin(&script);
    work = kernel(&script, A, B);
    free_id = release(&script, B, C, EVENT_STREAM_ORDERED);
    end(&script, HYPOTHESIS_USE_AFTER_FREE, FINDING_POSSIBLE, work, free_id);
    begin(&script);
    work = copy(&script, A, A, B, 0);
    free_id = release(&script, B, EVENT_NO_STREAM, EVENT_HOST_MEMORY); /* pinned memory */
    end(&script, HYPOTHESIS_USE_AFTER_FREE, FINDING_DIRECT, work, free_id);
}

static void streams_go_without_waiting(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t work = copy(&script, A, A, B, 0);
    uint64_t gone = call(&script, EVENT_STREAM_DESTROY, A, 0, 0);
    end(&script, HYPOTHESIS_MISSING_SYNC, FINDING_POSSIBLE, gone, work);
    begin(&script);
    copy(&script, A, A, B, 0);
    call(&script, EVENT_STREAM_SYNC, A, 0, 0);
    call(&script, EVENT_STREAM_DESTROY, A, 0, 0);
    nothing(&script);
    begin(&script);
    copy(&script, A, A, B, 0);
    call(&script, EVENT_MARK_RECORD, A, 77, 0); /* stands for the work */
    call(&script, EVENT_STREAM_DESTROY, A, 0, 0);
    nothing(&script);
}

/* ---- Graphs and sources --------------------------------------------------------------------- */

static void graphs_with_freed_memory(void **state)
{
    (void)state;
    for (int of_kernel = 0; of_kernel < 2; of_kernel++) {
        struct script script;
        begin(&script);
        uint64_t graph = call(&script, EVENT_GRAPH_BEGIN, A, 0, 0);
        struct event node = kernel_event(&script, A, B);
        if (!of_kernel) {
            node.kind = EVENT_COPY_OUT;
            node.copy = (struct event_copy){ 0 };
            node.accesses[0].mode = EVENT_READ;
        }
        event_set_graph_id(&node, graph);
        script_add(&script, &node);
        release(&script, B, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
        struct event replay = script_event(&script, EVENT_GRAPH_REPLAY);
        replay.flags = EVENT_FOREIGN;
        replay.stream_index = A;
        replay.graph.handle = 5;
        replay.cause_id = graph;
        script_add(&script, &replay);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_STALE_GRAPH);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, of_kernel ? FINDING_POSSIBLE : FINDING_DIRECT);
        script_close(&script);
    }
}

/* Other memory at the address of what was freed: the graph may be meant to use that. */
static void graphs_with_memory_taken_again(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t graph = call(&script, EVENT_GRAPH_BEGIN, A, 0, 0);
    struct event node = kernel_event(&script, A, B);
    node.kind = EVENT_FILL;
    node.copy = (struct event_copy){ .graph_id = graph };
    node.accesses[0].mode = EVENT_WRITE;
    script_add(&script, &node);
    release(&script, B, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
    struct event again = script_event(&script, EVENT_BUFFER_CREATE);
    again.flags = EVENT_FOREIGN;
    again.access_count = 1;
    again.accesses[0] = script_access(B, 0, BUFFER_BYTES, 0, 0);
    again.accesses[0].buffer_index = 9;
    script_add(&script, &again);
    struct event replay = script_event(&script, EVENT_GRAPH_REPLAY);
    replay.flags = EVENT_FOREIGN;
    replay.stream_index = A;
    replay.cause_id = graph;
    script_add(&script, &replay);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *finding = find_finding(analysis, HYPOTHESIS_STALE_GRAPH);
    assert_non_null(finding);
    assert_int_equal(finding->certainty, FINDING_POSSIBLE);
    script_close(&script);
}

static void rewritten_source(void **state)
{
    (void)state;
    for (int reported = 0; reported < 2; reported++) {
        struct script script;
        begin(&script);
        uint64_t first = copy(&script, A, A, B, 0);
        struct event changed = script_event(&script, EVENT_SOURCE_CHANGED);
        changed.flags = EVENT_FOREIGN | (reported ? EVENT_MAY_TELL : 0);
        changed.cause_id = first;
        changed.stream_index = A;
        changed.source_change.digest_before = 1;
        changed.source_change.digest_now = 2;
        uint64_t seen = script_add(&script, &changed);
        end(&script, HYPOTHESIS_STAGING_REUSE, reported ? FINDING_POSSIBLE : FINDING_DIRECT, first,
            seen);
    }
}

/* An access of the host to what queued work still uses: the access is the cause. */
static void host_accesses(void **state)
{
    (void)state;
    static const struct {
        bool launch, source, writes, maybe, released;
        enum hypothesis hypothesis;
        enum finding_defect defect;
    } rows[] = {
        { false, false, false, false, false, HYPOTHESIS_MISSING_SYNC, DEFECT_HOST_READ_EARLY },
        { false, false, true, false, false, HYPOTHESIS_MISSING_SYNC, DEFECT_HOST_WRITE_EARLY },
        { false, true, true, false, false, HYPOTHESIS_STAGING_REUSE, DEFECT_HOST_REWRITE },
        { true, false, false, false, false, HYPOTHESIS_MISSING_SYNC, DEFECT_HOST_READ_CHANGED },
        { false, false, false, true, false, HYPOTHESIS_MISSING_SYNC, DEFECT_HOST_READ_EARLY },
        { false, false, false, false, true, HYPOTHESIS_STAGING_REUSE, DEFECT_HOST_READ_RELEASED },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        begin(&script);
        uint64_t work = rows[i].launch ? kernel(&script, A, A) : copy(&script, A, A, B, 0);
        struct event access = script_event(&script, EVENT_HOST_ACCESS);
        access.flags = EVENT_FOREIGN | (rows[i].maybe ? EVENT_MAY_TELL : 0);
        access.cause_id = work;
        access.check = rows[i].released ? EVENT_CHECK_TICKET : EVENT_CHECK_NONE;
        access.host_access.address = 0x1010;
        access.host_access.copy_address = 0x1000;
        access.host_access.copy_bytes = 64;
        access.access_count = 1;
        access.accesses[0].mode = rows[i].writes ? EVENT_WRITE : EVENT_READ;
        access.accesses[0].operand = rows[i].source;
        uint64_t seen = script_add(&script, &access);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, rows[i].hypothesis);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, rows[i].maybe ? FINDING_POSSIBLE : FINDING_DIRECT);
        assert_int_equal(finding->reason, rows[i].maybe ? REASON_FLAG : REASON_NONE);
        assert_int_equal(finding->cause.event_id, seen);
        assert_int_equal(finding->other.event_id, work);
        assert_int_equal(finding_defect(finding), rows[i].defect);
        assert_int_equal(finding->expected, 0x10);
        assert_int_equal(finding->found, 64);
        assert_int_equal(analysis->finding_count, 1);
        script_close(&script);
    }
}

/* Off is for good; a limit and "on" say less. */
static void host_traps(void **state)
{
    (void)state;
    static const enum event_traps states[] = { EVENT_TRAPS_ON, EVENT_TRAPS_RING,
                                               EVENT_TRAPS_LIMIT };
    struct script script;
    begin(&script);
    for (size_t i = 0; i < COUNT_OF(states); i++) {
        struct event event = script_event(&script, EVENT_HOST_TRAPS);
        event.flags = EVENT_FOREIGN;
        event.host_traps.state = states[i];
        script_add(&script, &event);
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_true(analysis->host_traps);
    assert_int_equal(analysis->host_traps_state, EVENT_TRAPS_RING);
    assert_int_equal(analysis->finding_count, 0);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_certain),
        cmocka_unit_test(kernels_are_possible),
        cmocka_unit_test(kernels_hide_nothing),
        cmocka_unit_test(checks_are_direct),
        cmocka_unit_test(default_streams_order),
        cmocka_unit_test(synchronous_copies_order),
        cmocka_unit_test(a_wait_for_all_orders),
        cmocka_unit_test(frees),
        cmocka_unit_test(streams_go_without_waiting),
        cmocka_unit_test(host_accesses),
        cmocka_unit_test(host_traps),
        cmocka_unit_test(graphs_with_freed_memory),
        cmocka_unit_test(graphs_with_memory_taken_again),
        cmocka_unit_test(rewritten_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
