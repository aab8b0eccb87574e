/* automaton.c - from state to state: steps that read nothing are followed to those that read a
 * byte.
 */
#include "grammar/automaton.h"

#include "base/array.h"

#include <string.h>

/* Steps of one operation, which take about a second. A mask of an honest grammar takes thousands.
 */
#define WORK_LIMIT ((uint64_t)1 << 24)

/* ---- Following steps that read nothing ------------------------------------------------------ */

static enum status push(uint32_t **items, size_t *count, size_t *capacity, uint32_t item,
                        struct error *err)
{
    if (*count >= AUTOMATON_WAY_LIMIT)
        return automaton_too_ambiguous(err);
    uint32_t *larger = array_reserve(*items, *count, capacity, sizeof(*larger));
    if (!larger)
        return automaton_no_memory(err);
    *items = larger;
    larger[(*count)++] = item;
    return STATUS_OK;
}

/* Goes to a step, unless this closure was there. */
static enum status go(struct automaton *automaton, uint32_t step, uint32_t count, uint32_t parent,
                      struct error *err)
{
    uint32_t frame;
    if (++automaton->work > WORK_LIMIT)
        return automaton_too_ambiguous(err);
    TRY(automaton_frame(automaton, (struct frame){ step, count, parent }, &frame, err));
    if (automaton->seen[frame] == automaton->closure)
        return STATUS_OK;
    automaton->seen[frame] = automaton->closure;
    return push(&automaton->queue, &automaton->queue_count, &automaton->queue_capacity, frame, err);
}

static enum status find(struct automaton *automaton, uint32_t frame, struct error *err)
{
    return push(&automaton->found, &automaton->found_count, &automaton->found_capacity, frame, err);
}

static enum status go_back(struct automaton *automaton, uint32_t to, struct error *err)
{
    if (to == FRAME_END || to == FRAME_HOLE) {
        if (automaton->seen[to] == automaton->closure)
            return STATUS_OK;
        automaton->seen[to] = automaton->closure;
        return find(automaton, to, err);
    }
    struct frame frame = automaton->frames[to];
    return go(automaton, frame.step, frame.count, frame.parent, err);
}

static enum status go_repeat(struct automaton *automaton, const struct program_step *step,
                             struct frame frame, struct error *err)
{
    bool unlimited = step->most == RULES_NO_LIMIT;
    if (unlimited || frame.count < step->most) {
        uint32_t body;
        struct frame again = frame;
        again.count += !unlimited || frame.count < step->least;
        TRY(automaton_frame(automaton, again, &body, err));
        TRY(go(automaton, step->a, 0, body, err));
    }
    return frame.count >= step->least ? go(automaton, step->b, 0, frame.parent, err) : STATUS_OK;
}

/* A call whose successor only returns needs no frame, so lists that are written as recursion do not
 * grow the stack. */
static enum status go_call(struct automaton *automaton, const struct program_step *step,
                           struct frame frame, struct error *err)
{
    const struct program *program = automaton->program;
    uint32_t parent = frame.parent;
    if (program->steps[step->b].op != PROGRAM_RETURN)
        TRY(automaton_frame(automaton, (struct frame){ step->b, 0, frame.parent }, &parent, err));
    return go(automaton, program->entries[step->a], 0, parent, err);
}

/* Follows the queue to its end, and interns the state of what was found. */
static enum status follow(struct automaton *automaton, uint32_t *ret_state, struct error *err)
{
    for (size_t i = 0; i < automaton->queue_count; i++) {
        uint32_t number = automaton->queue[i];
        struct frame frame = automaton->frames[number];
        const struct program_step *step = &automaton->program->steps[frame.step];
        switch (step->op) {
        case PROGRAM_FAIL:
            break;
        case PROGRAM_SET:
            TRY(find(automaton, number, err));
            break;
        case PROGRAM_SPLIT:
            TRY(go(automaton, step->a, 0, frame.parent, err));
            TRY(go(automaton, step->b, 0, frame.parent, err));
            break;
        case PROGRAM_CALL:
            TRY(go_call(automaton, step, frame, err));
            break;
        case PROGRAM_REPEAT:
            TRY(go_repeat(automaton, step, frame, err));
            break;
        case PROGRAM_RETURN:
            TRY(go_back(automaton, frame.parent, err));
            break;
        }
    }
    return automaton_state(automaton, automaton->found, automaton->found_count, ret_state, err);
}

static void begin(struct automaton *automaton)
{
    automaton->queue_count = automaton->found_count = 0;
    if (++automaton->closure == 0) { /* every number was used */
        memset(automaton->seen, 0, automaton->frame_count * sizeof(*automaton->seen));
        automaton->closure = 1;
    }
}

void automaton_begin(struct automaton *automaton)
{
    automaton->work = 0;
}

enum status automaton_start(struct automaton *automaton, uint32_t *ret_state, struct error *err)
{
    begin(automaton);
    TRY(go(automaton, automaton->program->entries[0], 0, FRAME_END, err));
    return follow(automaton, ret_state, err);
}

enum status automaton_return(struct automaton *automaton, uint32_t frame, uint32_t *ret_state,
                             struct error *err)
{
    begin(automaton);
    TRY(go_back(automaton, frame, err));
    return follow(automaton, ret_state, err);
}

static enum status compute_step(struct automaton *automaton, uint32_t number, unsigned byte,
                                uint32_t *ret_state, struct error *err)
{
    const struct program *program = automaton->program;
    begin(automaton);
    for (uint32_t i = 0; i < automaton->states[number].count; i++) {
        uint32_t at = automaton->state_frames[automaton->states[number].first + i];
        if (at == FRAME_END || at == FRAME_HOLE)
            continue;
        struct frame frame = automaton->frames[at];
        const struct program_step *step = &program->steps[frame.step];
        if (byte_set_has(&program->sets[step->a], byte))
            TRY(go(automaton, step->b, 0, frame.parent, err));
    }
    return follow(automaton, ret_state, err);
}

static enum status add_row(struct automaton *automaton, uint32_t state, struct error *err)
{
    size_t count = automaton->transition_count, classes = automaton->program->class_count;
    if (count + classes > automaton->transition_capacity) {
        size_t capacity = 2 * automaton->transition_capacity + 64 * classes;
        uint32_t *larger = realloc(automaton->transitions, capacity * sizeof(*larger));
        if (!larger)
            return automaton_no_memory(err);
        automaton->transitions = larger;
        automaton->transition_capacity = capacity;
    }
    memset(automaton->transitions + count, 0xFF, classes * sizeof(*automaton->transitions));
    automaton->transition_count += classes;
    automaton->states[state].transitions = (uint32_t)count;
    return STATUS_OK;
}

enum status automaton_step(struct automaton *automaton, uint32_t state, uint8_t byte,
                           uint32_t *ret_state, struct error *err)
{
    const struct program *program = automaton->program;
    unsigned class = program->classes[byte];
    uint32_t next;
    if (automaton->states[state].transitions == STATE_UNKNOWN)
        TRY(add_row(automaton, state, err));
    next = automaton->transitions[automaton->states[state].transitions + class];
    if (next == STATE_UNKNOWN) {
        TRY(compute_step(automaton, state, program->examples[class], &next, err));
        automaton->transitions[automaton->states[state].transitions + class] = next;
    }
    *ret_state = next;
    return STATUS_OK;
}
