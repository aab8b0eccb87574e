/* event_flight_old_test.c - files of versions 2 and 3 are read as if they were of this version. */
#include "event_flight_old.h"

/* One of each kind that has something of its own; ids count from 1. */
static const struct old kinds[] = {
    { .kind = EVENT_BUFFER_CREATE,
      .object = 9,
      .bytes = 256,
      .host_address = 0x5000,
      .expected = 0xFB },
    { .kind = EVENT_COPY_OUT,
      .object = 6,
      .bytes = 64,
      .host_address = 0x9000,
      .epoch = 41,
      .expected = EVENT_STATE_CLEAR,
      .found = EVENT_STATE_ERROR },
    { .kind = EVENT_COPY_OUT, .flags = EVENT_FOREIGN | EVENT_MAY_TELL, .object = 77, .bytes = 32 },
    { .kind = EVENT_FILL, .object = 78, .bytes = 16 },
    { .kind = EVENT_LAUNCH, .flags = EVENT_FOREIGN, .object = 79, .bytes = 12, .name_index = 4 },
    { .kind = EVENT_GRAPH_REPLAY, .object = 2, .epoch = 10 },
    { .kind = EVENT_MARK_WAIT, .object = 5 },
    { .kind = EVENT_TICKET_REDEEM,
      .object = 6,
      .bytes = 64,
      .host_address = 0x9000,
      .epoch = 41,
      .expected = 0xABCD,
      .found = 1 },
    { .kind = EVENT_TRAP, .expected = 100, .found = 4000 },
    { .kind = EVENT_FAULT,
      .object = 13,
      .host_address = 0xBAD0,
      .found = EVENT_ADDRESS_KERNEL_LOG,
      .code = 700,
      .code_of = 3,
      .outcome = EVENT_FAILED },
    { .kind = EVENT_CANARY,
      .object = 9,
      .bytes = 2,
      .host_address = 0x7000 - 8,
      .expected = 256,
      .found = UINT64_MAX - 7 },
    { .kind = EVENT_RUN, .object = 3, .found = 44 },
    { .kind = EVENT_TRANSFER_HASH, .bytes = 64, .expected = 1, .host_address = 2, .found = 3 },
    { .kind = EVENT_SCAN, .expected = 300, .found = 2, .host_address = 70 },
    { .kind = EVENT_SOURCE_CHANGED, .host_address = 0xA000, .bytes = 8, .expected = 4, .found = 5 },
    { .kind = EVENT_OP_HASH, .found = 0xFEED, .mode = EVENT_WRITE },
    { .kind = EVENT_MODULE_LOAD, .object = 21 },
    { .kind = EVENT_LAUNCH,
      .outcome = EVENT_REFUSED,
      .check = EVENT_CHECK_VIEW_END,
      .expected = 64,
      .found = 80 },
};

static struct flight_reader *open_kinds(uint32_t version, const char *device, uint8_t **ret_file)
{
    struct old events[COUNT_OF(kinds)];
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        events[i] = kinds[i];
        if (!events[i].outcome)
            events[i].outcome = EVENT_DONE;
    }
    *ret_file = old_file(version, device, events, COUNT_OF(kinds));
    return old_open(*ret_file);
}

static void test_common(void **state)
{
    (void)state;
    uint8_t *file;
    struct flight_reader *reader = open_kinds(3, "a device", &file);
    const struct flight_info *info = flight_info(reader);
    assert_int_equal(info->version, 3);
    assert_int_equal(info->pid, 4321);
    assert_true(info->closed);
    assert_int_equal(info->last_id, COUNT_OF(kinds));
    assert_int_equal(info->damaged_count, 0);
    assert_int_equal(info->dropped_count, 17);
    assert_int_equal(info->analysed_id, 2);
    assert_string_equal(info->device, "a device");
    assert_string_equal(info->command, "greta infer --audit guard");
    for (uint64_t id = 1; id <= COUNT_OF(kinds); id++) {
        struct event event = old_event_at(reader, id);
        assert_int_equal(event.kind, kinds[id - 1].kind);
        assert_int_equal(event.cause_id, id / 2);
        assert_int_equal(event.begin_ns, 1000 * id);
        assert_int_equal(event.end_ns, 1000 * id + 500);
        assert_int_equal(event.process_id, 4321);
        assert_int_equal(event.device_index, 0);
        assert_int_equal(event.stream_index, 3);
        assert_int_equal(event.thread_index, 2);
        assert_int_equal(event.line, 321);
        assert_int_equal(event.scope.step, 7);
        assert_int_equal(event.scope.layer, 5);
        assert_string_equal(event.scope.tensor, "blk.5.ffn_up");
        assert_string_equal(event.op, "matmul");
        assert_string_equal(event.file, "src/engine/forward.c");
        assert_int_equal(event.flags, kinds[id - 1].flags);
        assert_int_equal(event.stack_index, 11);
        assert_int_equal(event.accesses[0].address, 0x7000);
        assert_int_equal(event.accesses[0].buffer_index, 9);
        assert_int_equal(event.operand, 1);
    }
    const void *saved;
    size_t saved_count;
    assert_true(flight_last_checkpoint(reader, &saved, &saved_count));
    assert_int_equal(saved_count, 5);
    assert_memory_equal(saved, "state", 5);
    assert_int_equal(flight_allocation_count(reader), 1);
    const struct flight_allocation *allocation = flight_allocation_at(reader, 0);
    assert_int_equal(allocation->buffer_index, 9);
    assert_int_equal(allocation->generation, 5);
    assert_string_equal(allocation->name, "kv.keys");
    struct event recorded;
    assert_true(flight_graph_launch(reader, 0, &recorded));
    assert_int_equal(event_graph_id(&recorded), 77);
    flight_reader_close(reader);
    free(file);
}

static void test_calls(void **state)
{
    (void)state;
    uint8_t *file;
    struct flight_reader *reader = open_kinds(3, "a device", &file);
    struct event event = old_event_at(reader, 1);
    assert_int_equal(event.buffer.bytes, 256);
    assert_int_equal(event.buffer.buffer_index, 9);
    assert_int_equal(event.buffer.imported_address, 0x5000);
    assert_int_equal(event.buffer.fill_byte, 0xFB);
    event = old_event_at(reader, 2);
    assert_int_equal(event.copy.bytes, 64);
    assert_int_equal(event.copy.host_address, 0x9000);
    assert_int_equal(event.copy.ticket, 6);
    assert_int_equal(event.copy.generation, 41);
    assert_int_equal(event.copy.graph_id, 0);
    assert_int_equal(event.copy.state_before, EVENT_STATE_CLEAR);
    assert_int_equal(event.copy.state_after, EVENT_STATE_ERROR);
    assert_int_equal(event.expected, 0); /* no check compared anything */
    event = old_event_at(reader, 3);     /* a foreign program has graphs, not tickets */
    assert_int_equal(event.copy.graph_id, 77);
    assert_int_equal(event.copy.ticket, 0);
    assert_int_equal(old_event_at(reader, 4).copy.graph_id, 78);
    event = old_event_at(reader, 5);
    assert_int_equal(event.launch.graph_id, 79);
    assert_int_equal(event.launch.ordinal, 12);
    assert_int_equal(event.launch.name_index, 4);
    event = old_event_at(reader, 6);
    assert_int_equal(event.graph.handle, 2);
    assert_int_equal(event.graph.epoch, 10);
    assert_int_equal(old_event_at(reader, 7).mark.mark, 5);
    event = old_event_at(reader, 8);
    assert_int_equal(event.ticket.ticket, 6);
    assert_int_equal(event.ticket.generation, 41);
    assert_int_equal(event.ticket.bytes, 64);
    assert_int_equal(event.ticket.host_address, 0x9000);
    assert_int_equal(event.ticket.hash, 0xABCD);
    assert_int_equal(event.ticket.waited, 1);
    assert_int_equal(old_event_at(reader, 17).module.kernel_count, 21);
    event = old_event_at(reader, 18); /* what a check compared stays what it was */
    assert_int_equal(event.check, EVENT_CHECK_VIEW_END);
    assert_int_equal(event.expected, 64);
    assert_int_equal(event.found, 80);
    flight_reader_close(reader);
    free(file);
}

static void test_observations(void **state)
{
    (void)state;
    uint8_t *file;
    struct flight_reader *reader = open_kinds(3, "a device", &file);
    struct event event = old_event_at(reader, 9);
    assert_int_equal(event.trap.index, 4000);
    assert_int_equal(event.trap.bound, 100);
    event = old_event_at(reader, 10);
    assert_int_equal(event.fault.address, 0xBAD0);
    assert_int_equal(event.fault.node_id, 13);
    assert_int_equal(event.fault.address_known, EVENT_ADDRESS_KERNEL_LOG);
    event = old_event_at(reader, 11);
    assert_int_equal(event.canary.address, 0x7000 - 8);
    assert_int_equal(event.canary.offset, -8);
    assert_int_equal(event.canary.damaged_bytes, 2);
    assert_int_equal(event.canary.buffer_bytes, 256);
    event = old_event_at(reader, 12);
    assert_int_equal(event.run.iteration, 3);
    assert_int_equal(event.run.key, 44);
    event = old_event_at(reader, 13);
    assert_int_equal(event.transfer.source_before, 1);
    assert_int_equal(event.transfer.source_after, 2);
    assert_int_equal(event.transfer.destination, 3);
    assert_int_equal(event.transfer.bytes, 64);
    event = old_event_at(reader, 14);
    assert_int_equal(event.scan.value_count, 300);
    assert_int_equal(event.scan.bad_count, 2);
    assert_int_equal(event.scan.first_bad, 70);
    event = old_event_at(reader, 15);
    assert_int_equal(event.source_change.address, 0xA000);
    assert_int_equal(event.source_change.bytes, 8);
    assert_int_equal(event.source_change.digest_before, 4);
    assert_int_equal(event.source_change.digest_now, 5);
    event = old_event_at(reader, 16);
    assert_int_equal(event.op_hash.digest, 0xFEED);
    assert_int_equal(event.op_hash.when, EVENT_WRITE);
    flight_reader_close(reader);
    free(file);
}

/* Version 3 says "the runtime's": which one, the device of the file says. */
static void test_domains(void **state)
{
    (void)state;
    static const struct {
        uint32_t version;
        const char *device, *opened; /* as the header and the event of opening name it */
        uint8_t code_of;
        enum event_error_domain domain;
    } rows[] = {
        { 3, "NVIDIA H200", "cuda", 3, EVENT_ERROR_CUDA },
        { 3, "AMD Instinct MI300X", "hip", 3, EVENT_ERROR_HIP },
        { 3, "CUDA", NULL, 3, EVENT_ERROR_CUDA },
        { 3, "AMD", NULL, 3, EVENT_ERROR_HIP },
        { 3, "some device", NULL, 3, EVENT_ERROR_RUNTIME },
        { 3, "some device", "cuda", 2, EVENT_ERROR_ERRNO },
        { 3, "some device", "cuda", 1, EVENT_ERROR_GRETA },
        { 2, "CUDA", "cuda", 3, EVENT_ERROR_NONE },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct old events[] = {
            { .kind = rows[i].opened ? EVENT_DEVICE_OPEN : EVENT_STREAM_SYNC,
              .op = rows[i].opened,
              .outcome = EVENT_DONE },
            { .kind = EVENT_STREAM_SYNC,
              .outcome = EVENT_FAILED,
              .code = 700,
              .code_of = rows[i].code_of },
        };
        uint8_t *file = old_file(rows[i].version, rows[i].device, events, COUNT_OF(events));
        struct flight_reader *reader = old_open(file);
        assert_int_equal(flight_info(reader)->version, rows[i].version);
        struct event event = old_event_at(reader, 2);
        assert_int_equal(event.code, 700);
        assert_int_equal(event.domain, rows[i].domain);
        flight_reader_close(reader);
        free(file);
    }
}

/* A call that the process died in: the check it would not have passed was written at its beginning.
 */
static void test_open_call(void **state)
{
    (void)state;
    struct old events[] = { { .kind = EVENT_COPY_OUT,
                              .flags = EVENT_FOREIGN,
                              .outcome = EVENT_DONE,
                              .begin_check = EVENT_CHECK_VIEW_END,
                              .begin_operand = 2,
                              .check = EVENT_CHECK_LOST,
                              .open = true },
                            { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE, .open = true } };
    uint8_t *file = old_file(3, "CUDA", events, COUNT_OF(events));
    struct flight_reader *reader = old_open(file);
    struct event event = old_event_at(reader, 1);
    assert_int_equal(event.outcome, EVENT_PENDING);
    assert_int_equal(event.check, EVENT_CHECK_VIEW_END);
    assert_int_equal(event.operand, 2);
    event = old_event_at(reader, 2);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    assert_int_equal(event.operand, EVENT_NO_OPERAND);
    flight_reader_close(reader);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common),       cmocka_unit_test(test_calls),
        cmocka_unit_test(test_observations), cmocka_unit_test(test_domains),
        cmocka_unit_test(test_open_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
