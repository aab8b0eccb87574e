/* event_flight_old_test.c - files of versions 2 and 3, written here byte by byte as those versions
 * had them, are read as if they were of this version; what was damaged stays damaged. */
#include "test.h"

#include "event/flight_layout.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---- A file of version 2 or 3 --------------------------------------------------------------- */

#define OLD_RECORDS 32u
#define OLD_ENTRIES 4u
#define OLD_GRAPH_RECORDS 2u
/* Where its areas were. */
#define OLD_CHECKPOINT 12288u
#define OLD_ENTRY 147456u
#define OLD_GRAPH 151552u
#define OLD_RING 155648u
#define OLD_FILE_BYTES 172032u

/* What an event had in common for all kinds; what it meant depended on the kind. */
struct old {
    uint8_t kind;
    uint64_t object, bytes, host_address;
    uint16_t epoch, flags;
    uint64_t expected, found;
    int32_t code;
    uint8_t code_of, check, begin_check, begin_operand, outcome, mode;
    uint32_t name_index;
    const char *op;
    bool open; /* its end was not seen */
};

static void put(uint8_t *bytes, size_t offset, size_t count, uint64_t value)
{
    for (size_t i = 0; i < count; i++)
        bytes[offset + i] = (uint8_t)(value >> (8 * i));
}

static void put_text(uint8_t *bytes, size_t offset, const char *text)
{
    memcpy(bytes + offset, text, strlen(text));
}

static uint32_t sum32(const uint8_t *bytes, size_t count)
{
    uint32_t sum = (uint32_t)XXH3_64bits(bytes, count);
    return sum ? sum : 1;
}

static void put_record(uint8_t *record, uint64_t id, const struct old *old, uint32_t version)
{
    uint8_t *event = record + 16;
    memset(record, 0, 512);
    put(event, 0, 8, id);
    put(event, 8, 8, id / 2);
    put(event, 16, 8, 1000 * id);
    put(event, 24, 8, old->object);
    put(event, 32, 8, old->bytes);
    put(event, 40, 8, old->host_address);
    put(event, 48, 4, 3); /* stream */
    put(event, 52, 4, 2); /* thread */
    event[56] = old->kind;
    event[57] = 1;
    put(event, 58, 2, old->epoch);
    put(event, 60, 4, 321); /* line */
    put(event, 64, 4, 7);   /* step */
    put(event, 68, 4, 5);   /* layer */
    put_text(event, 72, "blk.5.ffn_up");
    put_text(event, 112, old->op ? old->op : "matmul");
    put_text(event, 136, "src/engine/forward.c");
    put(event, 164, 2, old->flags);
    event[166] = old->begin_check;
    event[167] = old->begin_operand;
    put(event, 168, 4, 11); /* stack */
    put(event, 172, 4, old->name_index);
    put(event, 176, 8, 0x7000);
    put(event, 184, 8, 64);
    put(event, 192, 4, 9);
    put(event, 196, 2, 1);
    event[198] = old->mode;
    put(event, 464, 8, 1000 * id + 500);
    put(event, 472, 8, old->expected);
    put(event, 480, 8, old->found);
    put(event, 488, 4, (uint32_t)old->code);
    event[492] = (uint8_t)(1 | (version == 2 ? 0 : old->code_of << 4));
    event[493] = old->outcome;
    event[494] = old->check;
    event[495] = 1;
    put(record, 0, 8, id);
    put(record, 8, 4, sum32(event, 464));
    put(record, 12, 4, old->open ? 0 : sum32(event + 464, 32));
}

static void put_header(uint8_t *file, uint32_t version, const char *device)
{
    static const uint32_t numbers[] = { 4096,  512,         496,         88,
                                        65568, OLD_RECORDS, OLD_ENTRIES, OLD_GRAPH_RECORDS,
                                        0 };
    static const uint64_t offsets[] = { 4096,     OLD_CHECKPOINT, OLD_ENTRY,      OLD_GRAPH,
                                        OLD_RING, OLD_FILE_BYTES, 4321 /* pid */, 99,
                                        98 };
    memcpy(file, "GRETAFLT", 8);
    put(file, 8, 4, version);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        put(file, 12 + 4 * i, 4, numbers[i]);
    for (size_t i = 0; i < COUNT_OF(offsets); i++)
        put(file, 48 + 8 * i, 8, offsets[i]);
    put_text(file, 120, device);
    put_text(file, 376, "greta infer --audit guard");
    put(file, 632, 8, XXH3_64bits(file, 632));
    put(file, 2048, 8, 1);      /* closed */
    put(file, 2048 + 8, 8, 17); /* dropped */
}

static void put_entry(uint8_t *file, uint32_t index)
{
    uint8_t *entry = file + OLD_ENTRY + 88 * (size_t)index;
    put(entry, 0, 8, 0x7000 + 4096 * (uint64_t)index);
    put(entry, 8, 8, 256);
    put(entry, 16, 8, 3);
    put(entry, 24, 8, 0);
    put(entry, 32, 4, 9 + index);
    put(entry, 36, 4, 5);
    put_text(entry, 40, "kv.keys");
    put(entry, 80, 8, XXH3_64bits(entry, 80));
}

static uint8_t *old_file(uint32_t version, const char *device, const struct old *events,
                         size_t count)
{
    uint8_t *file = calloc(1, OLD_FILE_BYTES);
    assert_non_null(file);
    put_header(file, version, device);
    for (size_t i = 0; i < count; i++)
        put_record(file + OLD_RING + 512 * (i + 1), i + 1, &events[i], version);
    struct old recorded = { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE, .object = 77 };
    put_record(file + OLD_GRAPH, 90, &recorded, version);
    put_entry(file, 0);
    uint8_t *slot = file + OLD_CHECKPOINT;
    put(slot, 0, 8, 1);
    put(slot, 8, 8, 2);
    put(slot, 16, 8, 5);
    memcpy(slot + 32, "state", 5);
    put(slot, 24, 8, XXH3_64bits(slot, 24) ^ XXH3_64bits(slot + 32, 5));
    return file;
}

static struct flight_reader *open_file(const uint8_t *file)
{
    struct flight_reader *reader;
    struct error err;
    CHECK_OK(flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err), &err);
    return reader;
}

static struct event event_at(const struct flight_reader *reader, uint64_t id)
{
    struct event event;
    uint64_t at = id;
    assert_true(flight_next(reader, &at, &event));
    assert_int_equal(event.id, id);
    return event;
}

/* ---- Tests ---------------------------------------------------------------------------------- */

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
    return open_file(*ret_file);
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
        struct event event = event_at(reader, id);
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
    struct event event = event_at(reader, 1);
    assert_int_equal(event.buffer.bytes, 256);
    assert_int_equal(event.buffer.buffer_index, 9);
    assert_int_equal(event.buffer.imported_address, 0x5000);
    assert_int_equal(event.buffer.fill_byte, 0xFB);
    event = event_at(reader, 2);
    assert_int_equal(event.copy.bytes, 64);
    assert_int_equal(event.copy.host_address, 0x9000);
    assert_int_equal(event.copy.ticket, 6);
    assert_int_equal(event.copy.generation, 41);
    assert_int_equal(event.copy.graph_id, 0);
    assert_int_equal(event.copy.state_before, EVENT_STATE_CLEAR);
    assert_int_equal(event.copy.state_after, EVENT_STATE_ERROR);
    assert_int_equal(event.expected, 0); /* no check compared anything */
    event = event_at(reader, 3);         /* a foreign program has graphs, not tickets */
    assert_int_equal(event.copy.graph_id, 77);
    assert_int_equal(event.copy.ticket, 0);
    assert_int_equal(event_at(reader, 4).copy.graph_id, 78);
    event = event_at(reader, 5);
    assert_int_equal(event.launch.graph_id, 79);
    assert_int_equal(event.launch.ordinal, 12);
    assert_int_equal(event.launch.name_index, 4);
    event = event_at(reader, 6);
    assert_int_equal(event.graph.handle, 2);
    assert_int_equal(event.graph.epoch, 10);
    assert_int_equal(event_at(reader, 7).mark.mark, 5);
    event = event_at(reader, 8);
    assert_int_equal(event.ticket.ticket, 6);
    assert_int_equal(event.ticket.generation, 41);
    assert_int_equal(event.ticket.bytes, 64);
    assert_int_equal(event.ticket.host_address, 0x9000);
    assert_int_equal(event.ticket.hash, 0xABCD);
    assert_int_equal(event.ticket.waited, 1);
    assert_int_equal(event_at(reader, 17).module.kernel_count, 21);
    event = event_at(reader, 18); /* what a check compared stays what it was */
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
    struct event event = event_at(reader, 9);
    assert_int_equal(event.trap.index, 4000);
    assert_int_equal(event.trap.bound, 100);
    event = event_at(reader, 10);
    assert_int_equal(event.fault.address, 0xBAD0);
    assert_int_equal(event.fault.node_id, 13);
    assert_int_equal(event.fault.address_known, EVENT_ADDRESS_KERNEL_LOG);
    event = event_at(reader, 11);
    assert_int_equal(event.canary.address, 0x7000 - 8);
    assert_int_equal(event.canary.offset, -8);
    assert_int_equal(event.canary.damaged_bytes, 2);
    assert_int_equal(event.canary.buffer_bytes, 256);
    event = event_at(reader, 12);
    assert_int_equal(event.run.iteration, 3);
    assert_int_equal(event.run.key, 44);
    event = event_at(reader, 13);
    assert_int_equal(event.transfer.source_before, 1);
    assert_int_equal(event.transfer.source_after, 2);
    assert_int_equal(event.transfer.destination, 3);
    assert_int_equal(event.transfer.bytes, 64);
    event = event_at(reader, 14);
    assert_int_equal(event.scan.value_count, 300);
    assert_int_equal(event.scan.bad_count, 2);
    assert_int_equal(event.scan.first_bad, 70);
    event = event_at(reader, 15);
    assert_int_equal(event.source_change.address, 0xA000);
    assert_int_equal(event.source_change.bytes, 8);
    assert_int_equal(event.source_change.digest_before, 4);
    assert_int_equal(event.source_change.digest_now, 5);
    event = event_at(reader, 16);
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
        struct flight_reader *reader = open_file(file);
        assert_int_equal(flight_info(reader)->version, rows[i].version);
        struct event event = event_at(reader, 2);
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
    struct flight_reader *reader = open_file(file);
    struct event event = event_at(reader, 1);
    assert_int_equal(event.outcome, EVENT_PENDING);
    assert_int_equal(event.check, EVENT_CHECK_VIEW_END);
    assert_int_equal(event.operand, 2);
    event = event_at(reader, 2);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    assert_int_equal(event.operand, EVENT_NO_OPERAND);
    flight_reader_close(reader);
    free(file);
}

static void test_damage(void **state)
{
    (void)state;
    struct old events[4] = { 0 };
    for (size_t i = 0; i < COUNT_OF(events); i++)
        events[i] = (struct old){ .kind = EVENT_LAUNCH, .outcome = EVENT_DONE };
    uint8_t *file = old_file(3, "a device", events, COUNT_OF(events));
    uint8_t *ring = file + OLD_RING;
    put(ring + 512 * 2, 0, 8, UINT64_MAX); /* was being written */
    ring[512 * 3 + 16 + 100] ^= 1;         /* does not match its checksum */
    file[OLD_ENTRY + 1] ^= 1;
    struct flight_reader *reader = open_file(file);
    assert_int_equal(flight_info(reader)->damaged_count, 3);
    assert_int_equal(flight_allocation_count(reader), 0);
    struct event event;
    uint64_t at = 2;
    assert_true(flight_next(reader, &at, &event));
    assert_int_equal(event.id, 4);
    flight_reader_close(reader);
    free(file);
}

static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t offset, bytes;
        uint64_t value;
        const char *words;
    } rows[] = {
        { "version 1", 8, 4, 1, "version" },
        { "record size", 16, 4, 8, "record_bytes" },
        { "event size", 20, 4, 504, "event_bytes" },
        { "allocation size", 24, 4, 0, "allocation_bytes" },
        { "checkpoint size", 28, 4, 1, "checkpoint_bytes" },
        { "no records", 32, 4, 0, "record_count" },
        { "many records", 32, 4, UINT32_MAX, "file_bytes" },
        { "many graph records", 40, 4, UINT32_MAX, "ring_offset" },
        { "no such tables", 44, 4, 2, "call_tables" },
        { "ring elsewhere", 80, 8, 64, "ring_offset" },
        { "another size", 88, 8, 64, "file_bytes" },
        { "another name", 376, 1, 'x', "checksum" },
    };
    struct old launch = { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t *file = old_file(3, "a device", &launch, 1);
        struct flight_reader *reader;
        struct error err;
        put(file, rows[i].offset, rows[i].bytes, rows[i].value);
        enum status status = flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err);
        if (!status || !strstr(err.text, rows[i].words))
            fail_msg("%s: expected \"%s\", found %d: %s", rows[i].name, rows[i].words, status,
                     status ? err.text : "it opened");
        free(file);
    }
    uint8_t *file = old_file(3, "a device", &launch, 1);
    struct flight_reader *reader;
    struct error err;
    for (uint64_t size = 0; size < OLD_FILE_BYTES; size += size < 700 ? 1 : 4999)
        assert_int_not_equal(flight_open_memory(file, size, "old", &reader, &err), STATUS_OK);
    uint8_t *good = malloc(OLD_FILE_BYTES);
    assert_non_null(good);
    memcpy(good, file, OLD_FILE_BYTES);
    uint64_t random = 1;
    for (int round = 0; round < 100; round++) {
        for (int change = 0; change < 20; change++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            file[(random >> 20) % OLD_FILE_BYTES] = (uint8_t)(random >> 56);
        }
        if (!flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err)) {
            struct event event;
            for (uint64_t id = 0; flight_next(reader, &id, &event);)
                assert_true(event.kind < EVENT_KIND_COUNT &&
                            event.domain < EVENT_ERROR_DOMAIN_COUNT);
            flight_reader_close(reader);
        }
        memcpy(file, good, OLD_FILE_BYTES);
    }
    free(good);
    free(file);
}

/* Kept as a file of this version; not written to by a process of this one. */
static void test_pack_and_attach(void **state)
{
    (void)state;
    struct old launch = { .kind = EVENT_LAUNCH, .outcome = EVENT_DONE, .bytes = 12 };
    uint8_t *file = old_file(2, "a device", &launch, 1);
    struct temp_folder folder;
    struct flight_reader *reader;
    struct flight *flight;
    struct error err;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "old.flight", file, OLD_FILE_BYTES);
    struct temp_path plain = temp_folder_path(&folder, "old.flight");
    struct temp_path packed = temp_folder_path(&folder, "old.flight.zst");
    CHECK_OK(flight_pack(plain.text, packed.text, 0, &err), &err);
    CHECK_OK(flight_open(packed.text, &reader, &err), &err);
    assert_int_equal(flight_info(reader)->version, FLIGHT_VERSION);
    assert_int_equal(event_at(reader, 1).launch.ordinal, 12);
    flight_reader_close(reader);
    CHECK_FAILS(flight_attach(plain.text, &flight, &err), STATUS_UNSUPPORTED, &err);
    temp_folder_release(&folder);
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_common),       cmocka_unit_test(test_calls),
        cmocka_unit_test(test_observations), cmocka_unit_test(test_domains),
        cmocka_unit_test(test_open_call),    cmocka_unit_test(test_damage),
        cmocka_unit_test(test_hostile),      cmocka_unit_test(test_pack_and_attach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
