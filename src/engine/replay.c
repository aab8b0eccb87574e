/* replay.c - decode steps as graphs: recorded once for each size of batch, then replayed (mode.c
 * decides which batches are). What differs between two steps (ids, positions, slots) is in the
 * indices on the device, so one graph serves every batch of its size. */
#include "engine/engine_impl.h"

static struct engine_replay *find(struct engine *engine, uint64_t tokens, uint64_t logits)
{
    for (size_t i = 0; i < COUNT_OF(engine->replays); i++)
        if (engine->replays[i].tokens == tokens && engine->replays[i].logits == logits &&
            engine->replays[i].logits_index == engine->logits_index)
            return &engine->replays[i];
    return NULL;
}

static void drop(struct engine *engine, struct engine_replay *replay)
{
    if (replay->graph.index)
        device_graph_destroy(engine->device, replay->graph, DEVICE_HERE);
    *replay = (struct engine_replay){ 0 };
}

void engine_drop_replays(struct engine *engine)
{
    for (size_t i = 0; i < COUNT_OF(engine->replays); i++)
        drop(engine, &engine->replays[i]);
}

static enum status record(struct engine *engine, uint64_t tokens, uint64_t logits,
                          struct engine_replay *replay, struct error *err)
{
    struct device_graph graph;
    struct error unused;
    TRY(device_graph_begin(engine->device, engine->stream, DEVICE_HERE, err));
    enum status status = engine_run(engine, tokens, logits, err);
    if (status) {
        /* The recording is ended in any case, and not kept. */
        if (device_graph_end(engine->device, engine->stream, DEVICE_HERE, &graph, &unused) ==
            STATUS_OK)
            device_graph_destroy(engine->device, graph, DEVICE_HERE);
        return status;
    }
    TRY(device_graph_end(engine->device, engine->stream, DEVICE_HERE, &graph, err));
    *replay = (struct engine_replay){ tokens, logits, engine->logits_index, graph };
    return STATUS_OK;
}

enum status engine_replay(struct engine *engine, uint64_t tokens, uint64_t logits,
                          struct error *err)
{
    struct engine_replay *replay = find(engine, tokens, logits);
    if (!replay) {
        replay = &engine->replays[engine->next_replay++ % COUNT_OF(engine->replays)];
        drop(engine, replay);
        TRY(record(engine, tokens, logits, replay, err));
    }
    struct event_scope scope = { .step = engine->step, .layer = -1, .tensor = "" };
    device_scope_set(engine->device, engine->stream, &scope);
    return device_graph_replay(engine->device, engine->stream, replay->graph, DEVICE_HERE, err);
}
