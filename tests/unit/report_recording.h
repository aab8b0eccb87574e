/* report_recording.h - a flight file made by hand: a hundred events, hostile names included, with
 * the crumbs and the trap of a process that died. */
#ifndef GRETA_TESTS_REPORT_RECORDING_H
#define GRETA_TESTS_REPORT_RECORDING_H

#include "report_specimen.h"

#include "base/clock.h"
#include "event/flight.h"

static inline void specimen_tell(struct flight *flight, struct event event)
{
    struct event_observer observer = flight_observer(flight);
    struct event begin = event;
    begin.phase = EVENT_BEGIN;
    begin.outcome = EVENT_PENDING;
    begin.end_ns = 0;
    begin.check = 0;
    observer.notify(observer.context, &begin);
    if (event.outcome == EVENT_PENDING)
        return;
    event.phase = EVENT_END;
    observer.notify(observer.context, &event);
}

/* start_ns: event times count from it; about when the recording began. */
static inline struct event specimen_event(uint64_t start_ns, uint64_t id, enum event_kind kind,
                                          const char *op)
{
    struct event event = { .id = id,
                           .kind = (uint8_t)kind,
                           .begin_ns = start_ns + id * 50000,
                           .end_ns = start_ns + id * 50000 + 8000,
                           .stream_index = (uint32_t)(id % 3),
                           .line = (uint16_t)(100 + id),
                           .scope = { .step = (int32_t)(id / 25), .layer = (int32_t)(id % 25) },
                           .outcome = EVENT_DONE,
                           .operand = EVENT_NO_OPERAND,
                           .access_count = 1 };
    event.accesses[0] = (struct event_access){ .address = 0x7f0000000000 + id * 4096,
                                               .bytes = 4096,
                                               .mode = EVENT_UPDATE };
    event_set_text(event.op, sizeof(event.op), op);
    event_set_text(event.file, sizeof(event.file), "engine/forward.c");
    return event;
}

/* All marks and tickets are number 1. */
static inline void specimen_set_handle(struct event *event)
{
    if (event->kind == EVENT_COPY_OUT)
        event->copy.ticket = 1;
    if (event->kind == EVENT_TICKET_REDEEM)
        event->ticket.ticket = 1;
    if (event->kind == EVENT_MARK_RECORD || event->kind == EVENT_MARK_WAIT)
        event->mark.mark = 1;
}

static inline void specimen_record(struct flight *flight)
{
    static const char *const names[] = { "kv.keys", "blk.0.attn_q.weight", HOSTILE_PIPE,
                                         "rope.positions", "logits" };
    uint64_t start_ns = clock_ns();
    static const char *const ops[] = { "rms_norm", "matmul", "rope", "attention", HOSTILE_SCRIPT };
    for (uint64_t id = 1; id <= 20; id++) {
        struct event event = specimen_event(start_ns, id, EVENT_BUFFER_CREATE, "kv.keys");
        event.buffer.buffer_index = (uint32_t)id;
        event.buffer.bytes = UINT64_C(1) << (id + 8);
        event.stream_index = EVENT_NO_STREAM;
        event.accesses[0].address = 0x7f0000000000 + (id << 20);
        event.accesses[0].bytes = event.buffer.bytes;
        event.accesses[0].buffer_index = (uint32_t)id;
        event.op[0] = '\0';
        event_set_text(event.scope.tensor, sizeof(event.scope.tensor), names[id % 5]);
        specimen_tell(flight, event);
    }
    struct event freed = specimen_event(start_ns, 21, EVENT_BUFFER_DESTROY, "");
    freed.accesses[0].buffer_index = 3;
    freed.stream_index = EVENT_NO_STREAM;
    specimen_tell(flight, freed);
    for (uint64_t id = 22; id <= 100; id++) {
        struct event event = specimen_event(start_ns, id, EVENT_LAUNCH, ops[id % 5]);
        if (id % 10 == 3)
            event.kind = EVENT_COPY_OUT;
        if (id % 10 == 4) {
            event.kind = EVENT_TICKET_REDEEM;
            event.cause_id = id - 1;
        }
        if (id % 10 == 5)
            event.kind = EVENT_MARK_RECORD;
        if (id % 10 == 6)
            event.kind = EVENT_MARK_WAIT;
        specimen_set_handle(&event);
        if (id % 10 == 9) {
            /* The launch before has been done. */
            event.kind = EVENT_COMPLETION;
            event.cause_id = id - 1;
            event.stream_index = (uint32_t)((id - 1) % 3);
            event.op[0] = '\0';
        }
        if (id == SPECIMEN_SEEN_ID || id == 95) {
            event.kind = EVENT_COPY_OUT;
            event.outcome = EVENT_REFUSED;
            event.check = EVENT_CHECK_LOST;
            event_set_text(event.scope.tensor, sizeof(event.scope.tensor), HOSTILE_LINE);
        }
        if (id == 100)
            event.outcome = EVENT_PENDING;
        specimen_tell(flight, event);
    }
    struct crumb_page *crumbs = flight_crumbs(flight);
    crumb_set_order(crumbs, CRUMB_ORDER_EXACT);
    crumb_enter(&crumbs->streams[1], SPECIMEN_CAUSE_ID);
    crumb_finish(&crumbs->streams[1], SPECIMEN_CAUSE_ID - 3);
    crumb_trap_add(crumbs, SPECIMEN_CAUSE_ID, 1, 2139062143, 4096);
}

/* Writes a recording of a hundred events. */
static inline void specimen_flight(const char *path)
{
    struct flight_options options = { .record_count = 256,
                                      .allocation_count = 32,
                                      .graph_record_count = 4,
                                      .device = "host " HOSTILE_SCRIPT,
                                      .command = "greta infer --audit guard " HOSTILE_LINE };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(path, &options, &flight, &err), &err);
    specimen_record(flight);
    flight_close(flight);
}

#endif
