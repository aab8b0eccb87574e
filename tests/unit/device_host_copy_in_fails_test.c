/* device_host_copy_in_fails_test.c - copies in that fail in the middle: a reader without bytes,
 * memory that cannot be read, slots that tickets hold. Every slot is free again afterwards. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "device_copy_in.h"

#include <sys/mman.h>

/* Every slot is there afterwards: as many tickets are given out. */
static void check_slots(struct fixture *fixture, const struct device_view *view, uint32_t slots)
{
    struct device_ticket tickets[16];
    struct device_view some = *view;
    some.shape.dims[0] = 16;
    for (uint32_t i = 0; i < slots; i++)
        CHECK_OK(device_copy_out(fixture->device, fixture->stream, &some, DEVICE_HERE, &tickets[i],
                                 &fixture->err),
                 &fixture->err);
    CHECK_FAILS(device_copy_out(fixture->device, fixture->stream, &some, DEVICE_HERE, &tickets[0],
                                &fixture->err),
                STATUS_BUSY, &fixture->err);
    uint8_t byte[16] = { 0 };
    CHECK_FAILS(device_copy_in(fixture->device, fixture->stream, &some, byte, 16, DEVICE_HERE,
                               &fixture->err),
                STATUS_BUSY, &fixture->err);
    for (uint32_t i = 0; i < slots; i++)
        device_ticket_release(fixture->device, tickets[i], DEVICE_HERE);
}

/* The caller gets the reader's error; all slots are there afterwards. */
static void test_reader_fails(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t count = 6 * SLOT;
    fixture_open(&fixture,
                 (struct device_options){ .staging_slot_count = 4, .staging_slot_bytes = SLOT });
    struct device_view view = make_view(&fixture, count);
    uint8_t *bytes = make_bytes(count, 3);
    for (uint64_t good = 0; good <= 6; good++) {
        struct source source = { .bytes = bytes, .fails_at = good * SLOT };
        struct device_reader reader = { read_source, &source };
        enum status status = device_copy_in_read(fixture.device, fixture.stream, &view, &reader,
                                                 count, DEVICE_HERE, &fixture.err);
        assert_int_equal(status, good < 6 ? STATUS_IO : STATUS_OK);
        assert_int_equal(source.calls, good < 6 ? good + 1 : 6);
        const struct event *last = recorder_last(&fixture.recorder, EVENT_COPY_IN);
        assert_int_equal(last->outcome, status ? EVENT_FAILED : EVENT_DONE);
        if (status)
            check_contains("the message", fixture.err.text, "the disk is gone");
        check_slots(&fixture, &view, 4);
    }
    check_bytes(&fixture, &view, bytes);
    /* A copy that is refused is not read. */
    struct source source = { .bytes = bytes, .fails_at = UINT64_MAX };
    struct device_reader reader = { read_source, &source };
    CHECK_FAILS(device_copy_in_read(fixture.device, fixture.stream, &view, &reader, count - 1,
                                    DEVICE_HERE, &fixture.err),
                STATUS_REFUSED, &fixture.err);
    assert_int_equal(source.calls, 0);
    free(bytes);
    fixture_close(&fixture);
}

/* Memory that ends before the copy does, as a mapped file that was cut. */
static void test_unreadable(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t count = 12 * SLOT;
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 8 });
    struct device_view view = make_view(&fixture, count);
    uint8_t *bytes = mmap(NULL, count, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(bytes != MAP_FAILED);
    assert_int_equal(mprotect(bytes + 6 * SLOT, SLOT, PROT_NONE), 0);
    for (int i = 0; i < 3; i++) {
        CHECK_FAILS(device_copy_in(fixture.device, fixture.stream, &view, bytes, count, DEVICE_HERE,
                                   &fixture.err),
                    STATUS_IO, &fixture.err);
        check_contains("the message", fixture.err.text, "is their file still whole?");
        const struct event *last = recorder_last(&fixture.recorder, EVENT_COPY_IN);
        assert_int_equal(last->outcome, EVENT_FAILED);
        check_slots(&fixture, &view, 8);
    }
    munmap(bytes, count);
    bytes = make_bytes(count, 1);
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &view, bytes, count, DEVICE_HERE,
                            &fixture.err),
             &fixture.err);
    check_bytes(&fixture, &view, bytes);
    free(bytes);
    fixture_close(&fixture);
}

/* With all but one slot held by tickets a large copy goes through the one that is left. */
static void test_tickets_hold_slots(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t count = 4 * SLOT + 1;
    struct device_ticket tickets[3];
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 4 });
    struct device_view view = make_view(&fixture, count), some = view;
    some.shape.dims[0] = 16;
    for (uint32_t i = 0; i < COUNT_OF(tickets); i++)
        CHECK_OK(device_copy_out(fixture.device, fixture.stream, &some, DEVICE_HERE, &tickets[i],
                                 &fixture.err),
                 &fixture.err);
    uint8_t *bytes = make_bytes(count, 5);
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &view, bytes, count, DEVICE_HERE,
                            &fixture.err),
             &fixture.err);
    for (uint32_t i = 0; i < COUNT_OF(tickets); i++)
        device_ticket_release(fixture.device, tickets[i], DEVICE_HERE);
    check_bytes(&fixture, &view, bytes);
    check_slots(&fixture, &view, 4);
    free(bytes);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reader_fails),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_tickets_hold_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
