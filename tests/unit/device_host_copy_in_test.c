/* device_host_copy_in_test.c - copies in of more than a staging slot: filled by several threads,
 * queued in order, each chunk an event; slots belong to one copy at a time. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "device_fixture.h"

#include <stdlib.h>
#include <sys/mman.h>

#define SLOT ((uint64_t)1 << 20) /* what shares of the work is at least half of it */

static uint8_t *make_bytes(uint64_t count, uint32_t seed)
{
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    for (uint64_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)((i + seed) * 2654435761u >> 9);
    return bytes;
}

static struct device_view make_view(struct fixture *fixture, uint64_t bytes)
{
    struct device_view view = { .dtype = DTYPE_I8, .shape = shape_make(1, &bytes) };
    CHECK_OK(device_buffer_create(fixture->device, bytes, "target", DEVICE_HERE, &view.buffer,
                                  &fixture->err),
             &fixture->err);
    return view;
}

static void check_bytes(struct fixture *fixture, const struct device_view *view,
                        const uint8_t *wanted)
{
    uint64_t bytes = view->shape.dims[0];
    uint8_t *found = malloc(bytes);
    assert_non_null(found);
    CHECK_OK(device_read(fixture->device, fixture->stream, view, found, DEVICE_HERE, &fixture->err),
             &fixture->err);
    assert_memory_equal(found, wanted, bytes);
    free(found);
}

/* The chunks follow each other without a gap, all but the last as large as a slot; the first is the
 * cause of the rest. */
static void check_pieces(struct fixture *fixture, uint64_t bytes, uint64_t slot_bytes)
{
    uint64_t next = 0, first_id = 0, told = 0;
    size_t kept = recorder_kept(&fixture->recorder);
    for (size_t i = 0; i < kept; i++) {
        const struct event *event = &fixture->recorder.events[i];
        if (event->kind != EVENT_COPY_IN)
            continue;
        assert_int_equal(event->outcome, EVENT_DONE);
        assert_int_equal(event->cause_id, first_id);
        assert_true(next == 0 || event->accesses[0].address == next);
        assert_int_equal(event->copy.bytes, bytes - told < slot_bytes ? bytes - told : slot_bytes);
        assert_int_equal(event->accesses[0].bytes, event->copy.bytes);
        next = event->accesses[0].address + event->copy.bytes;
        told += event->copy.bytes;
        first_id = first_id ? first_id : event->id;
    }
    assert_int_equal(told, bytes);
}

/* Bytes that somebody reads. */
struct source {
    const uint8_t *bytes;
    uint64_t next;     /* what is asked for follows what was */
    uint64_t fails_at; /* from here on nothing can be read */
    uint32_t calls;
};

static enum status read_source(void *context, uint64_t at, void *target, uint64_t bytes,
                               struct error *err)
{
    struct source *source = context;
    source->calls++;
    assert_int_equal(at, source->next);
    source->next = at + bytes;
    if (at + bytes > source->fails_at)
        return error_set(err, STATUS_IO, "the disk is gone");
    memcpy(target, source->bytes + at, bytes);
    return STATUS_OK;
}

/* From memory, or by a reader: the same chunks, the same bytes. */
static void check_copy(uint32_t slots, uint64_t slot_bytes, uint64_t count, bool by_reader)
{
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = slots,
                                                    .staging_slot_bytes = slot_bytes });
    struct device_view view = make_view(&fixture, count);
    uint8_t *bytes = make_bytes(count, slots);
    struct source source = { .bytes = bytes, .fails_at = UINT64_MAX };
    struct device_reader reader = { read_source, &source };
    CHECK_OK(by_reader ? device_copy_in_read(fixture.device, fixture.stream, &view, &reader, count,
                                             DEVICE_HERE, &fixture.err)
                       : device_copy_in(fixture.device, fixture.stream, &view, bytes, count,
                                        DEVICE_HERE, &fixture.err),
             &fixture.err);
    assert_int_equal(source.next, by_reader ? count : 0);
    check_pieces(&fixture, count, slot_bytes);
    check_bytes(&fixture, &view, bytes);
    free(bytes);
    fixture_close(&fixture);
}

static void test_pieces(void **state)
{
    (void)state;
    static const struct {
        uint32_t slots;
        uint64_t slot_bytes, bytes;
    } rows[] = {
        { 16, SLOT, 5 * SLOT + 3 }, { 16, SLOT, 40 * SLOT },
        { 1, SLOT, 3 * SLOT },      { 2, SLOT, 7 * SLOT + SLOT / 2 },
        { 3, 4096, 10 * 4096 + 1 }, { 16, SLOT, SLOT / 2 },
        { 5, SLOT, SLOT },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        check_copy(rows[i].slots, rows[i].slot_bytes, rows[i].bytes, false);
        check_copy(rows[i].slots, rows[i].slot_bytes, rows[i].bytes, true);
    }
}

/* A slot larger than is good to fill at once is used in part. */
static void test_large_slots(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t count = 9 * SLOT + 5;
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 4,
                                                    .staging_slot_bytes = 16 * SLOT });
    struct device_view view = make_view(&fixture, count);
    uint8_t *bytes = make_bytes(count, 1);
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &view, bytes, count, DEVICE_HERE,
                            &fixture.err),
             &fixture.err);
    check_pieces(&fixture, count, 2 * SLOT);
    check_bytes(&fixture, &view, bytes);
    free(bytes);
    fixture_close(&fixture);
}

static void test_rows_apart(void **state)
{
    (void)state;
    struct fixture fixture;
    uint64_t dims[] = { SLOT + 17, 5 }, stride = SLOT + 64, all = 5 * (SLOT + 64);
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 4 });
    struct device_view whole = make_view(&fixture, all), apart = whole;
    apart.shape = shape_make(2, dims);
    apart.row_stride_bytes = stride;
    uint8_t *zeros = calloc(1, all), *bytes = make_bytes(dims[0] * dims[1], 7);
    assert_non_null(zeros);
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &whole, zeros, all, DEVICE_HERE,
                            &fixture.err),
             &fixture.err);
    CHECK_OK(device_copy_in(fixture.device, fixture.stream, &apart, bytes, dims[0] * dims[1],
                            DEVICE_HERE, &fixture.err),
             &fixture.err);
    for (uint64_t row = 0; row < dims[1]; row++)
        memcpy(zeros + row * stride, bytes + row * dims[0], dims[0]);
    check_bytes(&fixture, &whole, zeros);
    free(zeros);
    free(bytes);
    fixture_close(&fixture);
}

/* ---- Bytes that somebody reads -------------------------------------------------------------- */

static void check_slots(struct fixture *fixture, const struct device_view *view, uint32_t slots);

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

/* ---- Several threads ------------------------------------------------------------------------ */

struct sender {
    struct fixture *fixture;
    struct device_stream stream;
    struct device_view view;
    uint8_t *bytes;
    uint32_t rounds;
    enum status status;
    struct error err;
};

static void *send(void *argument)
{
    struct sender *sender = argument;
    for (uint32_t i = 0; i < sender->rounds && !sender->status; i++)
        sender->status = device_copy_in(sender->fixture->device, sender->stream, &sender->view,
                                        sender->bytes, sender->view.shape.dims[0], DEVICE_HERE,
                                        &sender->err);
    return NULL;
}

/* Fewer slots than senders: none takes a slot that another one is filling, and none is sent away
 * because of that. */
static void test_senders_share_slots(void **state)
{
    (void)state;
    enum { SENDERS = 3 };
    static const struct {
        uint32_t slots, rounds;
        uint64_t slot_bytes, bytes;
    } rows[] = { { 2, 6, SLOT, 3 * SLOT + 9 }, { 1, 6, SLOT, 2 * SLOT }, { 2, 300, 4096, 20000 } };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct fixture fixture;
        struct sender senders[SENDERS] = { 0 };
        pthread_t threads[SENDERS];
        fixture_open(&fixture, (struct device_options){ .staging_slot_count = rows[r].slots,
                                                        .staging_slot_bytes = rows[r].slot_bytes });
        for (uint32_t i = 0; i < SENDERS; i++) {
            senders[i] = (struct sender){ .fixture = &fixture,
                                          .view = make_view(&fixture, rows[r].bytes),
                                          .bytes = make_bytes(rows[r].bytes, 1000 * i),
                                          .rounds = rows[r].rounds };
            CHECK_OK(
                device_stream_create(fixture.device, DEVICE_HERE, &senders[i].stream, &fixture.err),
                &fixture.err);
        }
        for (uint32_t i = 0; i < SENDERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, send, &senders[i]), 0);
        for (uint32_t i = 0; i < SENDERS; i++)
            pthread_join(threads[i], NULL);
        for (uint32_t i = 0; i < SENDERS; i++) {
            CHECK_OK(senders[i].status, &senders[i].err);
            CHECK_OK(
                device_stream_sync(fixture.device, senders[i].stream, DEVICE_HERE, &fixture.err),
                &fixture.err);
            check_bytes(&fixture, &senders[i].view, senders[i].bytes);
            free(senders[i].bytes);
        }
        fixture_close(&fixture);
    }
}

/* ---- What goes wrong ------------------------------------------------------------------------ */

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
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_large_slots),
        cmocka_unit_test(test_rows_apart),
        cmocka_unit_test(test_senders_share_slots),
        cmocka_unit_test(test_reader_fails),
        cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_tickets_hold_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
