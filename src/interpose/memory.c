/* memory.c - allocations and frees, and what a call's range means. */
#include "interpose/copy_behaviour.h"
#include "interpose/interpose_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* All blocks have this generation: an index is never used twice. */
#define GENERATION 1u

/* ---- Ranges --------------------------------------------------------------------------------- */

static void set_access(struct event_access *access, const struct block *block, uint8_t operand,
                       uint8_t mode, uint64_t address, uint64_t bytes)
{
    *access = (struct event_access){ .address = address,
                                     .bytes = bytes,
                                     .buffer_index = block ? block->index : UINT32_MAX,
                                     .generation = block ? GENERATION : 0,
                                     .mode = mode,
                                     .operand = operand };
}

/* Bytes of the block, and of those mapped or registered directly after it: the program uses such
 * memory as one range. */
static uint64_t room_of(const struct blocks *blocks, const struct block *block)
{
    uint64_t room = block->bytes;
    bool joins = block->memory == INTERPOSE_MAPPED || block_side(block) == EVENT_SIDE_HOST;
    while (joins && block->address + room > block->address) {
        const struct block *next = block_find(blocks, block->address + room);
        if (!next || next->freed_id || next->memory != block->memory ||
            next->address != block->address + room)
            break;
        room += next->bytes;
    }
    return room;
}

const struct block *translate_access(struct interpose *interpose, struct interpose_call *call,
                                     uint8_t operand, uint8_t mode, uint64_t address,
                                     uint64_t bytes)
{
    struct event *event = &call->event;
    const struct block *block = block_find(&interpose->blocks, address);
    if (event->access_count == EVENT_ACCESS_LIMIT) {
        event->flags |= EVENT_PARTIAL;
        return block;
    }
    set_access(&event->accesses[event->access_count++], block, operand, mode, address, bytes);
    if (!block)
        return block;
    uint64_t offset = address - block->address;
    if (block->freed_id)
        translate_check(call, EVENT_CHECK_GENERATION, operand, GENERATION, GENERATION + 1);
    else if (bytes > block->bytes - offset && bytes > room_of(&interpose->blocks, block) - offset)
        translate_check(call, EVENT_CHECK_VIEW_END, operand, block->bytes, offset + bytes);
    return block;
}

/* ---- Allocations ---------------------------------------------------------------------------- */

void interpose_alloc_begin(struct interpose *interpose, struct interpose_call *call,
                           const char *name, enum interpose_memory memory, uint64_t bytes,
                           const struct interpose_stream *stream)
{
    if (!translate_open(interpose, call, EVENT_BUFFER_CREATE, name, memory))
        return;
    struct event *event = &call->event;
    call->slow_to_read = (memory & INTERPOSE_SLOW_TO_READ) != 0;
    memory &= ~INTERPOSE_SLOW_TO_READ;
    event->buffer.bytes = bytes;
    call->argument[0] = (uint64_t)memory;
    if (memory == INTERPOSE_PINNED || memory == INTERPOSE_REGISTERED)
        event->flags |= EVENT_HOST_MEMORY;
    if (stream) {
        pthread_mutex_lock(&interpose->lock);
        const struct tracked_stream *used = stream_use(interpose, call, stream);
        event->flags |= EVENT_STREAM_ORDERED;
        if (used && used->capture_id)
            event->buffer.graph_id = used->capture_id;
        pthread_mutex_unlock(&interpose->lock);
    }
    if (memory == INTERPOSE_REGISTERED) { /* the system must be able to read and write it */
        pthread_mutex_lock(&interpose->lock);
        trapped_open(interpose, 0, UINT64_MAX);
        pthread_mutex_unlock(&interpose->lock);
    }
    translate_tell(interpose, call);
}

/* Memory that was freed by another call than its own free, or whose addresses were allocated again:
 * its free was not seen. */
static void tell_unseen_free(struct interpose *interpose, const struct block *block,
                             const char *name)
{
    struct interpose_call call;
    if (!translate_open(interpose, &call, EVENT_BUFFER_DESTROY, name, 0))
        return;
    call.event.buffer.bytes = block->bytes;
    call.event.flags |= EVENT_SYNCHRONOUS;
    set_access(&call.event.accesses[0], block, 0, 0, block->address, block->bytes);
    call.event.access_count = 1;
    translate_tell_done(interpose, &call);
}

static void add_block(struct interpose *interpose, struct interpose_call *call, uint64_t address)
{
    struct event *event = &call->event;
    struct block *lost;
    while ((lost = block_overlapped(&interpose->blocks, address, event->buffer.bytes)) != NULL) {
        pending_forget(interpose, lost->address, lost->bytes);
        block_free(&interpose->blocks, lost, event->id);
        tell_unseen_free(interpose, lost, "(unseen free)");
    }
    struct block block = { .address = address,
                           .bytes = event->buffer.bytes,
                           .created_id = event->id,
                           .index = ++interpose->blocks.next_index,
                           .context = call->argument[1],
                           .memory = (uint8_t)call->argument[0],
                           .slow = call->slow_to_read };
    snprintf(event->scope.tensor, sizeof(event->scope.tensor), "%s#%" PRIu32, event->op,
             block.index);
    set_access(&event->accesses[0], &block, 0, 0, address, event->buffer.bytes);
    event->access_count = 1;
    /* Managed and mapped memory may hold what the host or another process wrote. */
    if ((block.memory == INTERPOSE_DEVICE || block.memory == INTERPOSE_POOL) &&
        !event->buffer.graph_id && !interpose->all_may_tell)
        event->flags |= EVENT_FRESH;
    if (address < interpose->lowest)
        interpose->lowest = address;
    if (address + event->buffer.bytes > interpose->highest)
        interpose->highest = address + event->buffer.bytes;
    if (!block_add(&interpose->blocks, &block))
        event->flags |= EVENT_PARTIAL; /* later calls will not know this memory */
}

void interpose_alloc_context(struct interpose *interpose, struct interpose_call *call,
                             uint64_t context)
{
    if (interpose && call->open)
        call->argument[1] = context;
}

void interpose_alloc_end(struct interpose *interpose, struct interpose_call *call, uint64_t address,
                         int32_t code)
{
    if (!interpose || !call->open)
        return;
    if (code == 0 && address && call->event.buffer.bytes &&
        address + call->event.buffer.bytes > address) {
        pthread_mutex_lock(&interpose->lock);
        add_block(interpose, call, address);
        pthread_mutex_unlock(&interpose->lock);
    }
    interpose_end(interpose, call, code);
}

/* ---- Frees ---------------------------------------------------------------------------------- */

/* What is wrong with freeing this address? */
static void check_free(struct interpose_call *call, const struct block *block, uint64_t address)
{
    struct event *event = &call->event;
    set_access(&event->accesses[0], block, 0, 0, address, block ? block->bytes : 0);
    event->access_count = 1;
    if (!block)
        translate_check(call, EVENT_CHECK_HANDLE, 0, 0, address);
    else if (block->freed_id)
        translate_check(call, EVENT_CHECK_GENERATION, 0, GENERATION, GENERATION + 1);
    else if (block->address != address)
        translate_check(call, EVENT_CHECK_ALIGNMENT, 0, block->address, address);
}

/* Does the call wait for all work of the device? */
static void set_free_behaviour(struct interpose *interpose, struct event *event,
                               enum interpose_memory memory)
{
    enum copy_behaviour behaviour = free_behaviour_of(interpose->backend->runtime, memory);
    if (behaviour == COPY_WAITS)
        event->flags |= EVENT_SYNCHRONOUS;
    if (behaviour != COPY_OPEN)
        return;
    event->flags |= EVENT_MAY_WAIT;
    pending_tell(interpose, SIZE_MAX, 0);
    trapped_tell(interpose, SIZE_MAX, 0);
}

/* Removed now, before the runtime may give its addresses to another thread. */
static void free_block(struct interpose *interpose, struct interpose_call *call,
                       struct block *block)
{
    call->argument[0] = block->address;
    call->argument[1] = 1;
    call->event.buffer.bytes = block->bytes;
    pending_forget(interpose, block->address, block->bytes);
    block_free(&interpose->blocks, block, call->event.id);
}

void interpose_free_begin(struct interpose *interpose, struct interpose_call *call,
                          const char *name, enum interpose_memory memory, uint64_t address,
                          uint64_t bytes, const struct interpose_stream *stream)
{
    call->open = false;
    if (address == 0 || !translate_open(interpose, call, EVENT_BUFFER_DESTROY, name, memory))
        return;
    pthread_mutex_lock(&interpose->lock);
    struct event *event = &call->event;
    if (stream) {
        const struct tracked_stream *used = stream_use(interpose, call, stream);
        event->flags |= EVENT_STREAM_ORDERED;
        if (used && used->capture_id)
            event->buffer.graph_id = used->capture_id;
    }
    if (memory == INTERPOSE_PINNED || memory == INTERPOSE_REGISTERED)
        event->flags |= EVENT_HOST_MEMORY;
    struct block *block = block_find(&interpose->blocks, address);
    if (!stream && block)
        set_free_behaviour(interpose, event, (enum interpose_memory)block->memory);
    check_free(call, block, address);
    /* An unmap also removes the other mappings of its range. */
    for (uint64_t at = address; bytes && block && !block->freed_id;) {
        uint64_t next = block->address + block->bytes;
        if (next - address >= bytes || next <= at)
            break;
        struct block *other = block_find(&interpose->blocks, next);
        if (!other || other->freed_id)
            break;
        block_free(&interpose->blocks, other, event->id);
        tell_unseen_free(interpose, other, "(unseen free)");
        at = next;
        block = other;
    }
    block = block_find(&interpose->blocks, address);
    if (block && !block->freed_id && event->check == EVENT_CHECK_NONE)
        free_block(interpose, call, block);
    pthread_mutex_unlock(&interpose->lock);
    translate_tell(interpose, call);
}

void interpose_reset_begin(struct interpose *interpose, struct interpose_call *call,
                           const char *name)
{
    interpose_sync_begin(interpose, call, name, NULL);
    if (!call->open)
        return;
    /* The call may free the sources of copies: they are compared for the last time. */
    pthread_mutex_lock(&interpose->lock);
    pending_done(interpose, SIZE_MAX, 0);
    pthread_mutex_unlock(&interpose->lock);
}

void interpose_context_gone(struct interpose *interpose, const struct interpose_call *call,
                            uint64_t context)
{
    if (!interpose || !call->open || !context)
        return;
    pthread_mutex_lock(&interpose->lock);
    for (size_t i = 0; i < interpose->blocks.count; i++) {
        struct block *block = &interpose->blocks.list[i];
        if (block->freed_id || block->context != context)
            continue;
        pending_forget(interpose, block->address, block->bytes);
        block_free(&interpose->blocks, block, call->event.id);
        tell_unseen_free(interpose, block, call->event.op);
    }
    pthread_mutex_unlock(&interpose->lock);
}

/* ---- The end -------------------------------------------------------------------------------- */

static void settle_free(struct interpose *interpose, const struct interpose_call *call)
{
    /* The memory still exists if the runtime refused. A lost device keeps nothing. */
    struct block *block = block_find(&interpose->blocks, call->argument[0]);
    if (call->argument[1] && call->event.outcome == EVENT_FAILED && block &&
        block->freed_id == call->event.id && call->event.check != EVENT_CHECK_LOST)
        block_revive(&interpose->blocks, block);
    if ((call->event.flags & EVENT_SYNCHRONOUS) && call->event.outcome == EVENT_DONE)
        pending_done(interpose, SIZE_MAX, 0);
}

void translate_settle(struct interpose *interpose, struct interpose_call *call)
{
    pthread_mutex_lock(&interpose->lock);
    const struct event *event = &call->event;
    trapped_settle(interpose, call);
    if (event->check == EVENT_CHECK_LOST)
        trapped_done(interpose, SIZE_MAX, 0);
    bool done = event->outcome == EVENT_DONE;
    if (event->kind == EVENT_BUFFER_DESTROY)
        settle_free(interpose, call);
    else if (event->kind == EVENT_STREAM_DESTROY)
        stream_settle(interpose, call);
    else if (done && (event->kind == EVENT_STREAM_SYNC || event->kind == EVENT_MARK_SYNC ||
                      (event->flags & (EVENT_SYNCHRONOUS | EVENT_STAGED))))
        pending_done(interpose, (size_t)call->argument[0], call->argument[1]);
    else if (event->kind == EVENT_GRAPH_END || event->kind == EVENT_GRAPH_BEGIN)
        graph_settle(interpose, call);
    pthread_mutex_unlock(&interpose->lock);
}
