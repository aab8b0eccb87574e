/* gpu_limits_test.c - what a GPU says when there is not enough memory, when the runtime does not
 * know an address any more, and when an image lacks a kernel: a clear message, nothing leaked, and
 * it goes on. The device is the first argument. */
#include "ops_lab.h"

#include "inject/inject.h"

/* The emulated driver's memory; a real one does not look. */
#define FAKE_MEMORY_MIB "64"
#define CHUNKS 8u

struct watch {
    uint64_t refusals;
    struct event refused; /* the last */
};

static void notify(void *context, const struct event *event)
{
    struct watch *watch = context;
    if (event->outcome == EVENT_REFUSED) {
        watch->refusals++;
        watch->refused = *event;
    }
}

static void open_lab(struct lab *lab, struct watch *watch, bool guards, const char *spec_text)
{
    struct device_options options = { .observer = { notify, watch },
                                      .guards = guards,
                                      .poison = guards,
                                      .ask_pointers = true,
                                      .staging_slot_count = 2,
                                      .staging_slot_bytes = 65536 };
    struct inject_spec spec;
    struct inject *inject;
    memset(lab, 0, sizeof(*lab));
    memset(watch, 0, sizeof(*watch));
    pthread_mutex_init(&lab->lock, NULL);
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    if (spec_text) {
        LAB_OK(lab, inject_parse(spec_text, &spec, &lab->err));
        LAB_OK(lab, inject_install(lab->device, &spec, &inject, &lab->err));
    }
    LAB_OK(lab, ops_load(&lab->ops, lab->device, CPU_PATH_COUNT, &lab->err));
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void fill_up(bool guards)
{
    struct lab lab;
    struct watch watch;
    struct device_buffer buffers[2 * CHUNKS], one;
    open_lab(&lab, &watch, guards, NULL);
    uint64_t chunk = device_info(lab.device)->memory_bytes / CHUNKS;
    for (int round = 0; round < 2; round++) {
        size_t count = 0;
        enum status status = STATUS_OK;
        while (!status && count < COUNT_OF(buffers)) {
            status = device_buffer_create(lab.device, chunk, "chunk", DEVICE_HERE, &buffers[count],
                                          &lab.err);
            count += !status;
        }
        /* Some is in use for other things; no device has more than it says. */
        assert_in_range(count, CHUNKS / 2, CHUNKS);
        assert_int_equal(status, STATUS_NO_MEMORY);
        check_contains("the message", lab.err.text, "of free memory on the device, found less");
        check_contains("what is used", lab.err.text, "of which this process uses");
        assert_int_equal(device_check(lab.device, &lab.err), STATUS_OK);
        /* A small one still fits, and works. */
        LAB_OK(&lab, device_buffer_create(lab.device, 4096, "small", DEVICE_HERE, &one, &lab.err));
        device_buffer_destroy(lab.device, one, DEVICE_HERE);
        while (count-- > 0)
            device_buffer_destroy(lab.device, buffers[count], DEVICE_HERE);
        assert_int_equal(device_used_bytes(lab.device), 0); /* and the second round is the same */
    }
    lab_close(&lab);
}

static void test_no_memory(void **state)
{
    (void)state;
    fill_up(false);
    fill_up(true);
}

static void test_absurd_size(void **state)
{
    (void)state;
    struct lab lab;
    struct watch watch;
    struct device_buffer buffer;
    open_lab(&lab, &watch, true, NULL);
    static const uint64_t sizes[] = { UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 50 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        assert_int_equal(
            device_buffer_create(lab.device, sizes[i], "huge", DEVICE_HERE, &buffer, &lab.err),
            STATUS_NO_MEMORY);
    assert_int_equal(device_used_bytes(lab.device), 0);
    lab_close(&lab);
}

/* ---- Memory for many ------------------------------------------------------------------------ */

#define PARTS 5u
#define PART_BYTES 1001u /* not a multiple of the alignment */

/* Without an observer, so that buffers may share an allocation, unless `watched`. */
static void open_reserving(struct lab *lab, struct watch *watch, bool watched)
{
    struct device_options options = { .staging_slot_count = 2, .staging_slot_bytes = 65536 };
    memset(watch, 0, sizeof(*watch));
    if (watched)
        options.observer = (struct event_observer){ notify, watch };
    memset(lab, 0, sizeof(*lab));
    pthread_mutex_init(&lab->lock, NULL);
    LAB_OK(lab, all_open(lab_device, &options, &lab->device, &lab->err));
    LAB_OK(lab, device_stream_create(lab->device, DEVICE_HERE, &lab->target.stream, &lab->err));
}

static void check_part(struct lab *lab, struct device_buffer buffer, uint8_t wanted)
{
    uint8_t found[PART_BYTES];
    uint64_t bytes = PART_BYTES;
    struct device_view view = { .buffer = buffer,
                                .dtype = DTYPE_I8,
                                .shape = shape_make(1, &bytes) };
    LAB_OK(lab, device_read(lab->device, lab->target.stream, &view, found, DEVICE_HERE, &lab->err));
    for (size_t i = 0; i < PART_BYTES; i++)
        assert_int_equal(found[i], wanted);
}

/* Buffers out of one allocation hold zeros and do not touch each other; more than was reserved
 * is allocated as always. */
static void check_parts(bool watched)
{
    struct lab lab;
    struct watch watch;
    struct device_buffer buffers[PARTS];
    open_reserving(&lab, &watch, watched);
    uint64_t bytes = PART_BYTES, alignment = device_info(lab.device)->alignment;
    device_reserve(lab.device,
                   (PARTS - 1) * ((PART_BYTES + alignment - 1) / alignment * alignment));
    for (uint32_t i = 0; i < PARTS; i++) {
        LAB_OK(&lab,
               device_buffer_create(lab.device, bytes, "part", DEVICE_HERE, &buffers[i], &lab.err));
        check_part(&lab, buffers[i], 0);
        struct device_view view = { .buffer = buffers[i],
                                    .dtype = DTYPE_I8,
                                    .shape = shape_make(1, &bytes) };
        LAB_OK(&lab, device_fill(lab.device, lab.target.stream, &view, (uint8_t)(i + 1),
                                 DEVICE_HERE, &lab.err));
    }
    for (uint32_t i = 0; i < PARTS; i++)
        check_part(&lab, buffers[i], (uint8_t)(i + 1));
    assert_int_equal(device_used_bytes(lab.device), PARTS * PART_BYTES);
    for (uint32_t i = 0; i < PARTS; i += 2)
        device_buffer_destroy(lab.device, buffers[i], DEVICE_HERE);
    for (uint32_t i = 1; i < PARTS; i += 2)
        check_part(&lab, buffers[i], (uint8_t)(i + 1));
    device_reserve(lab.device, 4096); /* the one before lives on with its buffers, and ends */
    lab_close(&lab);
}

/* The allocation is given back with its last buffer, and with the device; one that fails does
 * no harm; with an observer there is none. */
static void check_room(bool watched)
{
    struct lab lab;
    struct watch watch;
    struct device_buffer buffer;
    open_reserving(&lab, &watch, watched);
    uint64_t eighth = device_info(lab.device)->memory_bytes / CHUNKS;
    device_reserve(lab.device, UINT64_MAX / 2);
    device_reserve(lab.device, 5 * eighth);
    /* Fits neither what is reserved nor what is left of the rest. */
    enum status status = device_buffer_create(lab.device, 6 * eighth, "large", DEVICE_HERE, &buffer,
                                              &lab.err);
    assert_int_equal(status, watched ? STATUS_OK : STATUS_NO_MEMORY);
    if (watched)
        device_buffer_destroy(lab.device, buffer, DEVICE_HERE);
    for (int round = 0; round < 3; round++) {
        device_reserve(lab.device, 5 * eighth);
        LAB_OK(&lab,
               device_buffer_create(lab.device, 4096, "small", DEVICE_HERE, &buffer, &lab.err));
        device_buffer_destroy(lab.device, buffer, DEVICE_HERE);
        LAB_OK(&lab, device_buffer_create(lab.device, 6 * eighth, "large", DEVICE_HERE, &buffer,
                                          &lab.err));
        device_buffer_destroy(lab.device, buffer, DEVICE_HERE);
    }
    device_reserve(lab.device, 5 * eighth);
    lab_close(&lab);
}

static void test_reserve(void **state)
{
    (void)state;
    for (int watched = 0; watched < 2; watched++) {
        check_parts(watched);
        check_room(watched);
    }
}

/* ---- Addresses ------------------------------------------------------------------------------ */

/* Memory is given back without the ledger; the copy that meets it fails, and the next call that
 * uses the buffer is refused, with what the runtime says. */
static void check_vanished(bool guards)
{
    struct lab lab;
    struct watch watch;
    float values[256] = { 0 };
    open_lab(&lab, &watch, guards, "memory-vanished@op=copy-out");
    struct device_view x = lab_put_new(&lab, DTYPE_F32, COUNT_OF(values), 1, values);
    struct device_view y = lab_put_new(&lab, DTYPE_F32, COUNT_OF(values), 1, values);
    assert_int_equal(watch.refusals, 0); /* the runtime agrees about what is there */
    enum status status = device_read(lab.device, lab.target.stream, &x, values, DEVICE_HERE,
                                     &lab.err);
    assert_int_not_equal(status, STATUS_OK);
    if (status == STATUS_LOST) {
        lab_close(&lab);
        print_message("a copy from freed memory loses this device\n");
        return;
    }
    lab.target.ops = &lab.ops;
    lab.target.site = DEVICE_HERE;
    assert_int_equal(ops_add(&lab.target, &y, &x, &lab.err), STATUS_REFUSED);
    check_contains("the message", lab.err.text, "found that the runtime knows 0 there: a");
    assert_int_equal(watch.refused.kind, EVENT_LAUNCH);
    assert_int_equal(watch.refused.check, EVENT_CHECK_POINTER);
    assert_int_equal(watch.refused.operand, 1);
    assert_int_equal(watch.refused.expected, sizeof(values));
    lab_get(&lab, &y, values); /* the device is none the worse */
    lab_close(&lab);
}

static void test_vanished(void **state)
{
    (void)state;
    check_vanished(false);
    check_vanished(true);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static void test_missing_kernels(void **state)
{
    (void)state;
    static const char *const names[] = { "add", "no_such_kernel" };
    struct lab lab = { 0 };
    struct device_gpu_image image = *ops_gpu_image();
    struct device_gpu_entry entries[2] = { image.entries[0], image.entries[1] };
    const struct device_options options = { 0 };
    LAB_OK(&lab, all_open(lab_device, &options, &lab.device, &lab.err));
    image.entries = entries;
    image.count = COUNT_OF(entries);
    entries[1].plan = NULL;
    CHECK_FAILS(device_gpu_module_load(lab.device, &image, DEVICE_HERE, &lab.err),
                STATUS_UNSUPPORTED, &lab.err);
    check_contains("no plan", lab.err.text, "the image has no kernel for this op");
    entries[1] = entries[0];
    CHECK_FAILS(device_gpu_module_load(lab.device, &image, DEVICE_HERE, &lab.err), STATUS_EXISTS,
                &lab.err);
    check_contains("twice", lab.err.text, "the image has this op twice");
    image.count = 1;
    image.kernels = names;
    image.kernel_count = COUNT_OF(names);
    CHECK_FAILS(device_gpu_module_load(lab.device, &image, DEVICE_HERE, &lab.err),
                STATUS_UNSUPPORTED, &lab.err);
    check_contains("name", lab.err.text, "no_such_kernel");
    /* Nothing of these images is left. */
    LAB_OK(&lab, ops_load(&lab.ops, lab.device, CPU_PATH_COUNT, &lab.err));
    device_close(lab.device);
}

int main(int argument_count, char **arguments)
{
    setenv("FAKE_GPU_MIB", FAKE_MEMORY_MIB, 0);
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),       cmocka_unit_test(test_absurd_size),
        cmocka_unit_test(test_reserve),         cmocka_unit_test(test_vanished),
        cmocka_unit_test(test_missing_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
