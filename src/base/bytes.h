/* bytes.h - bounds-checked reader of foreign bytes, little endian.
 *
 * Every read names its field. The error of a failing read has the source, the byte offset, the part
 * of the file, the field, what was expected and what was found. Nothing is allocated. */
#ifndef GRETA_BASE_BYTES_H
#define GRETA_BASE_BYTES_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

struct bytes {
    const uint8_t *data; /* borrowed */
    uint64_t size;
    uint64_t at;        /* next byte to read; <= size */
    const char *source; /* file name for messages; borrowed */
    char context[160];  /* "metadata entry 12 (llama.block_count)", or empty */
};

void bytes_init(struct bytes *in, const void *data, uint64_t size, const char *source);
void bytes_set_context(struct bytes *in, const char *format, ...) PRINTF_LIKE(2, 3);
uint64_t bytes_left(const struct bytes *in);

MUST_CHECK enum status bytes_u8(struct bytes *in, const char *field, uint8_t *ret,
                                struct error *err);
MUST_CHECK enum status bytes_u16(struct bytes *in, const char *field, uint16_t *ret,
                                 struct error *err);
MUST_CHECK enum status bytes_u32(struct bytes *in, const char *field, uint32_t *ret,
                                 struct error *err);
MUST_CHECK enum status bytes_u64(struct bytes *in, const char *field, uint64_t *ret,
                                 struct error *err);

/* `count` bytes, borrowed from the data. */
MUST_CHECK enum status bytes_take(struct bytes *in, const char *field, uint64_t count,
                                  const uint8_t **ret, struct error *err);

/* u64 length, then that many bytes, at most limit. Borrowed. */
MUST_CHECK enum status bytes_string(struct bytes *in, const char *field, uint64_t limit,
                                    struct text_view *ret, struct error *err);

/* STATUS_BAD_FILE with "source: byte N: context: field: " in front. */
#define bytes_fail(in, offset, field, err, ...)                                                    \
    (bytes_fail_at((in), (offset), (field), (err), __FILE__, __LINE__, __VA_ARGS__),               \
     STATUS_BAD_FILE)
void bytes_fail_at(const struct bytes *in, uint64_t offset, const char *field, struct error *err,
                   const char *file, int line, const char *format, ...) PRINTF_LIKE(7, 8);

/* Unaligned little-endian loads from memory already known to be there. */
uint16_t bytes_load_u16(const uint8_t *data);
uint32_t bytes_load_u32(const uint8_t *data);
uint64_t bytes_load_u64(const uint8_t *data);

#endif
