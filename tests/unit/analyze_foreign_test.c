/* analyze_foreign_test.c - calls of foreign programs: what their runtimes order and what they do
 * not, what rests on a kernel's pointers, what a fault leaves open, what leaks. */
#include "analyze_fixture.h"

enum { A = 1, B = 2, C = 3 }; /* buffers and streams */

static void begin(struct script *script)
{
    script_open(script, AUDIT_LOG);
    for (uint32_t i = A; i <= C; i++) {
        struct event event = script_event(script, EVENT_BUFFER_CREATE);
        event.flags = EVENT_FOREIGN;
        event.bytes = BUFFER_BYTES;
        event.access_count = 1;
        event.accesses[0] = script_access(i, 0, BUFFER_BYTES, 0, 0);
        script_add(script, &event);
    }
}

/* A copy within the device: reads one buffer, writes another; 0: none. */
static uint64_t copy(struct script *script, uint32_t stream, uint32_t reads, uint32_t writes,
                     uint16_t flags)
{
    struct event event = script_event(script, EVENT_COPY_WITHIN);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    event_set_text(event.op, sizeof(event.op), "cuMemcpyAsync");
    if (reads)
        script_operand(&event, reads, 0, BUFFER_BYTES, EVENT_READ);
    if (writes)
        script_operand(&event, writes, 0, BUFFER_BYTES, EVENT_WRITE);
    return script_add(script, &event);
}

static struct event kernel_event(struct script *script, uint32_t stream, uint32_t pointer)
{
    static uint64_t ordinal;
    struct event event = script_launch_event(script, stream, "kernel");
    event.flags = EVENT_FOREIGN;
    event.bytes = ++ordinal;
    if (pointer)
        script_operand(&event, pointer, 0, BUFFER_BYTES, EVENT_UPDATE | EVENT_MAYBE);
    return event;
}

static uint64_t kernel(struct script *script, uint32_t stream, uint32_t pointer)
{
    struct event event = kernel_event(script, stream, pointer);
    return script_add(script, &event);
}

static uint64_t call(struct script *script, enum event_kind kind, uint32_t stream, uint64_t object,
                     uint16_t flags)
{
    struct event event = script_event(script, kind);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    event.object = object;
    return script_add(script, &event);
}

static uint64_t release(struct script *script, uint32_t buffer, uint32_t stream, uint16_t flags)
{
    struct event event = script_event(script, EVENT_BUFFER_DESTROY);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    event.access_count = 1;
    event.accesses[0] = script_access(buffer, 0, BUFFER_BYTES, 0, 0);
    return script_add(script, &event);
}

/* The one finding there is; cause 0: there is none. */
static void end(struct script *script, enum hypothesis hypothesis, enum finding_certainty certainty,
                uint64_t cause, uint64_t other)
{
    const struct analysis *analysis = script_finish(script, NULL);
    assert_int_equal(analysis->finding_count, cause ? 1 : 0);
    if (cause) {
        const struct finding *finding = &analysis->findings[0];
        assert_int_equal(finding->hypothesis, hypothesis);
        assert_int_equal(finding->certainty, certainty);
        assert_int_equal(finding->cause.event_id, cause);
        assert_int_equal(finding->other.event_id, other);
        assert_true(certainty == FINDING_DIRECT || finding->reason[0]);
    }
    script_close(script);
}

static void nothing(struct script *script)
{
    end(script, HYPOTHESIS_MISSING_SYNC, FINDING_DIRECT, 0, 0);
}

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

static void hidden_order_is_possible(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    call(&script, EVENT_HIDDEN_ORDER, A, 0, 0);
    uint64_t second = copy(&script, B, B, C, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, second, first);
}

/* What a check says of a call that was made is as direct as a refusal; but a runtime that takes the
 * address of freed memory may know of memory that was made unseen. */
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
            bool direct = failed || rows[i].check != EVENT_CHECK_GENERATION;
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
    release(&script, B, A, EVENT_STREAM_ORDERED); /* behind it in the same stream */
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
        node.object = graph;
        if (!of_kernel) {
            node.kind = EVENT_COPY_OUT;
            node.accesses[0].mode = EVENT_READ;
        }
        script_add(&script, &node);
        release(&script, B, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
        struct event replay = script_event(&script, EVENT_GRAPH_REPLAY);
        replay.flags = EVENT_FOREIGN;
        replay.stream_index = A;
        replay.object = 5;
        replay.cause_id = graph;
        script_add(&script, &replay);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_STALE_GRAPH);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, of_kernel ? FINDING_POSSIBLE : FINDING_DIRECT);
        script_close(&script);
    }
}

static void rewritten_source(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    struct event changed = script_event(&script, EVENT_SOURCE_CHANGED);
    changed.flags = EVENT_FOREIGN;
    changed.cause_id = first;
    changed.stream_index = A;
    changed.expected = 1;
    changed.found = 2;
    uint64_t seen = script_add(&script, &changed);
    end(&script, HYPOTHESIS_STAGING_REUSE, FINDING_DIRECT, first, seen);
}

/* Launches since the last wait, up to the call that was told. */
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

/* Of so many allocations of one stack, of which so many are freed. */
static size_t leaks(unsigned made, unsigned freed, bool closed)
{
    struct script script;
    struct flight_info info = { .closed = closed };
    script_open(&script, AUDIT_LOG);
    for (uint32_t i = 1; i <= made; i++) {
        struct event event = script_event(&script, EVENT_BUFFER_CREATE);
        event.flags = EVENT_FOREIGN;
        event.bytes = 100;
        event.stack_index = 4;
        event.access_count = 1;
        event.accesses[0] = script_access(i, 0, 100, 0, 0);
        script_add(&script, &event);
        if (i <= freed)
            release(&script, i, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
    }
    CHECK_OK(analyzer_finish(script.analyzer, NULL, &info, script.ns, &script.err), &script.err);
    const struct analysis *analysis = analyzer_result(script.analyzer);
    size_t count = analysis->finding_count;
    if (count) {
        assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_LEAK);
        assert_int_equal(analysis->findings[0].expected, made);
        assert_int_equal(analysis->findings[0].found, 100 * made);
    }
    script_close(&script);
    return count;
}

static void a_leak_grows(void **state)
{
    (void)state;
    assert_int_equal(leaks(8, 0, true), 1);
    assert_int_equal(leaks(7, 0, true), 0);   /* setup */
    assert_int_equal(leaks(20, 1, true), 0);  /* gives back: it may keep some */
    assert_int_equal(leaks(20, 0, false), 0); /* died */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_certain),
        cmocka_unit_test(kernels_are_possible),
        cmocka_unit_test(kernels_hide_nothing),
        cmocka_unit_test(hidden_order_is_possible),
        cmocka_unit_test(checks_are_direct),
        cmocka_unit_test(default_streams_order),
        cmocka_unit_test(synchronous_copies_order),
        cmocka_unit_test(a_wait_for_all_orders),
        cmocka_unit_test(frees),
        cmocka_unit_test(streams_go_without_waiting),
        cmocka_unit_test(graphs_with_freed_memory),
        cmocka_unit_test(rewritten_source),
        cmocka_unit_test(a_fault_leaves_a_window),
        cmocka_unit_test(a_leak_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
