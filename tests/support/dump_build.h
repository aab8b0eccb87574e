/* dump_build.h - GPU core dumps by hand, for tests: tables of rows under their parents, and a small
 * dump of a fault with all there is in one. */
#ifndef GRETA_TESTS_DUMP_BUILD_H
#define GRETA_TESTS_DUMP_BUILD_H

#include "elf_build.h"

/* Types of sections, from 0x80000000. */
enum dump_type {
    DUMP_GLOBAL_MEMORY = 2,
    DUMP_REGISTERS = 5,
    DUMP_IMAGE = 7,
    DUMP_DEVICES = 9,
    DUMP_CONTEXTS = 10,
    DUMP_SMS = 11,
    DUMP_GRIDS = 12,
    DUMP_BLOCKS = 13,
    DUMP_WARPS = 14,
    DUMP_LANES = 15,
    DUMP_MODULES = 16,
    DUMP_PARAMETERS = 18,
    DUMP_METADATA = 22
};

/* Full sizes of rows. */
enum {
    DUMP_DEVICE_BYTES = 88,
    DUMP_CONTEXT_BYTES = 40,
    DUMP_MODULE_BYTES = 8,
    DUMP_GRID_BYTES = 136,
    DUMP_SM_BYTES = 40,
    DUMP_BLOCK_BYTES = 48,
    DUMP_WARP_BYTES = 64,
    DUMP_LANE_BYTES = 56,
    DUMP_METADATA_BYTES = 32
};

struct dump_build {
    struct elf_build elf;
    struct text strings; /* names of devices */
};

void dump_build_init(struct dump_build *build);
void dump_build_release(struct dump_build *build);
/* Adds a name; returns its offset. */
uint32_t dump_build_name(struct dump_build *build, const char *name);
/* Adds a section with rows of row_bytes under row `row` of section `parent`, releases rows, and
 * returns its index. */
uint32_t dump_build_table(struct dump_build *build, enum dump_type type, const char *name,
                          uint32_t parent, uint32_t row, size_t row_bytes, struct text *rows);
/* Adds the table of names and writes the file, which the caller releases. */
void dump_build_finish(struct dump_build *build, struct text *ret_file);

/* Fields at their offsets of a row that is zero elsewhere; a field of 0 bytes ends the list. */
struct dump_field {
    size_t at, bytes;
    uint64_t value;
};
void dump_build_row(struct text *rows, size_t row_bytes, const struct dump_field *fields);

/* ---- A whole dump --------------------------------------------------------------------------- */

/* One device, one context, one module, two grids. Grid 55 has a block whose warp 3 failed at `pc`:
 * lanes 4 and 5 have the exception. Grid 56 is alive. */
struct dump_specimen {
    const void *image; /* NULL: none */
    size_t image_bytes;
    uint64_t entry; /* of grid 55's kernel */
    uint64_t pc;
    uint32_t exception;    /* of the lanes; 0: none */
    uint32_t sm_exception; /* of the SM */
    bool error_pc;         /* the warp's row has the pc, else only the lanes' rows have */
    bool no_metadata;
    bool many_sections;    /* their number stands in section 0 */
    size_t argument_bytes; /* of grid 55: 1, 2, 3, ... */
    uint32_t failed_warps; /* 0 means 1; all in one block */
};
enum { DUMP_SPECIMEN_GRID = 55, DUMP_SPECIMEN_OTHER = 56 };
#define DUMP_SPECIMEN_HANDLE 0x5599AA00u
void dump_specimen(const struct dump_specimen *specimen, struct text *ret_file);

/* Gives every section with code of a cubin an address, 0x10000 apart, as a driver that loads it
 * does: in the headers of the sections, in the symbols, or everywhere, line table included. What
 * has no address stays an offset in its section. */
enum dump_relocation { DUMP_RELOCATE_SECTIONS, DUMP_RELOCATE_SYMBOLS, DUMP_RELOCATE_ALL };
void dump_relocate(struct text *cubin, uint64_t address, enum dump_relocation what);

#endif
