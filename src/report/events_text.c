/* events_text.c - an event as a line for people. */
#include "report/events.h"

#include <inttypes.h>

static void add_word(struct text *out, const char *before, const char *text)
{
    if (!text[0])
        return;
    text_add(out, before);
    text_add_printable(out, text_view_of(text), SIZE_MAX);
}

static void add_access(struct text *out, const struct event_access *access)
{
    uint8_t mode = access->mode & EVENT_UPDATE;
    text_addf(out, " %s0x%" PRIx64 "+%" PRIu64,
              mode == EVENT_READ    ? "r:"
              : mode == EVENT_WRITE ? "w:"
                                    : "rw:",
              access->address, access->bytes);
}

static void add_addresses(struct text *out, const struct event *event)
{
    struct events_field fields[EVENTS_FIELD_LIMIT];
    size_t count = events_fields(event, fields);
    for (size_t i = 0; i < count; i++)
        if (fields[i].form == EVENTS_ADDRESS)
            text_addf(out, "  %s 0x%" PRIx64, fields[i].name[0] == 'a' ? "address" : "host",
                      fields[i].value);
}

static void add_outcome(struct text *out, const struct event *event)
{
    text_addf(out, "  %s", event_outcome_name(event->outcome));
    if (event->check)
        text_addf(out, " by %s", event_check_name(event->check));
    if (event->operand != EVENT_NO_OPERAND)
        text_addf(out, " operand %u", (unsigned)event->operand);
    if (event->kind == EVENT_SCAN)
        text_addf(out, ": %" PRIu64 " %s, %" PRIu64 " non-finite", event->scan.value_count,
                  text_plural(event->scan.value_count, "value", "values"), event->scan.bad_count);
    else if (event->check)
        text_addf(out, " expected %" PRIu64 " found %" PRIu64, event->expected, event->found);
    if (event->kind == EVENT_TRAP)
        text_addf(out, " index %" PRId64 " bound %" PRIu64, (int64_t)event->trap.index,
                  event->trap.bound);
    if (event->kind == EVENT_TRANSFER_HASH)
        text_addf(out, " before %016" PRIx64 " after %016" PRIx64 " landed %016" PRIx64,
                  event->transfer.source_before, event->transfer.source_after,
                  event->transfer.destination);
    if (event->kind == EVENT_OP_HASH)
        text_addf(out, " hash %016" PRIx64, event->op_hash.digest);
    if (event->code)
        text_addf(out, " %s code %" PRId32,
                  event_error_domain_name((enum event_error_domain)event->domain), event->code);
}

void events_print_text(const struct flight_info *info, const struct event *event, struct text *out)
{
    char size[TEXT_BYTES_CAPACITY];
    text_addf(out, "%12.6f ms  #%-7" PRIu64 " %-14s",
              (double)events_since(info, event->begin_ns) / 1e6, event->id,
              event_kind_name(event->kind));
    add_word(out, " ", event->op);
    if (event->device_index)
        text_addf(out, "  device %u", (unsigned)event->device_index);
    if (event->stream_index != EVENT_NO_STREAM)
        text_addf(out, "  stream %" PRIu32, event->stream_index);
    if (event->scope.layer >= 0)
        text_addf(out, "  layer %" PRId32, event->scope.layer);
    if (event->scope.step >= 0)
        text_addf(out, "  step %" PRId32, event->scope.step);
    add_word(out, "  tensor ", event->scope.tensor);
    if (event_bytes(event))
        text_addf(out, "  %s", text_bytes(event_bytes(event), size));
    if (event->cause_id)
        text_addf(out, "  of #%" PRIu64, event->cause_id);
    add_addresses(out, event);
    for (size_t i = 0; i < event->access_count; i++)
        add_access(out, &event->accesses[i]);
    add_outcome(out, event);
    if (events_is_call(event) && event->phase == EVENT_END)
        text_addf(out, " in %.1f us", (double)events_duration(event) / 1e3);
    if (event->file[0]) {
        add_word(out, "  ", event->file);
        text_addf(out, ":%u", (unsigned)event->line);
    }
    text_add(out, "\n");
}
