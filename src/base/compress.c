/* compress.c - see compress.h. */
#include "base/compress.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* A default recording of 35 MiB takes about 50 ms; higher levels take longer and save nothing. */
#define LEVEL 3

/* ---- Writing -------------------------------------------------------------------------------- */

static enum status library_failed(size_t code, struct error *err)
{
    return error_set(err, STATUS_IO, "cannot compress: %s", ZSTD_getErrorName(code));
}

enum status compress_begin(struct compress *compress, struct outfile *out, uint64_t total_bytes,
                           struct error *err)
{
    *compress = (struct compress){ .stream = ZSTD_createCCtx(),
                                   .buffer = malloc(ZSTD_CStreamOutSize()),
                                   .buffer_bytes = ZSTD_CStreamOutSize(),
                                   .out = out };
    size_t code = 0;
    if (!compress->stream || !compress->buffer) {
        compress_release(compress);
        return error_set(err, STATUS_NO_MEMORY, "no memory to compress");
    }
    code = ZSTD_CCtx_setParameter(compress->stream, ZSTD_c_compressionLevel, LEVEL);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setParameter(compress->stream, ZSTD_c_checksumFlag, 1);
    if (!ZSTD_isError(code))
        code = ZSTD_CCtx_setPledgedSrcSize(compress->stream, total_bytes);
    if (!ZSTD_isError(code))
        return STATUS_OK;
    compress_release(compress);
    return library_failed(code, err);
}

/* Repeats until the library has taken all of it; at the end, until it has given everything. */
static enum status push(struct compress *compress, const void *bytes, size_t count,
                        ZSTD_EndDirective directive, struct error *err)
{
    ZSTD_inBuffer in = { bytes, count, 0 };
    for (;;) {
        ZSTD_outBuffer out = { compress->buffer, compress->buffer_bytes, 0 };
        size_t left = ZSTD_compressStream2(compress->stream, &out, &in, directive);
        if (ZSTD_isError(left))
            return library_failed(left, err);
        TRY(outfile_write(compress->out, out.dst, out.pos, err));
        if (directive == ZSTD_e_end ? left == 0 : in.pos == in.size)
            return STATUS_OK;
    }
}

enum status compress_write(struct compress *compress, const void *bytes, size_t count,
                           struct error *err)
{
    return push(compress, bytes, count, ZSTD_e_continue, err);
}

enum status compress_end(struct compress *compress, struct error *err)
{
    return push(compress, NULL, 0, ZSTD_e_end, err);
}

void compress_release(struct compress *compress)
{
    ZSTD_freeCCtx(compress->stream);
    free(compress->buffer);
    *compress = (struct compress){ 0 };
}

/* ---- Reading -------------------------------------------------------------------------------- */

bool compress_is_frame(const void *bytes, uint64_t count)
{
    static const uint8_t magic[] = { 0x28, 0xB5, 0x2F, 0xFD };
    return count >= sizeof(magic) && memcmp(bytes, magic, sizeof(magic)) == 0;
}

enum status compress_expand(const void *bytes, uint64_t count, uint64_t limit_bytes,
                            const char *name, uint8_t **ret_bytes, uint64_t *ret_count,
                            struct error *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(bytes, (size_t)count);
    char limit[TEXT_BYTES_CAPACITY];
    if (size == ZSTD_CONTENTSIZE_ERROR)
        return error_set(err, STATUS_BAD_FILE, "%s: expected a zstd frame, found a damaged one",
                         name);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN)
        return error_set(err, STATUS_UNSUPPORTED,
                         "%s: expected a zstd frame that states its size, found one that does not; "
                         "expand it with zstd -d first",
                         name);
    if (size > limit_bytes)
        return error_set(err, STATUS_LIMIT,
                         "%s: expected at most %s when expanded, found %llu bytes; expand it with "
                         "zstd -d first",
                         name, text_bytes(limit_bytes, limit), size);
    /* Pages that are not written to cost nothing, so a frame that states too large a size is
     * harmless here; it is refused below. */
    uint8_t *content = malloc((size_t)size + 1);
    if (!content)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory to expand %llu bytes", name, size);
    size_t expanded = ZSTD_decompress(content, (size_t)size, bytes, (size_t)count);
    if (!ZSTD_isError(expanded) && expanded == size) {
        *ret_bytes = content;
        *ret_count = size;
        return STATUS_OK;
    }
    free(content);
    if (ZSTD_isError(expanded))
        return error_set(err, STATUS_BAD_FILE, "%s: cannot expand it: %s", name,
                         ZSTD_getErrorName(expanded));
    return error_set(err, STATUS_BAD_FILE, "%s: expected %llu bytes when expanded, found %zu", name,
                     size, expanded);
}
