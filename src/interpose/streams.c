/* streams.c - streams, marks and waits. */
#include "interpose/interpose_impl.h"

#include "base/size.h"

#include <string.h>

/* ---- Streams -------------------------------------------------------------------------------- */

/* The default stream per thread is a stream of its own for each thread. */
static struct interpose_stream key_of(const struct interpose_call *call,
                                      const struct interpose_stream *stream)
{
    struct interpose_stream key = stream ? *stream
                                         : (struct interpose_stream){ 0, INTERPOSE_STREAM_LEGACY };
    if (key.handle == 0)
        key.handle = INTERPOSE_STREAM_LEGACY;
    if (key.handle == INTERPOSE_STREAM_PER_THREAD)
        key.handle |= (uint64_t)call->event.thread_index << 32 | UINT64_C(1) << 63;
    else if (key.handle != INTERPOSE_STREAM_LEGACY)
        key.context = 0; /* handles are unique without the context */
    return key;
}

static struct tracked_stream *find_stream(const struct interpose *interpose,
                                          const struct interpose_stream *key)
{
    for (size_t i = 0; i < interpose->stream_count; i++) {
        struct tracked_stream *stream = &interpose->streams[i];
        if (stream->key.handle == key->handle && stream->key.context == key->context)
            return stream;
    }
    return NULL;
}

static struct tracked_stream *take_stream(struct interpose *interpose,
                                          const struct interpose_stream *key)
{
    struct tracked_stream *stream = find_stream(interpose, key);
    if (stream)
        return stream;
    if (interpose->stream_count == STREAM_TRACKED_LIMIT)
        return NULL;
    stream = &interpose->streams[interpose->stream_count++];
    *stream = (struct tracked_stream){ .key = *key,
                                       .index = UINT32_MAX,
                                       .blocking = true,
                                       .legacy = key->handle == INTERPOSE_STREAM_LEGACY };
    return stream;
}

/* Only streams that get work have numbers: programs make pools of streams. */
static void number_stream(struct interpose *interpose, struct tracked_stream *stream)
{
    uint32_t used = 0;
    if (stream->index != UINT32_MAX)
        return;
    for (size_t i = 0; i < interpose->stream_count; i++)
        if (interpose->streams[i].index != UINT32_MAX && interpose->streams[i].index >= used)
            used = interpose->streams[i].index + 1;
    stream->index = used;
}

static uint32_t flags_of(const struct tracked_stream *stream)
{
    if (stream->legacy)
        return EVENT_LEGACY_STREAM;
    return stream->blocking ? EVENT_BLOCKING : 0;
}

struct tracked_stream *stream_use(struct interpose *interpose, struct interpose_call *call,
                                  const struct interpose_stream *stream)
{
    struct interpose_stream key = key_of(call, stream);
    struct tracked_stream *used = take_stream(interpose, &key);
    if (!used)
        return NULL;
    number_stream(interpose, used);
    call->event.stream_index = used->index;
    call->event.flags |= flags_of(used);
    if (used->destroyed)
        translate_check(call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, 0, key.handle);
    return used;
}

/* Until its next work is waited for. */
static void stream_hold(struct tracked_stream *stream)
{
    stream->gate = stream->queued + 1;
}

/* Work after work that the host may hold back is held back with it. */
static void take_gate(struct tracked_stream *stream, const struct tracked_stream *other,
                      uint64_t queued)
{
    if (other->gate > other->done && other->gate <= queued)
        stream_hold(stream);
}

void stream_queue(struct interpose *interpose, struct tracked_stream *stream)
{
    bool joins = stream->legacy || stream->blocking;
    for (size_t i = 0; joins && i < interpose->stream_count; i++) {
        const struct tracked_stream *other = &interpose->streams[i];
        if (other != stream && (stream->legacy ? other->blocking || other->legacy : other->legacy))
            take_gate(stream, other, other->queued);
    }
    stream->queued++;
    if (!joins)
        return;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        const struct tracked_stream *other = &interpose->streams[copy->stream];
        if (other != stream && (stream->legacy ? other->blocking || other->legacy : other->legacy))
            copy->shared = true;
    }
    for (size_t i = 0; interpose->trapped_count && i < interpose->stream_count; i++) {
        const struct tracked_stream *other = &interpose->streams[i];
        if (other != stream && (stream->legacy ? other->blocking || other->legacy : other->legacy))
            trapped_share(interpose, i, other->queued);
    }
}

void interpose_stream_created(struct interpose *interpose, const char *name,
                              const struct interpose_stream *stream, bool blocking)
{
    (void)name;
    if (!interpose || interpose->disabled)
        return;
    struct interpose_stream key = { 0, stream->handle };
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *made = take_stream(interpose, &key);
    if (made) {
        made->destroyed = false;
        made->blocking = blocking;
        made->capture_id = 0;
    }
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_stream_destroy_begin(struct interpose *interpose, struct interpose_call *call,
                                    const char *name, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_STREAM_DESTROY, name, stream->handle))
        return;
    struct interpose_stream key = key_of(call, stream);
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = find_stream(interpose, &key);
    if (used && used->index != UINT32_MAX) /* otherwise no work was ever given to it */
        stream_use(interpose, call, stream);
    if (used && !used->destroyed) {
        used->destroyed = true;
        call->argument[0] = (uint64_t)(used - interpose->streams) + 1;
    }
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void stream_settle(struct interpose *interpose, const struct interpose_call *call)
{
    /* The stream still exists if the runtime refused. A lost device keeps nothing. */
    if (call->argument[0] && call->event.outcome == EVENT_FAILED &&
        call->event.check != EVENT_CHECK_LOST)
        interpose->streams[call->argument[0] - 1].destroyed = false;
}

/* ---- Waits of the host ---------------------------------------------------------------------- */

void interpose_sync_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_STREAM_SYNC, name, stream ? stream->handle : 0))
        return;
    pthread_mutex_lock(&interpose->lock);
    call->argument[0] = UINT64_MAX;
    if (stream) {
        const struct tracked_stream *used = stream_use(interpose, call, stream);
        call->argument[0] = used ? (uint64_t)(used - interpose->streams) : STREAM_TRACKED_LIMIT;
        call->argument[1] = used ? used->queued : 0;
    } else {
        call->event.flags |= EVENT_ALL_STREAMS;
    }
    pending_look(interpose, (size_t)call->argument[0], call->argument[1]);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

/* ---- Marks ---------------------------------------------------------------------------------- */

static struct tracked_mark *find_mark(const struct interpose *interpose, uint64_t handle)
{
    size_t count = min_u64(interpose->mark_count, MARK_TRACKED_LIMIT);
    for (size_t i = 0; i < count; i++)
        if (interpose->marks[i].handle == handle)
            return &interpose->marks[i];
    return NULL;
}

static struct tracked_mark *take_mark(struct interpose *interpose, uint64_t handle)
{
    struct tracked_mark *mark = find_mark(interpose, handle);
    if (!mark)
        mark = &interpose->marks[interpose->mark_count++ % MARK_TRACKED_LIMIT];
    *mark = (struct tracked_mark){ .handle = handle };
    return mark;
}

static void become_call(struct event *event, uint64_t handle)
{
    event->kind = EVENT_CALL;
    event->call = (struct event_call){ handle };
}

void interpose_record_begin(struct interpose *interpose, struct interpose_call *call,
                            const char *name, uint64_t event, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_MARK_RECORD, name, event))
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = stream_use(interpose, call, stream);
    struct tracked_mark *mark = take_mark(interpose, event);
    call->event.mark.mark = event;
    bool captured = used && used->capture_id;
    if (used) {
        mark->capture_id = used->capture_id;
        mark->stream = (uint32_t)(used - interpose->streams);
        mark->queued = used->queued;
    }
    pthread_mutex_unlock(&interpose->lock);
    if (captured)
        become_call(&call->event, event); /* orders the nodes of the graph, nothing else */
    translate_tell(interpose, call);
}

void interpose_wait_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, uint64_t event, const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_MARK_WAIT, name, event))
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = stream_use(interpose, call, stream);
    const struct tracked_mark *mark = find_mark(interpose, event);
    call->event.mark.mark = event;
    bool captured = used && mark && mark->capture_id;
    if (captured)
        used->capture_id = mark->capture_id; /* it joins the capture */
    captured = captured || (used && used->capture_id);
    if (mark && !captured)
        pending_share(interpose, mark->stream, mark->queued);
    if (mark && used && !captured)
        take_gate(used, &interpose->streams[mark->stream], mark->queued);
    if (mark && used && interpose->streams[mark->stream].hidden)
        used->hidden = true;
    pthread_mutex_unlock(&interpose->lock);
    if (captured)
        become_call(&call->event, event);
    translate_tell(interpose, call);
}

static void wait_for_mark(struct interpose *interpose, struct interpose_call *call, uint64_t event)
{
    const struct tracked_mark *mark = find_mark(interpose, event);
    call->event.mark.mark = event;
    call->argument[0] = mark ? mark->stream : STREAM_TRACKED_LIMIT;
    call->argument[1] = mark ? mark->queued : 0;
    pending_look(interpose, (size_t)call->argument[0], call->argument[1]);
}

void interpose_event_sync_begin(struct interpose *interpose, struct interpose_call *call,
                                const char *name, uint64_t event)
{
    if (!translate_open(interpose, call, EVENT_MARK_SYNC, name, event))
        return;
    pthread_mutex_lock(&interpose->lock);
    wait_for_mark(interpose, call, event);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_query_done(struct interpose *interpose, const char *name, uint64_t event,
                          const struct interpose_stream *stream)
{
    struct interpose_call call;
    if (stream)
        interpose_sync_begin(interpose, &call, name, stream);
    else
        interpose_event_sync_begin(interpose, &call, name, event);
    interpose_end(interpose, &call, 0);
}

void interpose_may_tell(struct interpose *interpose, bool by_all_work)
{
    if (!interpose || interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    interpose->kernels_may_tell = true;
    interpose->all_may_tell = interpose->all_may_tell || by_all_work;
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_hidden_order(struct interpose *interpose, const char *name,
                            const struct interpose_stream *stream)
{
    struct interpose_call call;
    if (!translate_open(interpose, &call, EVENT_HIDDEN_ORDER, name, 0))
        return;
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = stream_use(interpose, &call, stream);
    bool captured = used && used->capture_id;
    if (captured)
        interpose->hidden_captures[interpose->hidden_capture_count++ % HIDDEN_CAPTURE_LIMIT] =
            used->capture_id;
    /* A program that learns through this order that earlier work is done may rewrite its sources,
     * perhaps before the later work is queued. */
    if (used) {
        pending_done(interpose, (size_t)(used - interpose->streams), used->queued);
        pending_write(interpose, 0, PENDING_EVERYWHERE, used);
        used->hidden = true;
        if (interpose->trapped)
            stream_hold(used); /* until the host lets it go, its memory may be the host's */
    }
    pthread_mutex_unlock(&interpose->lock);
    if (captured)
        become_call(&call.event, 0);
    translate_tell_done(interpose, &call);
}
