/* dynlib.h - a shared library opened at run time, and a table of its functions. */
#ifndef GRETA_BASE_DYNLIB_H
#define GRETA_BASE_DYNLIB_H

#include "base/status.h"

#include <stdbool.h>

struct dynlib;

/* Tries the names in order; the last entry is NULL. STATUS_NOT_FOUND names the first. */
MUST_CHECK enum status dynlib_open(const char *const *names, struct dynlib **ret_library,
                                   struct error *err);
void dynlib_close(struct dynlib *library); /* NULL is fine */

/* One function to find: where its address goes, and whether the table is useless without it. */
struct dynlib_symbol {
    const char *name;
    size_t offset; /* where the table has the function pointer */
    bool optional; /* may be absent; the pointer is NULL then */
};

/* STATUS_UNSUPPORTED with the name of the first function that is missing. */
MUST_CHECK enum status dynlib_resolve(struct dynlib *library, const struct dynlib_symbol *symbols,
                                      size_t count, void *table, struct error *err);

/* Opens a library and fills a table of its functions. */
MUST_CHECK enum status dynlib_load(const char *const *names, const struct dynlib_symbol *symbols,
                                   size_t count, void *table, struct dynlib **ret_library,
                                   struct error *err);

#endif
