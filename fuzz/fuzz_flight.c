/* fuzz_flight.c - any damage to a flight file: everything the reader offers is read, and printed in
 * every format.
 *
 * A flight file is large and full of checksums, so plain bytes would rarely pass the header. The
 * input is a list of changes to a small good file, five bytes each (offset, value); its first byte
 * says which checksums are made right again afterwards, and in which format events are printed. */
#include "base/bytes.h"
#include "event/flight_layout.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 8u
#define ALLOCATIONS 4u
#define GRAPH_RECORDS 2u

enum {
    FIX_HEADER = 1,
    FIX_RECORDS = 2,
    FIX_ENTRIES = 4,
    FIX_CHECKPOINTS = 8,
    CUT = 16,
    FORMAT_SHIFT = 5
};

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

static void make_good(uint8_t *file, const struct flight_plan *plan)
{
    struct flight_header *header = (struct flight_header *)file;
    *header = (struct flight_header){ .version = FLIGHT_VERSION,
                                      .header_bytes = FLIGHT_HEADER_BYTES,
                                      .record_bytes = sizeof(struct flight_record),
                                      .event_bytes = sizeof(struct event),
                                      .allocation_bytes = sizeof(struct flight_entry),
                                      .checkpoint_bytes = sizeof(struct flight_checkpoint_slot),
                                      .record_count = RECORDS,
                                      .allocation_count = ALLOCATIONS,
                                      .graph_record_count = GRAPH_RECORDS,
                                      .ring_offset = plan->ring_offset,
                                      .file_bytes = plan->file_bytes };
    memcpy(header->magic, FLIGHT_MAGIC, sizeof(header->magic));
    struct flight_record *ring = (struct flight_record *)(file + plan->ring_offset);
    for (uint64_t id = 3; id < 3 + RECORDS; id++) {
        struct flight_record *record = &ring[id % RECORDS];
        record->state = id;
        record->event = (struct event){ .id = id, .phase = EVENT_END, .outcome = EVENT_DONE };
        record->end_checksum = 1;
    }
    struct flight_entry *entries = (struct flight_entry *)(file + plan->allocation_offset);
    entries[0].allocation = (struct flight_allocation){ .address = 4096, .bytes = 64 };
    entries[0].checksum = 1;
    struct flight_checkpoint_slot *slots =
        (struct flight_checkpoint_slot *)(file + plan->checkpoint_offset);
    slots[0].sequence = 2;
    slots[0].count = 16;
    slots[0].checksum = 1;
}

static void fix_records(struct flight_record *records, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        records[i].begin_checksum = flight_begin_checksum(&records[i].event);
        if (records[i].end_checksum)
            records[i].end_checksum = flight_end_checksum(&records[i].event);
    }
}

static void fix(uint8_t *file, const struct flight_plan *plan, uint8_t what)
{
    struct flight_header *header = (struct flight_header *)file;
    struct flight_entry *entries = (struct flight_entry *)(file + plan->allocation_offset);
    struct flight_checkpoint_slot *slots =
        (struct flight_checkpoint_slot *)(file + plan->checkpoint_offset);
    if (what & FIX_HEADER)
        header->checksum = flight_header_checksum(header);
    if (what & FIX_RECORDS) {
        fix_records((struct flight_record *)(file + plan->ring_offset), RECORDS);
        fix_records((struct flight_record *)(file + plan->graph_offset), GRAPH_RECORDS);
    }
    for (size_t i = 0; what & FIX_ENTRIES && i < ALLOCATIONS; i++)
        entries[i].checksum = flight_entry_checksum(&entries[i].allocation);
    for (size_t i = 0; what & FIX_CHECKPOINTS && i < 2; i++)
        slots[i].checksum = flight_checkpoint_checksum(&slots[i]);
}

static void read_all(const struct flight_reader *reader)
{
    struct event event;
    uint64_t next = 0, before = 0;
    while (flight_next(reader, &next, &event)) {
        require(event.id > before, "ids grow");
        require(event.kind < EVENT_KIND_COUNT && event.access_count <= EVENT_ACCESS_LIMIT,
                "an event is in range");
        require(memchr(event.op, 0, sizeof(event.op)) != NULL, "texts end");
        before = event.id;
    }
    for (size_t i = 0; i < GRAPH_RECORDS + 2; i++)
        flight_graph_launch(reader, i, &event);
    for (size_t i = 0; i < flight_allocation_count(reader); i++)
        require(memchr(flight_allocation_at(reader, i)->name, 0, EVENT_TENSOR_BYTES) != NULL,
                "names end");
    const void *bytes;
    size_t count;
    if (flight_last_checkpoint(reader, &bytes, &count))
        require(count <= FLIGHT_CHECKPOINT_BYTES, "a checkpoint fits");
}

static enum status take_printed(void *context, const char *bytes, size_t count, struct error *err)
{
    (void)context;
    (void)err;
    for (size_t i = 0; i < count; i++)
        require((unsigned char)bytes[i] >= 0x20 || bytes[i] == '\n',
                "what is printed is printable");
    return STATUS_OK;
}

/* One format at a time: printing costs more than reading. */
static void print_all(const struct flight_reader *reader, unsigned format)
{
    static const struct report_filter everything = { .stream = -1, .layer = -1, .step = -1 };
    const struct report_sink sink = { take_printed, NULL };
    struct error err;
    if (format <= REPORT_EVENT_CHROME)
        require(report_events(reader, &everything, (enum report_event_format)format, &sink, &err) ==
                    STATUS_OK,
                "what was read can be printed");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct flight_plan plan = flight_plan_of(RECORDS, ALLOCATIONS, GRAPH_RECORDS, false);
    uint8_t *file = calloc(1, (size_t)plan.file_bytes);
    if (!file)
        return 0;
    make_good(file, &plan);
    fix(file, &plan, 0xFF);
    uint64_t length = plan.file_bytes;
    for (size_t at = 1; at + 5 <= size; at += 5)
        file[bytes_load_u32(data + at) % plan.file_bytes] = data[at + 4];
    fix(file, &plan, data[0]);
    if (data[0] & CUT && size >= 6)
        length = bytes_load_u32(data + 1) % (plan.file_bytes + 1);
    struct flight_reader *reader;
    struct error err;
    if (flight_open_memory(file, length, "fuzz", &reader, &err))
        require(err.text[0] != '\0', "an error has words");
    else {
        read_all(reader);
        print_all(reader, data[0] >> FORMAT_SHIFT);
        flight_reader_close(reader);
    }
    free(file);
    return 0;
}
