/* writer_metadata.c - metadata of a file that is being written: keys and values are kept as the
 * bytes they have in the file. A key that is put again replaces the earlier value. */
#include "gguf/writer.h"

#include "base/array.h"

#include <string.h>

/* ---- Little-endian bytes into text ---------------------------------------------------------- */

void gguf_add_number(struct text *text, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char byte = (char)(value >> (8 * i) & 0xFF);
        text_add_bytes(text, &byte, 1);
    }
}

void gguf_add_string(struct text *text, struct text_view string)
{
    gguf_add_number(text, string.length, 8);
    text_add_bytes(text, string.bytes, string.length);
}

/* ---- Metadata ------------------------------------------------------------------------------- */

/* The value text of a key, emptied; NULL without memory. */
static struct text *entry_value(struct gguf_writer *writer, struct text_view key)
{
    ASSERT(!writer->begun);
    for (size_t i = 0; i < writer->entry_count; i++) {
        struct pending_entry *entry = &writer->entries[i];
        if (text_view_equal(key, (struct text_view){ text_get(&entry->key), entry->key.length })) {
            text_clear(&entry->value);
            return &entry->value;
        }
    }
    struct pending_entry *entries = array_reserve(
        writer->entries, writer->entry_count, &writer->entry_capacity, sizeof(*writer->entries));
    if (!entries) {
        writer->failed = true;
        return NULL;
    }
    writer->entries = entries;
    struct pending_entry *entry = &writer->entries[writer->entry_count++];
    text_init(&entry->key);
    text_init(&entry->value);
    text_add_bytes(&entry->key, key.bytes, key.length);
    return &entry->value;
}

static void put_number(struct gguf_writer *writer, const char *key, enum gguf_type type,
                       uint64_t bits)
{
    struct text *value = entry_value(writer, text_view_of(key));
    if (!value)
        return;
    gguf_add_number(value, type, 4);
    gguf_add_number(value, bits, gguf_type_bytes(type));
}

void gguf_writer_put_u32(struct gguf_writer *writer, const char *key, uint32_t value)
{
    put_number(writer, key, GGUF_U32, value);
}

void gguf_writer_put_f32(struct gguf_writer *writer, const char *key, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_number(writer, key, GGUF_F32, bits);
}

void gguf_writer_put_flag(struct gguf_writer *writer, const char *key, bool value)
{
    put_number(writer, key, GGUF_BOOL, value);
}

void gguf_writer_put_text(struct gguf_writer *writer, const char *key, const char *value)
{
    struct text *text = entry_value(writer, text_view_of(key));
    if (!text)
        return;
    gguf_add_number(text, GGUF_STRING, 4);
    gguf_add_string(text, text_view_of(value));
}

void gguf_writer_put_value(struct gguf_writer *writer, struct text_view key,
                           const struct gguf_value *value)
{
    struct text *text = entry_value(writer, key);
    if (!text)
        return;
    gguf_add_number(text, value->type, 4);
    if (value->type == GGUF_ARRAY) {
        gguf_add_number(text, value->element_type, 4);
        gguf_add_number(text, value->count, 8);
    }
    text_add_bytes(text, value->data, (size_t)value->bytes);
}

static struct text *put_array_header(struct gguf_writer *writer, const char *key,
                                     enum gguf_type element_type, uint64_t count)
{
    struct text *text = entry_value(writer, text_view_of(key));
    if (!text)
        return NULL;
    gguf_add_number(text, GGUF_ARRAY, 4);
    gguf_add_number(text, element_type, 4);
    gguf_add_number(text, count, 8);
    return text;
}

void gguf_writer_put_array(struct gguf_writer *writer, const char *key, enum gguf_type element_type,
                           const void *elements, uint64_t count)
{
    ASSERT(gguf_type_bytes(element_type) != 0);
    struct text *text = put_array_header(writer, key, element_type, count);
    if (text)
        text_add_bytes(text, elements, (size_t)(count * gguf_type_bytes(element_type)));
}

void gguf_writer_put_strings(struct gguf_writer *writer, const char *key,
                             const struct text *strings, uint64_t count)
{
    struct text *text = put_array_header(writer, key, GGUF_STRING, count);
    writer->failed = writer->failed || strings->failed;
    if (text)
        text_add_bytes(text, text_get(strings), strings->length);
}
