/* event_flight.h - a small flight file and events to write to it. */
#ifndef GRETA_TESTS_EVENT_FLIGHT_H
#define GRETA_TESTS_EVENT_FLIGHT_H

#include "test.h"

#include "event/fan.h"
#include "event/flight.h"
#include "event/flight_layout.h"
#include "temp_folder.h"

static inline struct event make_event(uint64_t id, enum event_kind kind, enum event_phase phase)
{
    struct event event = { .id = id,
                           .kind = (uint8_t)kind,
                           .phase = (uint8_t)phase,
                           .outcome = phase == EVENT_END ? EVENT_DONE : EVENT_PENDING,
                           .begin_ns = 1000 + id,
                           .end_ns = phase == EVENT_END ? 2000 + id : 0,
                           .stack_index = (uint32_t)(7 * id),
                           .scope = { .step = (int32_t)id, .layer = 3 },
                           .access_count = 2 };
    event.accesses[1] = (struct event_access){ .address = 0x1000 * id, .bytes = 64 };
    event_set_text(event.op, sizeof(event.op), "rope");
    event_set_text(event.scope.tensor, sizeof(event.scope.tensor), "q");
    return event;
}

static inline void flight_tell(struct flight *flight, const struct event *event)
{
    struct event_observer observer = flight_observer(flight);
    observer.notify(observer.context, event);
}

static inline void flight_tell_call(struct flight *flight, uint64_t id, enum event_kind kind)
{
    struct event event = make_event(id, kind, EVENT_BEGIN);
    flight_tell(flight, &event);
    event = make_event(id, kind, EVENT_END);
    flight_tell(flight, &event);
}

static inline struct flight *create_flight(const struct temp_folder *folder, uint32_t record_count)
{
    struct flight_options options = { .record_count = record_count,
                                      .allocation_count = 4,
                                      .graph_record_count = 4,
                                      .device = "a device",
                                      .command = "a command" };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(temp_folder_path(folder, "flight").text, &options, &flight, &err), &err);
    return flight;
}

#endif
