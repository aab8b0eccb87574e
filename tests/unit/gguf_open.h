/* gguf_open.h - opening what a test has built.
 *
 * The reader gets a copy that ends where the file ends: with AddressSanitizer a byte read too far
 * is seen. */
#ifndef GRETA_TESTS_GGUF_OPEN_H
#define GRETA_TESTS_GGUF_OPEN_H

#include "gguf/gguf.h"
#include "gguf_build.h"

#include <stdlib.h>
#include <string.h>

struct opened {
    uint8_t *bytes; /* owned */
    struct gguf_file *file;
    struct error err;
    enum status status;
};

static inline struct opened open_bytes(const void *bytes, size_t size)
{
    struct opened opened = { .bytes = malloc(size ? size : 1) };
    ASSERT(opened.bytes != NULL);
    if (size)
        memcpy(opened.bytes, bytes, size);
    opened.status = gguf_open_memory(opened.bytes, size, "built.gguf", &opened.file, &opened.err);
    return opened;
}

/* Finishes and releases what was built. */
static inline struct opened open_built(struct gguf_build *take_build)
{
    gguf_build_finish(take_build);
    struct opened opened = open_bytes(text_get(&take_build->text), take_build->text.length);
    gguf_build_release(take_build);
    return opened;
}

static inline void opened_release(struct opened *opened)
{
    gguf_close(opened->file);
    free(opened->bytes);
}

#endif
