/* choose.c - which token comes next, chosen on the device, and batches that go on with it before
 * the host knows it.
 *
 * A choice is made (queued) and taken (waited for), in that order; ENGINE_CHOICE_LIMIT are between
 * the two at most. Its ids are in the indices on the device as soon as it is made, where a batch of
 * ENGINE_BEST finds them; so they last until the next batch, whatever that is. What such a batch
 * puts into slots is known here when the choice is taken, and written down then; a slot that was
 * rewound over meanwhile is somebody else's.
 *
 * Where batches are replayed, ids come out by a stream of their own: in the batches' stream each
 * copy would stand between two of them, some microseconds for four bytes. A choice has its own
 * place in `best`, which the one after the next writes over: when this one was taken, so when its
 * copy was there. */
#include "engine/engine_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ----------------------------------------------------------------------------------- */

enum status engine_choices_init(struct engine *engine, struct error *err)
{
    uint32_t rows = engine->plan.options.logits_limit;
    for (size_t i = 0; i < COUNT_OF(engine->choices); i++) {
        engine->choices[i].ids = calloc(rows, sizeof(int32_t));
        engine->choices[i].slots = calloc(rows, sizeof(int32_t));
        if (!engine->choices[i].ids || !engine->choices[i].slots)
            return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    }
    return STATUS_OK;
}

void engine_choices_release(struct engine *engine)
{
    struct error unused;
    while (engine_choice_count(engine)) {
        struct engine_choice *choice = engine_oldest_choice(engine);
        engine->choices_taken++;
        if (device_ticket_release(engine->device, choice->ticket, DEVICE_HERE, &unused))
            continue; /* it goes with the device */
    }
    for (size_t i = 0; i < COUNT_OF(engine->choices); i++) {
        free(engine->choices[i].ids);
        free(engine->choices[i].slots);
    }
}

enum status engine_answers_open(struct engine *engine, struct error *err)
{
    if (!engine_pays_ahead(engine))
        return STATUS_OK;
    TRY(device_mark_create(engine->device, &engine->chosen, err));
    return device_stream_create(engine->device, DEVICE_HERE, &engine->answers, err);
}

void engine_answers_close(struct engine *engine)
{
    struct error unused;
    if (engine->answers.index &&
        device_stream_destroy(engine->device, engine->answers, DEVICE_HERE, &unused))
        engine->answers.index = 0; /* it goes with the device */
    if (engine->chosen.index)
        device_mark_destroy(engine->device, engine->chosen);
}

/* ---- Bookkeeping ---------------------------------------------------------------------------- */

uint32_t engine_choice_count(const struct engine *engine)
{
    return (uint32_t)(engine->choices_made - engine->choices_taken);
}

enum status engine_check_no_choice(const struct engine *engine, const char *what, struct error *err)
{
    uint32_t count = engine_choice_count(engine);
    if (!count)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s: expected every choice to be taken before, found %" PRIu32 " that are not",
                     what, count);
}

void engine_forget_slots(struct engine *engine, uint32_t sequence, uint32_t length)
{
    uint32_t context = engine->plan.options.context;
    int64_t first = (int64_t)sequence * context + length, end = (int64_t)(sequence + 1) * context;
    for (uint64_t n = engine->choices_taken; n < engine->choices_made; n++) {
        struct engine_choice *choice = &engine->choices[n % COUNT_OF(engine->choices)];
        for (uint32_t i = 0; choice->is_fed && i < choice->count; i++)
            if (choice->slots[i] >= first && choice->slots[i] < end)
                choice->slots[i] = -1;
    }
}

/* What the device looked up for an id of a choice. */
static int32_t looked_up(int32_t id)
{
    return id < 0 ? 0 : id;
}

void engine_feed_choice(struct engine *engine, const int32_t *slots)
{
    struct engine_choice *choice =
        &engine->choices[(engine->choices_made - 1) % COUNT_OF(engine->choices)];
    if (engine_choice_count(engine)) {
        choice->is_fed = true;
        memcpy(choice->slots, slots, choice->count * sizeof(*slots));
        return;
    }
    for (uint32_t i = 0; i < choice->count; i++)
        engine->slot_ids[slots[i]] = looked_up(choice->ids[i]);
}

/* ---- Choosing ------------------------------------------------------------------------------- */

static enum status copy_choice(struct engine *engine, const struct device_view *best,
                               struct device_ticket *ret_ticket, struct error *err)
{
    struct device *device = engine->device;
    if (!engine->answers.index)
        return device_copy_out(device, engine->stream, best, DEVICE_HERE, ret_ticket, err);
    struct event_scope scope = { .step = engine->step - 1, .layer = -1, .tensor = "" };
    device_scope_set(device, engine->answers, &scope);
    TRY(device_mark_record(device, engine->stream, engine->chosen, DEVICE_HERE, err));
    TRY(device_mark_wait(device, engine->answers, engine->chosen, DEVICE_HERE, err));
    return device_copy_out(device, engine->answers, best, DEVICE_HERE, ret_ticket, err);
}

enum status engine_choose(struct engine *engine, struct error *err)
{
    uint64_t count = engine->logits_count;
    ASSERT(count > 0);
    if (engine_choice_count(engine) == ENGINE_CHOICE_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "choice: expected at most %d that were not taken, found one more",
                         ENGINE_CHOICE_LIMIT);
    struct engine_choice *choice =
        &engine->choices[engine->choices_made % COUNT_OF(engine->choices)];
    struct ops_target target = { engine->ops, engine->stream, DEVICE_HERE };
    const struct device_view *side = engine_logits_side(engine, engine->side);
    struct device_view logits = engine_rows(side, count);
    struct device_view best = engine->scratch.best, next = engine->scratch.indices;
    best.shape = next.shape = shape_make(1, &count);
    struct device_ticket ticket = { 0, 0 };
    engine->best_count = 0;
    best.offset_bytes = engine->choices_made % ENGINE_CHOICE_LIMIT *
                        engine->plan.options.logits_limit * sizeof(int32_t);
    TRY(ops_argmax(&target, &logits, &best, &next, err));
    TRY(copy_choice(engine, &best, &ticket, err));
    choice->ticket = ticket;
    choice->count = engine->best_count = (uint32_t)count;
    choice->side = engine->side;
    choice->batch = engine->batch;
    choice->step = engine->step - 1;
    choice->is_fed = false;
    engine->choices_made++;
    return STATUS_OK;
}

enum status engine_chosen(struct engine *engine, int32_t *ids, struct error *err)
{
    if (!engine_choice_count(engine))
        return error_set(err, STATUS_USAGE, "choice: expected one that was not taken, found none");
    struct engine_choice *choice = engine_oldest_choice(engine);
    const void *landed = NULL;
    uint64_t bytes = 0;
    engine->choices_taken++; /* whatever comes: it cannot be had twice */
    enum status status = device_ticket_redeem(engine->device, choice->ticket, DEVICE_HERE, &landed,
                                              &bytes, err);
    if (!status)
        memcpy(choice->ids, landed, choice->count * sizeof(*ids));
    struct error second;
    enum status released = device_ticket_release(engine->device, choice->ticket, DEVICE_HERE,
                                                 &second);
    if (!status && released) {
        *err = second;
        status = released;
    }
    TRY(status);
    memcpy(ids, choice->ids, choice->count * sizeof(*ids));
    for (uint32_t i = 0; choice->is_fed && i < choice->count; i++)
        if (choice->slots[i] >= 0)
            engine->slot_ids[choice->slots[i]] = looked_up(ids[i]);
    return STATUS_OK;
}

enum status engine_argmax(struct engine *engine, int32_t *ids, struct error *err)
{
    TRY(engine_check_no_choice(engine, "argmax", err));
    TRY(engine_choose(engine, err));
    return engine_chosen(engine, ids, err);
}

enum status engine_chosen_logits(struct engine *engine, uint32_t row, float *logits,
                                 struct error *err)
{
    ASSERT(engine->choices_taken > 0);
    const struct engine_choice *choice =
        &engine->choices[(engine->choices_taken - 1) % COUNT_OF(engine->choices)];
    ASSERT(row < choice->count);
    if (engine->side_batches[choice->side] != choice->batch)
        return error_set(err, STATUS_USAGE,
                         "logits of a choice: expected at most one batch of ENGINE_BEST behind it, "
                         "found that they were written over");
    struct event_scope scope = { .step = choice->step, .layer = -1, .tensor = "logits" };
    device_scope_set(engine->device, engine->stream, &scope);
    return engine_read_logits(engine, choice->side, row, logits, err);
}
