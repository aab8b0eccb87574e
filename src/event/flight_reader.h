/* flight_reader.h - an open flight file, shared by the files that read it. */
#ifndef GRETA_EVENT_FLIGHT_READER_H
#define GRETA_EVENT_FLIGHT_READER_H

#include "event/flight_layout.h"

struct flight_reader {
    struct mapfile map; /* of a file that is not compressed */
    uint8_t *owned;     /* what a compressed or converted one holds; NULL */
    const uint8_t *data;
    uint64_t size;
    uint32_t version;            /* of the file, before it was converted */
    struct flight_header header; /* a copy that passed the checks */
    struct flight_layout layout;
    struct flight_info info;
    struct flight_allocation *allocations; /* owned */
    size_t allocation_count, graph_launch_count;
};

/* Ends a fixed field of the file, which may hold anything. */
static inline void flight_end_text(char *field, size_t bytes)
{
    field[bytes - 1] = '\0';
}

/* flight_tables.c. Fills in the reader's allocations; damaged ones are counted. */
MUST_CHECK enum status flight_read_allocations(struct flight_reader *reader, const char *name,
                                               struct error *err);
/* NULL if there is no whole one. */
const struct flight_checkpoint_slot *flight_newest_checkpoint(const struct flight_reader *reader);

#endif
