/* device_host_copy_in_test.c - copies in of more than a staging slot: filled by several threads,
 * queued in order, each chunk an event; slots belong to one copy at a time. */
#include "device_copy_in.h"

/* The chunks follow each other without a gap, all but the last as large as a slot; the first is the
 * cause of the rest. */
static void check_pieces(struct fixture *fixture, uint64_t bytes, uint64_t slot_bytes)
{
    uint64_t next = 0, first_id = 0, reported = 0;
    size_t kept = recorder_kept(&fixture->recorder);
    for (size_t i = 0; i < kept; i++) {
        const struct event *event = &fixture->recorder.events[i];
        if (event->kind != EVENT_COPY_IN)
            continue;
        assert_int_equal(event->outcome, EVENT_DONE);
        assert_int_equal(event->cause_id, first_id);
        assert_true(next == 0 || event->accesses[0].address == next);
        assert_int_equal(event->copy.bytes,
                         bytes - reported < slot_bytes ? bytes - reported : slot_bytes);
        assert_int_equal(event->accesses[0].bytes, event->copy.bytes);
        next = event->accesses[0].address + event->copy.bytes;
        reported += event->copy.bytes;
        first_id = first_id ? first_id : event->id;
    }
    assert_int_equal(reported, bytes);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_large_slots),
        cmocka_unit_test(test_rows_apart),
        cmocka_unit_test(test_senders_share_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
