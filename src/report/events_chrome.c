/* events_chrome.c - events as a Chrome trace, which Perfetto opens.
 *
 * Process 1 has the host's threads with their calls, process 2 and the following ones the streams
 * of each device with their work. Where the device tells completions, work lasts from its call, or
 * from the end of what the stream did before, to its completion: streams do one thing after
 * another, so slices of a stream never overlap. Where it does not, the call itself is drawn, and
 * its arguments say so. Arrows: call to work, mark record to mark wait, copy out to the reading of
 * its ticket.
 *
 * What later events refer to is kept in tables of fixed size; what fell out of them is drawn
 * without its arrow. */
#include "report/events.h"

#include "report/escape.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM_LIMIT 256u /* with names and order of work; more are drawn as they come */
#define THREAD_LIMIT 256u
#define RECENT_LIMIT 4096u /* calls that a completion may still refer to */
#define MARK_LIMIT 1024u

enum { PROCESS_HOST = 1, PROCESS_DEVICE = 2 };

struct mark_state {
    bool used;
    uint64_t object, record_id;
};

struct stream_state {
    bool completes;       /* completions are reported */
    bool named;           /* has its name in the file */
    uint64_t work_end_ns; /* of the last work completed */
};

struct events_chrome {
    const struct flight_reader *reader;
    const struct flight_info *info;
    bool any; /* something was printed: a comma comes first */
    struct stream_state streams[EVENT_DEVICE_LIMIT][STREAM_LIMIT];
    bool named_thread[THREAD_LIMIT];     /* has its name in the file */
    struct mark_state marks[MARK_LIMIT]; /* by object, last record */
    uint64_t recent_ids[RECENT_LIMIT];   /* by id modulo; 0: empty */
    bool recent_wanted[RECENT_LIMIT];
    /* Filled where the id stands; not cleared, since most recordings never use all of it. */
    struct event recent[RECENT_LIMIT];
};

/* The state of the event's stream; NULL for one past the limits. */
static struct stream_state *stream_of(struct events_chrome *chrome, const struct event *event)
{
    return event->device_index < EVENT_DEVICE_LIMIT && event->stream_index < STREAM_LIMIT
               ? &chrome->streams[event->device_index][event->stream_index]
               : NULL;
}

/* The process that has the streams of the event's device. */
static int process_of(const struct event *event)
{
    return PROCESS_DEVICE + event->device_index;
}

struct events_chrome *events_chrome_create(const struct flight_reader *reader)
{
    struct events_chrome *chrome = malloc(sizeof(*chrome));
    struct event event;
    uint64_t id = 0;
    if (!chrome)
        return NULL;
    memset(chrome, 0, offsetof(struct events_chrome, recent));
    chrome->reader = reader;
    chrome->info = flight_info(reader);
    while (flight_next(reader, &id, &event)) {
        struct stream_state *stream = stream_of(chrome, &event);
        if (event.kind == EVENT_COMPLETION && stream)
            stream->completes = true;
    }
    return chrome;
}

void events_chrome_destroy(struct events_chrome *chrome)
{
    free(chrome);
}

/* The call with this id, if it is still remembered and the filter took it. */
static const struct event *find_recent(const struct events_chrome *chrome, uint64_t id)
{
    size_t place = id % RECENT_LIMIT;
    return id && chrome->recent_ids[place] == id && chrome->recent_wanted[place]
               ? &chrome->recent[place]
               : NULL;
}

/* ---- Parts of an entry ---------------------------------------------------------------------- */

static void begin_entry(struct events_chrome *chrome, struct text *out)
{
    text_add(out, chrome->any ? ",\n" : "\n");
    chrome->any = true;
}

/* "ph", "pid", "tid" and "ts"; the entry stays open. The format counts in microseconds. */
static void add_entry(struct events_chrome *chrome, struct text *out, const char *phase,
                      int process, uint32_t track, uint64_t time_ns)
{
    begin_entry(chrome, out);
    text_addf(out, "{\"ph\":\"%s\",\"pid\":%d,\"tid\":%" PRIu32 ",\"ts\":%" PRIu64 ".%03" PRIu64,
              phase, process, track, time_ns / 1000, time_ns % 1000);
}

static void add_name(struct text *out, const char *name, const char *category)
{
    text_add(out, ",\"name\":");
    escape_json(out, name);
    text_addf(out, ",\"cat\":\"%s\"", category);
}

static void name_track(struct events_chrome *chrome, struct text *out, int process, uint32_t track)
{
    /* NOLINTNEXTLINE(bugprone-branch-clone): two limits that happen to be one number */
    uint32_t limit = process == PROCESS_HOST ? THREAD_LIMIT : STREAM_LIMIT;
    if (track >= limit || process >= PROCESS_DEVICE + (int)EVENT_DEVICE_LIMIT)
        return;
    bool *named = process == PROCESS_HOST ? &chrome->named_thread[track]
                                          : &chrome->streams[process - PROCESS_DEVICE][track].named;
    if (*named)
        return;
    *named = true;
    begin_entry(chrome, out);
    text_addf(out,
              "{\"ph\":\"M\",\"pid\":%d,\"tid\":%" PRIu32
              ",\"name\":\"thread_name\",\"args\":{\"name\":\"%s %" PRIu32 "\"}}",
              process, track, process == PROCESS_HOST ? "thread" : "stream", track);
}

static void add_arguments(struct text *out, const struct event *event, const char *note)
{
    text_addf(out, ",\"args\":{\"event\":\"%" PRIu64 "\",\"kind\":\"%s\",\"outcome\":\"%s\"",
              event->id, event_kind_name(event->kind), event_outcome_name(event->outcome));
    if (event->scope.layer >= 0)
        text_addf(out, ",\"layer\":%" PRId32, event->scope.layer);
    if (event->scope.step >= 0)
        text_addf(out, ",\"step\":%" PRId32, event->scope.step);
    if (event->scope.tensor[0]) {
        text_add(out, ",\"tensor\":");
        escape_json(out, event->scope.tensor);
    }
    if (event_bytes(event))
        text_addf(out, ",\"bytes\":\"%" PRIu64 "\"", event_bytes(event));
    if (event->check)
        text_addf(out, ",\"check\":\"%s\",\"expected\":\"%" PRIu64 "\",\"found\":\"%" PRIu64 "\"",
                  event_check_name(event->check), event->expected, event->found);
    if (event->file[0]) {
        text_add(out, ",\"file\":");
        escape_json(out, event->file);
        text_addf(out, ",\"line\":%u", (unsigned)event->line);
    }
    if (note)
        text_addf(out, ",\"note\":\"%s\"", note);
    text_add(out, "}");
}

static void add_slice(struct events_chrome *chrome, struct text *out, int process, uint32_t track,
                      const struct event *event, uint64_t begin_ns, uint64_t end_ns,
                      const char *note)
{
    uint64_t duration_ns = end_ns > begin_ns ? end_ns - begin_ns : 0;
    name_track(chrome, out, process, track);
    add_entry(chrome, out, "X", process, track, begin_ns);
    text_addf(out, ",\"dur\":%" PRIu64 ".%03" PRIu64, duration_ns / 1000, duration_ns % 1000);
    add_name(out, events_name(event), event_kind_name(event->kind));
    add_arguments(out, event, note);
    text_add(out, "}");
}

/* phase "s" begins an arrow, "f" ends it at the slice around its time. */
static void add_arrow(struct events_chrome *chrome, struct text *out, const char *phase,
                      int process, uint32_t track, uint64_t time_ns, const char *category,
                      uint64_t id)
{
    add_entry(chrome, out, phase, process, track, time_ns);
    add_name(out, category, category);
    text_addf(out, ",\"id\":\"%s-%" PRIu64 "\"%s}", category, id,
              phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static void add_instant(struct events_chrome *chrome, struct text *out, const struct event *event)
{
    bool on_stream = event->stream_index != EVENT_NO_STREAM;
    int process = on_stream ? process_of(event) : PROCESS_HOST;
    uint32_t track = on_stream ? event->stream_index : event->thread_index;
    name_track(chrome, out, process, track);
    add_entry(chrome, out, "i", process, track, events_since(chrome->info, event->begin_ns));
    text_addf(out, ",\"s\":\"%s\"", event->kind == EVENT_RUN ? "g" : "t");
    add_name(out, event_kind_name(event->kind), event_kind_name(event->kind));
    add_arguments(out, event, NULL);
    text_add(out, "}");
}

/* ---- Events --------------------------------------------------------------------------------- */

static void add_mark(struct events_chrome *chrome, struct text *out, const struct event *event,
                     uint64_t time_ns)
{
    struct mark_state *mark = &chrome->marks[event->mark.mark % MARK_LIMIT];
    if (event->kind == EVENT_MARK_RECORD) {
        *mark = (struct mark_state){ true, event->mark.mark, event->id };
        add_arrow(chrome, out, "s", PROCESS_HOST, event->thread_index, time_ns, "mark", event->id);
    } else if (mark->used && mark->object == event->mark.mark) {
        add_arrow(chrome, out, "f", PROCESS_HOST, event->thread_index, time_ns, "mark",
                  mark->record_id);
    }
}

static void add_call(struct events_chrome *chrome, struct text *out, const struct event *event)
{
    uint64_t begin_ns = events_since(chrome->info, event->begin_ns);
    uint64_t end_ns = begin_ns + events_duration(event);
    const char *note = event->outcome == EVENT_PENDING ? "no end was seen" : NULL;
    add_slice(chrome, out, PROCESS_HOST, event->thread_index, event, begin_ns, end_ns, note);
    if (event->outcome == EVENT_REFUSED)
        return;
    if (event->kind == EVENT_MARK_RECORD || event->kind == EVENT_MARK_WAIT ||
        event->kind == EVENT_MARK_SYNC)
        add_mark(chrome, out, event, begin_ns);
    if (event->kind == EVENT_COPY_OUT)
        add_arrow(chrome, out, "s", PROCESS_HOST, event->thread_index, begin_ns, "ticket",
                  event->id);
    /* After a fault the cause is the fault, and an old copy may be forgotten. */
    const struct event *copy = find_recent(chrome, event->cause_id);
    if (event->kind == EVENT_TICKET_REDEEM && copy && copy->kind == EVENT_COPY_OUT &&
        copy->outcome != EVENT_REFUSED)
        add_arrow(chrome, out, "f", PROCESS_HOST, event->thread_index, begin_ns, "ticket",
                  event->cause_id);
    if (!events_is_stream_work(event))
        return;
    add_arrow(chrome, out, "s", PROCESS_HOST, event->thread_index, begin_ns, "work", event->id);
    const struct stream_state *stream = stream_of(chrome, event);
    if (stream && stream->completes)
        return;
    add_slice(chrome, out, process_of(event), event->stream_index, event, begin_ns, end_ns,
              "time of the call: completions were not recorded");
    add_arrow(chrome, out, "f", process_of(event), event->stream_index, begin_ns, "work",
              event->id);
}

/* The work of an earlier call is done: now it can be drawn. */
static void add_completion(struct events_chrome *chrome, struct text *out,
                           const struct event *event)
{
    const struct event *call = find_recent(chrome, event->cause_id);
    uint64_t end_ns = events_since(chrome->info, event->begin_ns);
    uint64_t last_ns = 0;
    struct stream_state *stream = stream_of(chrome, event);
    if (stream) {
        last_ns = stream->work_end_ns;
        if (end_ns > last_ns)
            stream->work_end_ns = end_ns;
    }
    if (!call)
        return;
    uint64_t begin_ns = events_since(chrome->info, call->begin_ns);
    if (begin_ns < last_ns)
        begin_ns = last_ns;
    add_slice(chrome, out, process_of(event), event->stream_index, call, begin_ns, end_ns, NULL);
    add_arrow(chrome, out, "f", process_of(event), event->stream_index, begin_ns, "work", call->id);
}

static void name_process(struct events_chrome *chrome, struct text *out, int process,
                         const char *name)
{
    begin_entry(chrome, out);
    text_addf(out, "{\"ph\":\"M\",\"pid\":%d,\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}",
              process, name);
}

void events_chrome_begin(struct events_chrome *chrome, struct text *out)
{
    text_add(out, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"device\":");
    escape_json(out, chrome->info->device);
    text_add(out, ",\"command\":");
    escape_json(out, chrome->info->command);
    text_add(out, "},\"traceEvents\":[");
    name_process(chrome, out, PROCESS_HOST, "host threads");
    name_process(chrome, out, PROCESS_DEVICE, "device streams");
    for (uint32_t i = 1; i < EVENT_DEVICE_LIMIT; i++) {
        struct flight_device unused;
        char name[32];
        snprintf(name, sizeof(name), "streams of device %" PRIu32, i);
        if (flight_device_at(chrome->reader, i, &unused))
            name_process(chrome, out, PROCESS_DEVICE + (int)i, name);
    }
}

void events_chrome_add(struct events_chrome *chrome, const struct event *event, bool wanted,
                       struct text *out)
{
    if (event->kind == EVENT_COMPLETION) {
        add_completion(chrome, out, event);
        return;
    }
    if (events_is_stream_work(event)) {
        chrome->recent[event->id % RECENT_LIMIT] = *event;
        chrome->recent_ids[event->id % RECENT_LIMIT] = event->id;
        chrome->recent_wanted[event->id % RECENT_LIMIT] = wanted;
    }
    if (!wanted)
        return;
    if (events_is_call(event))
        add_call(chrome, out, event);
    else
        add_instant(chrome, out, event);
}

/* Where streams of a device stopped, from its crumbs. */
static void add_stopped(struct events_chrome *chrome, uint32_t device_index, struct text *out)
{
    const struct crumb_page *crumbs = flight_reader_device_crumbs(chrome->reader, device_index);
    int process = PROCESS_DEVICE + (int)device_index;
    for (uint32_t i = 0; crumbs && i < CRUMB_STREAM_LIMIT; i++) {
        uint64_t entered = crumb_entered(&crumbs->streams[i]);
        const struct event *call = find_recent(chrome, entered);
        if (!call || entered <= crumb_finished(&crumbs->streams[i]))
            continue;
        name_track(chrome, out, process, i);
        add_entry(chrome, out, "i", process, i, events_since(chrome->info, call->begin_ns));
        text_add(out, ",\"s\":\"p\"");
        add_name(out,
                 crumb_order(crumbs) == CRUMB_ORDER_EXACT ? "entered, not finished"
                                                          : "entered last, end not known",
                 "crumb");
        add_arguments(out, call, NULL);
        text_add(out, "}");
    }
}

void events_chrome_end(struct events_chrome *chrome, struct text *out)
{
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++)
        add_stopped(chrome, i, out);
    text_add(out, "\n]}\n");
}
