/* gguf_damaged.h - damaged GGUF files, hundreds of them, each with what the reader must say of it.
 *
 * The expectations are computed here from the description of the format, not asked of the reader.
 */
#ifndef GRETA_TESTS_GGUF_DAMAGED_H
#define GRETA_TESTS_GGUF_DAMAGED_H

#include "gguf_build.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct damaged {
    char name[112];    /* what was done: unique, and fit for a file name */
    const char *bytes; /* borrowed for the call */
    size_t size;
    char field[24];       /* the message must name it, */
    uint64_t at;          /* and this byte */
    bool at_or_after;     /* the damage is seen only by what follows: this byte or a later one */
    const char *words;    /* and these words, if not NULL */
    const char *harmless; /* why the file is still well-formed; NULL if it must be refused */
};

typedef void (*damaged_visit)(void *context, const struct damaged *damaged);

/* Calls visit with every damaged file; all of it in the same order each time. */
void gguf_damaged_all(damaged_visit visit, void *context);

/* The three sources of the above: files cut short, numbers set to extremes, and one by one. */
void gguf_damaged_cuts(damaged_visit visit, void *context);
void gguf_damaged_numbers(damaged_visit visit, void *context);
void gguf_damaged_rows(damaged_visit visit, void *context);

/* The name with everything but letters, digits and dots turned into dashes. */
void gguf_damaged_name(struct damaged *damaged, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
