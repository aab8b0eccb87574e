/* ahead.c - a step that is queued before the tokens it goes on from are known to the host, so that
 * the device does not wait between two steps.
 *
 * The tokens may then say that it should not have been queued: a lane that ended has its token of
 * that step taken back and its row is not looked at; where no lane is left, or a token was not the
 * device's choice, the whole step is thrown away. Nothing else uses the engine before its ids were
 * taken. So what is written does not depend on whether a step went ahead. */
#include "generate/loop.h"

/* Not where nothing is gained (so not under taps, which would see the step), and not where it is
 * known that a lane will have ended by then. */
bool ahead_is_allowed(const struct loop *loop)
{
    if (!engine_ahead_pays(loop->engine) || !loop_wants_ids(loop, loop->rows[0]))
        return false;
    for (size_t row = 0; row < loop->row_count; row++) {
        const struct lane *lane = &loop->lanes[loop->rows[row]];
        if (!lane_runs(lane) || lane->token_count + 1 >= loop->options->token_limit ||
            engine_length(loop->engine, (uint32_t)loop->rows[row]) >=
                engine_plan(loop->engine)->options.context)
            return false;
    }
    return true;
}

enum status ahead_queue(struct loop *loop, struct error *err)
{
    for (size_t row = 0; row < loop->row_count; row++)
        loop->tokens[row] = (struct engine_token){ ENGINE_TOKEN_FROM_DEVICE,
                                                   (uint32_t)loop->rows[row], true };
    TRY(engine_forward(loop->engine, loop->tokens, loop->row_count, err));
    for (size_t row = 0; row < loop->row_count; row++)
        loop->lanes[loop->rows[row]].ahead = 1;
    loop->ahead = true;
    return engine_argmax_submit(loop->engine, err);
}

void ahead_take_back(struct loop *loop, size_t number)
{
    struct lane *lane = &loop->lanes[number];
    uint32_t length = engine_length(loop->engine, (uint32_t)number);
    engine_rewind(loop->engine, (uint32_t)number, length - lane->ahead);
    lane->ahead = 0;
}

enum status ahead_drop(struct loop *loop, struct error *err)
{
    enum status status = STATUS_OK;
    for (size_t row = 0; loop->ahead && row < loop->row_count; row++)
        ahead_take_back(loop, loop->rows[row]);
    loop->ahead = false;
    while (engine_argmax_pending(loop->engine) && !status)
        status = engine_argmax_wait(loop->engine, loop->dropped, err);
    return status;
}
