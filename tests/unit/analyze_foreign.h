/* analyze_foreign.h - calls of foreign programs as scripts of events, for the tests of what is said
 * of them. */
#ifndef GRETA_TESTS_ANALYZE_FOREIGN_H
#define GRETA_TESTS_ANALYZE_FOREIGN_H

#include "analyze_fixture.h"

enum { A = 1, B = 2, C = 3 }; /* buffers and streams */

static inline void begin(struct script *script)
{
    script_open(script, AUDIT_LOG);
    for (uint32_t i = A; i <= C; i++) {
        struct event event = script_event(script, EVENT_BUFFER_CREATE);
        event.flags = EVENT_FOREIGN;
        event.buffer.bytes = BUFFER_BYTES;
        event.access_count = 1;
        event.accesses[0] = script_access(i, 0, BUFFER_BYTES, 0, 0);
        script_add(script, &event);
    }
}

/* A copy within the device: reads one buffer, writes another; 0: none. */
static inline uint64_t copy(struct script *script, uint32_t stream, uint32_t reads, uint32_t writes,
                            uint16_t flags)
{
    struct event event = script_event(script, EVENT_COPY_WITHIN);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    event_set_text(event.op, sizeof(event.op), "cuMemcpyAsync");
    if (reads)
        script_operand(&event, reads, 0, BUFFER_BYTES, EVENT_READ);
    if (writes)
        script_operand(&event, writes, 0, BUFFER_BYTES, EVENT_WRITE);
    return script_add(script, &event);
}

static inline struct event kernel_event(struct script *script, uint32_t stream, uint32_t pointer)
{
    static uint64_t ordinal;
    struct event event = script_launch_event(script, stream, "kernel");
    event.flags = EVENT_FOREIGN;
    event.launch.ordinal = ++ordinal;
    if (pointer)
        script_operand(&event, pointer, 0, BUFFER_BYTES, EVENT_UPDATE | EVENT_MAYBE);
    return event;
}

static inline uint64_t kernel(struct script *script, uint32_t stream, uint32_t pointer)
{
    struct event event = kernel_event(script, stream, pointer);
    return script_add(script, &event);
}

static inline uint64_t call(struct script *script, enum event_kind kind, uint32_t stream,
                            uint64_t object, uint16_t flags)
{
    struct event event = script_event(script, kind);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    script_set_handle(&event, object);
    return script_add(script, &event);
}

static inline uint64_t release(struct script *script, uint32_t buffer, uint32_t stream,
                               uint16_t flags)
{
    struct event event = script_event(script, EVENT_BUFFER_DESTROY);
    event.flags = EVENT_FOREIGN | flags;
    event.stream_index = stream;
    event.access_count = 1;
    event.accesses[0] = script_access(buffer, 0, BUFFER_BYTES, 0, 0);
    return script_add(script, &event);
}

/* The one finding there is; cause 0: there is none. */
static inline void end(struct script *script, enum hypothesis hypothesis,
                       enum finding_certainty certainty, uint64_t cause, uint64_t other)
{
    const struct analysis *analysis = script_finish(script, NULL);
    assert_int_equal(analysis->finding_count, cause ? 1 : 0);
    if (cause) {
        const struct finding *finding = &analysis->findings[0];
        assert_int_equal(finding->hypothesis, hypothesis);
        assert_int_equal(finding->certainty, certainty);
        assert_int_equal(finding->cause.event_id, cause);
        assert_int_equal(finding->other.event_id, other);
        assert_true(certainty == FINDING_DIRECT || finding->reason);
    }
    script_close(script);
}

static inline void nothing(struct script *script)
{
    end(script, HYPOTHESIS_MISSING_SYNC, FINDING_DIRECT, 0, 0);
}

#endif
