/* coredump_opened.h - a dump in memory that a test reads. */
#ifndef GRETA_TESTS_COREDUMP_OPENED_H
#define GRETA_TESTS_COREDUMP_OPENED_H

#include "dump_build.h"
#include "test.h"

#include "coredump/coredump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where tests put the kernels of faults.cubin. */
#define OPENED_CODE 0x7F0000000000u
#define OPENED_SCALE OPENED_CODE             /* _Z5scalecs4pairPKf */
#define OPENED_NEST (OPENED_CODE + 0x10000u) /* _Z4nestPfPKfi */

struct opened {
    struct text file;
    struct coredump *dump;
};

/* Takes file. The copy has exactly its size, so that sanitizers see a byte read past its end. */
static inline void opened_init(struct opened *opened, struct text *file)
{
    struct error err;
    opened->file = *file;
    opened->file.bytes = malloc(file->length ? file->length : 1);
    assert_non_null(opened->file.bytes);
    memcpy(opened->file.bytes, file->bytes, file->length);
    text_release(file);
    CHECK_OK(
        coredump_open_memory(opened->file.bytes, opened->file.length, "dump", &opened->dump, &err),
        &err);
}

static inline void opened_release(struct opened *opened)
{
    coredump_close(opened->dump);
    free(opened->file.bytes);
}

static inline void opened_specimen(struct opened *opened, const struct dump_specimen *specimen)
{
    struct text file;
    dump_specimen(specimen, &file);
    opened_init(opened, &file);
}

/* tests/data/coredump/faults.cubin; the caller releases it. */
static inline void opened_cubin(struct text *ret_cubin)
{
    const char *source = getenv("GRETA_SOURCE");
    char path[512], buffer[4096];
    size_t count;
    snprintf(path, sizeof(path), "%s/tests/data/coredump/faults.cubin", source ? source : ".");
    FILE *file = fopen(path, "rb");
    if (!file)
        fail_msg("%s: cannot open it", path);
    text_init(ret_cubin);
    while ((count = fread(buffer, 1, sizeof(buffer), file)) > 0)
        text_add_bytes(ret_cubin, buffer, count);
    fclose(file);
    assert_true(ret_cubin->length > 0);
}

static inline void check_view(struct text_view view, const char *wanted)
{
    if (!text_view_is(view, wanted))
        fail_msg("expected '%s', found '%.*s'", wanted, (int)view.length, view.bytes);
}

#endif
