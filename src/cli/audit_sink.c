/* audit_sink.c - see audit_sink.h.
 *
 * A copy is open from the beginning of its copy out until its ticket is redeemed, released or
 * refused: only then its outcome is known. Events of several threads may come at once; the lock
 * keeps the lines of one copy together. */
#include "cli/audit_sink.h"

#include "cli/audit_sink_words.h"

#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Tickets and buffers are numbered from 1; beyond this limit they are shown without the fields that
 * are kept here. */
#define TICKET_LIMIT 4096u
#define BUFFER_LIMIT 65536u

struct copy {
    bool open;
    uint64_t op_id;
    uint64_t source, target, bytes;
    uint32_t stream_index;
    struct event_scope scope;
};

struct allocation {
    uint64_t address, bytes;
};

struct audit_sink {
    bool trace, audit, debug;
    FILE *log;  /* of audit */
    bool owned; /* the sink opened the log and closes it */
    bool failed;
    pthread_mutex_t lock; /* guards the rest */
    uint64_t next_op_id;
    uint64_t wall_offset_ns; /* difference between the event clock and time since 1970 */
    char kind[EVENT_OP_BYTES];
    struct copy copies[TICKET_LIMIT];
    struct allocation *allocations; /* BUFFER_LIMIT of them, for debug */
};

/* ---- Lines ---------------------------------------------------------------------------------- */

static const char *name_of(const struct event_scope *scope)
{
    return scope->tensor[0] ? scope->tensor : "unnamed";
}

static void write_time(const struct audit_sink *sink, FILE *out, uint64_t clock)
{
    uint64_t wall_us = (clock + sink->wall_offset_ns) / 1000;
    fprintf(out, "ts=%" PRIu64 ".%06" PRIu64, wall_us / 1000000, wall_us % 1000000);
}

static void write_start(struct audit_sink *sink, const struct copy *copy, uint64_t clock)
{
    fprintf(sink->log, "[D2H_AUDIT_START] op_id=%" PRIu64 " ", copy->op_id);
    write_time(sink, sink->log, clock);
    fprintf(sink->log,
            " stream=0x%" PRIx32 " dev_ptr=0x%" PRIx64 " host_ptr=0x%" PRIx64 " bytes=%" PRIu64
            " tensor=%s step=%" PRId32 " layer=%" PRId32 "\n",
            copy->stream_index, copy->source, copy->target, copy->bytes, name_of(&copy->scope),
            copy->scope.step, copy->scope.layer);
    /* Written before the copy: if the process dies in the copy, this line is there. */
    sink->failed |= fflush(sink->log) != 0;
}

static void write_end(struct audit_sink *sink, const struct copy *copy, const struct event *event)
{
    fprintf(sink->log, "[D2H_AUDIT_END] op_id=%" PRIu64 " ", copy->op_id);
    write_time(sink, sink->log, event->end_ns);
    char words[AUDIT_SINK_WORDS_BYTES];
    fprintf(sink->log, " stream=0x%" PRIx32 " result=%s tensor=%s\n", copy->stream_index,
            audit_sink_result(sink->kind, event, words), name_of(&copy->scope));
    sink->failed |= fflush(sink->log) != 0;
}

static void write_check(struct audit_sink *sink, const struct copy *copy, const struct event *event)
{
    struct allocation allocation = { copy->source, copy->bytes };
    uint32_t buffer = event->access_count ? event->accesses[0].buffer_index : 0;
    if (buffer && buffer < BUFFER_LIMIT)
        allocation = sink->allocations[buffer];
    fprintf(stderr, "[D2H SAFE] engaged for tensor=%s\n", name_of(&copy->scope));
    fprintf(stderr,
            "[D2H_CHECK] tensor=%s step=%" PRId32 " layer=%" PRId32 " src_ptr=0x%" PRIx64
            " dst_ptr=0x%" PRIx64 " offset=%" PRIu64 " size=%" PRIu64 " alloc=%" PRIu64 "\n",
            name_of(&copy->scope), copy->scope.step, copy->scope.layer, copy->source, copy->target,
            copy->source - allocation.address, copy->bytes, allocation.bytes);
}

static void tell_start(struct audit_sink *sink, const struct copy *copy, const struct event *event)
{
    if (sink->trace)
        fprintf(stderr,
                "[D2H TRACE] %s:before\n  src_ptr=0x%" PRIx64 "\n  bytes=%" PRIu64
                "\n  stream=0x%" PRIx32 "\n",
                name_of(&copy->scope), copy->source, copy->bytes, copy->stream_index);
    if (sink->debug)
        write_check(sink, copy, event);
    if (sink->audit)
        write_start(sink, copy, event->begin_ns);
    if (sink->trace || sink->debug)
        fflush(stderr);
}

static void tell_success(struct audit_sink *sink, const struct copy *copy,
                         const struct event *event)
{
    if (sink->trace)
        fprintf(stderr, "[D2H TRACE] %s:after\n  dst_ptr=0x%" PRIx64 "\n  bytes=%" PRIu64 "\n",
                name_of(&copy->scope), copy->target, copy->bytes);
    char words[AUDIT_SINK_WORDS_BYTES];
    if (sink->debug)
        fprintf(stderr, "[D2H SAFE] async copy succeeded: %s\n",
                audit_sink_result(sink->kind, event, words));
}

/* An error from before the copy is not the copy's. */
static void tell_failure(struct audit_sink *sink, const struct copy *copy,
                         const struct event *event)
{
    char words[AUDIT_SINK_WORDS_BYTES];
    const char *text = audit_sink_error(sink->kind, event, words);
    bool before = event->kind == EVENT_COPY_OUT && event->cause_id; /* the fault's event */
    const char *what = event->outcome == EVENT_REFUSED ? "Not copied:"
                       : before                        ? "Stream sync failed before"
                                                       : "Async copy failed";
    if (sink->trace)
        fprintf(stderr,
                "[D2H FATAL] %s:FAILED\n  src_ptr=0x%" PRIx64 "\n  dst_ptr=0x%" PRIx64
                "\n  bytes=%" PRIu64 "\n  %s=%s\n",
                name_of(&copy->scope), copy->source, copy->target, copy->bytes,
                audit_sink_error_key(sink->kind), text);
    if (sink->debug)
        fprintf(stderr, "[D2H SAFE] %s %s: %s\n", what, name_of(&copy->scope), text);
}

/* ---- Events --------------------------------------------------------------------------------- */

static struct copy copy_of(struct audit_sink *sink, const struct event *event)
{
    return (struct copy){ .open = true,
                          .op_id = sink->next_op_id++,
                          .source = event->access_count ? event->accesses[0].address : 0,
                          .target = event->copy.host_address,
                          .bytes = event->copy.bytes,
                          .stream_index = event->stream_index,
                          .scope = event->scope };
}

static void on_end(struct audit_sink *sink, struct copy *copy, const struct event *event)
{
    copy->open = false;
    if (event->outcome == EVENT_DONE)
        tell_success(sink, copy, event);
    else
        tell_failure(sink, copy, event);
    if (sink->audit)
        write_end(sink, copy, event);
    if (sink->trace || sink->debug)
        fflush(stderr);
}

static void on_copy_out(struct audit_sink *sink, const struct event *event)
{
    struct copy refused = { .open = false };
    struct copy *copy = event->copy.ticket < TICKET_LIMIT ? &sink->copies[event->copy.ticket]
                                                          : &refused;
    if (event->phase == EVENT_BEGIN) {
        *copy = copy_of(sink, event);
        tell_start(sink, copy, event);
        return;
    }
    if (event->outcome == EVENT_DONE)
        return; /* queued; the ticket says how it went */
    if (event->outcome == EVENT_REFUSED ||
        copy == &refused) { /* it never began, as far as is known here */
        copy = &refused;
        *copy = copy_of(sink, event);
        tell_start(sink, copy, event);
    }
    on_end(sink, copy, event);
}

static void on_ticket(struct audit_sink *sink, const struct event *event)
{
    if (event->phase != EVENT_END || event->ticket.ticket == 0 ||
        event->ticket.ticket >= TICKET_LIMIT)
        return;
    struct copy *copy = &sink->copies[event->ticket.ticket];
    if (copy->open && event->check != EVENT_CHECK_TICKET)
        on_end(sink, copy, event);
}

static void on_buffer(struct audit_sink *sink, const struct event *event)
{
    if (sink->debug && event->phase == EVENT_END && event->outcome == EVENT_DONE &&
        event->buffer.buffer_index < BUFFER_LIMIT)
        sink->allocations[event->buffer.buffer_index] =
            (struct allocation){ event->accesses[0].address, event->accesses[0].bytes };
}

static void notify(void *context, const struct event *event)
{
    struct audit_sink *sink = context;
    switch ((enum event_kind)event->kind) {
    case EVENT_DEVICE_OPEN:
    case EVENT_BUFFER_CREATE:
    case EVENT_COPY_OUT:
    case EVENT_TICKET_REDEEM:
    case EVENT_TICKET_RELEASE:
        break;
    default:
        return; /* no lock for launches */
    }
    pthread_mutex_lock(&sink->lock);
    if (event->kind == EVENT_DEVICE_OPEN)
        event_set_text(sink->kind, sizeof(sink->kind), event->op);
    else if (event->kind == EVENT_BUFFER_CREATE)
        on_buffer(sink, event);
    else if (event->kind == EVENT_COPY_OUT)
        on_copy_out(sink, event);
    else
        on_ticket(sink, event);
    pthread_mutex_unlock(&sink->lock);
}

/* ---- Life ----------------------------------------------------------------------------------- */

static uint64_t wall_offset(void)
{
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - clock_ns();
}

bool audit_sink_is_wanted(const struct cli_environment *environment)
{
    return environment->d2h_trace || environment->d2h_audit || environment->d2h_debug;
}

enum status audit_sink_create(const struct cli_environment *environment,
                              struct audit_sink **ret_sink, struct error *err)
{
    *ret_sink = NULL;
    if (!audit_sink_is_wanted(environment))
        return STATUS_OK;
    struct audit_sink *sink = calloc(1, sizeof(*sink));
    if (sink)
        sink->allocations = calloc(BUFFER_LIMIT, sizeof(*sink->allocations));
    if (!sink || !sink->allocations) {
        free(sink);
        return error_set(err, STATUS_NO_MEMORY, "no memory for the log of copies");
    }
    sink->trace = environment->d2h_trace;
    sink->audit = environment->d2h_audit;
    sink->debug = environment->d2h_debug;
    sink->wall_offset_ns = wall_offset();
    sink->log = stderr;
    if (sink->audit && environment->d2h_audit_log) {
        sink->log = fopen(environment->d2h_audit_log, "ae");
        if (!sink->log) {
            error_set_os(err, errno, "%s: cannot write the log of copies",
                         environment->d2h_audit_log);
            free(sink->allocations);
            free(sink);
            return err->status;
        }
        sink->owned = true;
    }
    pthread_mutex_init(&sink->lock, NULL);
    *ret_sink = sink;
    return STATUS_OK;
}

void audit_sink_destroy(struct audit_sink *sink, bool *ret_complete)
{
    *ret_complete = true;
    if (!sink)
        return;
    bool closed = !sink->owned || fclose(sink->log) == 0;
    *ret_complete = closed && !sink->failed;
    pthread_mutex_destroy(&sink->lock);
    free(sink->allocations);
    free(sink);
}

struct event_observer audit_sink_observer(struct audit_sink *sink)
{
    if (!sink)
        return (struct event_observer){ 0 };
    return (struct event_observer){ notify, sink };
}
