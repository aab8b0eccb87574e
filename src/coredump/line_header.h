/* line_header.h - the head of one unit of a line table (.debug_line, DWARF 2 to 5): how its program
 * is written, and the names of its source files. */
#ifndef GRETA_COREDUMP_LINE_HEADER_H
#define GRETA_COREDUMP_LINE_HEADER_H

#include "coredump/cursor.h"

/* Where names lie that are not in the unit itself; each may be empty. */
struct line_sources {
    struct text_view lines;      /* .debug_line */
    struct text_view strings;    /* .debug_str */
    struct text_view line_names; /* .debug_line_str */
};

struct line_header {
    uint16_t version;
    uint8_t offset_bytes; /* of offsets: 4 or 8 */
    uint8_t instruction_bytes, line_range, opcode_base;
    int8_t line_base;
    uint8_t operands[255]; /* of each standard opcode, from opcode 1 */
    uint64_t files;        /* offset of the tables of directories and files */
    uint64_t strings_base; /* of the names of inlined functions, in .debug_str */
    uint64_t program, end; /* offsets in .debug_line */
};

enum line_unit {
    LINE_UNIT_READ,
    LINE_UNIT_UNKNOWN, /* a version that is not known: header->end is after it */
    LINE_UNIT_DAMAGED  /* where it ends is not known either */
};
/* Reads the unit at `offset`, which is inside the section. */
enum line_unit line_header_read(const struct line_sources *sources, uint64_t offset,
                                struct line_header *ret_header);

struct line_file {
    struct text_view directory, name;
};
/* File number `file`, counted as the version counts. False: there is no such file. Looks at no more
 * than the bytes of the header. */
bool line_header_file(const struct line_sources *sources, const struct line_header *header,
                      uint64_t file, struct line_file *ret_file);

#endif
