/* fuzz_flight.c - any damage to a flight file: everything the reader offers is read, and printed in
 * every format.
 *
 * A flight file is large and full of checksums, so plain bytes would rarely pass the header. The
 * input is a list of changes to a small good file, five bytes each (offset, value); its first byte
 * says which checksums are made right again afterwards, in which format events are printed, and
 * whether the file is of a foreign program, with stacks, names and modules. Offsets pass over what
 * is empty of those tables. */
#include "base/bytes.h"
#include "flight_file.h"
#include "report/export.h"
#include "report/report.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RECORDS 8u
#define ALLOCATIONS 4u
#define GRAPH_RECORDS 2u
/* Entries in use of each table of calls. */
#define CALL_ENTRIES 3u

enum {
    FIX_HEADER = 1,
    FIX_RECORDS = 2,
    FIX_ENTRIES = 4, /* of all tables */
    FIX_CHECKPOINTS = 8,
    CUT = 16,
    FORMAT_SHIFT = 5,
    FORMAT_MASK = 3,
    FOREIGN = 128
};

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

/* The entries of each table of calls that are in use; elsewhere they are all zero. */
struct call_tables {
    struct flight_stack *stacks;
    struct flight_name *names;
    struct flight_module_entry *modules;
};

static struct call_tables tables_of(uint8_t *file, const struct flight_layout *layout)
{
    return (struct call_tables){
        .stacks = (struct flight_stack *)(file + layout->stack_offset),
        .names = (struct flight_name *)(file + layout->name_offset),
        .modules = (struct flight_module_entry *)(file + layout->module_offset),
    };
}

static void make_calls(uint8_t *file, const struct flight_layout *layout)
{
    struct flight_counters *counters = (struct flight_counters *)(file + FLIGHT_COUNTERS_OFFSET);
    struct call_tables tables = tables_of(file, layout);
    struct flight_record *ring = (struct flight_record *)(file + layout->ring_offset);
    counters->stack_used = counters->name_used = counters->module_used = CALL_ENTRIES;
    counters->observed_ns = 5000;
    counters->observed_count = RECORDS;
    for (uint32_t i = 0; i < CALL_ENTRIES; i++) {
        tables.stacks[i].count = i + 1;
        for (uint32_t j = 0; j <= i; j++)
            tables.stacks[i].frames[j] = 0x1000u * (j + 1) + 8;
        event_set_text(tables.names[i].text, FLIGHT_NAME_BYTES, "_Z3addPfPKfi");
        tables.modules[i].module = (struct flight_module){ .start = 0x1000u * (i + 1),
                                                           .end = 0x1000u * (i + 2),
                                                           .bias = 0x1000 };
        event_set_text(tables.modules[i].module.path, FLIGHT_PATH_BYTES, "/usr/bin/program");
    }
    for (uint32_t i = 0; i < RECORDS; i++) {
        ring[i].event.kind = EVENT_LAUNCH;
        ring[i].event.flags = EVENT_FOREIGN;
        ring[i].event.stack_index = i % (CALL_ENTRIES + 2);
        ring[i].event.launch.name_index = i % (CALL_ENTRIES + 1);
    }
}

static void make_good(uint8_t *file, const struct flight_layout *layout, bool foreign)
{
    flight_file_begin(file, layout, RECORDS, ALLOCATIONS, GRAPH_RECORDS, foreign);
    struct flight_record *ring = (struct flight_record *)(file + layout->ring_offset);
    for (uint64_t id = 3; id < 3 + RECORDS; id++) {
        struct flight_record *record = &ring[id % RECORDS];
        record->event = (struct event){ .id = id, .phase = EVENT_END, .outcome = EVENT_DONE };
        record->end_checksum = 1;
    }
    struct flight_entry *entries = (struct flight_entry *)(file + layout->allocation_offset);
    entries[0].allocation = (struct flight_allocation){ .address = 4096, .bytes = 64 };
    entries[0].checksum = 1;
    struct flight_checkpoint_slot *slots =
        (struct flight_checkpoint_slot *)(file + layout->checkpoint_offset);
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

static void fix_calls(uint8_t *file, const struct flight_layout *layout)
{
    struct call_tables tables = tables_of(file, layout);
    for (size_t i = 0; i < CALL_ENTRIES; i++) {
        tables.stacks[i].checksum = flight_table_checksum(&tables.stacks[i],
                                                          offsetof(struct flight_stack, checksum));
        tables.names[i].checksum = flight_table_checksum(&tables.names[i],
                                                         offsetof(struct flight_name, checksum));
        tables.modules[i].checksum = flight_table_checksum(
            &tables.modules[i], offsetof(struct flight_module_entry, checksum));
    }
}

static void fix(uint8_t *file, const struct flight_layout *layout, uint8_t what)
{
    struct flight_header *header = (struct flight_header *)file;
    struct flight_entry *entries = (struct flight_entry *)(file + layout->allocation_offset);
    struct flight_checkpoint_slot *slots =
        (struct flight_checkpoint_slot *)(file + layout->checkpoint_offset);
    if (what & FIX_HEADER)
        header->checksum = flight_header_checksum(header);
    if (what & FIX_RECORDS) {
        fix_records((struct flight_record *)(file + layout->ring_offset), RECORDS);
        fix_records((struct flight_record *)(file + layout->graph_offset), GRAPH_RECORDS);
    }
    for (size_t i = 0; what & FIX_ENTRIES && i < ALLOCATIONS; i++)
        entries[i].checksum = flight_entry_checksum(&entries[i].allocation);
    if (what & FIX_ENTRIES && what & FOREIGN)
        fix_calls(file, layout);
    for (size_t i = 0; what & FIX_CHECKPOINTS && i < 2; i++)
        slots[i].checksum = flight_checkpoint_checksum(&slots[i]);
}

static void read_calls(const struct flight_reader *reader)
{
    static const uint32_t far[] = { FLIGHT_STACK_COUNT, FLIGHT_STACK_COUNT + 1, UINT32_MAX };
    uint64_t frames[FLIGHT_STACK_FRAMES];
    char name[FLIGHT_NAME_BYTES];
    struct flight_module module;
    size_t count;
    for (uint32_t i = 0; i < CALL_ENTRIES + 2 + sizeof(far) / sizeof(far[0]); i++) {
        uint32_t number = i < CALL_ENTRIES + 2 ? i : far[i - CALL_ENTRIES - 2];
        if (flight_stack(reader, number, frames, &count))
            require(count <= FLIGHT_STACK_FRAMES, "a stack fits");
        if (flight_name(reader, number, name))
            require(memchr(name, 0, sizeof(name)) != NULL, "kernels' names end");
    }
    for (count = 0; flight_module_at(reader, count, &module); count++)
        require(memchr(module.path, 0, sizeof(module.path)) != NULL, "paths end");
    require(count <= FLIGHT_MODULE_COUNT, "modules end");
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
    read_calls(reader);
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

/* Where a change goes: an offset in the file without the entries of tables that are not in use. */
static uint64_t place_of(const struct flight_layout *layout, uint64_t offset)
{
    const struct {
        uint64_t start, end;
    } parts[] = {
        { 0, layout->stack_offset },
        { layout->stack_offset, layout->stack_offset + CALL_ENTRIES * sizeof(struct flight_stack) },
        { layout->name_offset, layout->name_offset + CALL_ENTRIES * sizeof(struct flight_name) },
        { layout->module_offset,
          layout->module_offset + CALL_ENTRIES * sizeof(struct flight_module_entry) },
        { layout->ring_offset, layout->file_bytes },
    };
    uint64_t whole = 0;
    size_t count = sizeof(parts) / sizeof(parts[0]);
    for (size_t i = 0; i < count; i++)
        whole += parts[i].end - parts[i].start;
    offset %= whole;
    for (size_t i = 0; i < count; i++) {
        if (offset < parts[i].end - parts[i].start)
            return parts[i].start + offset;
        offset -= parts[i].end - parts[i].start;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    bool foreign = (data[0] & FOREIGN) != 0;
    struct flight_layout layout = flight_layout_of(RECORDS, ALLOCATIONS, GRAPH_RECORDS, foreign, 1,
                                                   0);
    uint8_t *file = calloc(1, (size_t)layout.file_bytes);
    if (!file)
        return 0;
    make_good(file, &layout, foreign);
    if (foreign)
        make_calls(file, &layout);
    fix(file, &layout, foreign ? 0xFF : 0xFF & ~FOREIGN);
    uint64_t length = layout.file_bytes;
    for (size_t at = 1; at + 5 <= size; at += 5) {
        uint64_t offset = bytes_load_u32(data + at);
        file[foreign ? place_of(&layout, offset) : offset % layout.file_bytes] = data[at + 4];
    }
    fix(file, &layout, data[0]);
    if (data[0] & CUT && size >= 6)
        length = bytes_load_u32(data + 1) % (layout.file_bytes + 1);
    struct flight_reader *reader;
    struct error err;
    if (flight_open_memory(file, length, "fuzz", &reader, &err))
        require(err.text[0] != '\0', "an error has words");
    else {
        read_all(reader);
        print_all(reader, (unsigned)data[0] >> FORMAT_SHIFT & FORMAT_MASK);
        flight_reader_close(reader);
    }
    free(file);
    return 0;
}
