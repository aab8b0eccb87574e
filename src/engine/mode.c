/* mode.c - how a batch is run: eagerly, op by op; or recorded once as a graph and replayed. Also
 * whether a step is worth queueing ahead, and which buffer the logits go to. engine_mode_of is the
 * only place that decides any of it. Its inputs:
 *
 * - The device: replaying must be cheaper than launching (replay_pays).
 * - Planted faults: they are found in calls as they are made, so inject clears replay_pays.
 * - Inspections: none, the device records them into the graph with the launch they belong to.
 * - Taps: they copy values out in the middle of a batch and wait for them.
 * - engine_options.eager: the caller wants to see every launch.
 * - The batch: its size, whose tokens it has, and where its ids come from. */
#include "engine/engine_impl.h"

struct engine_mode engine_mode_of(const struct engine *engine, const struct engine_batch *batch)
{
    bool recordable = device_info(engine->device)->replay_pays && !engine->taps &&
                      !engine->budget.options.eager;
    /* A graph serves every batch of its size in which each token has a sequence of its own. A
     * larger batch, or one mostly of one sequence, is a prefill: it has so much to compute that
     * replaying saves nothing. */
    bool decodes = !batch->same_sequence && batch->tokens <= engine->budget.options.sequence_limit;
    return (struct engine_mode){
        .replays = recordable && decodes,
        .ahead_pays = recordable,
        /* Taps read buffer 0; with taps nothing is queued ahead. */
        .logits_index = batch->from_device && !engine->taps ? !engine->logits_index : 0,
    };
}

bool engine_ahead_pays(const struct engine *engine)
{
    const struct engine_batch step = { .tokens = 1, .from_device = true };
    return engine_mode_of(engine, &step).ahead_pays;
}
