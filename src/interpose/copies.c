/* copies.c - copies and fills: their direction, their bytes, whether the host waits, and what is
 * wrong with them. */
#include "interpose/copy_behaviour.h"
#include "interpose/interpose_impl.h"

#include <string.h>

/* Operands of a copy, as findings name them. */
enum { TARGET, SOURCE };

/* Bytes from the first to the last that a pitched copy touches; 0 if the numbers make no sense. */
static uint64_t footprint(uint64_t bytes, uint64_t rows, uint64_t pitch, uint64_t planes,
                          uint64_t plane)
{
    uint64_t sum = bytes, part;
    if (rows > 1 &&
        (__builtin_mul_overflow(rows - 1, pitch, &part) || __builtin_add_overflow(sum, part, &sum)))
        return 0;
    if (planes > 1 && (__builtin_mul_overflow(planes - 1, plane, &part) ||
                       __builtin_add_overflow(sum, part, &sum)))
        return 0;
    return sum;
}

/* Bytes between the rows are not touched, so a conflict with the whole range is only possible. */
static uint8_t with_gaps(uint8_t mode, uint64_t bytes, uint64_t rows, uint64_t pitch)
{
    return rows > 1 && pitch > bytes ? mode | EVENT_MAYBE : mode;
}

static enum interpose_direction direction_of(const struct interpose_copy *copy,
                                             enum event_side source, enum event_side target)
{
    if (copy->direction != INTERPOSE_ANY)
        return copy->direction;
    bool from_device = source == EVENT_SIDE_DEVICE || copy->source_opaque;
    bool to_device = target == EVENT_SIDE_DEVICE || copy->target_opaque;
    return from_device && to_device ? INTERPOSE_WITHIN
           : from_device            ? INTERPOSE_TO_HOST
           : to_device              ? INTERPOSE_TO_DEVICE
                                    : INTERPOSE_WITHIN;
}

/* The kind of a side's memory, for the table of copies. */
static enum copy_memory memory_of(const struct interpose *interpose,
                                  const struct interpose_copy *copy, bool source)
{
    if (source ? copy->source_opaque : copy->target_opaque)
        return copy->sides_unknown ? COPY_UNKNOWN : COPY_DEVICE;
    const struct block *block = block_find(&interpose->blocks,
                                           source ? copy->source : copy->target);
    if (block)
        return copy_memory_of((enum interpose_memory)block->memory);
    if (copy->direction == INTERPOSE_ANY)
        return COPY_UNKNOWN;
    enum interpose_direction from_host = source ? INTERPOSE_TO_DEVICE : INTERPOSE_TO_HOST;
    bool host = copy->direction == INTERPOSE_HOST || copy->direction == from_host;
    return host ? COPY_PAGEABLE : COPY_DEVICE;
}

void interpose_copies_may_wait(struct interpose *interpose)
{
    if (!interpose || interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    interpose->copies_may_wait = true;
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_unseen_writes(struct interpose *interpose)
{
    if (!interpose || interpose->disabled)
        return;
    pthread_mutex_lock(&interpose->lock);
    interpose->unseen_writes = true;
    pthread_mutex_unlock(&interpose->lock);
}

static void set_behaviour(const struct interpose *interpose, struct event *event,
                          enum copy_form form, enum copy_behaviour behaviour)
{
    static const uint16_t flags[COPY_BEHAVIOUR_COUNT] = {
        [COPY_WAITS] = EVENT_SYNCHRONOUS, [COPY_STAGED] = EVENT_STAGED, [COPY_OPEN] = EVENT_MAY_WAIT
    };
    if (interpose->copies_may_wait && form == COPY_SYNC && behaviour != COPY_WAITS)
        behaviour = COPY_OPEN;
    if (!event->copy.graph_id) /* copies in a graph are not waited for */
        event->flags |= flags[behaviour];
}

/* An address that the call takes for host memory, but is device memory. */
static void check_direction(struct interpose_call *call, enum interpose_direction direction,
                            enum event_side source, enum event_side target)
{
    if (direction == INTERPOSE_TO_DEVICE && source == EVENT_SIDE_DEVICE)
        translate_check(call, EVENT_CHECK_DIRECTION, SOURCE, EVENT_SIDE_HOST, EVENT_SIDE_DEVICE);
    if (direction == INTERPOSE_TO_HOST && target == EVENT_SIDE_DEVICE)
        translate_check(call, EVENT_CHECK_DIRECTION, TARGET, EVENT_SIDE_HOST, EVENT_SIDE_DEVICE);
}

/* Gives the work to its stream, or to the graph that is being made. */
static struct tracked_stream *queue(struct interpose *interpose, struct interpose_call *call,
                                    const struct interpose_stream *stream, uint64_t graph)
{
    if (graph) {
        call->event.copy.graph_id = graph_take(interpose, graph);
        return NULL;
    }
    struct tracked_stream *used = stream_use(interpose, call, stream);
    if (!used)
        return NULL;
    call->event.copy.graph_id = used->capture_id;
    stream_queue(interpose, used);
    call->argument[0] = (uint64_t)(used - interpose->streams);
    call->argument[1] = used->queued;
    return used;
}

static void set_kind(struct interpose *interpose, struct interpose_call *call,
                     const struct interpose_copy *copy, enum interpose_direction direction)
{
    static const uint8_t kinds[] = { [INTERPOSE_TO_DEVICE] = EVENT_COPY_IN,
                                     [INTERPOSE_TO_HOST] = EVENT_COPY_OUT,
                                     [INTERPOSE_WITHIN] = EVENT_COPY_WITHIN,
                                     [INTERPOSE_HOST] = EVENT_COPY_WITHIN };
    struct event *event = &call->event;
    event->kind = kinds[direction];
    uint64_t host = direction == INTERPOSE_TO_DEVICE ? copy->source
                    : direction == INTERPOSE_TO_HOST ? copy->target
                                                     : 0;
    event->copy.host_address = host;
    if (event->kind != EVENT_COPY_IN && (interpose->unseen_writes || interpose->all_may_tell))
        event->flags |= EVENT_UNSEEN_WRITES;
    if (host && !block_find(&interpose->blocks, host))
        event->flags |= EVENT_PAGEABLE;
    enum copy_form form = copy->async ? COPY_ASYNC : COPY_SYNC;
    set_behaviour(interpose, event, form,
                  copy_behaviour_of(interpose->backend->runtime, form,
                                    memory_of(interpose, copy, true),
                                    memory_of(interpose, copy, false)));
    /* A plain copy between two devices is in order with all work of both devices. */
    if (copy->peer && !copy->async && !event->copy.graph_id)
        event->flags |= EVENT_ALL_STREAMS;
}

/* What the wait of a copy or fill means for the pinned memory that queued copies read. */
static void look_at_sources(struct interpose *interpose, struct interpose_call *call)
{
    size_t stream = (size_t)call->argument[0];
    uint32_t flags = call->event.flags;
    if (flags & EVENT_STAGED)
        call->argument[1]--; /* the call itself is not waited for */
    if (flags & (EVENT_SYNCHRONOUS | EVENT_STAGED))
        pending_look(interpose, stream, call->argument[1]);
    if (flags & EVENT_MAY_WAIT) {
        pending_tell(interpose, stream, call->argument[1]);
        trapped_tell(interpose, stream, call->argument[1]);
    }
}

/* The host, or another process, may read what the call writes. watched: if the host does, that is
 * seen. */
static void set_may_tell(struct interpose *interpose, struct interpose_call *call,
                         struct tracked_stream *used, uint64_t target, bool opaque, bool watched)
{
    const struct block *block = opaque ? NULL : block_find(&interpose->blocks, target);
    if (!block_is_shown(block) && !interpose->all_may_tell)
        return;
    call->event.flags |= EVENT_MAY_TELL;
    if (!used || call->event.copy.graph_id)
        return;
    pending_tell_before(interpose, used, false);
    if (!watched)
        trapped_tell(interpose, (size_t)(used - interpose->streams), used->queued - 1);
}

/* Page traps on the host memory of a copy. True: as trapped_watch says. */
static bool watch(struct interpose *interpose, struct interpose_call *call,
                  const struct interpose_copy *copy, enum interpose_direction direction,
                  const struct tracked_stream *used)
{
    uint8_t kind = call->event.kind;
    bool linear = copy->rows <= 1 && copy->planes <= 1;
    /* The runtime itself, or the system for it, uses memory that it was not shown before. */
    if (call->event.flags & EVENT_PAGEABLE)
        trapped_open(interpose, call->event.copy.host_address, call->event.copy.bytes);
    if (direction == INTERPOSE_HOST || !copy->async) {
        trapped_open(interpose, copy->source_opaque ? 0 : copy->source, copy->bytes);
        trapped_open(interpose, copy->target_opaque ? 0 : copy->target, copy->bytes);
    }
    if (!linear || !copy->async || (kind != EVENT_COPY_IN && kind != EVENT_COPY_OUT))
        return false;
    bool source = kind == EVENT_COPY_IN;
    return trapped_watch(interpose, call, source ? copy->source : copy->target, copy->bytes, source,
                         used);
}

/* Device memory comes first: a finding means that range unless it says more. */
static void add_ranges(struct interpose *interpose, struct interpose_call *call,
                       const struct interpose_copy *copy, enum interpose_direction direction)
{
    uint64_t read = footprint(copy->bytes, copy->rows, copy->source_pitch, copy->planes,
                              copy->source_plane);
    uint64_t written = footprint(copy->bytes, copy->rows, copy->target_pitch, copy->planes,
                                 copy->target_plane);
    uint8_t reads = with_gaps(EVENT_READ, copy->bytes, copy->rows, copy->source_pitch);
    uint8_t writes = with_gaps(EVENT_WRITE, copy->bytes, copy->rows, copy->target_pitch);
    for (int i = 0; i < 2; i++) {
        bool source = (i == 0) == (direction == INTERPOSE_TO_HOST);
        if (source && !copy->source_opaque && read)
            translate_access(interpose, call, SOURCE, reads, copy->source, read);
        if (!source && !copy->target_opaque && written)
            translate_access(interpose, call, TARGET, writes, copy->target, written);
    }
}

/* Drops ranges of unknown memory: pageable host memory. */
static void drop_unknown(struct event *event)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < event->access_count; i++)
        if (event->accesses[i].buffer_index != UINT32_MAX)
            event->accesses[kept++] = event->accesses[i];
    event->access_count = kept;
}

void interpose_copy_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_copy *copy)
{
    if (!translate_open(interpose, call, EVENT_COPY_WITHIN, name, (uint64_t)copy->direction))
        return;
    struct event *event = &call->event;
    event->copy.bytes = copy->bytes * (copy->rows ? copy->rows : 1) *
                        (copy->planes ? copy->planes : 1);
    pthread_mutex_lock(&interpose->lock);
    enum event_side source = copy->source_opaque
                                 ? EVENT_SIDE_DEVICE
                                 : block_side(block_find(&interpose->blocks, copy->source));
    enum event_side target = copy->target_opaque
                                 ? EVENT_SIDE_DEVICE
                                 : block_side(block_find(&interpose->blocks, copy->target));
    enum interpose_direction direction = direction_of(copy, source, target);
    check_direction(call, direction, source, target);
    struct tracked_stream *used = queue(interpose, call, copy->stream, copy->graph);
    set_kind(interpose, call, copy, direction);
    add_ranges(interpose, call, copy, direction);
    drop_unknown(event);
    if (used && !event->copy.graph_id && direction == INTERPOSE_TO_DEVICE && copy->async &&
        copy->rows <= 1 && copy->planes <= 1 && source == EVENT_SIDE_HOST &&
        event->check == EVENT_CHECK_NONE && copy->bytes)
        pending_add(interpose, call, block_find(&interpose->blocks, copy->source), copy->source,
                    copy->bytes, used);
    else if (direction == INTERPOSE_TO_DEVICE && copy->async && source == EVENT_SIDE_HOST)
        event->flags |= EVENT_SAMPLED; /* rows, or a graph's */
    if (used && !event->copy.graph_id && target == EVENT_SIDE_HOST && copy->bytes) {
        uint64_t written = footprint(copy->bytes, copy->rows, copy->target_pitch, copy->planes,
                                     copy->target_plane);
        pending_write(interpose, copy->target, written, used);
    }
    if (!copy->source_opaque && source != EVENT_SIDE_DEVICE && target != EVENT_SIDE_HOST &&
        direction != INTERPOSE_TO_HOST && direction != INTERPOSE_HOST)
        addresses_look(interpose, call, block_find(&interpose->blocks, copy->source), copy->source,
                       footprint(copy->bytes, copy->rows, copy->source_pitch, copy->planes,
                                 copy->source_plane));
    bool watched = watch(interpose, call, copy, direction, used);
    set_may_tell(interpose, call, used, copy->target, copy->target_opaque, watched);
    /* A pointer may be written to a variable on the device. */
    if (copy->target_opaque && interpose->backend->runtime == INTERPOSE_HIP)
        interpose->kernels_may_tell = true;
    if (used)
        look_at_sources(interpose, call);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_fill_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_fill *fill)
{
    if (!translate_open(interpose, call, EVENT_FILL, name, 0))
        return;
    call->event.copy.bytes = fill->bytes * (fill->rows ? fill->rows : 1);
    pthread_mutex_lock(&interpose->lock);
    struct tracked_stream *used = queue(interpose, call, fill->stream, fill->graph);
    const struct block *block = block_find(&interpose->blocks, fill->target);
    enum copy_form form = strstr(name, "Async") ? COPY_ASYNC : COPY_SYNC;
    set_behaviour(interpose, &call->event, form,
                  memset_behaviour_of(interpose->backend->runtime, form,
                                      block ? copy_memory_of((enum interpose_memory)block->memory)
                                            : COPY_UNKNOWN));
    uint64_t bytes = footprint(fill->bytes, fill->rows, fill->pitch, 0, 0);
    bool watched = fill->rows <= 1 &&
                   trapped_watch(interpose, call, fill->target, bytes, false, used);
    set_may_tell(interpose, call, used, fill->target, false, watched);
    if (used && !call->event.copy.graph_id && block_side(block) == EVENT_SIDE_HOST && bytes)
        pending_write(interpose, fill->target, bytes, used);
    if (used)
        look_at_sources(interpose, call);
    if (bytes)
        translate_access(interpose, call, TARGET,
                         with_gaps(EVENT_WRITE, fill->bytes, fill->rows, fill->pitch), fill->target,
                         bytes);
    drop_unknown(&call->event);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}
