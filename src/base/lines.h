/* lines.h - source lines of code addresses, from the debug information of programs and libraries.
 *
 * The addresses come from another process, as in base/symbols.h: nothing is loaded or run. The
 * debug information is read by libdw (elfutils), which is opened at run time; without libdw or
 * without debug information no line is found. It is looked for in the file itself and, by its build
 * id, in /usr/lib/debug, never in the network. One thread at a time. */
#ifndef GRETA_BASE_LINES_H
#define GRETA_BASE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct lines;

/* Files are opened at their first use and kept open. Returns NULL without memory. */
struct lines *lines_create(void);
void lines_destroy(struct lines *lines); /* NULL is fine */

/* Finds the source line of the code at `address` of the file at `path`; addresses are counted as
 * the file counts, as in symbols_find. Copies the source path as the compiler was given it, without
 * its beginning if it is too long. False: no line is known; source is empty. */
bool lines_find(struct lines *lines, const char *path, uint64_t address, char *source,
                size_t source_bytes, uint32_t *ret_line);

#endif
