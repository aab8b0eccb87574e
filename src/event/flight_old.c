/* flight_old.c - files of versions 2 and 3 become files of the current version before anything else
 * reads them.
 *
 * Both had the same areas in the same places with records and entries of the same sizes, so a copy
 * of the file is converted in place: header, records and allocations, with new checksums. What does
 * not pass its checksum becomes a record that does not pass the new one either. Version 2
 * did not say whose number a code is; the byte was 0. */
#include "event/flight_layout.h"

#include <stdlib.h>
#include <string.h>

/* ---- What they were ------------------------------------------------------------------------- */

struct old_event {
    uint64_t id, cause_id, begin_ns;
    uint64_t object, bytes, host_address;
    uint32_t stream_index, thread_index;
    uint8_t kind, access_count;
    uint16_t epoch;
    uint32_t line;
    struct event_scope scope;
    char op[EVENT_OP_BYTES];
    char file[EVENT_FILE_BYTES];
    uint16_t flags;
    uint8_t begin_check, begin_operand;
    uint32_t stack_index, name_index;
    struct event_access accesses[EVENT_ACCESS_LIMIT];
    uint64_t end_ns, expected, found;
    int32_t code;
    uint8_t phase_and_domain; /* halves of the byte */
    uint8_t outcome, check, operand;
};
_Static_assert(sizeof(struct old_event) == 496, "as it was written");

struct old_record {
    uint64_t state;
    uint32_t begin_checksum, end_checksum;
    struct old_event event;
};
_Static_assert(sizeof(struct old_record) == sizeof(struct flight_record), "converted in place");

struct old_allocation {
    uint64_t address, bytes, created_id, destroyed_id;
    uint32_t buffer_index, generation;
    char name[EVENT_TENSOR_BYTES];
};
_Static_assert(sizeof(struct old_allocation) == sizeof(struct flight_allocation), "in place");

struct old_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes, record_bytes, event_bytes, allocation_bytes, checkpoint_bytes;
    uint32_t record_count, allocation_count, graph_record_count, call_tables;
    uint64_t crumb_offset, checkpoint_offset, allocation_offset, graph_offset, ring_offset;
    uint64_t file_bytes;
    uint64_t pid, start_wall_ns, start_clock_ns;
    char device[FLIGHT_TEXT_BYTES];
    char command[FLIGHT_TEXT_BYTES];
    uint64_t checksum;
};

/* Only the launch's domain is left to find out: version 3 says "the runtime's". */
struct conversion {
    uint8_t *bytes;
    struct old_header header;
    struct flight_plan plan;
    enum event_error_domain runtime;
};

/* ---- Events --------------------------------------------------------------------------------- */

static uint32_t cut_index(uint64_t index)
{
    return index <= UINT32_MAX ? (uint32_t)index : 0;
}

static void set_copy(const struct old_event *old, struct event_copy *copy)
{
    bool own_transfer = (old->kind == EVENT_COPY_IN || old->kind == EVENT_COPY_OUT) &&
                        !(old->flags & EVENT_FOREIGN);
    bool asked = own_transfer && old->check == EVENT_CHECK_NONE;
    *copy = (struct event_copy){ .bytes = old->bytes,
                                 .host_address = old->host_address,
                                 .graph_id = own_transfer ? 0 : old->object,
                                 .ticket = own_transfer ? cut_index(old->object) : 0,
                                 .generation = own_transfer ? old->epoch : 0 };
    if (asked && old->expected <= EVENT_STATE_ERROR && old->found <= EVENT_STATE_ERROR) {
        copy->state_before = (uint8_t)old->expected;
        copy->state_after = (uint8_t)old->found;
    }
}

static void set_buffer(const struct old_event *old, struct event_buffer *buffer)
{
    bool foreign = (old->flags & EVENT_FOREIGN) != 0;
    bool filled = old->kind == EVENT_BUFFER_CREATE && old->check == EVENT_CHECK_NONE;
    *buffer = (struct event_buffer){ .bytes = old->bytes,
                                     .imported_address = old->host_address,
                                     .graph_id = foreign ? old->object : 0,
                                     .buffer_index = foreign ? 0 : cut_index(old->object),
                                     .fill_byte = filled ? (uint8_t)old->expected : 0 };
}

static void set_ticket(const struct old_event *old, struct event_ticket *ticket)
{
    bool checked = old->check != EVENT_CHECK_NONE;
    *ticket = (struct event_ticket){ .bytes = old->bytes,
                                     .host_address = old->host_address,
                                     .hash = checked ? 0 : old->expected,
                                     .ticket = cut_index(old->object),
                                     .generation = old->epoch,
                                     .waited = !checked && old->found == 1 };
}

/* Findings of the device: what `expected` and `found` meant, by kind. */
static void set_observation(const struct old_event *old, struct event *event)
{
    switch (old->kind) {
    case EVENT_TRAP:
        event->trap = (struct event_trap){ .index = old->found, .bound = old->expected };
        break;
    case EVENT_FAULT:
        event->fault = (struct event_fault){ .address = old->host_address,
                                             .node_id = old->object,
                                             .address_known = old->found < EVENT_ADDRESS_COUNT
                                                                  ? (uint8_t)old->found
                                                                  : EVENT_ADDRESS_UNKNOWN };
        break;
    case EVENT_CANARY:
        event->canary = (struct event_canary){ .address = old->host_address,
                                               .offset = (int64_t)old->found,
                                               .damaged_bytes = old->bytes,
                                               .buffer_bytes = old->expected };
        break;
    case EVENT_RUN:
        event->run = (struct event_run){ .iteration = old->object, .key = old->found };
        break;
    case EVENT_TRANSFER_HASH:
        event->transfer = (struct event_transfer_hash){ .source_before = old->expected,
                                                        .source_after = old->host_address,
                                                        .destination = old->found,
                                                        .bytes = old->bytes };
        break;
    case EVENT_SCAN:
        event->scan = (struct event_scan){ .value_count = old->expected,
                                           .bad_count = old->found,
                                           .first_bad = old->host_address };
        break;
    case EVENT_SOURCE_CHANGED:
        event->source_change = (struct event_source_change){ .address = old->host_address,
                                                             .bytes = old->bytes,
                                                             .digest_before = old->expected,
                                                             .digest_now = old->found };
        break;
    case EVENT_OP_HASH:
        event->op_hash = (struct event_op_hash){ .digest = old->found,
                                                 .when = old->accesses[0].mode };
        break;
    default:
        break;
    }
}

/* The kind of device that an event of its opening names. */
static enum event_error_domain domain_of_kind(const struct old_event *old)
{
    char kind[EVENT_OP_BYTES];
    memcpy(kind, old->op, sizeof(kind));
    kind[sizeof(kind) - 1] = '\0';
    return event_error_domain_of(kind);
}

static void set_payload(const struct old_event *old, struct event *event)
{
    switch (event_payload_of((enum event_kind)old->kind)) {
    case EVENT_PAYLOAD_BUFFER:
        set_buffer(old, &event->buffer);
        break;
    case EVENT_PAYLOAD_MARK:
        event->mark.mark = old->object;
        break;
    case EVENT_PAYLOAD_COPY:
        set_copy(old, &event->copy);
        break;
    case EVENT_PAYLOAD_MODULE:
        event->module.kernel_count = old->object;
        break;
    case EVENT_PAYLOAD_LAUNCH:
        event->launch = (struct event_launch){ .graph_id = old->object,
                                               .ordinal = old->bytes,
                                               .name_index = old->name_index };
        break;
    case EVENT_PAYLOAD_GRAPH:
        event->graph = (struct event_graph){ .handle = old->object,
                                             .ordinal = old->bytes,
                                             .epoch = old->epoch };
        break;
    case EVENT_PAYLOAD_TICKET:
        set_ticket(old, &event->ticket);
        break;
    case EVENT_PAYLOAD_CALL:
        event->call.handle = old->object;
        break;
    case EVENT_PAYLOAD_DEVICE:
        event->device.domain = (uint8_t)domain_of_kind(old);
        break;
    default:
        set_observation(old, event);
        break;
    }
}

static uint8_t domain_of(const struct conversion *conversion, const struct old_event *old)
{
    uint8_t domain = old->phase_and_domain >> 4;
    if (domain == EVENT_ERROR_RUNTIME)
        return (uint8_t)conversion->runtime;
    return domain <= EVENT_ERROR_RUNTIME ? domain : EVENT_ERROR_DOMAIN_COUNT; /* is refused */
}

static void convert_event(const struct conversion *conversion, const struct old_event *old,
                          struct event *ret)
{
    bool checked = old->check != EVENT_CHECK_NONE;
    *ret = (struct event){ .id = old->id,
                           .cause_id = old->cause_id,
                           .begin_ns = old->begin_ns,
                           .process_id = (uint32_t)conversion->header.pid,
                           .thread_index = old->thread_index,
                           .stream_index = old->stream_index,
                           .kind = old->kind,
                           .access_count = old->access_count,
                           .scope = old->scope,
                           .flags = old->flags,
                           .stack_index = old->stack_index,
                           .line = old->line <= UINT16_MAX ? (uint16_t)old->line : UINT16_MAX,
                           .check = old->check,
                           .operand = old->operand,
                           .expected = checked ? old->expected : 0,
                           .found = checked ? old->found : 0,
                           .end_ns = old->end_ns,
                           .code = old->code,
                           .domain = domain_of(conversion, old),
                           .phase = old->phase_and_domain & 15u,
                           .outcome = old->outcome };
    memcpy(ret->op, old->op, sizeof(ret->op));
    memcpy(ret->file, old->file, sizeof(ret->file));
    memcpy(ret->accesses, old->accesses, sizeof(ret->accesses));
    set_payload(old, ret);
}

/* ---- Records -------------------------------------------------------------------------------- */

static bool is_whole(const struct old_record *record)
{
    const struct old_event *event = &record->event;
    size_t end = offsetof(struct old_event, end_ns);
    return record->begin_checksum == flight_short_checksum(event, end) &&
           (!record->end_checksum ||
            record->end_checksum == flight_short_checksum(&event->end_ns, sizeof(*event) - end)) &&
           event->id == record->state;
}

static void convert_record(const struct conversion *conversion, uint8_t *place)
{
    struct old_record old;
    struct flight_record record = { 0 };
    memcpy(&old, place, sizeof(old));
    if (old.state != 0 && old.state != FLIGHT_BUSY && is_whole(&old)) {
        if (old.end_checksum == 0) { /* what a begun call was written with */
            old.event.check = old.event.begin_check;
            old.event.operand = old.event.begin_check ? old.event.begin_operand : EVENT_NO_OPERAND;
            old.event.expected = old.event.found = 0;
        }
        convert_event(conversion, &old.event, &record.event);
        record.begin_checksum = flight_begin_checksum(&record.event);
        record.end_checksum = old.end_checksum ? flight_end_checksum(&record.event) : 0;
    }
    record.event.id = old.state;
    memcpy(place, &record, sizeof(record));
}

static void convert_allocation(uint8_t *place)
{
    struct old_allocation old;
    struct flight_entry entry = { 0 };
    memcpy(&old, place, sizeof(old));
    memcpy(&entry.checksum, place + sizeof(old), sizeof(entry.checksum));
    if (entry.checksum == 0)
        return;
    bool whole = entry.checksum == flight_table_checksum(&old, sizeof(old));
    entry.allocation = (struct flight_allocation){ .address = old.address,
                                                   .bytes = old.bytes,
                                                   .created_id = old.created_id,
                                                   .destroyed_id = old.destroyed_id,
                                                   .buffer_index = old.buffer_index,
                                                   .generation = (uint16_t)old.generation };
    memcpy(entry.allocation.name, old.name, sizeof(entry.allocation.name));
    entry.checksum = flight_entry_checksum(&entry.allocation) ^ (whole ? 0 : 1);
    memcpy(place, &entry, sizeof(entry));
}

/* ---- The file ------------------------------------------------------------------------------- */

static const struct old_record *ring_record(const struct conversion *conversion, uint32_t index)
{
    return (const struct old_record *)(conversion->bytes + conversion->plan.ring_offset) + index;
}

/* The kind of device is in the event of its opening; a foreign program's file names the runtime. */
static void find_runtime(struct conversion *conversion)
{
    const char *device = conversion->header.device; /* of a foreign program: whose runtime it was */
    conversion->runtime = strncmp(device, "CUDA", sizeof("CUDA")) == 0 ? EVENT_ERROR_CUDA
                          : strncmp(device, "AMD", sizeof("AMD")) == 0 ? EVENT_ERROR_HIP
                                                                       : EVENT_ERROR_RUNTIME;
    for (uint32_t i = 0; i < conversion->header.record_count; i++) {
        const struct old_record *record = ring_record(conversion, i);
        if (record->event.kind != EVENT_DEVICE_OPEN || !is_whole(record))
            continue;
        if (domain_of_kind(&record->event))
            conversion->runtime = domain_of_kind(&record->event);
    }
}

static void convert_header(const struct conversion *conversion)
{
    const struct old_header *old = &conversion->header;
    const struct flight_plan *plan = &conversion->plan;
    struct flight_header header = { .version = FLIGHT_VERSION,
                                    .header_bytes = FLIGHT_HEADER_BYTES,
                                    .record_bytes = sizeof(struct flight_record),
                                    .event_bytes = sizeof(struct event),
                                    .allocation_bytes = sizeof(struct flight_entry),
                                    .checkpoint_bytes = sizeof(struct flight_checkpoint_slot),
                                    .record_count = old->record_count,
                                    .allocation_count = old->allocation_count,
                                    .graph_record_count = old->graph_record_count,
                                    .call_tables = old->call_tables,
                                    .device_count = 1,
                                    .crumb_offset = plan->crumb_offset,
                                    .checkpoint_offset = plan->checkpoint_offset,
                                    .allocation_offset = plan->allocation_offset,
                                    .graph_offset = plan->graph_offset,
                                    .ring_offset = plan->ring_offset,
                                    .file_bytes = plan->file_bytes,
                                    .pid = old->pid,
                                    .start_wall_ns = old->start_wall_ns,
                                    .start_clock_ns = old->start_clock_ns };
    memcpy(header.magic, FLIGHT_MAGIC, sizeof(header.magic));
    memcpy(header.device, old->device, sizeof(header.device));
    memcpy(header.command, old->command, sizeof(header.command));
    header.checksum = flight_header_checksum(&header);
    /* After it in its page only the counters have a meaning; they did not change. */
    memset(conversion->bytes, 0, FLIGHT_COUNTERS_OFFSET);
    memset(conversion->bytes + FLIGHT_DEVICES_OFFSET, 0,
           FLIGHT_HEADER_BYTES - FLIGHT_DEVICES_OFFSET);
    memcpy(conversion->bytes, &header, sizeof(header));
}

static void convert_all(const struct conversion *conversion)
{
    const struct flight_plan *plan = &conversion->plan;
    const struct old_header *header = &conversion->header;
    uint8_t *bytes = conversion->bytes;
    for (uint32_t i = 0; i < header->record_count; i++)
        convert_record(conversion, bytes + plan->ring_offset + i * sizeof(struct old_record));
    for (uint32_t i = 0; i < header->graph_record_count; i++)
        convert_record(conversion, bytes + plan->graph_offset + i * sizeof(struct old_record));
    for (uint32_t i = 0; i < header->allocation_count; i++)
        convert_allocation(bytes + plan->allocation_offset + i * sizeof(struct flight_entry));
    convert_header(conversion);
}

/* The header, held against what its version had; *ret_plan: where its areas are. */
static enum status check_header(const uint8_t *bytes, uint64_t size, const char *name,
                                struct conversion *conversion, struct error *err)
{
    struct old_header *header = &conversion->header;
    memcpy(header, bytes, sizeof(*header));
#define CHECK_FIELD(field, expected)                                                               \
    TRY(flight_check_number(name, #field, offsetof(struct old_header, field), (expected),          \
                            header->field, err))
    CHECK_FIELD(header_bytes, FLIGHT_HEADER_BYTES);
    CHECK_FIELD(record_bytes, sizeof(struct old_record));
    CHECK_FIELD(event_bytes, sizeof(struct old_event));
    CHECK_FIELD(allocation_bytes, sizeof(struct flight_entry));
    CHECK_FIELD(checkpoint_bytes, sizeof(struct flight_checkpoint_slot));
    if (header->record_count == 0)
        CHECK_FIELD(record_count, 1);
    if (header->call_tables > 1)
        CHECK_FIELD(call_tables, 1);
    conversion->plan = flight_plan_of(header->record_count, header->allocation_count,
                                      header->graph_record_count, header->call_tables == 1, 1);
    CHECK_FIELD(ring_offset, conversion->plan.ring_offset);
    CHECK_FIELD(file_bytes, conversion->plan.file_bytes);
    if (size < conversion->plan.file_bytes)
        return flight_check_number(name, "file_bytes", (size_t)size, conversion->plan.file_bytes,
                                   size, err);
    CHECK_FIELD(checksum, flight_table_checksum(header, offsetof(struct old_header, checksum)));
#undef CHECK_FIELD
    return STATUS_OK;
}

bool flight_is_old(const void *bytes, uint64_t size)
{
    const struct flight_header *header = bytes;
    return size >= FLIGHT_HEADER_BYTES &&
           memcmp(header->magic, FLIGHT_MAGIC, sizeof(header->magic)) == 0 &&
           header->version >= FLIGHT_VERSION_OLDEST && header->version < FLIGHT_VERSION;
}

enum status flight_convert_old(const void *bytes, uint64_t size, const char *name,
                               uint8_t **ret_bytes, uint64_t *ret_size, struct error *err)
{
    struct conversion conversion = { 0 };
    TRY(check_header(bytes, size, name, &conversion, err));
    conversion.bytes = malloc((size_t)conversion.plan.file_bytes);
    if (!conversion.bytes)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to convert version %u", name,
                         conversion.header.version);
    memcpy(conversion.bytes, bytes, (size_t)conversion.plan.file_bytes);
    find_runtime(&conversion);
    convert_all(&conversion);
    *ret_bytes = conversion.bytes;
    *ret_size = conversion.plan.file_bytes;
    return STATUS_OK;
}
