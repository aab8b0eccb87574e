/* interpose_cuda_calls_test.c - calls of the CUDA driver as events: which calls are asked for and
 * recorded, what orders work and what hides order. */
#include "interpose_cuda.h"

/* ---- Which calls ---------------------------------------------------------------------------- */

static const struct {
    uint32_t id;
    const char *name;
} all_calls[] = {
#define CALL(id, name, begin, end, argument) { id, #name },
#include "interpose/cuda/calls.def"
#undef CALL
};
#define CALL_COUNT (sizeof(all_calls) / sizeof(*all_calls))

static void test_asked_for(void **state)
{
    (void)state;
    size_t count = 0;
    for (uint32_t id = 0; id < CUDA_CALL_LIMIT; id++)
        count += enabled[id];
    assert_int_equal(count, CALL_COUNT);
    for (size_t i = 0; i < CALL_COUNT; i++)
        assert_true(enabled[all_calls[i].id]);
    assert_null(cuda_entry(CUDA_CALL_LIMIT));
    assert_null(cuda_entry(0));
}

/* The first call that fails is recorded, whichever it is: a lost device shows in any of them. The
 * name is the one of the documentation. */
static void test_failures(void **state)
{
    (void)state;
    for (size_t i = 0; i < CALL_COUNT; i++) {
        uint64_t nothing[16] = { 0 };
        struct event event = tell(all_calls[i].id, nothing, 1);
        assert_int_equal(event.outcome, EVENT_FAILED);
        assert_int_equal(event.code, 1);
        if (event.kind == EVENT_LAUNCH)
            continue; /* has the kernel's name */
        char name[64];
        snprintf(name, sizeof(name), "%s", all_calls[i].name);
        for (char *at; (at = strstr(name, "_v2")) || (at = strstr(name, "_pt"));)
            *at = '\0';
        assert_memory_equal(event.op, name, strnlen(name, EVENT_OP_BYTES - 1));
    }
}

/* Calls within a call are the driver's own as far as they nest; what does not fit is left out, and
 * nothing is mixed up. */
static void test_nesting(void **state)
{
    (void)state;
    uint64_t stream = STREAM;
    enum { SYNC = 126, DEEPER = 10 };
    struct event event;
    callback(CUPTI_SITE_EXIT, SYNC, &stream, 0, NULL); /* began before anybody looked */
    nothing_reported();
    for (int i = 0; i < DEEPER; i++)
        callback(CUPTI_SITE_ENTER, SYNC, &stream, 0, NULL);
    for (int i = 0; i < DEEPER; i++)
        callback(CUPTI_SITE_EXIT, SYNC, &stream, 0, NULL);
    int count = 0;
    while (next(&event))
        count += event.outcome == EVENT_DONE;
    assert_in_range(count, 1, DEEPER - 1);
    event = tell(SYNC, &stream, 0);
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_int_equal(event.outcome, EVENT_DONE);

    /* Another domain, or a number that was not subscribed to. */
    struct cupti_callback data = { .parameters = &stream };
    called(NULL, CUPTI_DOMAIN_DRIVER + 1, SYNC, &data);
    called(NULL, CUPTI_DOMAIN_DRIVER, 5, &data);
    nothing_reported();
}

/* ---- Streams, events, waits ----------------------------------------------------------------- */

static void test_streams(void **state)
{
    (void)state;
    uint64_t handle = 0x6100;
    struct args_stream_create made = { &handle, CUDA_STREAM_NON_BLOCKING };
    tell_named(124, &made, 0, NULL);
    nothing_reported(); /* until it is used */
    struct args_fill fill = { DEVICE, 0, 16, handle };
    struct event event = tell(216, &fill, 0);
    assert_false(event.flags & (EVENT_BLOCKING | EVENT_LEGACY_STREAM));
    uint32_t index = event.stream_index;
    event = tell(126, &handle, 0);
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_int_equal(event.stream_index, index);

    /* A query that says "not yet" is nothing, one that says "done" was a wait. */
    tell_named(125, &handle, 600, NULL);
    nothing_reported();
    event = tell(125, &handle, 0);
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_int_equal(event.stream_index, index);

    /* A destroy that the driver refuses leaves the stream. */
    assert_int_equal(tell(326, &handle, 400).outcome, EVENT_FAILED);
    assert_int_equal(tell(126, &handle, 0).check, EVENT_CHECK_NONE);
    assert_int_equal(tell(326, &handle, 0).kind, EVENT_STREAM_DESTROY);
    assert_int_equal(tell(126, &handle, 400).check, EVENT_CHECK_HANDLE);
    /* Its handle is given again, to another one. */
    made.flags = 0;
    tell_named(367, &made, 0, NULL);
    event = tell(216, &fill, 0);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    assert_true(event.flags & EVENT_BLOCKING);

    tell_named(124, &made, 2, NULL);
    event = only();
    assert_int_equal(event.kind, EVENT_CALL);
    assert_int_equal(event.code, 2);
}

static void test_waits(void **state)
{
    (void)state;
    uint64_t mark = 0x7100, nothing = 0;
    struct args_pair record = { mark, STREAM }, wait = { STREAM + 1, mark };
    struct event event = tell(119, &record, 0);
    assert_int_equal(event.kind, EVENT_MARK_RECORD);
    assert_int_equal(event.mark.mark, mark);
    event = tell(295, &wait, 0);
    assert_int_equal(event.kind, EVENT_MARK_WAIT);
    assert_int_equal(event.mark.mark, mark);
    event = tell(121, &mark, 0);
    assert_int_equal(event.kind, EVENT_MARK_SYNC);
    tell_named(120, &mark, 600, NULL);
    nothing_reported();
    event = tell(120, &mark, 0);
    assert_int_equal(event.kind, EVENT_MARK_SYNC);
    event = tell(800, &nothing, 0);
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_true(event.flags & EVENT_ALL_STREAMS);
    /* The one without arguments has none to show. */
    event = tell(17, NULL, 0);
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_true(event.flags & EVENT_ALL_STREAMS);
    tell_named(126, NULL, 0, NULL);
    nothing_reported();
}

/* Order that cannot be seen: host functions, values in memory, other processes. */
static void test_hidden_order(void **state)
{
    (void)state;
    static const uint32_t ids[] = { 527, 346, 458, 460, 462, 473, 475, 659, 661, 663, 665, 667 };
    for (size_t i = 0; i < sizeof(ids) / sizeof(*ids); i++) {
        uint64_t arguments[4] = { STREAM };
        assert_int_equal(tell(ids[i], arguments, 0).kind, EVENT_HIDDEN_ORDER);
    }
    uint64_t of_stream[4] = { STREAM }, last[4] = { 0, 0, 1, STREAM };
    uint32_t index = tell(527, of_stream, 0).stream_index;
    static const uint32_t semaphores[] = { 490, 491, 492, 493 }; /* their stream comes last */
    for (size_t i = 0; i < sizeof(semaphores) / sizeof(*semaphores); i++) {
        struct event event = tell(semaphores[i], last, 0);
        assert_int_equal(event.kind, EVENT_HIDDEN_ORDER);
        assert_int_equal(event.stream_index, index);
    }
}

/* Synchronous copies within the device may wait from then on. To be run late, as the next. */
static void test_copies_that_may_wait(void **state)
{
    (void)state;
    uint32_t yes = 1, no = 0;
    struct args_copy copy = { DEVICE, OTHER, 128, 0 };
    uint32_t schedule[2] = { 0, 4 };
    make(ALLOC, DEVICE, BYTES);
    make(ALLOC, OTHER, BYTES);
    const struct args_pointer_attribute others[] = { { &yes, 5, DEVICE },
                                                     { &no, CUDA_POINTER_SYNC_MEMOPS, DEVICE },
                                                     { NULL, CUDA_POINTER_SYNC_MEMOPS, DEVICE } };
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        tell_named(378, &others[i], 0, NULL);
    tell_named(388, schedule, 0, NULL);
    tell_named(546, schedule, 0, NULL);
    nothing_reported();
    assert_false(tell(280, &copy, 0).flags & (EVENT_MAY_WAIT | EVENT_UNSEEN_WRITES));
    struct args_pointer_attribute asked = { &yes, CUDA_POINTER_SYNC_MEMOPS, DEVICE };
    tell_named(378, &asked, 0, NULL);
    nothing_reported();
    assert_true(tell(280, &copy, 0).flags & EVENT_MAY_WAIT);
    assert_true(tell(280, &copy, 0).flags & EVENT_UNSEEN_WRITES); /* a network card's, now */
    assert_false(tell(281, &copy, 0).flags & EVENT_MAY_WAIT);     /* not an asynchronous one */
    drop(FREE, DEVICE);
    drop(FREE, OTHER);
}

/* Copies of many at once are not followed: their stream is one with order that is not seen. */
static void test_batches(void **state)
{
    (void)state;
    static const struct {
        uint32_t id, place;
    } rows[] = { { 776, 8 }, { 777, 8 }, { 778, 4 }, { 779, 4 },
                 { 796, 7 }, { 797, 7 }, { 798, 3 }, { 799, 3 } };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t arguments[9] = { 0 };
        arguments[rows[i].place] = STREAM;
        struct event event = tell(rows[i].id, arguments, 0);
        assert_int_equal(event.kind, EVENT_HIDDEN_ORDER);
        uint64_t one[4] = { STREAM };
        assert_int_equal(event.stream_index, tell(527, one, 0).stream_index);
    }
}

/* A call that gives pointers to variables or to other processes is not recorded itself; work after
 * it may tell the host that earlier work is done. To be run after all tests that compare flags with
 * a list. */
static void test_given_away(void **state)
{
    (void)state;
    static const uint32_t to_variables[] = { 241, 247, 684, 685 };
    static const uint32_t to_processes[] = { 328, 329, 334, 335, 554, 567, 615 };
    uint64_t arguments[4] = { 0 };
    struct args_copy copy = { DEVICE, OTHER, 128, STREAM };
    make(ALLOC, DEVICE, BYTES);
    make(ALLOC, OTHER, BYTES);
    for (size_t i = 0; i < sizeof(to_variables) / sizeof(*to_variables); i++) {
        tell_named(to_variables[i], arguments, 0, NULL);
        nothing_reported();
    }
    assert_false(tell(281, &copy, 0).flags & EVENT_MAY_TELL);
    for (size_t i = 0; i < sizeof(to_processes) / sizeof(*to_processes); i++) {
        tell_named(to_processes[i], arguments, 0, NULL);
        nothing_reported();
    }
    assert_true(tell(281, &copy, 0).flags & EVENT_MAY_TELL);
    drop(FREE, DEVICE);
    drop(FREE, OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_asked_for),  cmocka_unit_test(test_failures),
        cmocka_unit_test(test_nesting),    IN_SCENE(test_streams),
        cmocka_unit_test(test_waits),      cmocka_unit_test(test_hidden_order),
        cmocka_unit_test(test_batches),    cmocka_unit_test(test_copies_that_may_wait),
        cmocka_unit_test(test_given_away),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
