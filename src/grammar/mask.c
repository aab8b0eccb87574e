/* mask.c - which tokens may follow a state: a walk over the trie of tokens, hand in hand with the
 * automaton.
 *
 * Most states differ only in what is far below on their stacks: the inside of every string of a
 * schema is the same, the field after it is not. So a state is cut: what all its stacks have in
 * common is replaced by a hole, and counts far from their limits by a count that stands for them.
 * The cut state's mask is kept. It has the tokens that stay above the hole, and the nodes of the
 * trie at which a token passes it: only from these is the rest walked for each state.
 *
 * A count is far from its limit if no token can reach it. The longest tokens have a hundred bytes
 * and would make most counts near; there are few of them, so they have a trie and masks of their
 * own. */
#include "grammar/matcher.h"

#include "base/array.h"

#include <string.h>

/* Frames above the cut; states that have nothing in common so near are walked in full. */
#define LOCAL_DEPTH 8u
/* At more nodes than one in so many, walking from each is slower than walking once in full. */
#define PENDING_SHARE 16u

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for the masks of a grammar");
}

/* ---- Walking -------------------------------------------------------------------------------- */

static enum status note_pending(struct grammar_mask *mask, uint32_t node, struct error *err)
{
    uint32_t *larger = array_reserve(mask->pending, mask->pending_count, &mask->pending_capacity,
                                     sizeof(*larger));
    if (!larger)
        return no_memory(err);
    mask->pending = larger;
    larger[mask->pending_count++] = node;
    return STATUS_OK;
}

/* Sets the bits of the tokens below a node that the state can read. mask: notes where the hole is
 * passed; may be NULL. */
static enum status walk(struct grammar *grammar, const struct trie *trie, uint32_t node,
                        uint32_t state, uint64_t *bits, struct grammar_mask *mask,
                        struct error *err)
{
    struct automaton *automaton = &grammar->automaton;
    const struct trie_node *nodes = trie->nodes;
    uint32_t end = nodes[node].skip;
    grammar->walk[nodes[node].depth] = state;
    for (uint32_t i = node + 1; i < end;) {
        uint32_t before = grammar->walk[nodes[i].depth - 1], after;
        TRY(automaton_step(automaton, before, nodes[i].byte, &after, err));
        if (after == STATE_DEAD) {
            i = nodes[i].skip;
            continue;
        }
        for (uint32_t at = nodes[i].first_token; at < nodes[i + 1].first_token; at++) {
            uint32_t id = trie->ids[at];
            bits[id >> 6] |= (uint64_t)1 << (id & 63);
        }
        if (mask && automaton->states[after].has_hole)
            TRY(note_pending(mask, i, err));
        grammar->walk[nodes[i].depth] = after;
        i++;
    }
    return STATUS_OK;
}

static enum status add_mask(struct grammar *grammar, enum trie_kind kind, uint32_t state,
                            struct error *err)
{
    const struct trie *trie = &grammar->vocabulary->tries[kind];
    struct grammar_mask mask = { .bits = calloc(grammar->word_count, sizeof(*mask.bits)) };
    struct grammar_mask *masks = array_reserve(grammar->masks, grammar->mask_count,
                                               &grammar->mask_capacity, sizeof(*masks));
    grammar->masks = masks ? masks : grammar->masks;
    enum status status = masks && mask.bits ? STATUS_OK : no_memory(err);
    if (!status && grammar->automaton.states[state].has_hole)
        status = note_pending(&mask, 0, err);
    if (!status)
        status = walk(grammar, trie, 0, state, mask.bits, &mask, err);
    if (status) {
        free(mask.bits);
        free(mask.pending);
        return status;
    }
    mask.useless = mask.pending_count > trie->node_count / PENDING_SHARE + 64;
    grammar->automaton.states[state].mask[kind] = (uint32_t)grammar->mask_count;
    masks[grammar->mask_count++] = mask;
    return STATUS_OK;
}

void grammar_forget_masks(struct grammar *grammar)
{
    for (size_t i = 0; i < grammar->mask_count; i++) {
        free(grammar->masks[i].bits);
        free(grammar->masks[i].pending);
    }
    grammar->mask_count = 0;
}

/* ---- Cutting -------------------------------------------------------------------------------- */

/* The frame nearest to the top that all stacks of the state have below their tops. False if it is
 * too deep. Each stack has less than 2 * LOCAL_DEPTH frames above it: as many down to where it met
 * the first stack, and from there as many as that one has. */
static bool find_cut(const struct automaton *automaton, const struct state *state,
                     uint32_t *ret_frame)
{
    uint32_t shared[LOCAL_DEPTH];
    size_t count = 0, cut = 0;
    for (uint32_t i = 0; i < state->count; i++) {
        uint32_t at = automaton->state_frames[state->first + i];
        if (at == FRAME_END)
            continue;
        bool is_first = count == 0;
        size_t found = LOCAL_DEPTH;
        for (size_t depth = 0; depth < LOCAL_DEPTH && at != FRAME_END; depth++) {
            at = automaton->frames[at].parent;
            if (is_first)
                shared[count++] = at;
            for (size_t k = cut; k < count && found == LOCAL_DEPTH; k++)
                found = shared[k] == at ? k : found;
        }
        if (found == LOCAL_DEPTH)
            return false;
        cut = found;
    }
    *ret_frame = count ? shared[cut] : FRAME_END;
    return count > 0;
}

/* A token can begin at most as many iterations as it has bytes: limits farther away do not matter.
 */
static uint32_t local_count(const struct program_step *step, uint32_t count, uint32_t longest)
{
    if (step->op != PROGRAM_REPEAT)
        return 0;
    bool most_is_far = step->most == RULES_NO_LIMIT || step->most - count > longest;
    if (!most_is_far)
        return count;
    if (count >= step->least)
        return step->least;
    return step->least - count > longest ? 0 : count;
}

static enum status cut_stack(struct grammar *grammar, enum trie_kind kind, uint32_t top,
                             uint32_t cut, uint32_t *ret, struct error *err)
{
    struct automaton *automaton = &grammar->automaton;
    uint32_t chain[2 * LOCAL_DEPTH], count = 0, parent = FRAME_HOLE;
    for (uint32_t at = top; at != cut; at = automaton->frames[at].parent)
        chain[count++] = at;
    while (count) {
        struct frame frame = automaton->frames[chain[--count]];
        frame.count = local_count(&automaton->program->steps[frame.step], frame.count,
                                  grammar->vocabulary->tries[kind].longest_bytes);
        frame.parent = parent;
        TRY(automaton_frame(automaton, frame, &parent, err));
    }
    *ret = parent;
    return STATUS_OK;
}

/* Sets the state's local state, to itself if it cannot be cut. */
static enum status cut_state(struct grammar *grammar, enum trie_kind kind, uint32_t number,
                             struct error *err)
{
    struct automaton *automaton = &grammar->automaton;
    struct state state = automaton->states[number];
    uint32_t cut, count = 0, local = number;
    uint32_t *frames = calloc(state.count + 1u, sizeof(*frames));
    enum status status = frames ? STATUS_OK : no_memory(err);
    if (!status && find_cut(automaton, &state, &cut)) {
        for (uint32_t i = 0; i < state.count && !status; i++) {
            uint32_t top = automaton->state_frames[state.first + i];
            if (top != FRAME_END)
                status = cut_stack(grammar, kind, top, cut, &frames[count++], err);
        }
        if (!status)
            status = automaton_state(automaton, frames, count, &local, err);
        automaton->states[number].below = cut;
    }
    free(frames);
    if (!status)
        automaton->states[number].local[kind] = local;
    return status;
}

/* ---- The mask of a state -------------------------------------------------------------------- */

static enum status find_mask(struct grammar *grammar, enum trie_kind kind, uint32_t state,
                             const struct grammar_mask **ret_mask, struct error *err)
{
    if (grammar->automaton.states[state].mask[kind] == STATE_UNKNOWN)
        TRY(add_mask(grammar, kind, state, err));
    *ret_mask = &grammar->masks[grammar->automaton.states[state].mask[kind]];
    return STATUS_OK;
}

/* Adds the tokens of one trie. */
static enum status add_bits(struct grammar *grammar, enum trie_kind kind, uint32_t number,
                            struct error *err)
{
    struct automaton *automaton = &grammar->automaton;
    const struct grammar_mask *mask;
    if (automaton->states[number].local[kind] == STATE_UNKNOWN)
        TRY(cut_state(grammar, kind, number, err));
    uint32_t local = automaton->states[number].local[kind], state;
    TRY(find_mask(grammar, kind, local, &mask, err));
    if (local != number && mask->useless)
        TRY(find_mask(grammar, kind, local = number, &mask, err));
    for (size_t i = 0; i < grammar->word_count; i++)
        grammar->bits[i] |= mask->bits[i];
    if (local == number || !mask->pending_count)
        return STATUS_OK;
    TRY(automaton_return(automaton, automaton->states[number].below, &state, err));
    for (size_t i = 0; i < mask->pending_count; i++)
        TRY(walk(grammar, &grammar->vocabulary->tries[kind], mask->pending[i], state, grammar->bits,
                 NULL, err));
    return STATUS_OK;
}

enum status grammar_find_bits(struct grammar *grammar, uint32_t number, struct error *err)
{
    _Static_assert(TRIE_COUNT == AUTOMATON_MASKS, "a mask for each trie");
    memset(grammar->bits, 0, grammar->word_count * sizeof(*grammar->bits));
    for (int kind = 0; kind < TRIE_COUNT; kind++)
        TRY(add_bits(grammar, (enum trie_kind)kind, number, err));
    return STATUS_OK;
}
