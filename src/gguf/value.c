/* value.c - metadata values as numbers, flags and text. */
#include "gguf/gguf_impl.h"

#include <inttypes.h>
#include <string.h>

/* An integer of any width as sign and magnitude, so that u64 and i64 meet in one type. */
struct integer {
    bool negative;
    uint64_t magnitude;
};

static struct integer integer_of_signed(int64_t value)
{
    return (struct integer){ value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value };
}

static bool load_integer(const struct gguf_value *value, uint64_t index, struct integer *ret)
{
    if (index >= value->count)
        return false;
    const uint8_t *data = value->data + index * gguf_type_bytes(value->element_type);
    switch (value->element_type) {
    case GGUF_U8:
        *ret = (struct integer){ false, data[0] };
        return true;
    case GGUF_I8:
        *ret = integer_of_signed((int8_t)data[0]);
        return true;
    case GGUF_U16:
        *ret = (struct integer){ false, bytes_load_u16(data) };
        return true;
    case GGUF_I16:
        *ret = integer_of_signed((int16_t)bytes_load_u16(data));
        return true;
    case GGUF_U32:
        *ret = (struct integer){ false, bytes_load_u32(data) };
        return true;
    case GGUF_I32:
        *ret = integer_of_signed((int32_t)bytes_load_u32(data));
        return true;
    case GGUF_U64:
        *ret = (struct integer){ false, bytes_load_u64(data) };
        return true;
    case GGUF_I64:
        *ret = integer_of_signed((int64_t)bytes_load_u64(data));
        return true;
    default:
        return false;
    }
}

bool gguf_value_u64(const struct gguf_value *value, uint64_t index, uint64_t *ret)
{
    struct integer integer;
    if (!load_integer(value, index, &integer) || integer.negative)
        return false;
    *ret = integer.magnitude;
    return true;
}

bool gguf_value_i64(const struct gguf_value *value, uint64_t index, int64_t *ret)
{
    struct integer integer;
    if (!load_integer(value, index, &integer))
        return false;
    if (integer.magnitude > (uint64_t)INT64_MAX + integer.negative)
        return false;
    *ret = integer.negative ? (int64_t)(0 - integer.magnitude) : (int64_t)integer.magnitude;
    return true;
}

bool gguf_value_f64(const struct gguf_value *value, uint64_t index, double *ret)
{
    if (index >= value->count)
        return false;
    if (value->element_type == GGUF_F32) {
        uint32_t bits = bytes_load_u32(value->data + index * 4);
        float number;
        memcpy(&number, &bits, sizeof(number));
        *ret = number;
        return true;
    }
    if (value->element_type == GGUF_F64) {
        uint64_t bits = bytes_load_u64(value->data + index * 8);
        memcpy(ret, &bits, sizeof(*ret));
        return true;
    }
    struct integer integer;
    if (!load_integer(value, index, &integer))
        return false;
    *ret = integer.negative ? -(double)integer.magnitude : (double)integer.magnitude;
    return true;
}

struct gguf_strings gguf_strings_of(const struct gguf_value *value)
{
    if (value->element_type != GGUF_STRING)
        return (struct gguf_strings){ 0 };
    return (struct gguf_strings){ value->data, value->bytes, value->count };
}

bool gguf_strings_next(struct gguf_strings *strings, struct text_view *ret)
{
    /* Checked at open, and again here because the file may have changed since. */
    if (strings->strings_left == 0 || strings->bytes_left < 8)
        return false;
    uint64_t length = bytes_load_u64(strings->data);
    if (length > strings->bytes_left - 8)
        return false;
    *ret = (struct text_view){ (const char *)strings->data + 8, (size_t)length };
    strings->data += 8 + length;
    strings->bytes_left -= 8 + length;
    strings->strings_left--;
    return true;
}

/* ---- Typed access by key -------------------------------------------------------------------- */

static enum status find_scalar(const struct gguf_file *file, const char *key, const char *wanted,
                               const struct gguf_value **ret, struct error *err)
{
    const struct gguf_value *value = gguf_find(file, key);
    if (!value)
        return error_set(err, STATUS_NOT_FOUND, "%s: %s: expected %s, found no such key",
                         gguf_path(file), key, wanted);
    if (value->type == GGUF_ARRAY)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: byte %" PRIu64 ": %s: expected %s, found an array of %" PRIu64 " %s",
                         gguf_path(file), value->offset_bytes, key, wanted, value->count,
                         gguf_type_name(value->element_type));
    *ret = value;
    return STATUS_OK;
}

static enum status wrong_kind(const struct gguf_file *file, const char *key, const char *wanted,
                              const struct gguf_value *value, struct error *err)
{
    int64_t number;
    if (gguf_value_i64(value, 0, &number))
        return error_set(
            err, STATUS_BAD_FILE, "%s: byte %" PRIu64 ": %s: expected %s, found %" PRId64 " (%s)",
            gguf_path(file), value->offset_bytes, key, wanted, number, gguf_type_name(value->type));
    return error_set(err, STATUS_BAD_FILE, "%s: byte %" PRIu64 ": %s: expected %s, found %s",
                     gguf_path(file), value->offset_bytes, key, wanted,
                     gguf_type_name(value->type));
}

enum status gguf_get_u64(const struct gguf_file *file, const char *key, uint64_t *ret_value,
                         struct error *err)
{
    static const char wanted[] = "a whole number from 0";
    const struct gguf_value *value;
    TRY(find_scalar(file, key, wanted, &value, err));
    if (!gguf_value_u64(value, 0, ret_value))
        return wrong_kind(file, key, wanted, value, err);
    return STATUS_OK;
}

enum status gguf_get_f64(const struct gguf_file *file, const char *key, double *ret_value,
                         struct error *err)
{
    static const char wanted[] = "a number";
    const struct gguf_value *value;
    TRY(find_scalar(file, key, wanted, &value, err));
    if (!gguf_value_f64(value, 0, ret_value))
        return wrong_kind(file, key, wanted, value, err);
    return STATUS_OK;
}

enum status gguf_get_flag(const struct gguf_file *file, const char *key, bool *ret_value,
                          struct error *err)
{
    static const char wanted[] = "a bool";
    const struct gguf_value *value;
    TRY(find_scalar(file, key, wanted, &value, err));
    if (value->type != GGUF_BOOL)
        return wrong_kind(file, key, wanted, value, err);
    *ret_value = value->data[0] != 0;
    return STATUS_OK;
}

enum status gguf_get_text(const struct gguf_file *file, const char *key,
                          struct text_view *ret_value, struct error *err)
{
    static const char wanted[] = "a string";
    const struct gguf_value *value;
    TRY(find_scalar(file, key, wanted, &value, err));
    struct gguf_strings strings = gguf_strings_of(value);
    if (!gguf_strings_next(&strings, ret_value))
        return wrong_kind(file, key, wanted, value, err);
    return STATUS_OK;
}
