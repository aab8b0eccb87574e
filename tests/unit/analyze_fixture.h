/* analyze_fixture.h - events by hand: a script that writes what a device would have reported. */
#ifndef GRETA_TESTS_ANALYZE_FIXTURE_H
#define GRETA_TESTS_ANALYZE_FIXTURE_H

#include "test.h"

#include "analyze/analyze.h"

#include <string.h>

/* Each event is a millisecond after the one before, so that host threads are in order. */
#define SCRIPT_NS 1000000u
#define BUFFER_BYTES 0x10000u
#define BUFFER_ADDRESS(index) (0x100000000u + (uint64_t)(index)*0x100000u)

struct script {
    struct analyzer *analyzer;
    uint64_t id, ns;
    uint32_t thread;
    int32_t layer, step;
    const char *tensor;
    struct event_observer listener; /* notify set: hears the events, instead of the analyzer */
    struct error err;
};

static inline void script_open(struct script *script, enum audit_level level)
{
    *script = (struct script){ .layer = -1, .step = -1, .tensor = "", .ns = 1000 };
    struct analyze_options options = { .level = level, .hang_limit_ns = 1000000000u };
    CHECK_OK(analyzer_create(&options, &script->analyzer, &script->err), &script->err);
}

static inline void script_close(struct script *script)
{
    analyzer_destroy(script->analyzer);
}

/* The next event of a kind, as a call that went well. */
static inline struct event script_event(struct script *script, enum event_kind kind)
{
    script->ns += SCRIPT_NS;
    struct event event = { .id = ++script->id,
                           .kind = (uint8_t)kind,
                           .begin_ns = script->ns,
                           .end_ns = script->ns + 1000,
                           .thread_index = script->thread,
                           .stream_index = EVENT_NO_STREAM,
                           .line = 100,
                           .scope = { script->step, script->layer, "" },
                           .operand = EVENT_NO_OPERAND,
                           .phase = EVENT_END,
                           .outcome = EVENT_DONE };
    event_set_text(event.scope.tensor, sizeof(event.scope.tensor), script->tensor);
    event_set_text(event.file, sizeof(event.file), "forward.c");
    return event;
}

static inline uint64_t script_add(struct script *script, const struct event *event)
{
    if (script->listener.notify)
        script->listener.notify(script->listener.context, event);
    else
        CHECK_OK(analyzer_add(script->analyzer, event, &script->err), &script->err);
    return event->id;
}

static inline struct event_access script_access(uint32_t buffer, uint64_t offset, uint64_t bytes,
                                                uint8_t mode, uint8_t operand)
{
    return (struct event_access){ .address = BUFFER_ADDRESS(buffer) + offset,
                                  .bytes = bytes,
                                  .buffer_index = buffer,
                                  .generation = 1,
                                  .mode = mode,
                                  .operand = operand };
}

/* ---- Buffers, streams, marks ---------------------------------------------------------------- */

static inline uint64_t script_buffer(struct script *script, uint32_t index, const char *name,
                                     bool imported)
{
    struct event event = script_event(script, EVENT_BUFFER_CREATE);
    event.buffer.buffer_index = index;
    event.buffer.bytes = BUFFER_BYTES;
    event.buffer.imported_address = imported ? 0x5000 : 0;
    event.access_count = 1;
    event.accesses[0] = script_access(index, 0, BUFFER_BYTES, EVENT_UPDATE, 0);
    event_set_text(event.scope.tensor, sizeof(event.scope.tensor), name);
    return script_add(script, &event);
}

static inline uint64_t script_destroy(struct script *script, uint32_t index, const char *name)
{
    struct event event = script_event(script, EVENT_BUFFER_DESTROY);
    event.buffer.buffer_index = index;
    event.access_count = 1;
    event.accesses[0] = script_access(index, 0, BUFFER_BYTES, EVENT_UPDATE, 0);
    event_set_text(event.scope.tensor, sizeof(event.scope.tensor), name);
    return script_add(script, &event);
}

/* What a mark, a graph or a ticket is known by. */
static inline void script_set_handle(struct event *event, uint64_t handle)
{
    switch (event_payload_of((enum event_kind)event->kind)) {
    case EVENT_PAYLOAD_MARK:
        event->mark.mark = handle;
        break;
    case EVENT_PAYLOAD_GRAPH:
        event->graph.handle = handle;
        break;
    case EVENT_PAYLOAD_TICKET:
        event->ticket.ticket = (uint32_t)handle;
        break;
    default:
        assert_int_equal(handle, 0);
    }
}

/* Anything with a stream and a handle. */
static inline uint64_t script_call(struct script *script, enum event_kind kind, uint32_t stream,
                                   uint64_t handle)
{
    struct event event = script_event(script, kind);
    event.stream_index = stream;
    script_set_handle(&event, handle);
    return script_add(script, &event);
}

static inline uint64_t script_sync(struct script *script, uint32_t stream)
{
    return script_call(script, EVENT_STREAM_SYNC, stream, 0);
}

/* ---- Work ----------------------------------------------------------------------------------- */

static inline struct event script_launch_event(struct script *script, uint32_t stream,
                                               const char *op)
{
    struct event event = script_event(script, EVENT_LAUNCH);
    event.stream_index = stream;
    event_set_text(event.op, sizeof(event.op), op);
    return event;
}

static inline void script_operand(struct event *event, uint32_t buffer, uint64_t offset,
                                  uint64_t bytes, uint8_t mode)
{
    uint8_t operand = event->access_count++;
    event->accesses[operand] = script_access(buffer, offset, bytes, mode, operand);
}

/* Reads all of one buffer, writes all of another; 0: none. */
static inline uint64_t script_launch(struct script *script, uint32_t stream, const char *op,
                                     uint32_t reads, uint32_t writes)
{
    struct event event = script_launch_event(script, stream, op);
    if (reads)
        script_operand(&event, reads, 0, BUFFER_BYTES, EVENT_READ);
    if (writes)
        script_operand(&event, writes, 0, BUFFER_BYTES, EVENT_WRITE);
    return script_add(script, &event);
}

/* A copy or fill of [offset, offset + bytes) of a buffer through a staging slot. */
static inline struct event script_copy_event(struct script *script, enum event_kind kind,
                                             uint32_t stream, uint32_t buffer, uint64_t offset,
                                             uint64_t bytes, uint64_t slot)
{
    struct event event = script_event(script, kind);
    event.stream_index = stream;
    event.copy.ticket = (uint32_t)slot;
    event.copy.bytes = bytes;
    event.copy.host_address = slot ? 0x700000 + slot * 0x100000 : 0;
    event.access_count = 1;
    event.accesses[0] = script_access(buffer, offset, bytes,
                                      kind == EVENT_COPY_OUT ? EVENT_READ : EVENT_WRITE, 0);
    return event;
}

static inline uint64_t script_copy(struct script *script, enum event_kind kind, uint32_t stream,
                                   uint32_t buffer, uint64_t offset, uint64_t bytes, uint64_t slot)
{
    struct event event = script_copy_event(script, kind, stream, buffer, offset, bytes, slot);
    return script_add(script, &event);
}

static inline uint64_t script_redeem(struct script *script, uint64_t slot, uint64_t copy_id,
                                     bool waited, uint64_t hash)
{
    struct event event = script_event(script, EVENT_TICKET_REDEEM);
    event.scope = (struct event_scope){ -1, -1, "" };
    event.ticket.ticket = (uint32_t)slot;
    event.cause_id = copy_id;
    event.ticket.hash = hash;
    event.ticket.waited = waited;
    return script_add(script, &event);
}

static inline uint64_t script_release(struct script *script, uint64_t slot)
{
    return script_call(script, EVENT_TICKET_RELEASE, EVENT_NO_STREAM, slot);
}

/* A refused call: event as it was asked. */
static inline uint64_t script_refuse(struct script *script, struct event event,
                                     enum event_check check, uint8_t operand, uint64_t expected,
                                     uint64_t found)
{
    event.outcome = EVENT_REFUSED;
    event.check = (uint8_t)check;
    event.operand = operand;
    event.expected = expected;
    event.found = found;
    return script_add(script, &event);
}

/* What is found out about an earlier call: two numbers and an address or a third, as its kind has
 * them. */
static inline void script_set_remark(struct event *event, uint64_t expected, uint64_t found,
                                     uint64_t third)
{
    switch (event->kind) {
    case EVENT_TRAP:
        event->trap = (struct event_trap){ .index = found, .bound = expected };
        break;
    case EVENT_FAULT:
        event->fault = (struct event_fault){ .address = third, .address_known = (uint8_t)found };
        break;
    case EVENT_TRANSFER_HASH:
        event->transfer = (struct event_transfer_hash){ .source_before = expected,
                                                        .source_after = third,
                                                        .destination = found };
        break;
    case EVENT_SCAN:
        event->scan = (struct event_scan){ expected, found, third };
        break;
    default:
        assert_true(expected == 0 && found == 0 && third == 0);
    }
}

/* A remark on an earlier call. */
static inline uint64_t script_remark(struct script *script, enum event_kind kind, uint64_t cause,
                                     uint8_t operand, uint64_t expected, uint64_t found,
                                     uint64_t host_address)
{
    struct event event = script_event(script, kind);
    event.scope = (struct event_scope){ -1, -1, "" };
    event.cause_id = cause;
    event.operand = operand;
    script_set_remark(&event, expected, found, host_address);
    if (kind == EVENT_FAULT && cause)
        event.flags = EVENT_CAUGHT;
    return script_add(script, &event);
}

static inline void script_run(struct script *script, uint64_t iteration, uint64_t key)
{
    struct event event = script_event(script, EVENT_RUN);
    event.run = (struct event_run){ iteration, key };
    script_add(script, &event);
}

/* ---- Results -------------------------------------------------------------------------------- */

static inline const struct analysis *script_finish(struct script *script,
                                                   const struct crumb_page *crumbs)
{
    struct flight_info info = { .closed = true };
    CHECK_OK(analyzer_finish(script->analyzer, crumbs, &info, script->ns, &script->err),
             &script->err);
    return analyzer_result(script->analyzer);
}

static inline const struct finding *find_finding(const struct analysis *analysis,
                                                 enum hypothesis hypothesis)
{
    for (size_t i = 0; i < analysis->finding_count; i++)
        if (analysis->findings[i].hypothesis == hypothesis)
            return &analysis->findings[i];
    return NULL;
}

#define CHECK_FINDING(analysis, hypothesis, cause_id)                                              \
    do {                                                                                           \
        const struct finding *check_finding = find_finding((analysis), (hypothesis));              \
        if (!check_finding)                                                                        \
            fail_msg("%s: expected a finding, found none of %zu",                                  \
                     hypothesis_info(hypothesis)->slug, (analysis)->finding_count);                \
        else if (check_finding->cause.event_id != (cause_id))                                      \
            fail_msg("%s: expected event %ju as the cause, found %ju",                             \
                     hypothesis_info(hypothesis)->slug, (uintmax_t)(cause_id),                     \
                     (uintmax_t)check_finding->cause.event_id);                                    \
    } while (0)

#endif
