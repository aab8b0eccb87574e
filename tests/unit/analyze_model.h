/* analyze_model.h - a step of a model as events: what the tests of hypotheses begin from. */
#ifndef GRETA_TESTS_ANALYZE_MODEL_H
#define GRETA_TESTS_ANALYZE_MODEL_H

#include "analyze_fixture.h"

enum { WEIGHTS = 1, X = 2, Y = 3, POSITIONS = 4, LOGITS = 5 };
enum { MAIN = 1, SIDE = 2 };
enum { LAYER = 17, STEP = 3 };

static inline void begin(struct script *script, enum audit_level level)
{
    static const char *const names[] = { "", "blk.weight", "x", "y", "positions", "logits" };
    script_open(script, level);
    for (uint32_t i = WEIGHTS; i <= LOGITS; i++)
        script_buffer(script, i, names[i], i == WEIGHTS);
    script_call(script, EVENT_STREAM_CREATE, MAIN, 0);
    script_call(script, EVENT_STREAM_CREATE, SIDE, 0);
    script->step = STEP;
}

/* The digest of an operand of an earlier launch: all of buffer X. */
static inline void script_op_hash(struct script *script, uint64_t launch, uint8_t operand,
                                  uint8_t mode, uint64_t digest)
{
    struct event event = script_event(script, EVENT_OP_HASH);
    event.cause_id = launch;
    event.operand = operand;
    event.op_hash = (struct event_op_hash){ digest, mode };
    event.access_count = 1;
    event.accesses[0] = script_access(X, 0, BUFFER_BYTES, mode, operand);
    script_add(script, &event);
}

/* One step of a model: positions in, a few layers, logits out and read. Returns RoPE's launch in
 * LAYER. slot: of the ticket. */
static inline uint64_t run_step(struct script *script, uint64_t slot, uint64_t hash)
{
    uint64_t rope = 0;
    uint64_t in = script_copy(script, EVENT_COPY_IN, MAIN, POSITIONS, 0, 64, 9);
    struct event done = script_event(script, EVENT_COMPLETION);
    done.cause_id = in;
    script_add(script, &done);
    script_launch(script, MAIN, "embed", WEIGHTS, X);
    for (int32_t layer = LAYER - 1; layer <= LAYER + 1; layer++) {
        script->layer = layer;
        script_launch(script, MAIN, "norm", X, Y);
        struct event event = script_launch_event(script, MAIN, "rope");
        script_operand(&event, Y, 0, BUFFER_BYTES, EVENT_UPDATE);
        script_operand(&event, POSITIONS, 0, 64, EVENT_READ);
        uint64_t id = script_add(script, &event);
        if (layer == LAYER)
            rope = id;
        script_launch(script, MAIN, "matmul", Y, X);
    }
    script->layer = -1;
    script_launch(script, MAIN, "output", X, LOGITS);
    script->tensor = "logits";
    uint64_t copy = script_copy(script, EVENT_COPY_OUT, MAIN, LOGITS, 0, 1024, slot);
    script_redeem(script, slot, copy, true, hash);
    script_release(script, slot);
    script->tensor = "";
    return rope;
}

static inline void check_culprit(const struct finding *finding, const char *op, int32_t layer,
                                 int32_t step)
{
    assert_string_equal(finding->cause.op, op);
    assert_int_equal(finding->cause.scope.layer, layer);
    assert_int_equal(finding->cause.scope.step, step);
}

#endif
