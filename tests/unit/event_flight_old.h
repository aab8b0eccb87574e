/* event_flight_old.h - flight files of versions 2 and 3, written here byte by byte as those
 * versions had them. */
#ifndef GRETA_TESTS_EVENT_FLIGHT_OLD_H
#define GRETA_TESTS_EVENT_FLIGHT_OLD_H

#include "test.h"

#include "event/flight_layout.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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

static inline void put(uint8_t *bytes, size_t offset, size_t count, uint64_t value)
{
    for (size_t i = 0; i < count; i++)
        bytes[offset + i] = (uint8_t)(value >> (8 * i));
}

static inline void put_text(uint8_t *bytes, size_t offset, const char *text)
{
    memcpy(bytes + offset, text, strlen(text));
}

static inline uint32_t sum32(const uint8_t *bytes, size_t count)
{
    uint32_t sum = (uint32_t)XXH3_64bits(bytes, count);
    return sum ? sum : 1;
}

static inline void put_record(uint8_t *record, uint64_t id, const struct old *old, uint32_t version)
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

static inline void put_header(uint8_t *file, uint32_t version, const char *device)
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

static inline void put_entry(uint8_t *file, uint32_t index)
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

static inline uint8_t *old_file(uint32_t version, const char *device, const struct old *events,
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

static inline struct flight_reader *old_open(const uint8_t *file)
{
    struct flight_reader *reader;
    struct error err;
    CHECK_OK(flight_open_memory(file, OLD_FILE_BYTES, "old", &reader, &err), &err);
    return reader;
}

static inline struct event old_event_at(const struct flight_reader *reader, uint64_t id)
{
    struct event event;
    uint64_t at = id;
    assert_true(flight_next(reader, &at, &event));
    assert_int_equal(event.id, id);
    return event;
}

#endif
