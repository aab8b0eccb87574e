/* gguf_build.c - see gguf_build.h. */
#include "gguf_build.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint32_t type_bytes[] = {
    [BUILD_U8] = 1,  [BUILD_I8] = 1,  [BUILD_U16] = 2, [BUILD_I16] = 2,
    [BUILD_U32] = 4, [BUILD_I32] = 4, [BUILD_F32] = 4, [BUILD_BOOL] = 1,
    [BUILD_U64] = 8, [BUILD_I64] = 8, [BUILD_F64] = 8,
};

void gguf_build_add(struct text *text, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        text_add_bytes(text, &byte, 1);
    }
}

/* Remembers a field; beyond the limit it does not. */
static void mark_at(struct gguf_build *build, const char *owner, const char *name, uint64_t offset,
                    uint64_t bytes)
{
    if (build->field_count == GGUF_BUILD_FIELD_LIMIT)
        return;
    struct gguf_field *field = &build->fields[build->field_count++];
    snprintf(field->owner, sizeof(field->owner), "%s", owner);
    snprintf(field->name, sizeof(field->name), "%s", name);
    field->offset = offset;
    field->bytes = bytes;
}

static void mark(struct gguf_build *build, const char *owner, const char *name, uint64_t bytes)
{
    mark_at(build, owner, name, build->text.length, bytes);
}

static void add_field(struct gguf_build *build, const char *owner, const char *name, uint64_t value,
                      uint32_t bytes)
{
    mark(build, owner, name, bytes);
    gguf_build_add(&build->text, value, bytes);
}

void gguf_build_init(struct gguf_build *build, uint32_t version)
{
    *build = (struct gguf_build){ .alignment = GGUF_BUILD_ALIGNMENT };
    text_init(&build->text);
    mark(build, "header", "magic", 4);
    text_add(&build->text, "GGUF");
    add_field(build, "header", "version", version, 4);
    add_field(build, "header", "tensor_count", 0, 8);
    add_field(build, "header", "metadata_kv_count", 0, 8);
}

void gguf_build_release(struct gguf_build *build)
{
    text_release(&build->text);
}

/* ---- Metadata ------------------------------------------------------------------------------- */

/* Bytes that are not text become dots: owners are for people and for look-ups. */
static void owner_of(struct text_view view, char *owner, size_t owner_bytes)
{
    size_t length = view.length < owner_bytes ? view.length : owner_bytes - 1;
    for (size_t i = 0; i < length; i++)
        owner[i] = view.bytes[i] > ' ' && view.bytes[i] < 0x7F ? view.bytes[i] : '.';
    owner[length] = '\0';
}

static void add_string(struct gguf_build *build, const char *owner, const char *length_name,
                       const char *name, struct text_view string)
{
    add_field(build, owner, length_name, string.length, 8);
    mark(build, owner, name, string.length);
    text_add_bytes(&build->text, string.bytes, string.length);
}

static void add_key(struct gguf_build *build, struct text_view key, uint32_t type)
{
    ASSERT(build->tensor_count == 0);
    char owner[72];
    owner_of(key, owner, sizeof(owner));
    add_string(build, owner, "key length", "key", key);
    add_field(build, owner, "value type", type, 4);
    build->entry_count++;
}

void gguf_build_number(struct gguf_build *build, const char *key, uint32_t type, uint64_t bits)
{
    add_key(build, text_view_of(key), type);
    add_field(build, key, "value", bits, type_bytes[type]);
}

void gguf_build_raw_string(struct gguf_build *build, struct text_view key, struct text_view value)
{
    char owner[72];
    owner_of(key, owner, sizeof(owner));
    add_key(build, key, BUILD_STRING);
    add_string(build, owner, "string length", "string", value);
}

void gguf_build_string(struct gguf_build *build, const char *key, const char *value)
{
    gguf_build_raw_string(build, text_view_of(key), text_view_of(value));
}

static void add_array_head(struct gguf_build *build, const char *key, uint32_t element_type,
                           uint64_t count)
{
    add_key(build, text_view_of(key), BUILD_ARRAY);
    add_field(build, key, "array element type", element_type, 4);
    add_field(build, key, "array length", count, 8);
}

void gguf_build_array(struct gguf_build *build, const char *key, uint32_t element_type,
                      const uint64_t *elements, uint64_t count)
{
    add_array_head(build, key, element_type, count);
    mark(build, key, "value", count * type_bytes[element_type]);
    for (uint64_t i = 0; i < count; i++)
        gguf_build_add(&build->text, elements[i], type_bytes[element_type]);
}

void gguf_build_strings(struct gguf_build *build, const char *key, const char *const *strings,
                        uint64_t count)
{
    add_array_head(build, key, BUILD_STRING, count);
    for (uint64_t i = 0; i < count; i++)
        add_string(build, key, "string length", "string", text_view_of(strings[i]));
}

void gguf_build_align(struct gguf_build *build, uint32_t alignment)
{
    gguf_build_number(build, "general.alignment", BUILD_U32, alignment);
    build->alignment = alignment;
}

/* ---- Tensors -------------------------------------------------------------------------------- */

static uint64_t padding(uint64_t at, uint32_t alignment)
{
    return (alignment - at % alignment) % alignment;
}

void gguf_build_raw_tensor(struct gguf_build *build, struct text_view name, uint32_t rank,
                           const uint64_t *dims, uint32_t type, uint64_t bytes)
{
    char owner[72];
    owner_of(name, owner, sizeof(owner));
    add_string(build, owner, "name length", "name", name);
    add_field(build, owner, "n_dims", rank, 4);
    for (uint32_t i = 0; i < rank; i++) {
        char field[24];
        snprintf(field, sizeof(field), "dims[%" PRIu32 "]", i);
        add_field(build, owner, field, dims[i], 8);
    }
    add_field(build, owner, "type", type, 4);
    add_field(build, owner, "offset", build->data_bytes, 8);
    mark_at(build, owner, "data", build->data_bytes, bytes); /* from the start of the file later */
    build->data_bytes += bytes + padding(bytes, build->alignment);
    build->tensor_count++;
}

void gguf_build_tensor(struct gguf_build *build, const char *name, uint32_t rank,
                       const uint64_t *dims, uint32_t type, uint64_t bytes)
{
    gguf_build_raw_tensor(build, text_view_of(name), rank, dims, type, bytes);
}

uint8_t gguf_build_data(uint64_t index)
{
    return (uint8_t)(index * 7 + 1);
}

void gguf_build_finish(struct gguf_build *build)
{
    gguf_build_patch(build, "header", "tensor_count", build->tensor_count);
    gguf_build_patch(build, "header", "metadata_kv_count", build->entry_count);
    if (build->tensor_count) {
        uint64_t gap = padding(build->text.length, build->alignment);
        mark(build, "header", "start", gap);
        text_add_fill(&build->text, '\0', (size_t)gap);
        for (size_t i = 0; i < build->field_count; i++)
            if (strcmp(build->fields[i].name, "data") == 0)
                build->fields[i].offset += build->text.length;
        mark(build, "header", "data", build->data_bytes);
        for (uint64_t i = 0; i < build->data_bytes; i++)
            gguf_build_add(&build->text, gguf_build_data(i), 1);
    }
    ASSERT(!build->text.failed);
}

/* ---- Fields --------------------------------------------------------------------------------- */

const struct gguf_field *gguf_build_find(const struct gguf_build *build, const char *owner,
                                         const char *name)
{
    for (size_t i = 0; i < build->field_count; i++)
        if (strcmp(build->fields[i].owner, owner) == 0 && strcmp(build->fields[i].name, name) == 0)
            return &build->fields[i];
    fprintf(stderr, "no field '%s' of '%s' in what was built\n", name, owner);
    ASSERT(!"field is there");
}

void gguf_build_patch(struct gguf_build *build, const char *owner, const char *name, uint64_t value)
{
    const struct gguf_field *field = gguf_build_find(build, owner, name);
    ASSERT(field->bytes <= 8);
    for (uint64_t i = 0; i < field->bytes; i++)
        build->text.bytes[field->offset + i] = (char)(value >> (8 * i));
}
