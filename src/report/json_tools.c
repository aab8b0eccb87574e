/* json_tools.c - see json_tools.h. */
#include "report/json_tools.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void json_put(struct text *out, json_t *object, const char *key, json_t *value)
{
    if (json_object_set_new(object, key, value))
        out->failed = true;
}

void json_add(struct text *out, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value))
        out->failed = true;
}

/* New text; bytes that are no UTF-8 are shown as \xHH. */
static json_t *text_value(struct text *out, const char *text)
{
    if (!text)
        return json_null();
    json_t *value = json_string(text);
    if (value)
        return value;
    struct text shown;
    text_init(&shown);
    text_add_printable(&shown, text_view_of(text), SIZE_MAX);
    out->failed = out->failed || shown.failed;
    value = json_string(text_get(&shown));
    text_release(&shown);
    return value;
}

void json_put_text(struct text *out, json_t *object, const char *key, const char *text)
{
    json_put(out, object, key, text_value(out, text));
}

void json_add_text(struct text *out, json_t *array, const char *text)
{
    json_add(out, array, text_value(out, text));
}

void json_put_flag(struct text *out, json_t *object, const char *key, bool value)
{
    json_put(out, object, key, json_boolean(value));
}

void json_put_count(struct text *out, json_t *object, const char *key, uint64_t value)
{
    char number[24];
    snprintf(number, sizeof(number), "%" PRIu64, value);
    json_put(out, object, key,
             value > INT64_MAX ? json_string(number) : json_integer((json_int_t)value));
}

void json_put_integer(struct text *out, json_t *object, const char *key, int64_t value)
{
    json_put(out, object, key, json_integer(value));
}

void json_put_real(struct text *out, json_t *object, const char *key, double value)
{
    json_put(out, object, key, isfinite(value) ? json_real(value) : json_null());
}

void json_put_address(struct text *out, json_t *object, const char *key, uint64_t address)
{
    char number[24];
    snprintf(number, sizeof(number), "0x%" PRIx64, address);
    json_put_text(out, object, key, number);
}

const char *json_language_name(enum report_language language)
{
    static const char *const names[] = { [REPORT_ENGLISH] = "en", [REPORT_SPANISH] = "es" };
    _Static_assert(COUNT_OF(names) == REPORT_LANGUAGE_COUNT, "every language has a name");
    ASSERT((unsigned)language < REPORT_LANGUAGE_COUNT);
    return names[language];
}

void json_put_finding_words(struct text *out, json_t *object, const char *key,
                            const struct finding *finding)
{
    json_t *both = json_object();
    for (int i = 0; i < REPORT_LANGUAGE_COUNT; i++) {
        struct text words;
        text_init(&words);
        report_finding_describe(finding, (enum report_language)i, &words);
        json_put_text(out, both, json_language_name((enum report_language)i), text_get(&words));
        out->failed = out->failed || words.failed;
        text_release(&words);
    }
    json_put(out, object, key, both);
}

static const char *access_name(uint8_t mode)
{
    if (mode & EVENT_MAYBE)
        return "unknown";
    mode &= EVENT_UPDATE;
    return mode == EVENT_READ     ? "read"
           : mode == EVENT_WRITE  ? "write"
           : mode == EVENT_UPDATE ? "update"
                                  : NULL;
}

void json_put_place(struct text *out, json_t *object, const char *key,
                    const struct analyze_place *place)
{
    if (place->event_id == 0) {
        json_put(out, object, key, json_null());
        return;
    }
    json_t *item = json_object();
    json_put_count(out, item, "event", place->event_id);
    json_put_count(out, item, "time_ns", place->time_ns);
    json_put_text(out, item, "kind", event_kind_name(place->kind));
    json_put_text(out, item, "op", place->op);
    json_put_integer(out, item, "layer", place->scope.layer);
    json_put_integer(out, item, "step", place->scope.step);
    json_put_text(out, item, "tensor", place->scope.tensor);
    json_put_text(out, item, "file", place->file);
    json_put_count(out, item, "line", place->line);
    if (place->stream_index == EVENT_NO_STREAM)
        json_put(out, item, "stream", json_null());
    else
        json_put_count(out, item, "stream", place->stream_index);
    if (place->device_index) /* the first device of a recording is not named */
        json_put_count(out, item, "device", place->device_index);
    json_put_count(out, item, "thread", place->thread_index);
    json_put_count(out, item, "iteration", place->iteration);
    json_put_count(out, item, "graph_replay", place->epoch);
    json_put_count(out, item, "graph_node", place->node);
    if (place->operand == EVENT_NO_OPERAND)
        json_put(out, item, "operand", json_null());
    else
        json_put_count(out, item, "operand", place->operand);
    json_put_text(out, item, "operand_name", place->operand_name[0] ? place->operand_name : NULL);
    json_put_text(out, item, "access", access_name(place->mode));
    json_put_address(out, item, "address", place->address);
    json_put_count(out, item, "bytes", place->bytes);
    json_put_text(out, item, "buffer", place->buffer);
    json_put_count(out, item, "buffer_index", place->buffer_index);
    json_put_count(out, item, "generation", place->generation);
    json_put(out, object, key, item);
}

const char *json_self_test_name(enum self_test_state state)
{
    return state == SELF_TEST_PASSED ? "passed" : state == SELF_TEST_FAILED ? "failed" : "absent";
}

static int add_piece(const char *bytes, size_t count, void *context)
{
    struct text *out = context;
    text_add_bytes(out, bytes, count);
    return out->failed ? -1 : 0;
}

void json_print(struct text *out, json_t *root)
{
    if (!root || json_dump_callback(root, add_piece, out, JSON_INDENT(2) | JSON_REAL_PRECISION(15)))
        out->failed = true;
    text_add(out, "\n");
    json_decref(root);
}
