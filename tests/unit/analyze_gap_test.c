/* analyze_gap_test.c - a healthy run of which events are missing is not accused: whatever may have
 * been among them is not known, and nothing certain is said that rests on its absence. */
#include "analyze_fixture.h"

enum { X = 1, Y = 2, Z = 3, TABLE = 4, BUFFERS = 5 };
enum { MAIN = 1, SIDE = 2 };
#define GRAPH 5u
#define MARK 7u
#define EVENT_LIMIT 128u

struct events {
    struct event items[EVENT_LIMIT];
    size_t count;
};

static void keep(void *context, const struct event *event)
{
    struct events *events = context;
    assert_true(events->count < EVENT_LIMIT);
    events->items[events->count++] = *event;
}

/* A launch as part of a graph that is being recorded; 0: it runs. */
static void launch(struct script *script, const char *op, uint32_t reads, uint32_t writes,
                   uint64_t graph)
{
    struct event event = script_launch_event(script, MAIN, op);
    event.launch.graph_id = graph;
    script_operand(&event, reads, 0, BUFFER_BYTES, EVENT_READ);
    script_operand(&event, writes, 0, BUFFER_BYTES, EVENT_WRITE);
    script_add(script, &event);
}

static uint64_t record(struct script *script)
{
    uint64_t graph = script_call(script, EVENT_GRAPH_BEGIN, MAIN, 0);
    launch(script, "norm", X, Y, graph);
    launch(script, "matmul", Y, Z, graph);
    struct event ended = script_event(script, EVENT_GRAPH_END);
    ended.stream_index = MAIN;
    ended.cause_id = graph;
    ended.graph.handle = GRAPH;
    script_add(script, &ended);
    return graph;
}

/* Copies a result out and redeems it. */
static void result(struct script *script, uint32_t buffer, int32_t step, uint64_t hash)
{
    script->step = step;
    script->tensor = "logits";
    uint64_t copy = script_copy(script, EVENT_COPY_OUT, MAIN, buffer, 0, 64, 1);
    script_redeem(script, 1, copy, true, hash);
    script_release(script, 1);
    script->step = -1;
    script->tensor = "";
}

/* Two equal runs: a table is copied in on a stream of its own, a graph is replayed. */
static void healthy(struct script *script)
{
    static const char *const names[BUFFERS] = { "", "x", "y", "z", "table" };
    script_call(script, EVENT_STREAM_CREATE, MAIN, 0);
    script_call(script, EVENT_STREAM_CREATE, SIDE, 0);
    for (uint32_t i = X; i < BUFFERS; i++)
        script_buffer(script, i, names[i], false);
    script_copy(script, EVENT_FILL, SIDE, TABLE, 0, BUFFER_BYTES, 0);
    script_call(script, EVENT_MARK_RECORD, SIDE, MARK);
    script_call(script, EVENT_MARK_WAIT, MAIN, MARK);
    launch(script, "embed", TABLE, X, 0);
    uint64_t graph = record(script);
    for (uint64_t run = 1; run <= 2; run++) {
        script_run(script, run, 11);
        for (uint16_t step = 0; step < 2; step++) {
            struct event replay = script_event(script, EVENT_GRAPH_REPLAY);
            replay.stream_index = MAIN;
            replay.graph.handle = GRAPH;
            replay.graph.epoch = (uint16_t)(2 * run + step);
            replay.cause_id = graph;
            script_add(script, &replay);
            result(script, Z, step, 100u + step);
        }
    }
    script_sync(script, MAIN);
    launch(script, "add", Z, Y, 0);
    script_call(script, EVENT_MARK_RECORD, MAIN, MARK);
    script_call(script, EVENT_MARK_WAIT, SIDE, MARK);
    script_copy(script, EVENT_FILL, SIDE, Y, 0, BUFFER_BYTES, 0);
    script_sync(script, SIDE);
    for (uint32_t i = X; i < BUFFERS; i++)
        script_destroy(script, i, names[i]);
}

/* Analyzes the events but `count` of them from one on; returns how many findings are certain. */
static size_t certain_without(const struct events *events, size_t from, size_t count)
{
    struct script script;
    size_t certain = 0;
    script_open(&script, AUDIT_LOG);
    for (size_t i = 0; i < events->count; i++)
        if (i < from || i >= from + count)
            script_add(&script, &events->items[i]);
    const struct analysis *analysis = script_finish(&script, NULL);
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        certain += finding->certainty == FINDING_DIRECT;
        if (finding->certainty == FINDING_DIRECT)
            print_message("without events %zu to %zu: %s at event %ju\n", from + 1, from + count,
                          hypothesis_info(finding->hypothesis)->slug,
                          (uintmax_t)finding->cause.event_id);
    }
    script_close(&script);
    return certain;
}

static void missing_events_accuse_nobody(void **state)
{
    (void)state;
    static struct events events;
    struct script script = {
        .layer = -1, .step = -1, .tensor = "", .ns = 1000, .listener = { keep, &events }
    };
    healthy(&script);
    size_t certain = certain_without(&events, 0, 0);
    for (size_t count = 1; count <= 6; count++)
        for (size_t from = 0; from + count <= events.count; from++)
            certain += certain_without(&events, from, count);
    assert_int_equal(certain, 0);
}

/* The same run, of which one event did not happen instead of being lost, is found guilty. */
static void what_was_left_out_is_found(void **state)
{
    (void)state;
    static struct events events;
    struct script script = {
        .layer = -1, .step = -1, .tensor = "", .ns = 1000, .listener = { keep, &events }
    };
    healthy(&script);
    size_t guilty = 0;
    for (size_t left_out = 0; left_out < events.count; left_out++) {
        static struct events rest;
        uint8_t kind = events.items[left_out].kind;
        if (kind != EVENT_MARK_WAIT && kind != EVENT_FILL)
            continue;
        rest = events;
        rest.items[left_out].kind = EVENT_COMPLETION; /* says nothing of memory or order */
        guilty += certain_without(&rest, 0, 0) != 0;
    }
    assert_int_equal(guilty, 3); /* both waits, and the fill of the table */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_events_accuse_nobody),
        cmocka_unit_test(what_was_left_out_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
