/* analyze_foreign_contents_test.c - memory of foreign programs that a copy reads before anything
 * was written there, and all that may have been written unseen. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"

/* Buffers of the script of analyze_foreign.h are not fresh; this one is. */
#define FRESH 9u

static void allocate(struct script *script, uint16_t flags)
{
    struct event event = script_event(script, EVENT_BUFFER_CREATE);
    event.flags = EVENT_FOREIGN | EVENT_FRESH | flags;
    event.buffer.bytes = BUFFER_BYTES;
    event.access_count = 1;
    event.accesses[0] = script_access(FRESH, 0, BUFFER_BYTES, 0, 0);
    script_add(script, &event);
}

static uint64_t transfer(struct script *script, enum event_kind kind, uint64_t from, uint64_t bytes,
                         uint32_t flags)
{
    struct event event = script_event(script, kind);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = A;
    event.copy.bytes = bytes;
    event_set_text(event.op, sizeof(event.op), "copy");
    bool in = kind == EVENT_COPY_IN || kind == EVENT_FILL;
    script_operand(&event, FRESH, from, bytes, in ? EVENT_WRITE : EVENT_READ);
    return script_add(script, &event);
}

/* A launch whose argument is another buffer. */
static void launch(struct script *script, uint32_t flags)
{
    struct event event = kernel_event(script, A, B);
    event.flags |= flags;
    script_add(script, &event);
}

/* What happens between the allocation and the copy. */
enum before {
    NOTHING,
    OTHER_KERNEL,
    OWN_KERNEL,
    READING_KERNEL,
    FILLED,
    FILLED_HALF,
    ADDRESSES_ALONE,
    ADDRESSES_AND_KERNEL,
    BLOB_ALONE,
    BLOB_AND_KERNEL,
    PARTIAL_KERNEL,
    TELLING_KERNEL,
    HIDDEN,
    UNKNOWN_GRAPH,
};

static void do_before(struct script *script, enum before before)
{
    struct event event;
    switch (before) {
    case NOTHING:
        return;
    case OTHER_KERNEL:
        launch(script, 0);
        return;
    case OWN_KERNEL:
        kernel(script, A, FRESH);
        return;
    case READING_KERNEL: /* its code was read, and shows no store */
        event = kernel_event(script, A, 0);
        script_operand(&event, FRESH, 0, BUFFER_BYTES, EVENT_READ | EVENT_MAYBE);
        script_add(script, &event);
        return;
    case FILLED:
    case FILLED_HALF:
        transfer(script, EVENT_FILL, 0, before == FILLED ? BUFFER_BYTES : BUFFER_BYTES / 2, 0);
        return;
    case ADDRESSES_ALONE:
    case ADDRESSES_AND_KERNEL:
    case BLOB_ALONE:
    case BLOB_AND_KERNEL:
        event = script_event(script, EVENT_COPY_IN);
        event.stream_index = A;
        event.flags = EVENT_FOREIGN;
        event.copy.bytes = before >= BLOB_ALONE ? EVENT_ADDRESSES_LOOKED + 1 : 8;
        if (before < BLOB_ALONE)
            event.flags |= EVENT_HAS_ADDRESSES;
        script_operand(&event, C, 0, 8, EVENT_WRITE);
        script_add(script, &event);
        if (before == ADDRESSES_AND_KERNEL || before == BLOB_AND_KERNEL)
            launch(script, 0);
        return;
    case PARTIAL_KERNEL:
        launch(script, EVENT_PARTIAL);
        return;
    case TELLING_KERNEL:
        launch(script, EVENT_MAY_TELL);
        return;
    case HIDDEN:
        call(script, EVENT_HIDDEN_ORDER, B, 0, 0);
        return;
    case UNKNOWN_GRAPH:
        call(script, EVENT_GRAPH_REPLAY, B, 77, 0);
        return;
    }
}

enum claim { CLAIM_NONE, CLAIM_POSSIBLE, CLAIM_CERTAIN };

static void only_what_nothing_can_have_written_is_certain(void **state)
{
    (void)state;
    static const struct {
        enum before before;
        enum claim out, within; /* a copy to the host, a copy within the device */
    } rows[] = {
        { NOTHING, CLAIM_CERTAIN, CLAIM_CERTAIN },
        { OTHER_KERNEL, CLAIM_CERTAIN, CLAIM_CERTAIN },
        { OWN_KERNEL, CLAIM_NONE, CLAIM_NONE },
        { READING_KERNEL, CLAIM_CERTAIN, CLAIM_CERTAIN },
        { FILLED, CLAIM_NONE, CLAIM_NONE },
        { FILLED_HALF, CLAIM_POSSIBLE, CLAIM_NONE },
        { ADDRESSES_ALONE, CLAIM_NONE, CLAIM_NONE }, /* a library launches in its own way */
        { ADDRESSES_AND_KERNEL, CLAIM_NONE, CLAIM_NONE },
        { BLOB_ALONE, CLAIM_CERTAIN, CLAIM_CERTAIN },
        { BLOB_AND_KERNEL, CLAIM_POSSIBLE, CLAIM_POSSIBLE },
        { PARTIAL_KERNEL, CLAIM_NONE, CLAIM_NONE },
        { TELLING_KERNEL, CLAIM_NONE, CLAIM_NONE },
        { HIDDEN, CLAIM_NONE, CLAIM_NONE },
        { UNKNOWN_GRAPH, CLAIM_NONE, CLAIM_NONE },
    };
    for (size_t i = 0; i < 2 * COUNT_OF(rows); i++) {
        bool out = i % 2 == 0;
        enum claim claim = out ? rows[i / 2].out : rows[i / 2].within;
        struct script script;
        begin(&script);
        allocate(&script, 0);
        do_before(&script, rows[i / 2].before);
        uint64_t id = transfer(&script, out ? EVENT_COPY_OUT : EVENT_COPY_WITHIN, 0, BUFFER_BYTES,
                               0);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_UNINITIALISED_READ);
        enum claim made = !finding                               ? CLAIM_NONE
                          : finding->certainty == FINDING_DIRECT ? CLAIM_CERTAIN
                                                                 : CLAIM_POSSIBLE;
        if (made != claim)
            fail_msg("row %zu: expected claim %d, found %d", i / 2, claim, made);
        if (finding) {
            assert_int_equal(finding->cause.event_id, id);
            assert_int_equal(finding->reason != REASON_NONE, claim == CLAIM_POSSIBLE);
        }
        script_close(&script);
    }
}

/* The program has given memory to another process or a network card. */
static void others_may_have_written(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        bool shared = i % 2;
        struct script script;
        begin(&script);
        allocate(&script, 0);
        transfer(&script, i < 2 ? EVENT_COPY_OUT : EVENT_COPY_WITHIN, 0, BUFFER_BYTES,
                 shared ? EVENT_UNSEEN_WRITES : 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(find_finding(analysis, HYPOTHESIS_UNINITIALISED_READ) == NULL, shared);
        script_close(&script);
    }
}

/* Memory that another process or the host may have written is not fresh, and is not counted as
 * looked at; after lost events nothing is. */
static void what_is_not_known_is_not_counted(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct script script;
        begin(&script);
        allocate(&script, 0);
        if (lost)
            analyze_lost(script.analyzer, 1);
        transfer(&script, EVENT_COPY_OUT, 0, BUFFER_BYTES, 0);
        copy(&script, A, B, C, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct hypothesis_coverage *reads =
            &analysis->coverage[HYPOTHESIS_UNINITIALISED_READ];
        assert_int_equal(reads->total, lost ? 0 : 1);
        assert_int_equal(reads->checked, reads->total);
        assert_int_equal(find_finding(analysis, HYPOTHESIS_UNINITIALISED_READ) != NULL, !lost);
        script_close(&script);
    }
}

/* A kernel that reads host memory runs when the memory is made: the host may tell it the address.
 */
static void a_running_kernel_may_be_told(void **state)
{
    (void)state;
    for (int waited = 0; waited < 2; waited++) {
        struct script script;
        begin(&script);
        launch(&script, EVENT_MAY_TELL);
        if (waited)
            call(&script, EVENT_STREAM_SYNC, A, 0, 0);
        allocate(&script, 0);
        transfer(&script, EVENT_COPY_OUT, 0, BUFFER_BYTES, 0);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *finding = find_finding(analysis, HYPOTHESIS_UNINITIALISED_READ);
        assert_non_null(finding);
        assert_int_equal(finding->certainty, waited ? FINDING_DIRECT : FINDING_POSSIBLE);
        assert_int_equal(finding->reason, waited ? REASON_NONE : REASON_UNSEEN_WRITER);
        script_close(&script);
    }
}

/* Rows with gaps between them: what a fill of such rows leaves out is not claimed to be unwritten,
 * and a copy of them is wrong only if nothing at all was written there. */
static void rows_with_gaps(void **state)
{
    (void)state;
    for (int filled = 0; filled < 2; filled++) {
        struct script script;
        begin(&script);
        allocate(&script, 0);
        if (filled)
            transfer(&script, EVENT_FILL, 0, 100, 0);
        struct event event = script_event(&script, EVENT_COPY_OUT);
        event.flags = EVENT_FOREIGN;
        event.stream_index = A;
        script_operand(&event, FRESH, 0, 1000, EVENT_READ | EVENT_MAYBE);
        script_add(&script, &event);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, filled ? 0 : 1);
        script_close(&script);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_nothing_can_have_written_is_certain),
        cmocka_unit_test(others_may_have_written),
        cmocka_unit_test(what_is_not_known_is_not_counted),
        cmocka_unit_test(a_running_kernel_may_be_told),
        cmocka_unit_test(rows_with_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
