/* tickets.c - staging slots as the events show them: landing or held for a ticket, filling for a
 * copy in, free. */
#include "analyze/analyze_impl.h"

static uint64_t key_of(uint16_t device_index, uint32_t ticket)
{
    return (uint64_t)device_index << 32 | ticket;
}

struct ticket_state *order_ticket(const struct order *order, uint16_t device_index, uint32_t ticket)
{
    uint32_t place = idmap_find(&order->ticket_map, key_of(device_index, ticket));
    return place == IDMAP_NONE ? NULL : &order->tickets[place];
}

static struct ticket_state *take_ticket(struct order *order, uint16_t device_index, uint32_t number)
{
    struct ticket_state *ticket = order_ticket(order, device_index, number);
    if (ticket)
        return ticket;
    ASSERT(order->tickets); /* or order_init has failed */
    uint32_t place = order->ticket_count++ % TICKET_LIMIT;
    ticket = &order->tickets[place];
    if (order->ticket_count > TICKET_LIMIT)
        idmap_remove(&order->ticket_map, key_of(ticket->device_index, ticket->ticket));
    *ticket = (struct ticket_state){ .ticket = number, .device_index = device_index };
    idmap_set(&order->ticket_map, key_of(device_index, number), place);
    return ticket;
}

void order_ticket_start(struct order *order, const struct event *event)
{
    uint32_t place = order_place_of(order, event);
    const struct stream_state *stream = order_stream_at(order, place);
    if (!stream || event->copy.ticket == 0)
        return;
    struct ticket_state *ticket = take_ticket(order, event->device_index, event->copy.ticket);
    ticket->use = event->kind == EVENT_COPY_IN ? TICKET_FILLING : TICKET_LANDING;
    ticket->generation = event->copy.generation;
    ticket->copy_id = event->id;
    ticket->host_address = event->copy.host_address;
    ticket->bytes = event->copy.bytes;
    ticket->stream = place;
    ticket->tick = stream->clock.ticks[place];
    ticket->clock = stream->clock;
}

/* Redeemed or released; both wait for the copy where it was not waited for. */
void order_ticket_end(struct order *order, const struct event *event, struct thread_state *thread)
{
    struct ticket_state *ticket = order_ticket(order, event->device_index, event->ticket.ticket);
    if (!ticket || ticket->use == TICKET_FREE || ticket->use == TICKET_FILLING)
        return;
    bool redeem = event->kind == EVENT_TICKET_REDEEM;
    bool waited = redeem ? event->ticket.waited == 1 || event->outcome == EVENT_FAILED
                         : ticket->use == TICKET_LANDING;
    if (waited)
        order_thread_waited(order, thread, &ticket->clock, event->end_ns);
    ticket->use = redeem ? TICKET_HELD : TICKET_FREE;
}

/* A completion is reported before the slot of the copy in can be taken again. */
void order_copy_completed(struct analyzer *analyzer, const struct event *event)
{
    struct stream_state *stream = order_stream(&analyzer->order, event);
    if (stream && !analyze_is_lost(analyzer, event) && event->cause_id > stream->completed_id)
        stream->completed_id = event->cause_id;
    analyzer->order.completions = true;
    const struct history_entry *copy = history_find(&analyzer->history, event->cause_id);
    if (!copy || copy->event.kind != EVENT_COPY_IN)
        return;
    struct ticket_state *slot = order_ticket(&analyzer->order, copy->event.device_index,
                                             copy->event.copy.ticket);
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
