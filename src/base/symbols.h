/* symbols.h - the functions of programs and libraries, from the symbol tables of their files.
 *
 * The addresses come from another process, which may be gone: nothing is loaded or run, and the
 * file is read as foreign bytes. Reads 64-bit little-endian ELF. In any other file, or one that has
 * no tables or cannot be read, no function is found. One thread at a time. */
#ifndef GRETA_BASE_SYMBOLS_H
#define GRETA_BASE_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symbols;

/* Files are read at their first use and kept. Returns NULL without memory. */
struct symbols *symbols_create(void);
void symbols_destroy(struct symbols *symbols); /* NULL is fine */

/* Finds the function that holds `address` of the file at `path`. The address is counted as the file
 * counts: the address in the process less what its loader added (dlpi_addr). Copies the mangled
 * name, cut to name_bytes. False: none is known; name is empty. */
bool symbols_find(struct symbols *symbols, const char *path, uint64_t address, char *name,
                  size_t name_bytes, uint64_t *ret_offset);

/* Writes the demangled C++ name, without its parameters if `short_form`. Copies `mangled` if it is
 * no C++ name or the machine has no C++ library. Cut to text_bytes. */
void symbols_demangle(const char *mangled, bool short_form, char *text, size_t text_bytes);

#endif
