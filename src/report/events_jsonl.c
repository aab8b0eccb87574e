/* events_jsonl.c - an event as a line of JSON; fields as in docs/report-format.md. */
#include "report/events.h"

#include "report/escape.h"

#include <inttypes.h>

static void add_text(struct text *out, const char *key, const char *text)
{
    text_addf(out, ",\"%s\":", key);
    escape_json(out, text);
}

/* Numbers past 2^53 lose digits in many readers: those become text. */
static void add_number(struct text *out, const char *key, uint64_t value)
{
    const char *quote = value > (UINT64_C(1) << 53) ? "\"" : "";
    text_addf(out, ",\"%s\":%s%" PRIu64 "%s", key, quote, value, quote);
}

static void add_accesses(struct text *out, const struct event *event)
{
    static const char *const modes[] = { "none", "read", "write", "update" };
    text_add(out, ",\"accesses\":[");
    for (size_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        text_addf(out,
                  "%s{\"operand\":%u,\"mode\":\"%s\",\"address\":\"0x%" PRIx64
                  "\",\"bytes\":\"%" PRIu64 "\",\"buffer\":%" PRIu32 ",\"generation\":%u}",
                  i ? "," : "", (unsigned)access->operand, modes[access->mode & 3], access->address,
                  access->bytes, access->buffer_index, (unsigned)access->generation);
    }
    text_add(out, "]");
}

/* Hashes as text, all digits: no reader compares them as numbers. */
static void add_fields(struct text *out, const struct event *event)
{
    struct events_field fields[EVENTS_FIELD_LIMIT];
    size_t count = events_fields(event, fields);
    for (size_t i = 0; i < count; i++) {
        const struct events_field *field = &fields[i];
        const char *word = events_field_word(field);
        if (word)
            add_text(out, field->name, word);
        else if (field->form == EVENTS_ADDRESS)
            text_addf(out, ",\"%s\":\"0x%" PRIx64 "\"", field->name, field->value);
        else if (field->form == EVENTS_HASH)
            text_addf(out, ",\"%s\":\"%016" PRIx64 "\"", field->name, field->value);
        else if (field->form == EVENTS_SIGNED)
            text_addf(out, ",\"%s\":%" PRId64, field->name, (int64_t)field->value);
        else
            add_number(out, field->name, field->value);
    }
}

static void add_outcome(struct text *out, const struct event *event)
{
    add_text(out, "outcome", event_outcome_name(event->outcome));
    if (event->check)
        add_text(out, "check", event_check_name(event->check));
    if (event->operand != EVENT_NO_OPERAND)
        add_number(out, "operand", event->operand);
    if (event->check) {
        add_number(out, "expected", event->expected);
        add_number(out, "found", event->found);
    }
    text_addf(out, ",\"code\":%" PRId32, event->code);
    if (event->code)
        add_text(out, "domain", event_error_domain_name((enum event_error_domain)event->domain));
}

void events_print_jsonl(const struct flight_info *info, const struct event *event, struct text *out)
{
    text_addf(out, "{\"id\":%s%" PRIu64 "%s", event->id > (UINT64_C(1) << 53) ? "\"" : "",
              event->id, event->id > (UINT64_C(1) << 53) ? "\"" : "");
    add_text(out, "kind", event_kind_name(event->kind));
    add_text(out, "op", event->op);
    add_number(out, "time_ns", events_since(info, event->begin_ns));
    if (event->phase == EVENT_END)
        add_number(out, "duration_ns", events_duration(event));
    if (event->stream_index != EVENT_NO_STREAM)
        add_number(out, "stream", event->stream_index);
    add_number(out, "thread", event->thread_index);
    add_number(out, "device", event->device_index);
    add_number(out, "process", event->process_id);
    text_addf(out, ",\"layer\":%" PRId32 ",\"step\":%" PRId32, event->scope.layer,
              event->scope.step);
    add_text(out, "tensor", event->scope.tensor);
    if (event->cause_id)
        add_number(out, "cause", event->cause_id);
    add_fields(out, event);
    add_text(out, "file", event->file);
    add_number(out, "line", event->line);
    add_outcome(out, event);
    add_accesses(out, event);
    text_add(out, "}\n");
}
