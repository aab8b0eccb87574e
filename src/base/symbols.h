/* symbols.h - the functions of programs and libraries, from the symbol tables of their files.
 *
 * For addresses seen in another process, which may be gone: nothing is loaded or run, the file is
 * read as foreign bytes. 64-bit little-endian ELF; of anything else, and of a file without tables
 * or that cannot be read, no function is found. One thread at a time. */
#ifndef GRETA_BASE_SYMBOLS_H
#define GRETA_BASE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Files are read at their first use and kept. NULL without memory. */
struct symbols *symbols_create(void);
void symbols_destroy(struct symbols *symbols); /* NULL is fine */

/* The function of the file at `path` that holds `address`: counted as the file counts, which is the
 * address in a process less what its loader added (dlpi_addr). Copies its name, mangled as it
 * stands there, cut to name_bytes. False: none is known, name is empty. */
bool symbols_find(struct symbols *symbols, const char *path, uint64_t address, char *name,
                  size_t name_bytes, uint64_t *ret_offset);

/* A C++ name as it was written, without its parameters if `short_form`; where it is none, or the
 * machine has no C++ library, a copy of `mangled`. Cut to text_bytes. */
void symbols_demangle(const char *mangled, bool short_form, char *text, size_t text_bytes);

#endif
