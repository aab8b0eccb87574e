/* analyze_foreign_test.c - calls of foreign programs: what their runtimes order and what they do
 * not, what rests on a kernel's pointers, what a fault leaves open, what leaks. */
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

/* ---- Graphs, sources, faults, leaks -----------------------------------------------------------
 */

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
    for (int told = 0; told < 2; told++) {
        struct script script;
        begin(&script);
        uint64_t first = copy(&script, A, A, B, 0);
        struct event changed = script_event(&script, EVENT_SOURCE_CHANGED);
        changed.flags = EVENT_FOREIGN | (told ? EVENT_MAY_TELL : 0);
        changed.cause_id = first;
        changed.stream_index = A;
        changed.source_change.digest_before = 1;
        changed.source_change.digest_now = 2;
        uint64_t seen = script_add(&script, &changed);
        end(&script, HYPOTHESIS_STAGING_REUSE, told ? FINDING_POSSIBLE : FINDING_DIRECT, first,
            seen);
    }
}

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
    struct event told = script_event(&script, EVENT_STREAM_SYNC);
    told.flags = EVENT_FOREIGN;
    told.stream_index = A;
    told.outcome = EVENT_FAILED;
    told.check = EVENT_CHECK_LOST;
    told.code = 700;
    uint64_t seen = script_add(&script, &told);
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

/* What a program does with memory that it takes at one place. */
enum leak_use { LEAK_UNUSED, LEAK_ONCE, LEAK_AT_THE_END };

struct leak_row {
    const char *name;
    unsigned made, freed;
    bool launches; /* between the allocations */
    enum leak_use use;
    bool closed; /* the process ended in order */
    bool found;
};

static size_t leaks(const struct leak_row *row)
{
    struct script script;
    struct flight_info info = { .closed = row->closed };
    script_open(&script, AUDIT_LOG);
    for (uint32_t i = 1; i <= row->made; i++) {
        struct event event = script_event(&script, EVENT_BUFFER_CREATE);
        event.flags = EVENT_FOREIGN;
        event.buffer.bytes = 100;
        event.stack_index = 4;
        event.access_count = 1;
        event.accesses[0] = script_access(i, 0, 100, 0, 0);
        script_add(&script, &event);
        if (row->launches)
            kernel(&script, A, row->use == LEAK_ONCE ? i : 0);
        if (i <= row->freed)
            release(&script, i, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
    }
    for (uint32_t i = 1; row->use == LEAK_AT_THE_END && i <= row->made; i++)
        kernel(&script, A, i);
    CHECK_OK(analyzer_finish(script.analyzer, NULL, &info, script.ns, &script.err), &script.err);
    const struct analysis *analysis = analyzer_result(script.analyzer);
    size_t count = analysis->finding_count;
    if (count) {
        assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_LEAK);
        assert_int_equal(analysis->findings[0].certainty, FINDING_POSSIBLE);
        assert_int_equal(analysis->findings[0].expected, row->made);
        assert_int_equal(analysis->findings[0].found, 100 * row->made);
    }
    script_close(&script);
    return count;
}

/* Never more than possible: a pointer that is not seen may still lead there. */
static void a_leak_grows(void **state)
{
    (void)state;
    static const struct leak_row rows[] = {
        { "scratch of every round", 8, 0, true, LEAK_ONCE, true, true },
        { "taken and forgotten", 8, 0, true, LEAK_UNUSED, true, true },
        { "too few", 7, 0, true, LEAK_ONCE, true, false },
        { "gives back: it may keep some", 20, 1, true, LEAK_ONCE, true, false },
        { "died", 20, 0, true, LEAK_ONCE, false, false },
        { "weights, made before the work", 20, 0, false, LEAK_AT_THE_END, true, false },
        { "weights, used in ways not seen", 20, 0, false, LEAK_UNUSED, true, false },
        { "weights, converted one by one", 20, 0, true, LEAK_AT_THE_END, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (leaks(&rows[i]) != rows[i].found)
            fail_msg("%s", rows[i].name);
    }
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
        cmocka_unit_test(graphs_with_freed_memory),
        cmocka_unit_test(graphs_with_memory_taken_again),
        cmocka_unit_test(rewritten_source),
        cmocka_unit_test(a_fault_leaves_a_window),
        cmocka_unit_test(a_window_of_one_launch),
        cmocka_unit_test(a_leak_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
