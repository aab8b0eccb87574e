/* analyze_unseen_order_test.c - calls of foreign programs that wait, wait in part or may wait, and
 * order that goes unseen through flags, kernels and host functions: what it can excuse is only
 * possible. */
#include "analyze_foreign.h"

/* ---- Calls that wait ------------------------------------------------------------------------ */

/* The host waits for what is before the copy, and not for the copy: that may be done or not. */
static void staged_copies_order_what_is_before(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, 0);
    copy(&script, A, A, C, EVENT_STAGED);
    copy(&script, B, B, 0, 0); /* after the first */
    nothing(&script);
    begin(&script);
    uint64_t staged = copy(&script, A, A, C, EVENT_STAGED);
    uint64_t read = copy(&script, B, C, 0, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, read, staged);
}

/* Whether it waited is documented nowhere: what rests on either is possible. */
static void calls_that_may_wait(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    copy(&script, A, A, C, EVENT_MAY_WAIT);
    uint64_t second = copy(&script, B, B, 0, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, second, first);
    begin(&script);
    copy(&script, C, A, C, EVENT_MAY_WAIT); /* of another stream: says nothing of this */
    first = copy(&script, A, A, B, 0);
    second = copy(&script, B, B, 0, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_DIRECT, second, first);
    begin(&script);
    uint64_t work = copy(&script, A, A, B, 0);
    uint64_t free_id = release(&script, B, EVENT_NO_STREAM, EVENT_HOST_MEMORY | EVENT_MAY_WAIT);
    end(&script, HYPOTHESIS_USE_AFTER_FREE, FINDING_POSSIBLE, work, free_id);
    begin(&script);
    first = copy(&script, A, A, B, 0);
    release(&script, C, EVENT_NO_STREAM, EVENT_HOST_MEMORY | EVENT_MAY_WAIT); /* for all streams */
    second = copy(&script, B, B, 0, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, second, first);
}

/* A copy between devices comes after all streams' work, and theirs after it. */
static void copies_in_order_with_all_streams(void **state)
{
    (void)state;
    struct script script;
    begin(&script);
    copy(&script, A, A, B, 0);
    copy(&script, C, B, C, EVENT_ALL_STREAMS);
    copy(&script, B, C, A, 0);
    nothing(&script);
}

/* ---- Order that is not seen ----------------------------------------------------------------- */

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

static uint64_t work_that_tells(struct script *script, enum event_kind kind, uint32_t stream,
                                uint64_t bytes)
{
    struct event event = kernel_event(script, stream, 0);
    event.kind = (uint8_t)kind;
    event.flags |= EVENT_MAY_TELL;
    if (event_is_copy(event.kind))
        event.copy = (struct event_copy){ .bytes = bytes };
    return script_add(script, &event);
}

/* The host may read a flag that work after the copy writes: it may know that the copy is done. Work
 * of other streams, and work before it, says nothing of the copy. */
static void flags_may_tell(void **state)
{
    (void)state;
    struct script script;
    for (int row = 0; row < 4; row++) {
        static const struct {
            enum event_kind kind;
            uint32_t stream;
            enum finding_certainty certainty;
        } rows[] = {
            { EVENT_LAUNCH, A, FINDING_POSSIBLE },
            { EVENT_COPY_OUT, A, FINDING_POSSIBLE },
            { EVENT_FILL, A, FINDING_POSSIBLE },
            { EVENT_LAUNCH, C, FINDING_DIRECT },
        };
        begin(&script);
        uint64_t first = copy(&script, A, A, B, 0);
        work_that_tells(&script, rows[row].kind, rows[row].stream, 4);
        uint64_t second = copy(&script, B, B, 0, 0);
        end(&script, HYPOTHESIS_OVERLAPPING_COPIES, rows[row].certainty, second, first);
        begin(&script); /* the same of a free */
        first = copy(&script, A, A, B, 0);
        work_that_tells(&script, rows[row].kind, rows[row].stream, 4);
        uint64_t free_id = release(&script, B, EVENT_NO_STREAM, EVENT_HOST_MEMORY);
        end(&script, HYPOTHESIS_USE_AFTER_FREE, rows[row].certainty, first, free_id);
    }
    /* Through streams that wait for one another. */
    begin(&script);
    uint64_t first = copy(&script, A, A, B, 0);
    call(&script, EVENT_MARK_RECORD, A, 77, 0);
    call(&script, EVENT_MARK_WAIT, C, 77, 0);
    work_that_tells(&script, EVENT_LAUNCH, C, 0);
    uint64_t second = copy(&script, B, B, 0, 0);
    end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, second, first);
}

/* A copy of a flag tells of itself; of many bytes none is known to come last. */
static void copies_of_flags_tell_of_themselves(void **state)
{
    (void)state;
    static const uint64_t sizes[] = { 4, 64, 65, BUFFER_BYTES };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct script script;
        begin(&script);
        struct event event = script_event(&script, EVENT_COPY_OUT);
        event.flags = EVENT_FOREIGN | EVENT_MAY_TELL;
        event.stream_index = A;
        event.copy.bytes = sizes[i];
        script_operand(&event, B, 0, sizes[i], EVENT_WRITE);
        uint64_t first = script_add(&script, &event);
        uint64_t free_id = release(&script, B, EVENT_NO_STREAM, EVENT_HOST_MEMORY);
        end(&script, HYPOTHESIS_USE_AFTER_FREE, sizes[i] <= 64 ? FINDING_POSSIBLE : FINDING_DIRECT,
            first, free_id);
    }
}

/* A kernel that reads a flag of the host holds back what comes after it: the host may let it go
 * when it knows that the other is done. A free does not wait for that. */
static void kernels_may_hold_back(void **state)
{
    (void)state;
    struct script script;
    for (uint32_t held = A; held <= B; held++) {
        begin(&script);
        work_that_tells(&script, EVENT_LAUNCH, held, 0);
        uint64_t first = copy(&script, A, A, B, 0);
        uint64_t second = copy(&script, B, B, 0, 0);
        end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_POSSIBLE, second, first);
        begin(&script); /* one that is done holds back nothing */
        work_that_tells(&script, EVENT_LAUNCH, held, 0);
        call(&script, EVENT_STREAM_SYNC, held, 0, 0);
        first = copy(&script, A, A, B, 0);
        second = copy(&script, B, B, 0, 0);
        end(&script, HYPOTHESIS_OVERLAPPING_COPIES, FINDING_DIRECT, second, first);
    }
    begin(&script);
    work_that_tells(&script, EVENT_LAUNCH, A, 0);
    uint64_t work = copy(&script, A, A, B, 0);
    uint64_t free_id = release(&script, B, EVENT_NO_STREAM, EVENT_HOST_MEMORY);
    end(&script, HYPOTHESIS_USE_AFTER_FREE, FINDING_DIRECT, work, free_id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(staged_copies_order_what_is_before),
        cmocka_unit_test(calls_that_may_wait),
        cmocka_unit_test(copies_in_order_with_all_streams),
        cmocka_unit_test(hidden_order_is_possible),
        cmocka_unit_test(flags_may_tell),
        cmocka_unit_test(copies_of_flags_tell_of_themselves),
        cmocka_unit_test(kernels_may_hold_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
