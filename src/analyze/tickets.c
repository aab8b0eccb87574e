/* tickets.c - staging slots as the events show them: landing or held for a ticket, filling for a
 * copy in, free. */
#include "analyze/analyze_impl.h"

struct ticket_state *order_ticket(const struct order *order, uint64_t object)
{
    uint32_t place = idmap_find(&order->ticket_map, object);
    return place == IDMAP_NONE ? NULL : &order->tickets[place];
}

static struct ticket_state *take_ticket(struct order *order, uint64_t object)
{
    struct ticket_state *ticket = order_ticket(order, object);
    if (ticket)
        return ticket;
    ASSERT(order->tickets); /* or order_init has failed */
    uint32_t place = order->ticket_count++ % TICKET_LIMIT;
    ticket = &order->tickets[place];
    if (order->ticket_count > TICKET_LIMIT)
        idmap_remove(&order->ticket_map, ticket->object);
    *ticket = (struct ticket_state){ .object = object };
    idmap_set(&order->ticket_map, object, place);
    return ticket;
}

void order_ticket_start(struct order *order, const struct event *event)
{
    const struct stream_state *stream = order_stream(order, event->stream_index);
    if (!stream || event->copy.ticket == 0)
        return;
    struct ticket_state *ticket = take_ticket(order, event->copy.ticket);
    ticket->use = event->kind == EVENT_COPY_IN ? TICKET_FILLING : TICKET_LANDING;
    ticket->generation = event->copy.generation;
    ticket->copy_id = event->id;
    ticket->host_address = event->copy.host_address;
    ticket->bytes = event->copy.bytes;
    ticket->stream = event->stream_index;
    ticket->tick = stream->clock.ticks[event->stream_index];
    ticket->clock = stream->clock;
}

/* Redeemed or released; both wait for the copy where it was not waited for. */
void order_ticket_end(struct order *order, const struct event *event, struct thread_state *thread)
{
    struct ticket_state *ticket = order_ticket(order, event->ticket.ticket);
    if (!ticket || ticket->use == TICKET_FREE || ticket->use == TICKET_FILLING)
        return;
    bool redeem = event->kind == EVENT_TICKET_REDEEM;
    bool waited = redeem ? event->ticket.waited == 1 || event->outcome == EVENT_FAILED
                         : ticket->use == TICKET_LANDING;
    if (waited)
        order_thread_waited(order, thread, &ticket->clock, event->end_ns);
    ticket->use = redeem ? TICKET_HELD : TICKET_FREE;
}

/* Told before the slot of a copy in can be taken again. */
void order_copy_completed(struct analyzer *analyzer, const struct event *event)
{
    struct stream_state *stream = order_stream(&analyzer->order, event->stream_index);
    if (stream && !analyzer->first_fault_id && event->cause_id > stream->completed_id)
        stream->completed_id = event->cause_id;
    analyzer->order.completions = true;
    const struct history_entry *copy = history_find(&analyzer->history, event->cause_id);
    if (!copy || copy->event.kind != EVENT_COPY_IN)
        return;
    struct ticket_state *slot = order_ticket(&analyzer->order, copy->event.copy.ticket);
    if (slot && slot->use == TICKET_FILLING && slot->copy_id == event->cause_id)
        slot->use = TICKET_FREE;
}

bool order_slot_busy(const struct order *order, const struct ticket_state *ticket,
                     const struct event *event)
{
    if (ticket->use != TICKET_FILLING)
        return ticket->use != TICKET_FREE;
    /* A slot that was free in between has another generation. Without completions and with
     * another generation the device's own word is all there is: it asked the slot's mark. */
    return order->completions ||
           (event->copy.generation && event->copy.generation == ticket->generation);
}
