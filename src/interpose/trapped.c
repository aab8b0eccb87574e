/* trapped.c - which queued copies have page traps on their host memory (traps.h), and until when.
 *
 * A copy or fill is watched from its begin function on and its memory protected from its end on, so
 * that the runtime's own call meets no trap. It is let go when the host has waited for it, when a
 * wait may have covered it, when the host may have learned of its end in a way that is not seen,
 * and when its memory is freed or given to the runtime: then an access proves nothing.
 *
 * Only pinned and registered memory is protected: the driver itself writes pageable memory. */
#include "interpose/interpose_impl.h"

#include <stdlib.h>

/* A copy so small may be a flag that the program reads until it changes. */
#define FLAG_BYTES 64u

/* No more of a kernel's memory is protected, because that takes time. */
#define KERNEL_BYTES (UINT64_C(64) << 20)

struct trapped_copy {
    uint64_t id; /* of the trap */
    uint64_t event_id, address, bytes;
    uint64_t lowest, highest; /* of the block */
    uint64_t queued;          /* as in struct pending_copy */
    uint32_t stream, buffer_index;
    bool source, kernel, registered, shared;
    bool armed, rewritten;
};

/* ---- The library ---------------------------------------------------------------------------- */

static void tell_state(struct interpose *interpose, enum event_traps state)
{
    struct interpose_call call;
    if (!translate_open_without_stack(interpose, &call, EVENT_HOST_TRAPS))
        return;
    call.event.host_traps.state = state;
    translate_tell_done(interpose, &call);
}

static void on_changed(void *context, enum event_traps state)
{
    tell_state(context, state);
}

static struct trapped_copy *find(struct interpose *interpose, uint64_t event_id)
{
    for (size_t i = interpose->trapped_count; i-- > 0;)
        if (interpose->trapped[i].event_id == event_id)
            return &interpose->trapped[i];
    return NULL;
}

/* The host may have learned from what it saw there that earlier work of the stream is done. */
static void let_go_before(struct interpose *interpose, const struct trapped_copy *seen);

static void tell_access(struct interpose *interpose, const struct trapped_copy *copy,
                        const struct trap_access *access, bool maybe)
{
    struct interpose_call call;
    if (!translate_open_without_stack(interpose, &call, EVENT_HOST_ACCESS))
        return;
    struct event *event = &call.event;
    event->stack_index = stack_number(interpose, access->frames, access->frame_count);
    event->cause_id = copy->event_id;
    event->host_access = (struct event_host_access){ .address = access->address,
                                                     .bytes = access->bytes,
                                                     .copy_address = copy->address,
                                                     .copy_bytes = copy->bytes };
    event->accesses[0] = (struct event_access){ .address = access->address,
                                                .bytes = access->bytes ? access->bytes : 1,
                                                .buffer_index = copy->buffer_index,
                                                .generation = 1,
                                                .mode = access->writes ? EVENT_WRITE : EVENT_READ,
                                                .operand = copy->source ? 1 : 0 };
    event->access_count = 1;
    if (maybe)
        event->flags |= EVENT_MAY_TELL;
    translate_tell_done(interpose, &call);
}

static void on_accessed(void *context, const struct trap_access *access)
{
    struct interpose *interpose = context;
    struct trapped_copy copy = { .id = 0 };
    if (interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    for (size_t i = 0; i < interpose->trapped_count; i++)
        if (interpose->trapped[i].id == access->id) {
            interpose->trapped[i].rewritten = interpose->trapped[i].source && access->writes;
            copy = interpose->trapped[i];
        }
    if (copy.id)
        let_go_before(interpose, &copy);
    pthread_mutex_unlock(&interpose->lock);
    /* Else it was waited for meanwhile, by another thread. */
    if (copy.id)
        tell_access(interpose, &copy, access,
                    !copy.source && !access->writes && copy.bytes <= FLAG_BYTES);
}

void trapped_start(struct interpose *interpose)
{
    if (!&greta_traps || !interpose->backend->is_inside)
        return;
    interpose->trapped = calloc(TRAPPED_LIMIT, sizeof(*interpose->trapped));
    interpose->listener = (struct trap_listener){ interpose, interpose->backend->is_inside,
                                                  on_accessed, on_changed };
    bool good = interpose->trapped && greta_traps.listen(&interpose->listener);
    if (!good) {
        free(interpose->trapped);
        interpose->trapped = NULL;
    }
    tell_state(interpose, good ? EVENT_TRAPS_ON : EVENT_TRAPS_REFUSED);
}

/* ---- Watching and letting go ---------------------------------------------------------------- */

/* True if it is a copy that the host must wait for before it uses the memory. */
static bool is_open(const struct event *event, const struct tracked_stream *stream)
{
    uint32_t waits = EVENT_SYNCHRONOUS | EVENT_STAGED | EVENT_MAY_WAIT;
    return !event->copy.graph_id && !(event->flags & waits) && event->check == EVENT_CHECK_NONE &&
           stream->gate <= stream->done;
}

static struct trapped_copy *add(struct interpose *interpose, struct interpose_call *call,
                                const struct block *block, uint64_t address, uint64_t bytes,
                                const struct tracked_stream *stream)
{
    struct trapped_copy *copy = &interpose->trapped[interpose->trapped_count++];
    *copy = (struct trapped_copy){
        .id = ++interpose->trapped_id,
        .event_id = call->event.id,
        .address = address,
        .bytes = bytes,
        .lowest = block->address,
        .highest = block->address + block->bytes,
        .queued = stream->queued,
        .stream = (uint32_t)(stream - interpose->streams),
        .buffer_index = block->index,
        .registered = block->memory == INTERPOSE_REGISTERED,
    };
    call->watched = true;
    return copy;
}

static bool has_room(const struct interpose *interpose, const struct tracked_stream *stream)
{
    return interpose->trapped && !interpose->all_may_tell && stream &&
           interpose->trapped_count < TRAPPED_LIMIT;
}

bool trapped_watch(struct interpose *interpose, struct interpose_call *call, uint64_t address,
                   uint64_t bytes, bool source, const struct tracked_stream *stream)
{
    if (!has_room(interpose, stream) || !bytes || !is_open(&call->event, stream))
        return false;
    const struct block *block = block_find(&interpose->blocks, address);
    if (block_side(block) != EVENT_SIDE_HOST || block->freed_id ||
        bytes > block->bytes - (address - block->address))
        return false;
    add(interpose, call, block, address, bytes, stream)->source = source;
    return !source && bytes > FLAG_BYTES;
}

void trapped_watch_kernel(struct interpose *interpose, struct interpose_call *call,
                          uint64_t address, uint64_t bytes, const struct tracked_stream *stream)
{
    const struct block *block = block_find(&interpose->blocks, address);
    if (!block_is_shown(block))
        return;
    bool watched = has_room(interpose, stream) && !stream->hidden && !interpose->kernels_may_tell &&
                   !block->freed_id;
    call->partly_watched = call->partly_watched || !watched || bytes > KERNEL_BYTES;
    if (!watched)
        return;
    bytes = bytes < KERNEL_BYTES ? bytes : KERNEL_BYTES;
    for (size_t i = 0; i < interpose->trapped_count; i++) {
        struct trapped_copy *known = &interpose->trapped[i];
        if (!known->kernel || known->address != address || known->bytes != bytes ||
            &interpose->streams[known->stream] != stream)
            continue;
        known->queued = stream->queued; /* the next in a row */
        known->event_id = call->event.id;
        call->watched = true;
        return;
    }
    add(interpose, call, block, address, bytes, stream)->kernel = true;
}

/* waited: what a kernel wrote meanwhile is looked at. */
static void drop(struct interpose *interpose, struct trapped_copy *copy, bool waited)
{
    uint64_t frames[TRAP_FRAME_LIMIT];
    struct trap_access access;
    if (copy->armed && copy->kernel && waited &&
        greta_traps.settle(&interpose->listener, copy->id, &access, frames))
        tell_access(interpose, copy, &access, !access.several);
    if (copy->armed)
        greta_traps.remove(&interpose->listener, copy->id);
    *copy = interpose->trapped[--interpose->trapped_count];
}

static bool arm(struct interpose *interpose, const struct trapped_copy *copy)
{
    struct trap_range range = {
        .id = copy->id,
        .address = copy->address,
        .bytes = copy->bytes,
        .lowest = copy->lowest,
        /* The rest of the last page is the runtime's, for memory that it allocated. */
        .highest = copy->registered ? copy->highest : copy->highest + TRAPPED_PAGE_BYTES - 1,
        .source = copy->source,
        .kernel = copy->kernel,
        .registered = copy->registered,
    };
    if (!copy->registered)
        range.lowest &= ~(uint64_t)(TRAPPED_PAGE_BYTES - 1);
    return greta_traps.add(&interpose->listener, &range);
}

/* The first and the last page of registered memory may be left out. */
static bool is_whole(const struct trapped_copy *copy)
{
    uint64_t mask = ~(uint64_t)(TRAPPED_PAGE_BYTES - 1);
    uint64_t last = (copy->address + copy->bytes + TRAPPED_PAGE_BYTES - 1) & mask;
    return !copy->registered || ((copy->address & mask) >= copy->lowest && last <= copy->highest);
}

static void set_watched(struct interpose_call *call)
{
    if (call->watched && !call->partly_watched && !(call->event.flags & EVENT_PARTIAL))
        call->event.flags |= EVENT_WATCHED;
}

void trapped_settle(struct interpose *interpose, struct interpose_call *call)
{
    for (size_t i = call->watched ? interpose->trapped_count : 0; i-- > 0;) {
        struct trapped_copy *copy = &interpose->trapped[i];
        if (copy->event_id != call->event.id || copy->armed)
            continue;
        copy->armed = call->event.outcome == EVENT_DONE && arm(interpose, copy);
        call->partly_watched = call->partly_watched || !copy->armed || !is_whole(copy);
        if (copy->armed)
            continue;
        struct trapped_copy unseen = *copy;
        drop(interpose, copy, false);
        if (!unseen.source && !unseen.kernel) /* the host may read a flag there */
            trapped_tell(interpose, unseen.stream, unseen.queued - 1);
        i = i < interpose->trapped_count ? i : interpose->trapped_count;
    }
    set_watched(call);
}

static bool is_meant(const struct trapped_copy *copy, size_t stream, uint64_t queued)
{
    return stream == SIZE_MAX || (copy->stream == stream && copy->queued <= queued);
}

static void let_go_before(struct interpose *interpose, const struct trapped_copy *seen)
{
    for (size_t i = interpose->trapped_count; i-- > 0;)
        if (is_meant(&interpose->trapped[i], seen->stream, seen->queued - 1))
            drop(interpose, &interpose->trapped[i], false);
}

void trapped_done(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = interpose->trapped_count; i-- > 0;)
        if (interpose->trapped[i].shared || is_meant(&interpose->trapped[i], stream, queued))
            drop(interpose, &interpose->trapped[i], true);
}

/* Kernels stay: what the host reads and writes in their memory is seen. */
void trapped_tell(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = interpose->trapped_count; i-- > 0;) {
        struct trapped_copy *copy = &interpose->trapped[i];
        if (!copy->kernel && (copy->shared || is_meant(copy, stream, queued)))
            drop(interpose, copy, false);
    }
}

void trapped_share(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->trapped_count; i++) {
        struct trapped_copy *copy = &interpose->trapped[i];
        if (copy->stream == stream && copy->queued <= queued)
            copy->shared = true;
    }
}

void trapped_forget(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    for (size_t i = interpose->trapped_count; i-- > 0;) {
        struct trapped_copy *copy = &interpose->trapped[i];
        if (copy->address - address < bytes || address - copy->address < copy->bytes)
            drop(interpose, copy, false);
    }
}

bool trapped_was_rewritten(struct interpose *interpose, uint64_t event_id)
{
    const struct trapped_copy *copy = find(interpose, event_id);
    return copy && copy->rewritten;
}

void trapped_open(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    if (interpose->trapped_count && bytes)
        greta_traps.open(address, bytes);
}
