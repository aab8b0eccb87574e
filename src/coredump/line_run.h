/* line_run.h - the state in which the programs of a line table run: for line_targets.c and
 * line_run.c. */
#ifndef GRETA_COREDUMP_LINE_RUN_H
#define GRETA_COREDUMP_LINE_RUN_H

#include "coredump/line_header.h"
#include "coredump/line_targets.h"

/* Addresses of a sequence are the device's, or offsets in one section, or neither is known. */
enum space { SPACE_UNKNOWN, SPACE_DEVICE, SPACE_SECTION };

struct row_state {
    uint64_t address;
    uint64_t file, line;
    uint64_t context;  /* row of the call that this row is inlined into, from 1; 0: not inlined */
    uint64_t function; /* offset of its name, if context is not 0 */
};

struct relocation {
    uint64_t at; /* offset in .debug_line */
    uint32_t symbol;
    bool has_addend;
    uint64_t addend;
};

struct run {
    const struct image *image;
    struct work *work;
    const struct line_target *targets;
    size_t target_count;
    struct line_sources sources;
    struct line_header header;
    struct relocation *relocations;
    size_t relocation_count;
    struct row_state state;
    enum space space;
    uint32_t section;         /* of SPACE_SECTION */
    uint64_t lowest, highest; /* of the places, in this space; lowest > highest: none is in it */
    struct row_state *rows;
    size_t row_count, row_capacity;
    uint64_t rows_seen; /* of this sequence, kept or not */
    bool has_last;      /* a row whose end is the next row's address */
    struct row_state last;
    bool work_used_up, no_memory, damaged;
};

/* Runs the programs of all units; places that are found get their frames. */
void line_run_units(struct run *run);

#endif
