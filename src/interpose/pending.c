/* pending.c - queued copies that read pinned host memory: has it changed since the copy was queued?
 * It is compared when the program begins to wait for the copy: a program that rewrites the memory
 * before that did not know that the copy was done.
 *
 * A change after work was queued from which the host may learn that the copy is done (a kernel that
 * can write a flag in host memory, a call that may wait) is marked: the finding is only possible.
 *
 * Nothing is reported if the bytes may change correctly: if queued work of the device (a copy, a
 * kernel, a graph) or a host function in a stream may write them, and after a wait for work that
 * came after the copy on another stream, because that was a wait for the copy too.
 *
 * Pageable memory is not compared: whether the runtime has read it when the call returns is
 * documented nowhere, and what is compared how closely is in digest.c. */
#include "interpose/interpose_impl.h"

#include <string.h>

static bool has_common_bytes(const struct pending_copy *copy, uint64_t address, uint64_t bytes)
{
    return copy->address - address < bytes || address - copy->address < copy->bytes;
}

/* Makes room for one more, if necessary by dropping the oldest that is only compared; NULL if there
 * is none. */
static struct pending_copy *make_room(struct interpose *interpose)
{
    size_t oldest = 0;
    if (interpose->pending_count < PENDING_LIMIT)
        return &interpose->pending[interpose->pending_count++];
    while (oldest < PENDING_LIMIT && interpose->pending[oldest].writes)
        oldest++;
    if (oldest == PENDING_LIMIT)
        return NULL;
    memmove(&interpose->pending[oldest], &interpose->pending[oldest + 1],
            (PENDING_LIMIT - 1 - oldest) * sizeof(interpose->pending[0]));
    return &interpose->pending[PENDING_LIMIT - 1];
}

void pending_add(struct interpose *interpose, struct interpose_call *call,
                 const struct block *block, uint64_t address, uint64_t bytes,
                 const struct tracked_stream *stream)
{
    struct pending_copy copy = { .event_id = call->event.id,
                                 .address = address,
                                 .bytes = bytes,
                                 .stream = (uint32_t)(stream - interpose->streams),
                                 .queued = stream->queued,
                                 .registered = block->memory == INTERPOSE_REGISTERED,
                                 /* The host may fill the source of work that it holds back until it
                                  * lets the work go. */
                                 .reported = stream->gate > stream->done };
    for (size_t i = 0; i < interpose->pending_count; i++)
        if (interpose->pending[i].writes &&
            has_common_bytes(&interpose->pending[i], address, bytes))
            return;
    copy.whole = digest_can_be_whole(interpose, block, bytes);
    copy.digest = interpose->pending_blind ? 0 : digest_of(interpose, &copy);
    struct pending_copy *place = copy.digest ? make_room(interpose) : NULL;
    if (place)
        *place = copy;
    if (!place || !copy.whole)
        call->event.flags |= EVENT_SAMPLED;
}

void pending_share(struct interpose *interpose, size_t stream, uint64_t queued)
{
    trapped_share(interpose, stream, queued);
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (copy->stream == stream && copy->queued <= queued)
            copy->shared = true;
    }
}

static bool is_meant(const struct pending_copy *copy, size_t stream, uint64_t queued)
{
    return stream == SIZE_MAX || (copy->stream == stream && copy->queued <= queued);
}

static void tell_changed(struct interpose *interpose, const struct pending_copy *copy, uint64_t now)
{
    struct interpose_call call;
    if (!translate_open(interpose, &call, EVENT_SOURCE_CHANGED, "looked at again", copy->event_id))
        return;
    call.event.cause_id = copy->event_id;
    call.event.stream_index = interpose->streams[copy->stream].index;
    call.event.source_change = (struct event_source_change){ .address = copy->address,
                                                             .bytes = copy->bytes,
                                                             .digest_before = copy->digest,
                                                             .digest_now = now };
    if (copy->reported)
        call.event.flags |= EVENT_MAY_TELL;
    translate_tell_done(interpose, &call);
}

static void look(struct interpose *interpose, struct pending_copy *copy)
{
    uint64_t now = digest_of(interpose, copy); /* freed memory counts as changed */
    if (now == copy->digest)
        return;
    if (!trapped_was_rewritten(interpose, copy->event_id)) /* by whom is known then */
        tell_changed(interpose, copy, now);
    copy->digest = now;
}

void pending_look(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (!copy->writes && (copy->shared || is_meant(copy, stream, queued)))
            look(interpose, copy);
    }
}

void pending_tell(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (copy->writes || copy->reported || !(copy->shared || is_meant(copy, stream, queued)))
            continue;
        look(interpose, copy); /* a rewrite before this has no such excuse */
        copy->reported = true;
    }
}

void pending_tell_before(struct interpose *interpose, struct tracked_stream *stream, bool gate)
{
    size_t place = (size_t)(stream - interpose->streams);
    if (gate)
        stream->gate = stream->queued;
    pending_tell(interpose, place, stream->queued - 1);
    if (gate)
        trapped_tell(interpose, place, stream->queued - 1);
}

/* Sources with bytes there are compared now: later they may hold what the device wrote. */
static void forget_sources(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (!copy->writes && has_common_bytes(copy, address, bytes))
            look(interpose, copy);
        else
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
}

void pending_write(struct interpose *interpose, uint64_t address, uint64_t bytes,
                   const struct tracked_stream *stream)
{
    uint32_t place = (uint32_t)(stream - interpose->streams);
    forget_sources(interpose, address, bytes);
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (copy->writes && copy->stream == place && copy->address == address &&
            copy->bytes == bytes) {
            copy->queued = stream->queued;
            return;
        }
    }
    struct pending_copy *copy = make_room(interpose);
    if (copy)
        *copy = (struct pending_copy){ .address = address,
                                       .bytes = bytes,
                                       .stream = place,
                                       .queued = stream->queued,
                                       .writes = true };
    else
        interpose->pending_blind = true;
}

void pending_done(struct interpose *interpose, size_t stream, uint64_t queued)
{
    size_t kept = 0;
    trapped_done(interpose, stream, queued);
    for (size_t i = 0; i < interpose->stream_count; i++) {
        struct tracked_stream *waited = &interpose->streams[i];
        uint64_t done = stream == SIZE_MAX ? waited->queued : i == stream ? queued : 0;
        if (done > waited->done)
            waited->done = done;
    }
    for (size_t i = 0; i < interpose->pending_count; i++) {
        const struct pending_copy *copy = &interpose->pending[i];
        /* Shared copies may or may not be done: a source is no longer compared, a write may be
         * still to come. */
        if (!is_meant(copy, stream, queued) && (copy->writes || !copy->shared))
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
    if (stream == SIZE_MAX)
        interpose->pending_blind = false;
}

void pending_forget(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    size_t kept = 0;
    trapped_forget(interpose, address, bytes);
    for (size_t i = 0; i < interpose->pending_count; i++) {
        const struct pending_copy *copy = &interpose->pending[i];
        bool everywhere = copy->writes && copy->bytes == PENDING_EVERYWHERE;
        if (everywhere || !has_common_bytes(copy, address, bytes))
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
}
