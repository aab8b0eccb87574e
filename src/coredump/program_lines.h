/* program_lines.h - source lines of code addresses of programs and libraries, from their line
 * tables (.debug_line, DWARF 2 to 5).
 *
 * Nothing but the files is needed. A file that has no table is looked up by its build id below
 * /usr/lib/debug and by its debug link; compressed tables are not read. Files are foreign bytes: a
 * damaged one has no lines. The addresses are counted as the file counts. One thread at a time. */
#ifndef GRETA_COREDUMP_PROGRAM_LINES_H
#define GRETA_COREDUMP_PROGRAM_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct program_lines;

/* Files are opened at their first use and kept open. Returns NULL without memory. */
struct program_lines *program_lines_create(void);
void program_lines_destroy(struct program_lines *lines); /* NULL is fine */

/* Finds the source line of the code at `address` of the file at `path`. Copies the source path as
 * the compiler was given it, without its beginning if it is too long. False: no line is known;
 * source is empty. */
bool program_lines_find(struct program_lines *lines, const char *path, uint64_t address,
                        char *source, size_t source_bytes, uint32_t *ret_line);

#endif
