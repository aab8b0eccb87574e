/* automaton_intern.c - frames and states of an automaton: equal ones are one. */
#include "grammar/automaton.h"

#include "base/array.h"

#include <string.h>

/* For all that is interned. */
#define MEMORY_LIMIT_BYTES ((size_t)256 << 20)

enum status automaton_no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for the states of a grammar");
}

enum status automaton_too_ambiguous(struct error *err)
{
    return error_set(err, STATUS_LIMIT,
                     "grammar: expected fewer ways to read the same text (at most %u at a time)",
                     AUTOMATON_WAY_LIMIT);
}

/* ---- Interning ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_frame(const struct frame *frame)
{
    return mix(mix(mix(1, frame->step), frame->count), frame->parent);
}

static uint64_t hash_numbers(const uint32_t *numbers, size_t count)
{
    uint64_t hash = count;
    for (size_t i = 0; i < count; i++)
        hash = mix(hash, numbers[i]);
    return hash;
}

static uint64_t hash_at(const struct automaton *automaton, const struct intern_table *table,
                        uint32_t number)
{
    if (table == &automaton->frame_table)
        return hash_frame(&automaton->frames[number]);
    const struct state *state = &automaton->states[number];
    return hash_numbers(automaton->state_frames + state->first, state->count);
}

static void insert(struct intern_table *table, uint64_t hash, uint32_t number)
{
    size_t at = (size_t)hash & (table->slot_count - 1);
    while (table->slots[at])
        at = (at + 1) & (table->slot_count - 1);
    table->slots[at] = number + 1;
    table->used++;
}

/* Room for one more. */
static bool reserve(struct automaton *automaton, struct intern_table *table)
{
    if (table->slot_count && table->used < table->slot_count / 2)
        return true;
    struct intern_table larger = { .slot_count = table->slot_count ? 2 * table->slot_count : 1024 };
    larger.slots = calloc(larger.slot_count, sizeof(*larger.slots));
    if (!larger.slots)
        return false;
    for (size_t i = 0; i < table->slot_count; i++)
        if (table->slots[i])
            insert(&larger, hash_at(automaton, table, table->slots[i] - 1), table->slots[i] - 1);
    free(table->slots);
    *table = larger;
    return true;
}

size_t automaton_bytes(const struct automaton *automaton)
{
    return automaton->frame_count * (sizeof(struct frame) + 4) +
           automaton->state_count * sizeof(struct state) +
           (automaton->state_frame_count + automaton->transition_count +
            automaton->frame_table.slot_count + automaton->state_table.slot_count) *
               sizeof(uint32_t);
}

enum status automaton_frame(struct automaton *automaton, struct frame frame, uint32_t *ret_frame,
                            struct error *err)
{
    struct intern_table *table = &automaton->frame_table;
    uint64_t hash = hash_frame(&frame);
    if (!reserve(automaton, table))
        return automaton_no_memory(err);
    for (size_t at = (size_t)hash & (table->slot_count - 1); table->slots[at];
         at = (at + 1) & (table->slot_count - 1)) {
        const struct frame *known = &automaton->frames[table->slots[at] - 1];
        if (known->step == frame.step && known->count == frame.count &&
            known->parent == frame.parent) {
            *ret_frame = table->slots[at] - 1;
            return STATUS_OK;
        }
    }
    if (automaton_bytes(automaton) > MEMORY_LIMIT_BYTES)
        return automaton_too_ambiguous(err);
    size_t count = automaton->frame_count;
    struct frame *frames = array_reserve(automaton->frames, count, &automaton->frame_capacity,
                                         sizeof(*frames));
    automaton->frames = frames ? frames : automaton->frames;
    uint32_t *seen = array_reserve(automaton->seen, count, &automaton->seen_capacity,
                                   sizeof(*seen));
    automaton->seen = seen ? seen : automaton->seen;
    if (!frames || !seen)
        return automaton_no_memory(err);
    frames[count] = frame;
    seen[count] = 0;
    automaton->frame_count++;
    insert(table, hash, (uint32_t)count);
    *ret_frame = (uint32_t)count;
    return STATUS_OK;
}

static int by_number(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

enum status automaton_state(struct automaton *automaton, uint32_t *frames, size_t count,
                            uint32_t *ret_state, struct error *err)
{
    struct intern_table *table = &automaton->state_table;
    if (count > 1)
        qsort(frames, count, sizeof(*frames), by_number);
    uint64_t hash = hash_numbers(frames, count);
    if (!reserve(automaton, table))
        return automaton_no_memory(err);
    for (size_t at = (size_t)hash & (table->slot_count - 1); table->slots[at];
         at = (at + 1) & (table->slot_count - 1)) {
        const struct state *known = &automaton->states[table->slots[at] - 1];
        if (known->count == count && (count == 0 || memcmp(automaton->state_frames + known->first,
                                                           frames, count * sizeof(*frames)) == 0)) {
            *ret_state = table->slots[at] - 1;
            return STATUS_OK;
        }
    }
    if (automaton_bytes(automaton) > MEMORY_LIMIT_BYTES)
        return automaton_too_ambiguous(err);
    struct state *states = array_reserve(automaton->states, automaton->state_count,
                                         &automaton->state_capacity, sizeof(*states));
    automaton->states = states ? states : automaton->states;
    if (!states)
        return automaton_no_memory(err);
    size_t first = automaton->state_frame_count;
    for (size_t i = 0; i < count; i++) {
        uint32_t *larger = array_reserve(automaton->state_frames, automaton->state_frame_count,
                                         &automaton->state_frame_capacity, sizeof(*larger));
        if (!larger)
            return automaton_no_memory(err);
        automaton->state_frames = larger;
        larger[automaton->state_frame_count++] = frames[i];
    }
    *ret_state = (uint32_t)automaton->state_count++;
    states[*ret_state] = (struct state){ .first = (uint32_t)first,
                                         .count = (uint32_t)count,
                                         .transitions = STATE_UNKNOWN,
                                         .local = { STATE_UNKNOWN, STATE_UNKNOWN },
                                         .mask = { STATE_UNKNOWN, STATE_UNKNOWN } };
    /* The two come first, having the lowest numbers. */
    for (size_t i = 0; i < count && frames[i] <= FRAME_HOLE; i++) {
        states[*ret_state].has_end |= frames[i] == FRAME_END;
        states[*ret_state].has_hole |= frames[i] == FRAME_HOLE;
    }
    insert(table, hash, *ret_state);
    return STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

enum status automaton_init(struct automaton *automaton, const struct program *program,
                           struct error *err)
{
    uint32_t frame, state;
    *automaton = (struct automaton){ .program = program };
    enum status status = automaton_frame(automaton, (struct frame){ 0, 0, FRAME_NONE }, &frame,
                                         err);
    if (!status)
        status = automaton_frame(automaton, (struct frame){ 0, 1, FRAME_NONE }, &frame, err);
    ASSERT(status || frame == FRAME_HOLE);
    if (!status)
        status = automaton_state(automaton, NULL, 0, &state, err);
    ASSERT(status || state == STATE_DEAD);
    if (status)
        automaton_release(automaton);
    return status;
}

void automaton_release(struct automaton *automaton)
{
    free(automaton->frames);
    free(automaton->seen);
    free(automaton->frame_table.slots);
    free(automaton->states);
    free(automaton->state_table.slots);
    free(automaton->state_frames);
    free(automaton->transitions);
    free(automaton->queue);
    free(automaton->found);
    *automaton = (struct automaton){ 0 };
}
