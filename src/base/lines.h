/* lines.h - lines of source code, from the debug information of programs and libraries.
 *
 * For addresses seen in another process, as base/symbols.h: nothing is loaded or run. The debug
 * information is read by libdw (elfutils), which is opened at run time: without it, and of files
 * without debug information, no line is found. It is looked for in the file itself and, by its
 * build id, in /usr/lib/debug; never in the network. One thread at a time. */
#ifndef GRETA_BASE_LINES_H
#define GRETA_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines;

/* Files are opened at their first use and kept. NULL without memory. */
struct lines *lines_create(void);
void lines_destroy(struct lines *lines); /* NULL is fine */

/* The source line that the code at `address` of the file at `path` was made from; addresses are
 * counted as the file counts, as in symbols_find. Copies the source file's path as the compiler was
 * given it; one that is too long loses its beginning. False: none is known, source is empty. */
bool lines_find(struct lines *lines, const char *path, uint64_t address, char *source,
                size_t source_bytes, uint32_t *ret_line);

#endif
