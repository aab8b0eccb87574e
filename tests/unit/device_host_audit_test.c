/* device_host_audit_test.c - what the device tells an audit beyond its calls: iterations, hashes of
 * transfers, values that are not finite, canaries after each launch, whose a trap or fault is. */
#include "device_fixture.h"

#include "device/device_impl.h"

#include <math.h>
#include <stdlib.h>
#include <xxhash.h>

static const struct event_scope somewhere = { 3, 17, "q" };

/* The n-th event of a kind, from 0, or NULL. */
static const struct event *nth(struct fixture *fixture, enum event_kind kind, size_t n)
{
    struct recorder *recorder = &fixture->recorder;
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        if (recorder->events[i].kind == kind && n-- == 0)
            return &recorder->events[i];
    return NULL;
}

static void give(struct fixture *fixture, const struct device_launch *launch)
{
    CHECK_OK(device_launch(fixture->device, fixture->stream, launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void sync(struct fixture *fixture)
{
    CHECK_OK(device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err),
             &fixture->err);
}

static void copy_in(struct fixture *fixture, const struct device_view *view, const void *bytes,
                    uint64_t count)
{
    CHECK_OK(device_copy_in(fixture->device, fixture->stream, view, bytes, count, DEVICE_HERE,
                            &fixture->err),
             &fixture->err);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

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
    const struct event *hash = nth(fixture, EVENT_TRANSFER_HASH, n);
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
    copy_in(&fixture, &x, values, sizeof(values)); /* in two chunks */
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
    const struct event *in = nth(&fixture, EVENT_COPY_IN, 0);
    const struct event *next = nth(&fixture, EVENT_COPY_IN, 1);
    assert_int_equal(next->cause_id, in->id);
    assert_true(in->copy.ticket && next->copy.ticket);
    assert_true(next->accesses[0].address == in->accesses[0].address + 4096);
    assert_int_equal(next->accesses[0].bytes, 1904);
    assert_int_equal(nth(&fixture, EVENT_TRANSFER_HASH, 1)->cause_id, next->id);
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
    give(&fixture, &hold);
    copy_in(&fixture, &x, values, sizeof(values));
    uintptr_t slot = (uintptr_t)recorder_last(&fixture.recorder, EVENT_COPY_IN)->copy.host_address;
    ((uint8_t *)slot)[3] ^= 1;
    open_gate(&gate);
    sync(&fixture);
    const struct event *hash = recorder_last(&fixture.recorder, EVENT_TRANSFER_HASH);
    assert_non_null(hash);
    assert_true(hash->transfer.source_before != hash->transfer.source_after &&
                hash->transfer.destination == hash->transfer.source_after);
    fixture_close(&fixture);
}

/* The bytes are gone: the copy faults and is named, what looked at them for the audit is not. */
static void test_inspection_never_blamed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){
                               .verify = true, .guards = true, .quarantine_bytes = 1 << 20 });
    struct device_view x = fixture_floats(&fixture, 16, "x");
    uint32_t gate = 0;
    struct gate_params wait = { NULL, &gate };
    struct device_launch hold = launch_gate(&wait);
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    give(&fixture, &hold);
    CHECK_OK(
        device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, &fixture.err),
        &fixture.err);
    device_buffer_destroy(fixture.device, x.buffer, DEVICE_HERE);
    open_gate(&gate);
    CHECK_FAILS(
        device_ticket_redeem(fixture.device, ticket, DEVICE_HERE, &bytes, &count, &fixture.err),
        STATUS_LOST, &fixture.err);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    assert_string_equal(fault->op, "copy out");
    assert_int_equal(fault->cause_id, recorder_last(&fixture.recorder, EVENT_COPY_OUT)->id);
    assert_null(recorder_last(&fixture.recorder, EVENT_TRANSFER_HASH));
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
    give(&fixture, &add);                          /* scanned, all finite */
    copy_in(&fixture, &x, values, sizeof(values)); /* no launch */
    give(&fixture, &add);
    give(&fixture, &add); /* scanned */
    sync(&fixture);
    const struct event *clean = nth(&fixture, EVENT_SCAN, 0), *bad = nth(&fixture, EVENT_SCAN, 1);
    assert_non_null(bad);
    assert_null(nth(&fixture, EVENT_SCAN, 2));
    assert_int_equal(clean->scan.value_count, 300);
    assert_int_equal(clean->scan.bad_count, 0);
    assert_int_equal(bad->scan.bad_count, 2);
    assert_int_equal(bad->scan.first_bad, 70);
    assert_int_equal(bad->cause_id, nth(&fixture, EVENT_LAUNCH, 2)->id);
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
        copy_in(&fixture, &x, values, sizeof(values));
        for (int i = 0; i < 6; i++)
            give(&fixture, &add);
    }
    sync(&fixture);
    /* Launches 0 and 2 of each run: x is read and written. */
    for (size_t i = 0; i < 8; i++) {
        const struct event *hash = nth(&fixture, EVENT_OP_HASH, i);
        assert_non_null(hash);
        bool after = i % 2 != 0;
        size_t launch = i % 4 / 2 * 2;
        for (size_t v = 0; v < 300; v++)
            values[v] = (float)(launch + after);
        assert_true(hash->op_hash.digest ==
                    device_digest(values, sizeof(values), 1, sizeof(values)));
        assert_int_equal(hash->cause_id, nth(&fixture, EVENT_LAUNCH, i / 4 * 6 + launch)->id);
        assert_int_equal(hash->accesses[0].mode, after ? EVENT_WRITE : EVENT_READ);
        assert_int_equal(hash->accesses[0].bytes, sizeof(values));
        assert_int_equal(hash->operand, 0);
        assert_string_equal(hash->op, "add");
        assert_int_equal(hash->scope.layer, 17);
    }
    assert_null(nth(&fixture, EVENT_OP_HASH, 8));
    fixture_close(&fixture);
}

static void test_canary_of_launch(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true });
    struct device_view x = fixture_floats(&fixture, 10, "x");
    static const int64_t places[] = { 40, -1, 41, 4 };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct event_scope scope = { (int32_t)i, 5, "poked" };
        struct poke_params where = { places[i] };
        struct device_launch launch = launch_poke(x, &where);
        device_scope_set(fixture.device, fixture.stream, &scope);
        give(&fixture, &launch);
    }
    sync(&fixture);
    for (size_t i = 0; i < 3; i++) {
        const struct event *canary = nth(&fixture, EVENT_CANARY, i);
        assert_non_null(canary);
        assert_int_equal(canary->cause_id, nth(&fixture, EVENT_LAUNCH, i)->id);
        assert_int_equal(canary->scope.step, i);
        assert_int_equal(canary->scope.layer, 5);
        assert_string_equal(canary->op, "poke");
        assert_int_equal(canary->operand, 0);
        assert_int_equal(canary->canary.damaged_bytes, 1);
        assert_true(canary->canary.offset == places[i]);
        assert_int_equal(canary->accesses[0].buffer_index, x.buffer.index);
        assert_int_equal(canary->canary.buffer_bytes, 40);
    }
    /* Put back: the last poke was inside, and destroying finds nothing more. */
    device_buffer_destroy(fixture.device, x.buffer, DEVICE_HERE);
    assert_null(nth(&fixture, EVENT_CANARY, 3));
    fixture_close(&fixture);
}

/* Directly and replayed: the trap says which op it was, of what. */
static void test_trap_is_named(void **state)
{
    (void)state;
    for (int recorded = 0; recorded < 2; recorded++) {
        struct fixture fixture;
        fixture_open(&fixture, (struct device_options){ 0 });
        struct device_view x = fixture_floats(&fixture, 4, "x");
        struct device_view source = fixture_floats(&fixture, 4, "source");
        struct device_view index = fixture_floats(&fixture, 4, "index");
        index.dtype = DTYPE_I32;
        int32_t wrong[4] = { 0, 1, 99, 3 };
        struct device_launch gather = { &gather_contract, NULL, { x, index, source }, 3, 1 };
        struct device_graph graph;
        struct error *err = &fixture.err;
        copy_in(&fixture, &index, wrong, sizeof(wrong));
        device_scope_set(fixture.device, fixture.stream, &somewhere);
        if (recorded)
            CHECK_OK(device_graph_begin(fixture.device, fixture.stream, DEVICE_HERE, err), err);
        give(&fixture, &gather);
        if (recorded) {
            CHECK_OK(device_graph_end(fixture.device, fixture.stream, DEVICE_HERE, &graph, err),
                     err);
            device_scope_set(fixture.device, fixture.stream, NULL);
            /* Enough calls later for the launch to be forgotten but for the graph. */
            for (int i = 0; i < 5000; i++)
                device_run_begin(fixture.device, 0, 0);
            struct device_launch add = launch_add(x, &(struct add_params){ 1 });
            for (int i = 0; i < 4096; i++)
                give(&fixture, &add);
            CHECK_OK(device_graph_replay(fixture.device, fixture.stream, graph, DEVICE_HERE, err),
                     err);
        }
        uint64_t launch_id = nth(&fixture, EVENT_LAUNCH, 0)->id;
        /* The recorder is full by now: keep only what comes next. */
        fixture.recorder.count = 0;
        sync(&fixture);
        const struct event *trap = recorder_last(&fixture.recorder, EVENT_TRAP);
        assert_non_null(trap);
        assert_int_equal(trap->cause_id, launch_id);
        assert_string_equal(trap->op, "gather");
        assert_int_equal(trap->scope.layer, 17);
        assert_int_equal(trap->trap.index, 99);
        if (!recorded)
            assert_int_equal(trap->stream_index, fixture.stream.index);
        fixture_close(&fixture);
    }
}

static void test_fault_in_graph(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true });
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct error *err = &fixture.err;
    struct add_params one = { 1 };
    struct poke_params past = { 4096 };
    struct device_launch add = launch_add(x, &one), poke = launch_poke(x, &past);
    struct device_graph graph;
    CHECK_OK(device_graph_begin(fixture.device, fixture.stream, DEVICE_HERE, err), err);
    give(&fixture, &add);
    device_scope_set(fixture.device, fixture.stream, &somewhere);
    give(&fixture, &poke);
    CHECK_OK(device_graph_end(fixture.device, fixture.stream, DEVICE_HERE, &graph, err), err);
    device_scope_set(fixture.device, fixture.stream, NULL);
    CHECK_OK(device_graph_replay(fixture.device, fixture.stream, graph, DEVICE_HERE, err), err);
    CHECK_FAILS(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, err), STATUS_LOST,
                err);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    assert_string_equal(fault->op, "poke");
    assert_int_equal(fault->scope.layer, 17);
    assert_int_equal(fault->cause_id, recorder_last(&fixture.recorder, EVENT_GRAPH_REPLAY)->id);
    assert_int_equal(fault->fault.node_id, nth(&fixture, EVENT_LAUNCH, 1)->id);
    fixture_close(&fixture);
}

static void test_error_state(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .ask_errors = true, .guards = true });
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct device_ticket ticket;
    uint8_t bytes[4096];
    fixture_fill(&fixture, &x, 0);
    CHECK_OK(device_read(fixture.device, fixture.stream, &x, bytes, DEVICE_HERE, err), err);
    const struct event *copy = recorder_last(&fixture.recorder, EVENT_COPY_OUT);
    assert_int_equal(copy->copy.state_before, EVENT_STATE_CLEAR);
    assert_int_equal(copy->copy.state_after, EVENT_STATE_CLEAR);
    struct poke_params past = { 4096 };
    struct device_launch poke = launch_poke(x, &past);
    give(&fixture, &poke);
    CHECK_FAILS(device_stream_sync(fixture.device, fixture.stream, DEVICE_HERE, err), STATUS_LOST,
                err);
    CHECK_FAILS(device_copy_out(fixture.device, fixture.stream, &x, DEVICE_HERE, &ticket, err),
                STATUS_LOST, err);
    copy = recorder_last(&fixture.recorder, EVENT_COPY_OUT);
    assert_int_equal(copy->outcome, EVENT_REFUSED);
    assert_int_equal(copy->check, EVENT_CHECK_LOST);
    assert_int_equal(copy->cause_id, recorder_last(&fixture.recorder, EVENT_FAULT)->id);
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
        cmocka_unit_test(test_inspection_never_blamed),
        cmocka_unit_test(test_scan),
        cmocka_unit_test(test_op_hashes),
        cmocka_unit_test(test_canary_of_launch),
        cmocka_unit_test(test_trap_is_named),
        cmocka_unit_test(test_fault_in_graph),
        cmocka_unit_test(test_error_state),
        cmocka_unit_test(test_buffers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
