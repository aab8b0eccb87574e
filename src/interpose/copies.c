/* copies.c - copies and fills: which way, which bytes, and what is wrong with them. */
#include "interpose/interpose_impl.h"

/* Operands of a copy, as findings name them. */
enum { TARGET, SOURCE };

/* Bytes from the first to the last that a pitched copy touches; 0 if that is no sensible number. */
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

/* Between the rows lie bytes that are not touched: what collides with the whole is only possible.
 */
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

/* An address that the call takes for host memory and that is device memory. */
static void check_direction(struct interpose_call *call, enum interpose_direction direction,
                            enum event_side source, enum event_side target)
{
    if (direction == INTERPOSE_TO_DEVICE && source == EVENT_SIDE_DEVICE)
        translate_check(call, EVENT_CHECK_DIRECTION, SOURCE, EVENT_SIDE_HOST, EVENT_SIDE_DEVICE);
    if (direction == INTERPOSE_TO_HOST && target == EVENT_SIDE_DEVICE)
        translate_check(call, EVENT_CHECK_DIRECTION, TARGET, EVENT_SIDE_HOST, EVENT_SIDE_DEVICE);
}

/* The work goes to its stream, or into the graph that is made of it. */
static struct tracked_stream *queue(struct interpose *interpose, struct interpose_call *call,
                                    const struct interpose_stream *stream, uint64_t graph)
{
    if (graph) {
        call->event.object = graph_take(interpose, graph);
        return NULL;
    }
    struct tracked_stream *used = stream_use(interpose, call, stream);
    if (!used)
        return NULL;
    call->event.object = used->capture_id;
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
                                     [INTERPOSE_WITHIN] = EVENT_COPY_WITHIN };
    struct event *event = &call->event;
    event->kind = kinds[direction];
    uint64_t host = direction == INTERPOSE_TO_DEVICE ? copy->source
                    : direction == INTERPOSE_TO_HOST ? copy->target
                                                     : 0;
    event->host_address = host;
    const struct block *block = host ? block_find(&interpose->blocks, host) : NULL;
    bool pageable = host && !block;
    if (pageable)
        event->flags |= EVENT_PAGEABLE;
    /* A copy within the device does not wait, whatever its name; one to pageable memory does. */
    if (direction != INTERPOSE_WITHIN && !event->object &&
        (!copy->async || (pageable && direction == INTERPOSE_TO_HOST)))
        event->flags |= EVENT_SYNCHRONOUS;
}

/* Device memory first: that is the range a finding means if it says no more. */
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

/* Drops ranges of memory that is not known: pageable host memory. */
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
    event->bytes = copy->bytes * (copy->rows ? copy->rows : 1) * (copy->planes ? copy->planes : 1);
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
    if (used && !event->object && direction == INTERPOSE_TO_DEVICE && copy->async &&
        copy->rows <= 1 && copy->planes <= 1 && source == EVENT_SIDE_HOST &&
        event->check == EVENT_CHECK_NONE && copy->bytes)
        pending_add(interpose, call, block_find(&interpose->blocks, copy->source), copy->source,
                    copy->bytes, used);
    if (used && !event->object && target == EVENT_SIDE_HOST && copy->bytes) {
        uint64_t written = footprint(copy->bytes, copy->rows, copy->target_pitch, copy->planes,
                                     copy->target_plane);
        pending_write(interpose, copy->target, written, used);
    }
    if ((event->flags & EVENT_SYNCHRONOUS) && used)
        pending_look(interpose, (size_t)call->argument[0], call->argument[1]);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_fill_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, const struct interpose_fill *fill)
{
    if (!translate_open(interpose, call, EVENT_FILL, name, 0))
        return;
    call->event.bytes = fill->bytes * (fill->rows ? fill->rows : 1);
    pthread_mutex_lock(&interpose->lock);
    queue(interpose, call, fill->stream, fill->graph);
    uint64_t bytes = footprint(fill->bytes, fill->rows, fill->pitch, 0, 0);
    if (bytes)
        translate_access(interpose, call, TARGET,
                         with_gaps(EVENT_WRITE, fill->bytes, fill->rows, fill->pitch), fill->target,
                         bytes);
    drop_unknown(&call->event);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}
