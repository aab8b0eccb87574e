/* device_host_audit_test.c - what the device tells an audit beyond its calls: iterations, hashes of
 * transfers, of operands and of results, values that are not finite. */
#include "device_audit.h"

#include <math.h>
#include <xxhash.h>

static void test_run(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    device_run_begin(fixture.device, 7, UINT64_C(0x1234));
    const struct event *run = recorder_last(&fixture.recorder, EVENT_RUN);
    assert_non_null(run);
    assert_int_equal(run->run.iteration, 7);
    assert_int_equal(run->run.key, 0x1234);
    assert_int_equal(run->outcome, EVENT_DONE);
    fixture_close(&fixture);
}

static void test_result_hash(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ .hash_results = asked == 1 });
        struct device_view x = fixture_floats(&fixture, 100, "x");
        uint8_t bytes[400];
        fixture_fill(&fixture, &x, 0x5A);
        CHECK_OK(device_read(fixture.device, fixture.stream, &x, bytes, DEVICE_HERE, &fixture.err),
                 &fixture.err);
        const struct event *redeem = recorder_last(&fixture.recorder, EVENT_TICKET_REDEEM);
        const struct event *copy = recorder_last(&fixture.recorder, EVENT_COPY_OUT);
        assert_true(redeem->ticket.hash == (asked ? XXH3_64bits(bytes, sizeof(bytes)) : 0));
        assert_int_equal(redeem->ticket.waited, 1);
        /* The ticket can be followed: index, generation, memory. */
        assert_int_equal(redeem->ticket.ticket, copy->copy.ticket);
        assert_int_equal(redeem->ticket.generation, copy->copy.generation);
        assert_true(redeem->ticket.generation % 2 == 1);
        assert_true(redeem->ticket.host_address == copy->copy.host_address &&
                    copy->copy.host_address);
        fixture_close(&fixture);
    }
}

static void test_digest(void **state)
{
    (void)state;
    uint8_t dense[61], strided[7 * 32] = { 0 };
    for (size_t i = 0; i < sizeof(dense); i++)
        dense[i] = (uint8_t)(i * 37 + 1);
    for (uint64_t row_bytes = 1; row_bytes <= 13; row_bytes++) {
        uint64_t rows = sizeof(strided) / 32;
        uint64_t count = rows * row_bytes < sizeof(dense) ? rows * row_bytes : sizeof(dense);
        rows = count / row_bytes;
        for (uint64_t row = 0; row < rows; row++)
            memcpy(strided + row * 32, dense + row * row_bytes, (size_t)row_bytes);
        assert_true(device_digest(strided, row_bytes, rows, 32) ==
                    device_digest(dense, rows * row_bytes, 1, rows * row_bytes));
    }
    uint64_t before = device_digest(dense, sizeof(dense), 1, sizeof(dense));
    for (size_t bit = 0; bit < 8 * sizeof(dense); bit++) {
        dense[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(device_digest(dense, sizeof(dense), 1, sizeof(dense)) != before);
        dense[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void check_hash(struct fixture *fixture, size_t n, const char *op, uint64_t bytes,
                       uint64_t digest)
{
    const struct event *hash = fixture_event(fixture, EVENT_TRANSFER_HASH, n);
    assert_non_null(hash);
    assert_string_equal(hash->op, op);
    assert_int_equal(hash->transfer.bytes, bytes);
    assert_true(hash->transfer.source_before == digest && hash->transfer.source_after == digest &&
                hash->transfer.destination == digest);
    assert_int_equal(hash->access_count, 1);
    assert_int_equal(hash->scope.layer, 17);
}

static void test_verify(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .verify = true, .staging_slot_bytes = 4096 });
    device_scope_set(fixture.device, fixture.stream, &somewhere);
    struct device_view x = fixture_floats(&fixture, 1500, "x");
    struct device_view y = fixture_floats(&fixture, 1500, "y");
    float values[1500], back[1500];
    for (size_t i = 0; i < COUNT_OF(values); i++)
        values[i] = (float)i;
    fixture_copy_in(&fixture, &x, values, sizeof(values)); /* in two chunks */
    CHECK_OK(device_copy_within(fixture.device, fixture.stream, &y, &x, DEVICE_HERE, &fixture.err),
             &fixture.err);
    CHECK_OK(device_read(fixture.device, fixture.stream, &y, back, DEVICE_HERE, &fixture.err),
             &fixture.err);
    assert_memory_equal(values, back, sizeof(back));
    uint64_t first = device_digest(values, 4096, 1, 4096);
    uint64_t second = device_digest((uint8_t *)values + 4096, 1904, 1, 1904);
    check_hash(&fixture, 0, "copy-in", 4096, first);
    check_hash(&fixture, 1, "copy-in", 1904, second);
    check_hash(&fixture, 2, "copy-within", 6000, device_digest(values, 6000, 1, 6000));
    check_hash(&fixture, 3, "copy-out", 4096, first);
    check_hash(&fixture, 4, "copy-out", 1904, second);
    /* Each chunk is an event, through a slot: the same one where the first was done with it. */
    const struct event *in = fixture_event(&fixture, EVENT_COPY_IN, 0);
    const struct event *next = fixture_event(&fixture, EVENT_COPY_IN, 1);
    assert_int_equal(next->cause_id, in->id);
    assert_true(in->copy.ticket && next->copy.ticket);
    assert_true(next->accesses[0].address == in->accesses[0].address + 4096);
    assert_int_equal(next->accesses[0].bytes, 1904);
    assert_int_equal(fixture_event(&fixture, EVENT_TRANSFER_HASH, 1)->cause_id, next->id);
    fixture_close(&fixture);
}

/* A slot that is rewritten while its copy waits shows in the hashes. */
static void test_verify_rewritten(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .verify = true });
    struct device_view x = fixture_floats(&fixture, 16, "x");
    float values[16] = { 1 };
    uint32_t gate = 0;
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    fixture_launch(&fixture, &hold);
    fixture_copy_in(&fixture, &x, values, sizeof(values));
    uintptr_t slot = (uintptr_t)recorder_last(&fixture.recorder, EVENT_COPY_IN)->copy.host_address;
    ((uint8_t *)slot)[3] ^= 1;
    open_gate(&gate);
    fixture_sync(&fixture);
    const struct event *hash = recorder_last(&fixture.recorder, EVENT_TRANSFER_HASH);
    assert_non_null(hash);
    assert_true(hash->transfer.source_before != hash->transfer.source_after &&
                hash->transfer.destination == hash->transfer.source_after);
    fixture_close(&fixture);
}

static void test_scan(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .scan_every = 2 });
    device_scope_set(fixture.device, fixture.stream, &somewhere);
    struct device_view x = fixture_floats(&fixture, 300, "x");
    float values[300] = { 0 };
    values[70] = NAN;
    values[299] = INFINITY;
    struct add_params one = { 1 };
    struct device_launch add = launch_add(x, &one);
    fixture_launch(&fixture, &add);                        /* scanned, all finite */
    fixture_copy_in(&fixture, &x, values, sizeof(values)); /* no launch */
    fixture_launch(&fixture, &add);
    fixture_launch(&fixture, &add); /* scanned */
    fixture_sync(&fixture);
    const struct event *clean = fixture_event(&fixture, EVENT_SCAN, 0),
                       *bad = fixture_event(&fixture, EVENT_SCAN, 1);
    assert_non_null(bad);
    assert_null(fixture_event(&fixture, EVENT_SCAN, 2));
    assert_int_equal(clean->scan.value_count, 300);
    assert_int_equal(clean->scan.bad_count, 0);
    assert_int_equal(bad->scan.bad_count, 2);
    assert_int_equal(bad->scan.first_bad, 70);
    assert_int_equal(bad->cause_id, fixture_event(&fixture, EVENT_LAUNCH, 2)->id);
    assert_int_equal(bad->operand, 0);
    assert_string_equal(bad->op, "add");
    assert_int_equal(bad->scope.step, 3);
    fixture_close(&fixture);
}

/* Inputs right before a launch, outputs right after it; of the launches that were chosen. */
static void test_op_hashes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .hash_ops = { .every = 2, .last = 3 } });
    device_scope_set(fixture.device, fixture.stream, &somewhere);
    struct device_view x = fixture_floats(&fixture, 300, "x");
    struct add_params one = { 1 };
    struct device_launch add = launch_add(x, &one);
    float values[300] = { 0 };
    for (uint64_t run = 1; run <= 2; run++) {
        device_run_begin(fixture.device, run, 1);
        fixture_copy_in(&fixture, &x, values, sizeof(values));
        for (int i = 0; i < 6; i++)
            fixture_launch(&fixture, &add);
    }
    fixture_sync(&fixture);
    /* Launches 0 and 2 of each run: x is read and written. */
    for (size_t i = 0; i < 8; i++) {
        const struct event *hash = fixture_event(&fixture, EVENT_OP_HASH, i);
        assert_non_null(hash);
        bool after = i % 2 != 0;
        size_t launch = i % 4 / 2 * 2;
        for (size_t v = 0; v < 300; v++)
            values[v] = (float)(launch + after);
        assert_true(hash->op_hash.digest ==
                    device_digest(values, sizeof(values), 1, sizeof(values)));
        assert_int_equal(hash->cause_id,
                         fixture_event(&fixture, EVENT_LAUNCH, i / 4 * 6 + launch)->id);
        assert_int_equal(hash->accesses[0].mode, after ? EVENT_WRITE : EVENT_READ);
        assert_int_equal(hash->accesses[0].bytes, sizeof(values));
        assert_int_equal(hash->operand, 0);
        assert_string_equal(hash->op, "add");
        assert_int_equal(hash->scope.layer, 17);
    }
    assert_null(fixture_event(&fixture, EVENT_OP_HASH, 8));
    fixture_close(&fixture);
}

static void test_buffers(void **state)
{
    (void)state;
    static const uint8_t weights[64] = { 1 };
    for (int poison = 0; poison < 2; poison++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ .poison = poison == 1 });
        struct device_buffer imported;
        fixture_floats(&fixture, 4, "x");
        const struct event *fresh = recorder_last(&fixture.recorder, EVENT_BUFFER_CREATE);
        assert_int_equal(fresh->buffer.imported_address, 0);
        assert_int_equal(fresh->buffer.fill_byte, poison ? DEVICE_POISON : 0);
        CHECK_OK(device_buffer_import(fixture.device, weights, sizeof(weights), "w", DEVICE_HERE,
                                      &imported, &fixture.err),
                 &fixture.err);
        assert_true(
            recorder_last(&fixture.recorder, EVENT_BUFFER_CREATE)->buffer.imported_address ==
            (uint64_t)(uintptr_t)weights);
        fixture_close(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_result_hash),
        cmocka_unit_test(test_digest),
        cmocka_unit_test(test_verify),
        cmocka_unit_test(test_verify_rewritten),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_op_hashes),
        cmocka_unit_test(test_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
