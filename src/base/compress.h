/* compress.h - bytes as a zstd frame, and back within a limit. A frame written here states how many
 * bytes it expands to and has a checksum; the command zstd reads it too. */
#ifndef GRETA_BASE_COMPRESS_H
#define GRETA_BASE_COMPRESS_H

#include "base/outfile.h"
#include "base/status.h"

/* ---- Writing -------------------------------------------------------------------------------- */

struct compress {
    void *stream; /* the library's */
    void *buffer; /* of compressed bytes */
    size_t buffer_bytes;
    struct outfile *out; /* borrowed */
};

/* total_bytes: how many compress_write will be given in all. Initialises *compress whatever the
 * outcome. */
MUST_CHECK enum status compress_begin(struct compress *compress, struct outfile *out,
                                      uint64_t total_bytes, struct error *err);
MUST_CHECK enum status compress_write(struct compress *compress, const void *bytes, size_t count,
                                      struct error *err);
/* Completes the frame; the file is not committed. */
MUST_CHECK enum status compress_end(struct compress *compress, struct error *err);
void compress_release(struct compress *compress); /* an empty struct is fine */

/* ---- Reading -------------------------------------------------------------------------------- */

/* The bytes begin as a frame does. */
bool compress_is_frame(const void *bytes, uint64_t count);

/* The frame's content, in memory of the caller's (free). A frame that does not state its size,
 * states more than the limit, or gives anything but that size is refused: never more than
 * limit_bytes are written. name is for errors. */
MUST_CHECK enum status compress_expand(const void *bytes, uint64_t count, uint64_t limit_bytes,
                                       const char *name, uint8_t **ret_bytes, uint64_t *ret_count,
                                       struct error *err);

#endif
