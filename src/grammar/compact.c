/* compact.c - copies the stacks of some states into a fresh automaton, and leaves everything else
 * where it is. */
#include "grammar/automaton.h"

#include "base/array.h"

/* The frames from a frame down to the bottom, which is the last. */
struct chain {
    uint32_t *frames;
    size_t count, capacity;
};

static enum status copy_stack(const struct automaton *from, struct automaton *into,
                              struct chain *chain, uint32_t top, uint32_t *ret, struct error *err)
{
    chain->count = 0;
    for (uint32_t at = top;; at = from->frames[at].parent) {
        uint32_t *larger = array_reserve(chain->frames, chain->count, &chain->capacity,
                                         sizeof(*larger));
        if (!larger)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the states of a grammar");
        chain->frames = larger;
        larger[chain->count++] = at;
        if (at == FRAME_END || at == FRAME_HOLE)
            break;
    }
    uint32_t parent = chain->frames[--chain->count];
    while (chain->count) {
        struct frame frame = from->frames[chain->frames[--chain->count]];
        frame.parent = parent;
        TRY(automaton_frame(into, frame, &parent, err));
    }
    *ret = parent;
    return STATUS_OK;
}

static enum status copy_state(const struct automaton *from, struct automaton *into,
                              struct chain *chain, uint32_t *state, struct error *err)
{
    const struct state *old = &from->states[*state];
    uint32_t *frames = calloc(old->count + 1u, sizeof(*frames));
    enum status status = STATUS_OK;
    if (!frames)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the states of a grammar");
    for (uint32_t i = 0; i < old->count && !status; i++)
        status = copy_stack(from, into, chain, from->state_frames[old->first + i], &frames[i], err);
    if (!status)
        status = automaton_state(into, frames, old->count, state, err);
    free(frames);
    return status;
}

enum status automaton_compact(const struct automaton *from, struct automaton *into,
                              uint32_t *states, size_t state_count, struct error *err)
{
    struct chain chain = { 0 };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < state_count && !status; i++)
        status = copy_state(from, into, &chain, &states[i], err);
    free(chain.frames);
    return status;
}
