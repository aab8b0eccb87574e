/* bytes.c - see bytes.h. */
#include "base/bytes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void bytes_init(struct bytes *in, const void *data, uint64_t size, const char *source)
{
    *in = (struct bytes){ .data = data, .size = size, .source = source };
}

void bytes_set_context(struct bytes *in, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(in->context, sizeof(in->context), format, arguments);
    va_end(arguments);
}

uint64_t bytes_left(const struct bytes *in)
{
    return in->size - in->at;
}

void bytes_fail_at(const struct bytes *in, uint64_t offset, const char *field, struct error *err,
                   const char *file, int line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_set_va(err, STATUS_BAD_FILE, file, line, format, arguments);
    va_end(arguments);
    const char *separator = in->context[0] ? ": " : "";
    error_wrap(err, "%s: byte %" PRIu64 ": %s%s%s", in->source, offset, in->context, separator,
               field);
}

enum status bytes_take(struct bytes *in, const char *field, uint64_t count, const uint8_t **ret,
                       struct error *err)
{
    if (count > bytes_left(in))
        return bytes_fail(in, in->at, field, err,
                          "expected %" PRIu64 " bytes, found %" PRIu64
                          " before the end of the file",
                          count, bytes_left(in));
    *ret = in->data + in->at;
    in->at += count;
    return STATUS_OK;
}

uint16_t bytes_load_u16(const uint8_t *data)
{
    return (uint16_t)(data[0] | data[1] << 8);
}

uint32_t bytes_load_u32(const uint8_t *data)
{
    return (uint32_t)bytes_load_u16(data) | (uint32_t)bytes_load_u16(data + 2) << 16;
}

uint64_t bytes_load_u64(const uint8_t *data)
{
    return (uint64_t)bytes_load_u32(data) | (uint64_t)bytes_load_u32(data + 4) << 32;
}

enum status bytes_u8(struct bytes *in, const char *field, uint8_t *ret, struct error *err)
{
    const uint8_t *data;
    TRY(bytes_take(in, field, 1, &data, err));
    *ret = data[0];
    return STATUS_OK;
}

enum status bytes_u16(struct bytes *in, const char *field, uint16_t *ret, struct error *err)
{
    const uint8_t *data;
    TRY(bytes_take(in, field, 2, &data, err));
    *ret = bytes_load_u16(data);
    return STATUS_OK;
}

enum status bytes_u32(struct bytes *in, const char *field, uint32_t *ret, struct error *err)
{
    const uint8_t *data;
    TRY(bytes_take(in, field, 4, &data, err));
    *ret = bytes_load_u32(data);
    return STATUS_OK;
}

enum status bytes_u64(struct bytes *in, const char *field, uint64_t *ret, struct error *err)
{
    const uint8_t *data;
    TRY(bytes_take(in, field, 8, &data, err));
    *ret = bytes_load_u64(data);
    return STATUS_OK;
}

enum status bytes_string(struct bytes *in, const char *field, uint64_t limit, struct text_view *ret,
                         struct error *err)
{
    uint64_t start = in->at;
    uint64_t length;
    TRY(bytes_u64(in, field, &length, err));
    if (length > limit)
        return bytes_fail(in, start, field, err,
                          "expected a length of at most %" PRIu64 ", found %" PRIu64, limit,
                          length);
    if (length > bytes_left(in))
        return bytes_fail(in, start, field, err,
                          "expected a length of at most the %" PRIu64
                          " bytes left in the file, found %" PRIu64,
                          bytes_left(in), length);
    const uint8_t *data;
    TRY(bytes_take(in, field, length, &data, err));
    *ret = (struct text_view){ (const char *)data, (size_t)length };
    return STATUS_OK;
}
