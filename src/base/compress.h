/* compress.h - compresses bytes to a zstd frame, and expands a frame within a limit. A frame
 * written here states its expanded size and has a checksum; the command zstd reads it too. */
#ifndef GRETA_BASE_COMPRESS_H
#define GRETA_BASE_COMPRESS_H

#include "base/outfile.h"
#include "base/status.h"

/* ---- Writing -------------------------------------------------------------------------------- */

struct compress {
    void *stream; /* the library's */
    void *buffer; /* holds compressed bytes */
    size_t buffer_bytes;
    struct outfile *out; /* borrowed */
};

/* total_bytes: the number of bytes that compress_write will be given in all. Initialises *compress
 * whatever the outcome. */
MUST_CHECK enum status compress_begin(struct compress *compress, struct outfile *out,
                                      uint64_t total_bytes, struct error *err);
MUST_CHECK enum status compress_write(struct compress *compress, const void *bytes, size_t count,
                                      struct error *err);
/* Completes the frame; the file is not committed. */
MUST_CHECK enum status compress_end(struct compress *compress, struct error *err);
void compress_release(struct compress *compress); /* an empty struct is fine */

/* ---- Reading -------------------------------------------------------------------------------- */

/* True if the bytes begin like a frame. */
bool compress_is_frame(const void *bytes, uint64_t count);

/* Returns the frame's content in memory that the caller frees. Refuses a frame that does not state
 * its size, states more than the limit, or has another size: at most limit_bytes are ever written.
 * name is for errors. */
MUST_CHECK enum status compress_expand(const void *bytes, uint64_t count, uint64_t limit_bytes,
                                       const char *name, uint8_t **ret_bytes, uint64_t *ret_count,
                                       struct error *err);

#endif
