/* automaton.h - runs a program over bytes, all ways at once.
 *
 * A frame is a step and the frame to return to; frames are interned, so stacks share their lower
 * parts. A state is a set of frames whose steps read a byte, and interned too; its transitions are
 * computed when they are first taken. Two frames have no step: FRAME_END (the root has returned)
 * and FRAME_HOLE, which stands for any stack that is not looked at (mask.c).
 *
 * Memory is bounded: what grows too large (automaton_bytes) is replaced by one with only what
 * its matchers hold (automaton_compact). An operation that needs far more memory or time fails with
 * STATUS_LIMIT. */
#ifndef GRETA_GRAMMAR_AUTOMATON_H
#define GRETA_GRAMMAR_AUTOMATON_H

#include "grammar/program.h"

/* Frames of one state, and steps to find them: a grammar with more ways at once means nothing to
 * anyone. */
#define AUTOMATON_WAY_LIMIT 65536u

#define AUTOMATON_MASKS 2u

#define FRAME_END 0u
#define FRAME_HOLE 1u
#define FRAME_NONE UINT32_MAX

#define STATE_DEAD 0u
#define STATE_UNKNOWN UINT32_MAX /* a transition that was not computed yet */

struct frame {
    uint32_t step;
    uint32_t count;  /* iterations that were begun, of a repetition */
    uint32_t parent; /* returned to; FRAME_END or FRAME_HOLE at the bottom */
};

struct state {
    uint32_t first, count; /* frames, sorted, in state_frames */
    uint32_t transitions;  /* where its row begins, or STATE_UNKNOWN */
    /* mask.c, for each of its tries: the state without its lower stack, and the number of its own
     * mask, or STATE_UNKNOWN. */
    uint32_t local[AUTOMATON_MASKS], mask[AUTOMATON_MASKS];
    uint32_t below; /* with local: the frame that its holes stand for */
    bool has_end, has_hole;
};

/* Open addressing over numbers of frames or states. */
struct intern_table {
    uint32_t *slots; /* number + 1; 0: free */
    size_t slot_count, used;
};

struct automaton {
    const struct program *program;
    struct frame *frames;
    uint32_t *seen; /* of each frame, the closure that met it last */
    size_t frame_count, frame_capacity, seen_capacity;
    struct intern_table frame_table;
    struct state *states;
    size_t state_count, state_capacity;
    struct intern_table state_table;
    uint32_t *state_frames;
    size_t state_frame_count, state_frame_capacity;
    uint32_t *transitions;
    size_t transition_count, transition_capacity;
    uint64_t work; /* steps followed since automaton_begin */
    /* One closure. */
    uint32_t closure;
    uint32_t *queue; /* frames to follow */
    size_t queue_count, queue_capacity;
    uint32_t *found; /* frames of the state */
    size_t found_count, found_capacity;
};

MUST_CHECK enum status automaton_init(struct automaton *automaton, const struct program *program,
                                      struct error *err);
void automaton_release(struct automaton *automaton);

/* An operation begins: the work from here on is limited. */
void automaton_begin(struct automaton *automaton);
/* The state in which the root begins. */
MUST_CHECK enum status automaton_start(struct automaton *automaton, uint32_t *ret_state,
                                       struct error *err);
/* The state after a frame is returned to. */
MUST_CHECK enum status automaton_return(struct automaton *automaton, uint32_t frame,
                                        uint32_t *ret_state, struct error *err);
/* The state after a byte; STATE_DEAD if none fits. */
MUST_CHECK enum status automaton_step(struct automaton *automaton, uint32_t state, uint8_t byte,
                                      uint32_t *ret_state, struct error *err);

/* ---- automaton_intern.c --------------------------------------------------------------------- */

enum status automaton_no_memory(struct error *err);
enum status automaton_too_ambiguous(struct error *err);
MUST_CHECK enum status automaton_frame(struct automaton *automaton, struct frame frame,
                                       uint32_t *ret_frame, struct error *err);
/* frames are sorted here. */
MUST_CHECK enum status automaton_state(struct automaton *automaton, uint32_t *frames, size_t count,
                                       uint32_t *ret_state, struct error *err);

size_t automaton_bytes(const struct automaton *automaton);
/* Sets *into, which is initialised, to the stacks of the states alone; states are renumbered. */
MUST_CHECK enum status automaton_compact(const struct automaton *from, struct automaton *into,
                                         uint32_t *states, size_t state_count, struct error *err);

#endif
