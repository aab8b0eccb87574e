/* reader.c - header, metadata and tensor directory of one GGUF file.
 *
 * One forward walk. A count is believed only as far as the remaining bytes could hold it, so a
 * small file cannot make greta allocate much; strings and arrays are left where they are. After the
 * walk every stored pointer lies inside the file and every stored length has been checked. */
#include "gguf/gguf_impl.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Minimum bytes of a metadata entry: key length, one key byte, type, one value byte. */
#define ENTRY_BYTES_MIN 14u
/* Minimum bytes of a tensor entry: name length, one name byte, rank 0, type, offset. */
#define TENSOR_BYTES_MIN 25u

static const struct {
    const char *name;
    uint32_t bytes;
} types[] = {
    [GGUF_U8] = { "u8", 1 },       [GGUF_I8] = { "i8", 1 },     [GGUF_U16] = { "u16", 2 },
    [GGUF_I16] = { "i16", 2 },     [GGUF_U32] = { "u32", 4 },   [GGUF_I32] = { "i32", 4 },
    [GGUF_F32] = { "f32", 4 },     [GGUF_BOOL] = { "bool", 1 }, [GGUF_STRING] = { "string", 0 },
    [GGUF_ARRAY] = { "array", 0 }, [GGUF_U64] = { "u64", 8 },   [GGUF_I64] = { "i64", 8 },
    [GGUF_F64] = { "f64", 8 },
};
_Static_assert(COUNT_OF(types) == GGUF_TYPE_COUNT, "every value type has a row");

const char *gguf_type_name(enum gguf_type type)
{
    return (unsigned)type < GGUF_TYPE_COUNT ? types[type].name : "unknown";
}

uint32_t gguf_type_bytes(enum gguf_type type)
{
    return types[type].bytes;
}

/* ---- Header --------------------------------------------------------------------------------- */

static enum status read_version(struct bytes *in, uint32_t *ret, struct error *err)
{
    uint32_t version;
    uint64_t start = in->at;
    TRY(bytes_u32(in, "version", &version, err));
    if (version != 0 && (version & 0xFFFF) == 0)
        return bytes_fail(in, start, "version", err,
                          "expected 2 or 3, found %" PRIu32
                          " in big-endian order; convert the file to little endian",
                          __builtin_bswap32(version));
    if (version == 1)
        return bytes_fail(in, start, "version", err,
                          "expected 2 or 3, found 1, withdrawn in 2023; convert the model again");
    if (version != 2 && version != 3)
        return bytes_fail(in, start, "version", err, "expected 2 or 3, found %" PRIu32, version);
    *ret = version;
    return STATUS_OK;
}

static enum status read_count(struct bytes *in, const char *field, uint64_t limit, uint64_t *ret,
                              struct error *err)
{
    uint64_t count;
    uint64_t start = in->at;
    TRY(bytes_u64(in, field, &count, err));
    if (count > limit)
        return bytes_fail(in, start, field, err, "expected at most %" PRIu64 ", found %" PRIu64,
                          limit, count);
    *ret = count;
    return STATUS_OK;
}

/* Counts come before what they count; both are compared with what the file could contain. */
static enum status check_counts(const struct bytes *in, const struct gguf_shard *shard,
                                struct error *err)
{
    uint64_t least = shard->entry_count * ENTRY_BYTES_MIN;
    if (least > bytes_left(in))
        return bytes_fail(in, 16, "metadata_kv_count", err,
                          "expected at most %" PRIu64 " (what the %" PRIu64
                          " bytes left could hold), found %" PRIu64,
                          bytes_left(in) / ENTRY_BYTES_MIN, bytes_left(in), shard->entry_count);
    if (shard->tensor_count * TENSOR_BYTES_MIN > bytes_left(in) - least)
        return bytes_fail(in, 8, "tensor_count", err,
                          "expected at most %" PRIu64 " (what the %" PRIu64
                          " bytes left could hold), found %" PRIu64,
                          (bytes_left(in) - least) / TENSOR_BYTES_MIN, bytes_left(in) - least,
                          shard->tensor_count);
    return STATUS_OK;
}

static enum status read_header(struct bytes *in, struct gguf_shard *shard, struct error *err)
{
    bytes_set_context(in, "header");
    if (in->size == 0)
        return bytes_fail(in, 0, "magic", err, "expected a GGUF file, found an empty file");
    const uint8_t *magic;
    TRY(bytes_take(in, "magic", 4, &magic, err));
    if (memcmp(magic, "GGUF", 4) != 0)
        return bytes_fail(in, 0, "magic", err,
                          "expected 47 47 55 46 (\"GGUF\"), found %02X %02X %02X %02X: not a GGUF "
                          "file",
                          magic[0], magic[1], magic[2], magic[3]);
    TRY(read_version(in, &shard->version, err));
    TRY(read_count(in, "tensor_count", GGUF_TENSOR_LIMIT, &shard->tensor_count, err));
    TRY(read_count(in, "metadata_kv_count", GGUF_ENTRY_LIMIT, &shard->entry_count, err));
    return check_counts(in, shard, err);
}

/* ---- Metadata ------------------------------------------------------------------------------- */

static enum status read_type(struct bytes *in, const char *field, enum gguf_type *ret,
                             struct error *err)
{
    uint32_t type;
    uint64_t start = in->at;
    TRY(bytes_u32(in, field, &type, err));
    if (type >= GGUF_TYPE_COUNT)
        return bytes_fail(in, start, field, err, "expected 0 to %d, found %" PRIu32,
                          GGUF_TYPE_COUNT - 1, type);
    *ret = (enum gguf_type)type;
    return STATUS_OK;
}

static enum status check_bools(const struct bytes *in, const struct gguf_value *value,
                               struct error *err)
{
    for (uint64_t i = 0; i < value->count; i++)
        if (value->data[i] > 1)
            return bytes_fail(in, value->offset_bytes + i, "bool value", err,
                              "expected 0 or 1, found %u", value->data[i]);
    return STATUS_OK;
}

/* value->element_type and count are set; walks the elements and sets data and bytes. */
static enum status read_elements(struct bytes *in, struct gguf_value *value, struct error *err)
{
    uint32_t element_bytes = gguf_type_bytes(value->element_type);
    value->offset_bytes = in->at;
    value->data = in->data + in->at;
    if (element_bytes) {
        const uint8_t *data;
        TRY(bytes_take(in, "value", value->count * element_bytes, &data, err));
    }
    for (uint64_t i = 0; !element_bytes && i < value->count; i++) {
        struct text_view string;
        TRY(bytes_string(in, "string length", GGUF_STRING_LIMIT_BYTES, &string, err));
    }
    value->bytes = in->at - value->offset_bytes;
    return value->element_type == GGUF_BOOL ? check_bools(in, value, err) : STATUS_OK;
}

static enum status read_array_header(struct bytes *in, struct gguf_value *value, struct error *err)
{
    uint64_t type_start = in->at;
    TRY(read_type(in, "array element type", &value->element_type, err));
    if (value->element_type == GGUF_ARRAY)
        return bytes_fail(in, type_start, "array element type", err,
                          "expected a scalar or string type, found array: nested arrays are not "
                          "used by any model");
    uint64_t start = in->at;
    TRY(bytes_u64(in, "array length", &value->count, err));
    uint32_t least = gguf_type_bytes(value->element_type);
    if (least == 0)
        least = 8; /* a string is at least its length */
    if (value->count > bytes_left(in) / least)
        return bytes_fail(in, start, "array length", err,
                          "expected at most %" PRIu64 " %s elements in the %" PRIu64
                          " bytes left, found %" PRIu64,
                          bytes_left(in) / least, gguf_type_name(value->element_type),
                          bytes_left(in), value->count);
    return STATUS_OK;
}

static enum status check_key(const struct bytes *in, uint64_t start, struct text_view key,
                             struct error *err)
{
    if (key.length == 0)
        return bytes_fail(in, start, "key length", err, "expected at least 1, found 0");
    for (size_t i = 0; i < key.length; i++) {
        unsigned char c = (unsigned char)key.bytes[i];
        if (c <= 0x20 || c >= 0x7F)
            return bytes_fail(in, start + 8 + i, "key", err,
                              "expected printable ASCII, found byte 0x%02X", c);
    }
    return STATUS_OK;
}

static enum status read_entry(struct bytes *in, struct gguf_entry *entry, uint64_t index,
                              struct error *err)
{
    bytes_set_context(in, "metadata entry %" PRIu64, index);
    uint64_t start = in->at;
    TRY(bytes_string(in, "key length", GGUF_KEY_LIMIT_BYTES, &entry->key, err));
    TRY(check_key(in, start, entry->key, err));
    char shown[GGUF_SHOWN_NAME_BYTES];
    bytes_set_context(in, "metadata entry %" PRIu64 " (%s)", index,
                      text_printable(entry->key, shown, sizeof(shown)));
    struct gguf_value *value = &entry->value;
    TRY(read_type(in, "value type", &value->type, err));
    value->element_type = value->type;
    value->count = 1;
    if (value->type == GGUF_ARRAY)
        TRY(read_array_header(in, value, err));
    return read_elements(in, value, err);
}

static enum status read_entries(struct bytes *in, struct gguf_shard *shard, struct error *err)
{
    shard->entries = calloc((size_t)shard->entry_count + 1, sizeof(*shard->entries));
    if (!shard->entries)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for %" PRIu64 " metadata entries",
                         shard->path, shard->entry_count);
    for (uint64_t i = 0; i < shard->entry_count; i++)
        TRY(read_entry(in, &shard->entries[i], i, err));
    return STATUS_OK;
}

/* The alignment is known only after all entries. */
static enum status find_alignment(struct bytes *in, struct gguf_shard *shard, struct error *err)
{
    shard->alignment = GGUF_ALIGNMENT_DEFAULT;
    for (uint64_t i = 0; i < shard->entry_count; i++) {
        const struct gguf_entry *entry = &shard->entries[i];
        if (!text_view_is(entry->key, "general.alignment"))
            continue;
        bytes_set_context(in, "metadata entry %" PRIu64 " (general.alignment)", i);
        uint64_t key_end = (uint64_t)((const uint8_t *)entry->key.bytes - in->data) +
                           entry->key.length;
        if (entry->value.type != GGUF_U32)
            return bytes_fail(in, key_end, "value type", err, "expected u32, found %s",
                              gguf_type_name(entry->value.type));
        shard->alignment = bytes_load_u32(entry->value.data);
        if (!size_is_power_of_two(shard->alignment))
            return bytes_fail(in, entry->value.offset_bytes, "value", err,
                              "expected a power of two, found %" PRIu64, shard->alignment);
    }
    return STATUS_OK;
}

/* ---- All of it ------------------------------------------------------------------------------ */

static enum status find_data_start(struct bytes *in, struct gguf_shard *shard, struct error *err)
{
    bytes_set_context(in, "tensor data");
    if (!size_align_up(in->at, shard->alignment, &shard->data_start))
        return bytes_fail(in, in->at, "start", err, "expected below 2^64");
    if (shard->tensor_count && shard->data_start > in->size)
        return bytes_fail(in, in->at, "start", err,
                          "expected data at byte %" PRIu64
                          ", found the end of the file at %" PRIu64,
                          shard->data_start, in->size);
    return STATUS_OK;
}

enum status gguf_read_shard(struct gguf_shard *shard, struct error *err)
{
    struct bytes in;
    bytes_init(&in, shard->data, shard->size, shard->path);
    TRY(read_header(&in, shard, err));
    TRY(read_entries(&in, shard, err));
    TRY(find_alignment(&in, shard, err));
    TRY(gguf_read_directory(&in, shard, err));
    TRY(find_data_start(&in, shard, err));
    return gguf_validate_data(shard, err);
}
