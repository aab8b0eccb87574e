/* render.c - a rendering from its beginning to its end: limits, failures, text. */
#include "template/render.h"

#include <string.h>

#define DEFAULT_STEPS 5000000u
#define DEFAULT_OUTPUT_BYTES ((uint64_t)16 << 20)
#define DEFAULT_MEMORY_BYTES ((uint64_t)128 << 20)

/* ---- Failing --------------------------------------------------------------------------------- */

void jinja_fail(struct render *r, enum template_problem problem, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)jinja_report_va(&r->report, problem, UINT32_MAX, format, arguments);
    va_end(arguments);
}

enum status jinja_fail_undefined(struct render *r, struct value value)
{
    char shown[256] = "";
    struct value owner = { .kind = value.owner };
    bool is_object = value.owner != VALUE_NONE;
    if (value.reason != UNDEFINED_ELEMENT && value.string)
        text_printable(value_text(value), shown, sizeof(shown));
    switch (value.reason) {
    case UNDEFINED_NAME:
        return fail(r, UNDEFINED, "'%s' is undefined", shown);
    case UNDEFINED_ATTRIBUTE:
        return fail(r, UNDEFINED, "'%s%s' has no attribute '%s'", jinja_kind_name(owner),
                    is_object ? " object" : "", shown);
    case UNDEFINED_ELEMENT:
        return fail(r, UNDEFINED, "%s object has no element %lld", jinja_kind_name(owner),
                    (long long)value.integer);
    case UNDEFINED_ARGUMENT:
        return fail(r, UNDEFINED, "parameter '%s' was not provided", shown);
    case UNDEFINED_UNSAFE:
        return fail(r, SECURITY, "access to attribute '%s' of '%s' object is unsafe.", shown,
                    jinja_kind_name(owner));
    case UNDEFINED_BRANCH:
        return fail(r, UNDEFINED,
                    "the inline if-expression evaluated to false and no else section was "
                    "defined.");
    default:
        return fail(r, UNDEFINED, "%s", shown[0] ? shown : "the value is undefined");
    }
}

enum status jinja_spend(struct render *r, uint64_t steps)
{
    if (steps > r->steps_left)
        return fail(r, LIMIT, "the template takes too many steps");
    r->steps_left -= steps;
    return STATUS_OK;
}

enum status jinja_enter(struct render *r)
{
    if (r->depth >= DEPTH_LIMIT)
        return fail(r, LIMIT, "nested more than %u deep", DEPTH_LIMIT);
    r->depth++;
    return STATUS_OK;
}

void jinja_leave(struct render *r)
{
    r->depth--;
}

enum status jinja_take(struct render *r, uint64_t bytes, void *ret_pointer)
{
    void *taken = arena_take(&r->arena, bytes);
    if (!taken) {
        if (r->arena.exhausted == 2) {
            (void)jinja_report_memory(&r->report);
            return STATUS_NO_MEMORY;
        }
        return fail(r, LIMIT, "the template takes more than %llu bytes of memory",
                    (unsigned long long)r->arena.limit_bytes);
    }
    memcpy(ret_pointer, &taken, sizeof(taken));
    return STATUS_OK;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static enum status check_room(struct render *r, uint64_t length)
{
    if (length > r->output_limit || r->out->length - r->out_begin > r->output_limit - length)
        return fail(r, LIMIT, "a text of more than %llu bytes",
                    (unsigned long long)r->output_limit);
    return jinja_spend(r, length / 64);
}

enum status jinja_add(struct render *r, const char *bytes, size_t length)
{
    TRY(check_room(r, length));
    text_add_bytes(r->out, bytes, length);
    return r->out->failed ? jinja_report_memory(&r->report) : STATUS_OK;
}

enum status jinja_add_text(struct render *r, const char *zero_terminated)
{
    return jinja_add(r, zero_terminated, strlen(zero_terminated));
}

enum status jinja_add_view(struct render *r, struct text_view text)
{
    return jinja_add(r, text.bytes, text.length);
}

enum status jinja_add_code(struct render *r, uint32_t code)
{
    char bytes[4];
    return jinja_add(r, bytes, jinja_encode(code, bytes));
}

enum status jinja_add_fill(struct render *r, struct text_view what, uint64_t times)
{
    if (what.length == 0)
        return STATUS_OK;
    if (times > r->output_limit / what.length)
        return fail(r, LIMIT, "a text of more than %llu bytes",
                    (unsigned long long)r->output_limit);
    TRY(check_room(r, times * what.length));
    if (what.length == 1)
        text_add_fill(r->out, what.bytes[0], times);
    else
        for (uint64_t i = 0; i < times; i++)
            text_add_bytes(r->out, what.bytes, what.length);
    return r->out->failed ? jinja_report_memory(&r->report) : jinja_spend(r, times / 8);
}

size_t jinja_text_begin(const struct render *r)
{
    return r->out->length;
}

struct text_view jinja_text_since(const struct render *r, size_t begin)
{
    return (struct text_view){ text_get(r->out) + begin, r->out->length - begin };
}

enum status jinja_text_end(struct render *r, size_t begin, struct value *ret)
{
    TRY(jinja_string(r, jinja_text_since(r, begin), ret));
    r->out->length = begin;
    return STATUS_OK;
}

enum status jinja_string(struct render *r, struct text_view text, struct value *ret)
{
    if (text.length > r->output_limit)
        return fail(r, LIMIT, "a text of more than %llu bytes",
                    (unsigned long long)r->output_limit);
    TRY(jinja_spend(r, text.length / 64));
    struct string *string;
    TRY(jinja_take(r, sizeof(*string) + text.length, &string));
    char *copy = (char *)(string + 1);
    if (text.length)
        memcpy(copy, text.bytes, text.length);
    *string = (struct string){ .bytes = copy,
                               .length = (uint32_t)text.length,
                               .characters = jinja_count_characters(text.bytes, text.length) };
    *ret = value_string(string);
    return STATUS_OK;
}

enum status jinja_string_of(struct render *r, const char *zero_terminated, struct value *ret)
{
    return jinja_string(r, text_view_of(zero_terminated), ret);
}

enum status jinja_mark_safe(struct render *r, struct value value, bool safe, struct value *ret)
{
    struct string *copy;
    *ret = value;
    if (value.string->safe == safe)
        return STATUS_OK;
    TRY(jinja_take(r, sizeof(*copy), &copy));
    *copy = *value.string;
    copy->safe = safe;
    *ret = value_string(copy);
    return STATUS_OK;
}

/* Room after a string that a longer one may take, so that adding to a text again and again does not
 * copy it each time. */
struct tail {
    char *bytes;
    uint32_t used, capacity;
};

#define TAIL_LEAST_BYTES 256u

static enum status concat_new(struct render *r, const struct string *a, const struct string *b,
                              struct string *joined)
{
    uint64_t total = (uint64_t)a->length + b->length;
    uint64_t capacity = total >= TAIL_LEAST_BYTES ? total * 2 : total;
    char *bytes;
    TRY(jinja_spend(r, total / 64));
    TRY(jinja_take(r, capacity, &bytes));
    memcpy(bytes, a->bytes, a->length);
    memcpy(bytes + a->length, b->bytes, b->length);
    joined->bytes = bytes;
    if (capacity == total)
        return STATUS_OK;
    TRY(jinja_take(r, sizeof(*joined->tail), &joined->tail));
    *joined->tail = (struct tail){ bytes, (uint32_t)total, (uint32_t)capacity };
    return STATUS_OK;
}

enum status jinja_concat(struct render *r, struct value first, struct value second,
                         struct value *ret)
{
    const struct string *a = first.string, *b = second.string;
    uint64_t total = (uint64_t)a->length + b->length;
    if (total > r->output_limit)
        return fail(r, LIMIT, "a text of more than %llu bytes",
                    (unsigned long long)r->output_limit);
    struct string *joined;
    TRY(jinja_take(r, sizeof(*joined), &joined));
    joined->length = (uint32_t)total;
    joined->characters = a->characters + b->characters;
    joined->safe = a->safe;
    struct tail *tail = a->tail;
    if (tail && a->bytes + a->length == tail->bytes + tail->used &&
        tail->capacity - tail->used >= b->length) {
        TRY(jinja_spend(r, b->length / 64));
        memcpy(tail->bytes + tail->used, b->bytes, b->length);
        tail->used += b->length;
        joined->bytes = a->bytes;
        joined->tail = tail;
    } else {
        TRY(concat_new(r, a, b, joined));
    }
    *ret = value_string(joined);
    return STATUS_OK;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static enum status fill_globals(struct render *r, const json_t *variables)
{
    const struct template *template = r->template;
    TRY(jinja_take(r, (template->name_count + 1) * sizeof(*r->globals), &r->globals));
    for (uint32_t i = 0; i < template->name_count; i++) {
        const struct string *name = template->names[i];
        const json_t *json = json_object_getn(variables, name->bytes, name->length);
        const struct builtin *row = jinja_function_find(name);
        if (json) {
            TRY(jinja_from_json(r, json, &r->globals[i]));
        } else if (row) {
            struct bound *bound;
            TRY(jinja_take(r, sizeof(*bound), &bound));
            bound->row = row;
            r->globals[i] = (struct value){ .kind = VALUE_BUILTIN, .bound = bound };
        }
    }
    return STATUS_OK;
}

static uint64_t limit_or(uint64_t limit, uint64_t fallback)
{
    return limit ? limit : fallback;
}

enum status template_render(const struct template *template, const struct template_input *input,
                            struct text *out, struct template_failure *failure, struct error *err)
{
    if (!json_is_object(input->variables))
        return error_set(err, STATUS_USAGE, "expected a JSON object with the variables");
    struct render r = {
        .template = template,
        .steps_left = limit_or(input->limits.steps, DEFAULT_STEPS),
        .output_limit = limit_or(input->limits.output_bytes, DEFAULT_OUTPUT_BYTES),
        .out = out,
        .out_begin = out->length,
        .now = input->now,
    };
    r.arena.limit_bytes = limit_or(input->limits.memory_bytes, DEFAULT_MEMORY_BYTES);
    jinja_report_init(&r.report);
    enum status status = fill_globals(&r, input->variables);
    if (!status)
        status = jinja_run(&r, template->root);
    arena_release(&r.arena);
    if (status) {
        out->length = r.out_begin;
        if (out->bytes)
            out->bytes[out->length] = '\0';
        return jinja_report_finish(&r.report, &template->source, failure, err);
    }
    if (out->bytes)
        out->bytes[out->length] = '\0';
    template_failure_release(&r.report.failure);
    return STATUS_OK;
}
