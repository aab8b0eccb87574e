/* interpose_cuda_contexts_test.c - contexts of the CUDA driver: what was made in one goes with it,
 * and after a fatal code it answers nothing else. */
#include "interpose_cuda.h"

/* ---- Contexts ------------------------------------------------------------------------------- */

static int32_t device_now, state_code, still_active;

static int32_t get_device(int32_t *ret_device)
{
    *ret_device = device_now;
    return device_now < 0;
}

static int32_t get_state(int32_t device, uint32_t *ret_flags, int32_t *ret_active)
{
    assert_int_equal(device, 1);
    *ret_flags = 0;
    *ret_active = still_active;
    return state_code;
}

static void enter_context(const void *handle, uint32_t uid, int32_t device)
{
    cuda_driver.ctx_get_device = get_device;
    cuda_driver.primary_ctx_get_state = get_state;
    context.handle = handle;
    context.uid = uid;
    device_now = device;
}

/* The number of allocations that were freed with the contexts of a call. */
static size_t gone_with(uint32_t id, const void *arguments)
{
    struct event event;
    size_t count = 0;
    tell_named(id, arguments, 0, NULL);
    assert_true(next(&event));
    assert_int_equal(event.kind, EVENT_STREAM_SYNC);
    assert_true(event.flags & EVENT_ALL_STREAMS);
    assert_int_equal(event.outcome, EVENT_DONE);
    while (next(&event)) {
        assert_int_equal(event.kind, EVENT_BUFFER_DESTROY);
        assert_true(event.flags & EVENT_SYNCHRONOUS);
        count++;
    }
    return count;
}

/* What was made in a context goes with it, and nothing else does. */
static void test_contexts(void **state)
{
    (void)state;
    enum { DESTROY = 322, RESET = 545 };
    static const char one, two, three;
    const void *handle = &two, *unknown = &three;
    int32_t device = 1;
    enter_context(&one, 11, 0);
    make(ALLOC, DEVICE, BYTES);
    enter_context(&two, 12, 0);
    make(ALLOC, OTHER, BYTES);
    make(ALLOC_HOST, host_address(), BYTES);
    /* A copy that was not waited for: its source is memory of the context. */
    struct args_copy copy = { OTHER, host_address(), BYTES, STREAM };
    tell(277, &copy, 0);
    pinned[0]++;

    tell_named(DESTROY, &handle, 201, NULL); /* refused: all is as it was */
    struct event event;
    assert_true(next(&event));
    assert_int_equal(event.outcome, EVENT_FAILED);
    while (next(&event))
        assert_int_equal(event.kind, EVENT_SOURCE_CHANGED);
    assert_int_equal(gone_with(DESTROY, &unknown), 0);
    assert_int_equal(gone_with(DESTROY, &handle), 2);
    assert_int_equal(tell(FREE, &(uint64_t){ OTHER }, 1).check, EVENT_CHECK_GENERATION);
    drop(FREE, DEVICE);

    /* A device's by its number; the other device keeps its own. */
    enter_context(&one, 21, 0);
    make(ALLOC, DEVICE, BYTES);
    enter_context(&two, 22, 1);
    make(ALLOC, OTHER, BYTES);
    assert_int_equal(gone_with(RESET, &device), 1);
    assert_int_equal(gone_with(RESET, &device), 0);
    drop(FREE, DEVICE);
}

/* A primary context goes with the last who had it. */
static void test_releases(void **state)
{
    (void)state;
    enum { RELEASE = 544 };
    static const char one;
    int32_t device = 1;
    enter_context(&one, 31, 1);
    make(ALLOC, DEVICE, BYTES);
    still_active = 1;
    assert_int_equal(gone_with(RELEASE, &device), 0);
    still_active = 0;
    state_code = 1; /* the driver does not say */
    assert_int_equal(gone_with(RELEASE, &device), 0);
    state_code = 0;
    cuda_driver.primary_ctx_get_state = NULL;
    assert_int_equal(gone_with(RELEASE, &device), 0);
    cuda_driver.primary_ctx_get_state = get_state;
    assert_int_equal(gone_with(RELEASE, &device), 1);
}

/* More than are remembered: of those nothing is said. */
static void test_many_contexts(void **state)
{
    (void)state;
    enum { MANY = 100, FIRST = 1000 };
    static const char handles[MANY];
    const void *last = &handles[MANY - 1], *first = &handles[0];
    for (uint32_t i = 0; i < MANY; i++) {
        enter_context(&handles[i], FIRST + i, -1);
        make(ALLOC, DEVICE + i * BYTES, BYTES);
    }
    assert_int_equal(gone_with(322, &last), 0);
    assert_int_equal(gone_with(322, &first), 1);
    for (uint32_t i = 1; i < MANY; i++)
        drop(FREE, DEVICE + i * BYTES);
}

/* ---- The end -------------------------------------------------------------------------------- */

/* After these codes a context answers nothing else; after others it does. */
static void test_fatal_codes(void **state)
{
    (void)state;
    static const int32_t fatal[] = {
        214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721
    };
    static const int32_t harmless[] = { 1, 2, 219, 400, 701, 704, 711, 712, 713, 720, 900, 999 };
    uint64_t stream = STREAM;
    struct event event;
    for (size_t i = 0; i < sizeof(harmless) / sizeof(*harmless); i++)
        assert_int_equal(tell(126, &stream, harmless[i]).check, EVENT_CHECK_NONE);
    for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++) {
        tell_named(126, &stream, fatal[i], NULL);
        assert_true(next(&event));
        assert_int_equal(event.check, EVENT_CHECK_LOST);
        /* That it is lost is reported once. */
        assert_int_equal(next(&event), i == 0);
        assert_int_equal(event.kind, i == 0 ? EVENT_FAULT : EVENT_STREAM_SYNC);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contexts),
        cmocka_unit_test(test_releases),
        cmocka_unit_test(test_many_contexts),
        cmocka_unit_test(test_fatal_codes),
    };
    return cmocka_run_group_tests(tests, open_recording, close_recording);
}
