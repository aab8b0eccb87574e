/* table.h - the tables of a GPU core dump: rows of numbers, whose newer fields are at their ends.
 *
 * A table belongs to one row of its parent: sh_link is the parent's section, sh_info the row. The
 * kinds form a tree of fixed depth, and a parent has to be of the right kind, so that no chain of
 * links can be long or closed. */
#ifndef GRETA_COREDUMP_TABLE_H
#define GRETA_COREDUMP_TABLE_H

#include "coredump/elf.h"

#include <stdbool.h>

/* Section types that are read; the rest (memory, registers, constant banks) is left alone. */
enum table_kind {
    TABLE_DEVICES,
    TABLE_CONTEXTS,
    TABLE_MODULES,
    TABLE_IMAGES, /* relocated cubins: no rows */
    TABLE_GRIDS,
    TABLE_PARAMETERS, /* argument bytes: no rows */
    TABLE_SMS,
    TABLE_BLOCKS,
    TABLE_WARPS,
    TABLE_LANES,
    TABLE_METADATA,
    TABLE_COUNT
};

/* Which kind a section's type is; TABLE_COUNT: none that is read. */
enum table_kind table_kind_of(uint32_t section_type);
const char *table_name(enum table_kind kind); /* "table of devices" */

/* Bytes that may still be looked at. Sections of a good file do not overlap, so that a few passes
 * over it are enough; in a hostile one the same bytes can be in millions of sections. */
struct work {
    uint64_t left_bytes, whole_bytes;
    const char *source;
};
#define WORK_PASSES 4u
struct work work_of(uint64_t file_bytes, const char *source);
/* STATUS_LIMIT if they are used up. */
MUST_CHECK enum status work_spend(struct work *work, uint64_t bytes, struct error *err);

struct table {
    enum table_kind kind;
    struct elf_section section;
    const uint8_t *rows;
    uint64_t row_bytes, row_count; /* of PARAMETERS and IMAGES: 1, the number of bytes */
    uint32_t parent, parent_row;   /* checked; 0 where the kind has no parent */
};

/* STATUS_UNSUPPORTED if the rows are shorter than any that is known; STATUS_BAD_FILE if the parent
 * is of another kind or does not have that row. */
MUST_CHECK enum status table_open(const struct elf *elf, uint32_t section, enum table_kind kind,
                                  struct table *ret_table, struct error *err);
/* The parent of a table that has one. */
MUST_CHECK enum status table_open_parent(const struct elf *elf, const struct table *table,
                                         struct table *ret_parent, struct error *err);

/* A row, index < row_count. Fields past its end, which only newer drivers write, read as 0. */
struct row {
    const uint8_t *bytes;
    uint64_t count;
};
struct row table_row(const struct table *table, uint64_t index);
bool row_has(struct row row, uint64_t offset, uint64_t bytes);
uint32_t row_u32(struct row row, uint64_t offset);
uint64_t row_u64(struct row row, uint64_t offset);

#endif
