/* caller.c - bugs of the caller: arguments that are wrong, calls that are missing, come too early,
 * twice, or on the wrong stream. Planted around the public calls and made of public calls, so that
 * an observer sees what it would see of the real bug.
 *
 * The lock is held while it is decided whether this is the call, never while the device is used. */
#include "inject/inject_impl.h"

#include <stdlib.h>
#include <string.h>

/* ---- Deciding ------------------------------------------------------------------------------- */

static bool is_copy_or_fill(enum event_kind kind)
{
    return kind == EVENT_COPY_IN || kind == EVENT_COPY_OUT || kind == EVENT_FILL;
}

static int operand_of(const struct inject *inject, const struct device_launch *launch)
{
    bool present[DEVICE_OPERAND_LIMIT];
    for (int i = 0; i < launch->operand_count; i++)
        present[i] = launch->operands[i].buffer.index != 0;
    return inject_operand(inject, launch->contract, present);
}

/* A graph goes stale at its replay, a buffer is freed twice at its destruction: see below. */
static bool call_carries(const struct inject *inject, const struct device_tampered *call)
{
    enum inject_fault fault = inject->spec.fault;
    return inject_row(fault)->where == INJECT_IN_CALL && fault != INJECT_STALE_GRAPH &&
           fault != INJECT_DOUBLE_FREE && inject_carries(fault, call->kind);
}

/* True if this is the call; it is then noted as planted. */
static bool claim(struct inject *inject, const struct device_tampered *call, int *ret_operand)
{
    *ret_operand = -1;
    pthread_mutex_lock(&inject->lock);
    bool mine = call_carries(inject, call) && inject_fits(inject, call->op, &call->scope);
    if (mine && call->kind == EVENT_LAUNCH) {
        *ret_operand = operand_of(inject, call->launch);
        mine = *ret_operand >= 0;
    }
    if (mine) {
        inject_note(inject, call->op, &call->scope, call->launch ? call->launch->contract : NULL,
                    *ret_operand, 0);
        inject->record.place.stream_index = call->stream.index;
        inject->under_way = true;
        inject->thread = pthread_self();
    }
    pthread_mutex_unlock(&inject->lock);
    return mine;
}

/* Between these, calls are our own and carry nothing. */
static void begin_acting(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject->acting = true;
    pthread_mutex_unlock(&inject->lock);
}

static void end_acting(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject->acting = false;
    pthread_mutex_unlock(&inject->lock);
}

/* The call is over, or was never made: nothing that waits for it is wanted any more. */
static void end_under_way(struct inject *inject)
{
    pthread_mutex_lock(&inject->lock);
    inject->under_way = false;
    inject->lose_wanted = false;
    if (!inject->lost_mark)
        inject_hold_flush(inject);
    pthread_mutex_unlock(&inject->lock);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

/* If the launch that is recorded is the planned one, its buffer will be replaced before a replay.
 */
static void arm_graph(struct inject *inject, const struct device_tampered *call)
{
    pthread_mutex_lock(&inject->lock);
    int operand = operand_of(inject, call->launch);
    if (inject->capturing && !inject->graph_buffer.index && operand >= 0 &&
        inject_fits(inject, call->op, &call->scope)) {
        struct inject_place *victim = &inject->record.victim;
        inject->graph_buffer = call->launch->operands[operand].buffer;
        *victim = (struct inject_place){ .scope = call->scope,
                                         .operand_index = (uint8_t)operand,
                                         .stream_index = call->stream.index };
        event_set_text(victim->op, sizeof(victim->op), call->op);
        event_set_text(victim->operand, sizeof(victim->operand),
                       call->launch->contract->operands[operand].name);
        inject->under_way = true;
        inject->thread = pthread_self();
    }
    pthread_mutex_unlock(&inject->lock);
}

/* Does what a caller does that needs a larger buffer and forgets that a graph names the old one. */
static void resize_graph_buffer(struct inject *inject, const struct device_tampered *call)
{
    pthread_mutex_lock(&inject->lock);
    struct device_buffer buffer = inject->graph_buffer;
    bool mine = buffer.index && !inject->record.planted;
    if (mine) {
        inject_note(inject, call->op, &call->scope, NULL, -1, 0);
        inject->record.place.stream_index = call->stream.index;
        inject->under_way = true;
        inject->thread = pthread_self();
    }
    pthread_mutex_unlock(&inject->lock);
    if (!mine)
        return;
    begin_acting(inject);
    uint64_t bytes = device_buffer_bytes(inject->device, buffer);
    inject_act_destroy(inject, buffer);
    inject_act_create_like(inject, buffer, bytes ? 2 * bytes : 1);
    end_acting(inject);
}

/* ---- Before --------------------------------------------------------------------------------- */

static bool is_ticket(const struct inject *inject, struct device_ticket ticket)
{
    return inject->ticket.index && inject->ticket.index == ticket.index &&
           inject->ticket.generation == ticket.generation;
}

/* Releases the ticket that the caller is about to use. */
static void release_early(struct inject *inject, const struct device_tampered *call,
                          enum inject_fault fault)
{
    pthread_mutex_lock(&inject->lock);
    bool mine = inject->spec.fault == fault && !inject->acting && is_ticket(inject, call->ticket);
    if (mine)
        inject->ticket.index = 0;
    pthread_mutex_unlock(&inject->lock);
    if (!mine)
        return;
    begin_acting(inject);
    inject_act_release(inject, call->ticket);
    end_acting(inject);
}

static void free_twice(struct inject *inject, const struct device_tampered *call)
{
    struct event_scope scope = { -1, -1, "" };
    inject_act_name(inject, call->buffer, scope.tensor);
    pthread_mutex_lock(&inject->lock);
    bool mine = inject->spec.fault == INJECT_DOUBLE_FREE && inject_fits(inject, call->op, &scope);
    if (mine)
        inject_note(inject, call->op, &scope, NULL, -1, 0);
    pthread_mutex_unlock(&inject->lock);
    if (!mine)
        return;
    begin_acting(inject);
    inject_act_destroy(inject, call->buffer);
    end_acting(inject);
}

bool inject_before(void *context, struct device_tampered *call)
{
    struct inject *inject = context;
    int operand;
    switch (call->kind) {
    case EVENT_GRAPH_BEGIN:
    case EVENT_GRAPH_END:
        pthread_mutex_lock(&inject->lock);
        inject->capturing = call->kind == EVENT_GRAPH_BEGIN;
        pthread_mutex_unlock(&inject->lock);
        return true;
    case EVENT_GRAPH_REPLAY:
        resize_graph_buffer(inject, call);
        return true;
    case EVENT_TICKET_REDEEM:
        release_early(inject, call, INJECT_FREED_STAGING);
        return true;
    case EVENT_TICKET_RELEASE:
        release_early(inject, call, INJECT_DOUBLE_RELEASE);
        return true;
    case EVENT_BUFFER_DESTROY:
        free_twice(inject, call);
        return true;
    default:
        break;
    }
    if (inject->spec.fault == INJECT_STALE_GRAPH && call->kind == EVENT_LAUNCH)
        arm_graph(inject, call);
    if (!claim(inject, call, &operand))
        return true;
    begin_acting(inject);
    bool made = true;
    if (inject->spec.fault == INJECT_LOST_WAKEUP)
        inject_act_lose_mark(inject);
    else if (call->kind == EVENT_LAUNCH)
        made = inject_act_launch(inject, call, operand);
    else if (call->kind == EVENT_MARK_WAIT)
        made = false;
    else
        made = inject_act_copy(inject, call);
    if (call->kind == EVENT_MARK_WAIT)
        inject_act_watch(inject, call->stream);
    end_acting(inject);
    if (!made)
        end_under_way(inject);
    return made;
}

/* ---- After ---------------------------------------------------------------------------------- */

static void act_after(struct inject *inject, const struct device_tampered *call)
{
    begin_acting(inject);
    switch (inject->spec.fault) {
    case INJECT_FREE_WHILE_QUEUED:
        if (call->launch)
            inject_act_destroy(inject,
                               call->launch->operands[inject->record.place.operand_index].buffer);
        break;
    case INJECT_FREED_STAGING:
    case INJECT_DOUBLE_RELEASE:
        inject->ticket = call->ticket;
        break;
    case INJECT_SLOT_REWRITTEN:
        inject_act_rewrite_slot(inject, call);
        break;
    case INJECT_OVERLAPPING_D2H:
    case INJECT_OVERLAPPING_COPIES:
        inject_act_overlap(inject, call);
        break;
    default:
        break;
    }
    end_acting(inject);
}

/* With the lock held. */
static void note_victim(struct inject *inject, const struct device_tampered *call)
{
    struct inject_place *victim = &inject->record.victim;
    if (inject->victim_stream != call->stream.index || call->stream.index == 0 ||
        (call->kind != EVENT_LAUNCH && !is_copy_or_fill(call->kind)))
        return;
    inject->victim_stream = 0;
    *victim = (struct inject_place){ .event_id = call->event_id,
                                     .scope = call->scope,
                                     .operand_index = EVENT_NO_OPERAND,
                                     .stream_index = call->stream.index };
    event_set_text(victim->op, sizeof(victim->op), call->op);
}

void inject_after(void *context, const struct device_tampered *call)
{
    struct inject *inject = context;
    pthread_mutex_lock(&inject->lock);
    struct inject_record *record = &inject->record;
    bool own = inject->acting;
    bool mine = inject->under_way && !own && pthread_equal(inject->thread, pthread_self());
    if (call->kind == EVENT_BUFFER_CREATE && !call->status &&
        call->buffer.index < INJECT_MEMORY_LIMIT)
        event_set_text(inject->names[call->buffer.index], EVENT_TENSOR_BYTES, call->name);
    if (mine && record->planted) {
        record->place.event_id = call->event_id;
        record->place.stream_index = call->stream.index;
    } else if (mine) { /* recorded into the graph that will be stale */
        record->victim.event_id = call->event_id;
    } else if (!own) {
        note_victim(inject, call);
        if (record->planted && record->place.event_id == call->event_id && call->event_id)
            record->place.stream_index = call->stream.index; /* a defect of the machine */
    }
    pthread_mutex_unlock(&inject->lock);
    if (mine && !call->status)
        act_after(inject, call);
    if (mine)
        end_under_way(inject);
}

bool inject_take_again(void *context)
{
    struct inject *inject = context;
    pthread_mutex_lock(&inject->lock);
    bool again = inject->slots_again && pthread_equal(inject->thread, pthread_self());
    pthread_mutex_unlock(&inject->lock);
    return again;
}
