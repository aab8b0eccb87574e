/* events.c - the events of a flight file through a filter into a sink. */
#include "report/events.h"

#include <string.h>

/* Text is handed on once this much has gathered: enough to be cheap, little for any file. */
#define FLUSH_BYTES 65536u

uint64_t events_since(const struct flight_info *info, uint64_t time_ns)
{
    return time_ns > info->start_clock_ns ? time_ns - info->start_clock_ns : 0;
}

uint64_t events_duration(const struct event *event)
{
    return event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0;
}

bool events_is_call(const struct event *event)
{
    return event->kind < EVENT_COMPLETION;
}

bool events_is_stream_work(const struct event *event)
{
    switch (event->kind) {
    case EVENT_COPY_IN:
    case EVENT_COPY_OUT:
    case EVENT_COPY_WITHIN:
    case EVENT_FILL:
    case EVENT_LAUNCH:
    case EVENT_GRAPH_REPLAY:
        return event->stream_index != EVENT_NO_STREAM;
    default:
        return false;
    }
}

const char *events_name(const struct event *event)
{
    return event->op[0] ? event->op : event_kind_name(event->kind);
}

static bool is_failure(const struct event *event)
{
    return event->outcome != EVENT_DONE || event->kind == EVENT_TRAP ||
           event->kind == EVENT_FAULT || event->kind == EVENT_CANARY;
}

bool events_match(const struct flight_info *info, const struct report_filter *filter,
                  const struct event *event)
{
    uint64_t since_ns = events_since(info, event->begin_ns);
    if (filter->stream >= 0 && event->stream_index != (uint32_t)filter->stream)
        return false;
    if (filter->layer >= 0 && event->scope.layer != filter->layer)
        return false;
    if (filter->step >= 0 && event->scope.step != filter->step)
        return false;
    if (filter->tensor[0] && strcmp(filter->tensor, event->scope.tensor) != 0)
        return false;
    if (filter->op[0] && strcmp(filter->op, event->op) != 0 &&
        strcmp(filter->op, event_kind_name(event->kind)) != 0)
        return false;
    if (since_ns < filter->from_ns || (filter->to_ns && since_ns > filter->to_ns))
        return false;
    return !filter->failures_only || is_failure(event);
}

static enum status flush(struct text *out, const struct report_sink *sink, struct error *err)
{
    if (out->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory to print events");
    enum status status = out->length ? sink->write(sink->context, out->bytes, out->length, err)
                                     : STATUS_OK;
    text_clear(out);
    return status;
}

static enum status print_all(const struct flight_reader *reader, const struct report_filter *filter,
                             enum report_event_format format, struct events_chrome *chrome,
                             struct text *out, const struct report_sink *sink, struct error *err)
{
    const struct flight_info *info = flight_info(reader);
    struct event event;
    uint64_t id = 0;
    while (flight_next(reader, &id, &event)) {
        bool wanted = events_match(info, filter, &event);
        if (format == REPORT_EVENT_CHROME)
            events_chrome_add(chrome, &event, wanted, out);
        else if (wanted)
            (format == REPORT_EVENT_TEXT ? events_print_text : events_print_jsonl)(info, &event,
                                                                                   out);
        if (out->length >= FLUSH_BYTES || out->failed)
            TRY(flush(out, sink, err));
    }
    return STATUS_OK;
}

enum status report_events(const struct flight_reader *reader, const struct report_filter *filter,
                          enum report_event_format format, const struct report_sink *sink,
                          struct error *err)
{
    struct events_chrome *chrome = NULL;
    struct text out;
    text_init(&out);
    if (format == REPORT_EVENT_CHROME) {
        chrome = events_chrome_create(reader);
        if (!chrome)
            return error_set(err, STATUS_NO_MEMORY, "no memory for a timeline");
        events_chrome_begin(chrome, &out);
    }
    enum status status = print_all(reader, filter, format, chrome, &out, sink, err);
    if (!status && chrome)
        events_chrome_end(chrome, &out);
    if (!status)
        status = flush(&out, sink, err);
    events_chrome_destroy(chrome);
    text_release(&out);
    return status;
}
