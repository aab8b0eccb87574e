/* program_debug.h - where the line table of a program or library is: in the file itself, or in
 * another that its build id or its debug link names; for program_lines.c. */
#ifndef GRETA_COREDUMP_PROGRAM_DEBUG_H
#define GRETA_COREDUMP_PROGRAM_DEBUG_H

#include "base/mapfile.h"
#include "coredump/line_header.h"

struct program_debug {
    struct mapfile map;          /* of the file that has the table */
    struct line_sources sources; /* in it; empty: there is none */
};

/* Never fails: a file that cannot be read has no table. */
void program_debug_open(struct program_debug *debug, const char *path);
void program_debug_close(struct program_debug *debug);

/* The checksum of debug links: CRC-32 as zlib has it. */
uint32_t program_debug_checksum(const uint8_t *bytes, uint64_t count);

#endif
