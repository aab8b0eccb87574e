/* inspect_metadata.c - see inspect_metadata.h. */
#include "cli/inspect_metadata.h"

#include "base/text.h"

#include <inttypes.h>

static void emit_scalar(struct emit *emit, const struct gguf_value *value)
{
    struct gguf_strings strings = gguf_strings_of(value);
    struct text_view string;
    int64_t integer;
    uint64_t large;
    double real;
    if (gguf_strings_next(&strings, &string))
        emit_view(emit, "value", string);
    else if (value->type == GGUF_BOOL)
        emit_flag(emit, "value", value->data[0] != 0);
    else if (gguf_value_i64(value, 0, &integer))
        emit_integer(emit, "value", integer);
    else if (gguf_value_u64(value, 0, &large))
        emit_count(emit, "value", large);
    else if (gguf_value_f64(value, 0, &real))
        emit_real(emit, "value", real);
}

/* Arrays are shown by their first elements: a vocabulary has a hundred thousand. */
#define SHOWN_ELEMENTS 6

static void emit_array(struct emit *emit, const struct gguf_value *value)
{
    struct text words;
    text_init(&words);
    struct gguf_strings strings = gguf_strings_of(value);
    struct text_view string;
    for (uint64_t i = 0; i < value->count && i < SHOWN_ELEMENTS; i++) {
        int64_t integer;
        double real;
        text_add(&words, i ? ", " : "");
        if (gguf_strings_next(&strings, &string)) {
            text_add(&words, "\"");
            text_add_printable(&words, string, 40);
            text_add(&words, "\"");
        } else if (value->element_type == GGUF_BOOL) {
            text_add(&words, value->data[i] ? "true" : "false");
        } else if (gguf_value_i64(value, i, &integer)) {
            text_addf(&words, "%" PRId64, integer);
        } else if (gguf_value_f64(value, i, &real)) {
            text_addf(&words, "%g", real);
        }
    }
    emit_textf(emit, "value", "%" PRIu64 " elements: %s%s", value->count, text_get(&words),
               value->count > SHOWN_ELEMENTS ? ", ..." : "");
    text_release(&words);
}

void inspect_metadata(struct emit *emit, const struct gguf_file *file)
{
    emit_list_begin(emit, "metadata");
    for (size_t i = 0; i < gguf_entry_count(file); i++) {
        const struct gguf_entry *entry = gguf_entry_at(file, i);
        bool array = entry->value.type == GGUF_ARRAY;
        emit_object_begin(emit, NULL);
        emit_view(emit, "key", entry->key);
        emit_textf(emit, "type", "%s%s", gguf_type_name(entry->value.element_type),
                   array ? "[]" : "");
        if (array)
            emit_array(emit, &entry->value);
        else
            emit_scalar(emit, &entry->value);
        emit_object_end(emit);
    }
    emit_list_end(emit);
}
