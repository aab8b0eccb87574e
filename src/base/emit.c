/* emit.c - see emit.h. Both outputs are made from one jansson tree; for text its leaves are already
 * formatted. */
#include "base/emit.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct emit {
    enum emit_format format;
    json_t *open[EMIT_DEPTH_LIMIT + 1]; /* open[0] is the root; NULL where memory ran out */
    bool is_list[EMIT_DEPTH_LIMIT + 1]; /* whether open[] is a list, or would be */
    size_t depth;
    bool failed;
};

enum status emit_create(enum emit_format format, struct emit **ret, struct error *err)
{
    struct emit *emit = calloc(1, sizeof(*emit));
    json_t *root = json_object();
    if (!emit || !root) {
        free(emit);
        json_decref(root);
        return error_set(err, STATUS_NO_MEMORY, "no memory for output");
    }
    emit->format = format;
    emit->open[0] = root;
    *ret = emit;
    return STATUS_OK;
}

void emit_destroy(struct emit *emit)
{
    if (!emit)
        return;
    json_decref(emit->open[0]);
    free(emit);
}

bool emit_is_json(const struct emit *emit)
{
    return emit->format == EMIT_JSON;
}

/* ---- Building the tree ---------------------------------------------------------------------- */

/* Takes value, which may be NULL after a failed allocation. */
static void add(struct emit *emit, const char *key, json_t *value)
{
    json_t *parent = emit->open[emit->depth];
    ASSERT(emit->is_list[emit->depth] == (key == NULL));
    int failed = key ? json_object_set_new(parent, key, value)
                     : json_array_append_new(parent, value);
    if (failed)
        emit->failed = true;
}

static void begin(struct emit *emit, const char *key, json_t *value, bool is_list)
{
    ASSERT(emit->depth < EMIT_DEPTH_LIMIT);
    json_t *kept = json_incref(value);
    add(emit, key, value);
    /* After a failure the subtree is built outside the tree and dropped: callers go on. */
    emit->open[++emit->depth] = kept;
    emit->is_list[emit->depth] = is_list;
}

static void end(struct emit *emit)
{
    ASSERT(emit->depth > 0);
    json_decref(emit->open[emit->depth--]);
}

void emit_object_begin(struct emit *emit, const char *key)
{
    begin(emit, key, json_object(), false);
}

void emit_object_end(struct emit *emit)
{
    ASSERT(!emit->is_list[emit->depth]);
    end(emit);
}

void emit_list_begin(struct emit *emit, const char *key)
{
    begin(emit, key, json_array(), true);
}

void emit_list_end(struct emit *emit)
{
    ASSERT(emit->is_list[emit->depth]);
    end(emit);
}

/* Longer strings are cut in text: a chat template would fill the screen. */
#define TEXT_VALUE_LIMIT 160

static void add_shown(struct emit *emit, const char *key, struct text_view value, size_t limit)
{
    json_t *whole = emit->format == EMIT_JSON ? json_stringn(value.bytes, value.length) : NULL;
    if (whole) {
        add(emit, key, whole);
        return;
    }
    struct text shown;
    text_init(&shown);
    text_add_printable(&shown, value, limit);
    emit->failed = emit->failed || shown.failed;
    add(emit, key, json_string(text_get(&shown)));
    text_release(&shown);
}

void emit_view(struct emit *emit, const char *key, struct text_view value)
{
    add_shown(emit, key, value, emit->format == EMIT_JSON ? SIZE_MAX : TEXT_VALUE_LIMIT);
}

void emit_text(struct emit *emit, const char *key, const char *value)
{
    add_shown(emit, key, text_view_of(value), SIZE_MAX);
}

void emit_textf(struct emit *emit, const char *key, const char *format, ...)
{
    struct text text;
    text_init(&text);
    va_list arguments;
    va_start(arguments, format);
    text_addf_va(&text, format, arguments);
    va_end(arguments);
    emit->failed = emit->failed || text.failed;
    emit_text(emit, key, text_get(&text));
    text_release(&text);
}

void emit_note(struct emit *emit, const char *key, const char *value)
{
    if (emit->format == EMIT_TEXT)
        emit_text(emit, key, value);
}

void emit_flag(struct emit *emit, const char *key, bool value)
{
    if (emit->format == EMIT_JSON)
        add(emit, key, json_boolean(value));
    else
        emit_text(emit, key, value ? "yes" : "no");
}

void emit_integer(struct emit *emit, const char *key, int64_t value)
{
    add(emit, key, json_integer(value));
}

void emit_index(struct emit *emit, const char *key, int64_t value)
{
    add(emit, key, value < 0 ? json_null() : json_integer(value));
}

void emit_count(struct emit *emit, const char *key, uint64_t value)
{
    /* jansson's numbers have 63 bits; a larger one would change, so it becomes text. */
    if (value > INT64_MAX)
        emit_textf(emit, key, "%llu", (unsigned long long)value);
    else
        emit_integer(emit, key, (int64_t)value);
}

void emit_real(struct emit *emit, const char *key, double value)
{
    /* JSON has no NaN or infinity. */
    if (emit->format == EMIT_TEXT || !isfinite(value))
        emit_textf(emit, key, "%g", value);
    else
        add(emit, key, json_real(value));
}

void emit_bytes(struct emit *emit, const char *key, uint64_t bytes)
{
    char buffer[TEXT_BYTES_CAPACITY];
    if (emit->format == EMIT_TEXT)
        emit_text(emit, key, text_bytes(bytes, buffer));
    else
        emit_count(emit, key, bytes);
}

/* ---- Text rendering ------------------------------------------------------------------------- */

/* Columns that a UTF-8 text takes; good enough for names (no wide characters). */
static size_t columns(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += ((unsigned char)*text & 0xC0) != 0x80;
    return count;
}

static void add_label(struct text *out, const char *key)
{
    for (; *key; key++)
        text_add_bytes(out, *key == '_' ? " " : key, 1);
}

static void add_padded(struct text *out, const char *cell, size_t width, bool right)
{
    size_t fill = width > columns(cell) ? width - columns(cell) : 0;
    if (right)
        text_add_fill(out, ' ', fill);
    text_add(out, cell);
    if (!right)
        text_add_fill(out, ' ', fill);
}

/* The text of a leaf; buffer has 32 bytes. */
static const char *leaf_words(const json_t *leaf, char *buffer)
{
    if (json_is_string(leaf))
        return json_string_value(leaf);
    if (json_is_integer(leaf)) {
        snprintf(buffer, 32, "%lld", (long long)json_integer_value(leaf));
        return buffer;
    }
    return json_is_null(leaf) ? "none" : "";
}

static void render_object(struct text *out, json_t *object, size_t indent);

/* Numbers are aligned to the right of their column. */
static bool is_number(const json_t *cell)
{
    return json_is_integer(cell) || json_is_null(cell);
}

/* Column titles are the keys of the first row; all rows of a list are made by the same code. */
static void render_table(struct text *out, json_t *list, size_t indent)
{
    json_t *first = json_array_get(list, 0);
    size_t column_count = json_object_size(first);
    size_t *widths = calloc(column_count ? column_count : 1, sizeof(*widths));
    if (!widths) {
        out->failed = true;
        return;
    }
    char buffer[32];
    const char *key;
    json_t *cell, *row;
    size_t index, column = 0;
    json_object_foreach (first, key, cell)
        widths[column++] = columns(key);
    json_array_foreach (list, index, row) {
        column = 0;
        json_object_foreach (row, key, cell) {
            size_t width = columns(leaf_words(cell, buffer));
            if (column < column_count && width > widths[column])
                widths[column] = width;
            column++;
        }
    }
    text_add_fill(out, ' ', indent);
    column = 0;
    json_object_foreach (first, key, cell) {
        struct text label;
        text_init(&label);
        add_label(&label, key);
        bool last = ++column == column_count;
        add_padded(out, text_get(&label), last ? 0 : widths[column - 1], is_number(cell));
        text_release(&label);
        text_add(out, last ? "\n" : "  ");
    }
    json_array_foreach (list, index, row) {
        text_add_fill(out, ' ', indent);
        column = 0;
        json_object_foreach (row, key, cell) {
            bool last = column + 1 >= column_count;
            size_t width = last || column >= column_count ? 0 : widths[column];
            add_padded(out, leaf_words(cell, buffer), width, is_number(cell) && !last);
            text_add(out, last ? "" : "  ");
            column++;
        }
        text_add(out, "\n");
    }
    free(widths);
}

static void render_list(struct text *out, json_t *list, size_t indent)
{
    if (json_is_object(json_array_get(list, 0))) {
        render_table(out, list, indent);
        return;
    }
    char buffer[32];
    size_t index;
    json_t *item;
    json_array_foreach (list, index, item) {
        text_add_fill(out, ' ', indent);
        text_addf(out, "- %s\n", leaf_words(item, buffer));
    }
}

static size_t label_width(json_t *object)
{
    size_t widest = 0;
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        if (!json_is_object(value) && !json_is_array(value) && columns(key) > widest)
            widest = columns(key);
    }
    return widest;
}

static void render_object(struct text *out, json_t *object, size_t indent)
{
    size_t width = label_width(object);
    char buffer[32];
    const char *key;
    json_t *value;
    json_object_foreach (object, key, value) {
        text_add_fill(out, ' ', indent);
        size_t start = out->length;
        add_label(out, key);
        if (!json_is_object(value) && !json_is_array(value)) {
            text_add_fill(out, ' ', width + 2 - (out->length - start));
            text_addf(out, "%s\n", leaf_words(value, buffer));
            continue;
        }
        text_add(out, "\n");
        if (json_is_object(value))
            render_object(out, value, indent + 2);
        else
            render_list(out, value, indent + 2);
    }
}

enum status emit_finish(struct emit *emit, FILE *out, struct error *err)
{
    ASSERT(emit->depth == 0);
    struct text text;
    text_init(&text);
    char *json = NULL;
    enum status status = STATUS_OK;
    if (emit->format == EMIT_JSON)
        json = json_dumps(emit->open[0], JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    else
        render_object(&text, emit->open[0], 0);
    if (emit->failed || text.failed || (emit->format == EMIT_JSON && !json))
        status = error_set(err, STATUS_NO_MEMORY, "no memory for output");
    else if (fputs(json ? json : text_get(&text), out) < 0 || (json && fputc('\n', out) == EOF) ||
             fflush(out) != 0)
        status = error_set_os(err, errno, "cannot write the output");
    free(json);
    text_release(&text);
    return status;
}
