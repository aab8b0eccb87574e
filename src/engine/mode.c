/* mode.c - how a batch is run: op by op, or recorded once as a graph and replayed; and where its
 * logits go. Everything that decides it stands in engine_mode_of and nowhere else. */
#include "engine/engine_impl.h"

struct engine_mode engine_mode_of(const struct engine *engine, const struct engine_batch *batch)
{
    /* A tap copies values out in the middle of a batch and waits for them, which a recording
     * cannot hold. Planted faults are found in calls, so inject clears replay_pays. */
    bool recordable = device_info(engine->device)->replay_pays && !engine->taps &&
                      !engine->plan.options.eager;
    /* A graph is right for every batch of its size in which each token has its own sequence. What
     * is larger, or mostly of one sequence, is a prompt: its launches are worth more than what a
     * replay saves. */
    bool repeats = !batch->same_sequence && batch->tokens <= engine->plan.options.sequence_limit;
    return (struct engine_mode){
        .replays = recordable && repeats,
        .ahead_pays = recordable,
        /* Batches of ENGINE_BEST change sides, so that the logits their ids were chosen from can
         * still be read. Taps read side 0, and wait anyway. */
        .side = batch->best && !engine->taps ? !engine->side : 0,
    };
}

bool engine_pays_ahead(const struct engine *engine)
{
    const struct engine_batch step = { .tokens = 1, .best = true };
    return engine_mode_of(engine, &step).ahead_pays;
}
