/* argmax.c - the likeliest token of each row of logits, found on the device; and batches that go on
 * with it before the host knows it. Everything that lets a step be queued one ahead is here.
 *
 * An argmax is submitted (queued), later waited for, in that order; at most ENGINE_ARGMAX_LIMIT are
 * submitted and not yet waited for. As soon as it is submitted its ids are in the index list on the
 * device, where a batch of ENGINE_TOKEN_FROM_DEVICE finds them; they stay there until the next
 * batch, whatever that is. The host learns which tokens such a batch wrote into the cache when it
 * waits for the argmax, and notes them then in slot_ids; a slot that was rewound in the meantime
 * belongs to another token and is left alone.
 *
 * The logits of a batch of ENGINE_TOKEN_FROM_DEVICE go to the buffer that the batch before did not
 * use, so that the logits its ids were chosen from can still be read.
 *
 * Where batches are replayed, ids are copied out on a stream of their own: on the batches' stream
 * each copy would delay the next batch by some microseconds for four bytes. Each entry has its own
 * part of argmax_ids, which is written again only by the argmax after the next: by then this one
 * has been waited for, so its copy is complete. */
#include "engine/engine_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ----------------------------------------------------------------------------------- */

static struct engine_argmax_entry *oldest(struct engine *engine)
{
    return &engine->argmax_entries[engine->argmax_waited % COUNT_OF(engine->argmax_entries)];
}

enum status engine_argmax_open(struct engine *engine, struct error *err)
{
    uint32_t rows = engine->budget.options.logits_limit;
    for (size_t i = 0; i < COUNT_OF(engine->argmax_entries); i++) {
        struct engine_argmax_entry *entry = &engine->argmax_entries[i];
        entry->ids = calloc(rows, sizeof(*entry->ids));
        entry->slots = calloc(rows, sizeof(*entry->slots));
        if (!entry->ids || !entry->slots)
            return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    }
    if (!engine_ahead_pays(engine))
        return STATUS_OK;
    TRY(device_mark_create(engine->device, &engine->argmax_made, err));
    return device_stream_create(engine->device, DEVICE_HERE, &engine->argmax_stream, err);
}

void engine_argmax_close(struct engine *engine)
{
    while (engine_argmax_pending(engine)) {
        struct engine_argmax_entry *entry = oldest(engine);
        engine->argmax_waited++;
        device_ticket_release(engine->device, entry->ticket, DEVICE_HERE);
    }
    for (size_t i = 0; i < COUNT_OF(engine->argmax_entries); i++) {
        free(engine->argmax_entries[i].ids);
        free(engine->argmax_entries[i].slots);
    }
    if (engine->argmax_stream.index)
        device_stream_destroy(engine->device, engine->argmax_stream, DEVICE_HERE);
    if (engine->argmax_made.index)
        device_mark_destroy(engine->device, engine->argmax_made);
}

/* ---- Batches of ENGINE_TOKEN_FROM_DEVICE ---------------------------------------------------- */

enum status engine_argmax_check_batch(const struct engine *engine,
                                      const struct engine_token *tokens, size_t count,
                                      bool *ret_from_device, struct error *err)
{
    size_t from_device = 0;
    for (size_t i = 0; i < count; i++)
        from_device += tokens[i].id == ENGINE_TOKEN_FROM_DEVICE;
    *ret_from_device = from_device > 0;
    if (from_device == 0 || (from_device == count && count == engine->device_id_count &&
                             count <= engine->budget.options.sequence_limit))
        return STATUS_OK;
    if (from_device < count)
        return error_set(err, STATUS_USAGE,
                         "batch: expected no ENGINE_TOKEN_FROM_DEVICE among known ids, found %zu "
                         "of %zu tokens",
                         from_device, count);
    return error_set(err, STATUS_USAGE,
                     "batch: expected ENGINE_TOKEN_FROM_DEVICE for each of the %" PRIu32
                     " ids chosen from the batch before, found %zu tokens (of %" PRIu32
                     " sequences)",
                     engine->device_id_count, count, engine->budget.options.sequence_limit);
}

/* The token that the device looked up for an id: 0 where there was none to choose. */
static int32_t looked_up(int32_t id)
{
    return id < 0 ? 0 : id;
}

void engine_argmax_note_slots(struct engine *engine, const int32_t *slots)
{
    struct engine_argmax_entry *newest =
        &engine->argmax_entries[(engine->argmax_submitted - 1) % COUNT_OF(engine->argmax_entries)];
    if (engine_argmax_pending(engine)) {
        newest->is_used = true;
        memcpy(newest->slots, slots, newest->count * sizeof(*slots));
        return;
    }
    for (uint32_t i = 0; i < newest->count; i++)
        engine->slot_ids[slots[i]] = looked_up(newest->ids[i]);
}

void engine_argmax_forget_slots(struct engine *engine, uint32_t sequence, uint32_t length)
{
    uint32_t context = engine->budget.options.context;
    int64_t first = (int64_t)sequence * context + length, end = (int64_t)(sequence + 1) * context;
    for (uint64_t n = engine->argmax_waited; n < engine->argmax_submitted; n++) {
        struct engine_argmax_entry *entry =
            &engine->argmax_entries[n % COUNT_OF(engine->argmax_entries)];
        for (uint32_t i = 0; entry->is_used && i < entry->count; i++)
            if (entry->slots[i] >= first && entry->slots[i] < end)
                entry->slots[i] = -1;
    }
}

/* ---- Submit --------------------------------------------------------------------------------- */

uint32_t engine_argmax_pending(const struct engine *engine)
{
    return (uint32_t)(engine->argmax_submitted - engine->argmax_waited);
}

enum status engine_argmax_check_none(const struct engine *engine, const char *what,
                                     struct error *err)
{
    uint32_t count = engine_argmax_pending(engine);
    if (!count)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "%s: expected no argmax that was not waited for, found %" PRIu32, what, count);
}

static enum status copy_ids(struct engine *engine, const struct device_view *ids,
                            struct device_ticket *ret_ticket, struct error *err)
{
    struct device *device = engine->device;
    if (!engine->argmax_stream.index)
        return device_copy_out(device, engine->stream, ids, DEVICE_HERE, ret_ticket, err);
    struct event_scope scope = { .step = engine->step - 1, .layer = -1, .tensor = "" };
    device_scope_set(device, engine->argmax_stream, &scope);
    TRY(device_mark_record(device, engine->stream, engine->argmax_made, DEVICE_HERE, err));
    TRY(device_mark_wait(device, engine->argmax_stream, engine->argmax_made, DEVICE_HERE, err));
    return device_copy_out(device, engine->argmax_stream, ids, DEVICE_HERE, ret_ticket, err);
}

enum status engine_argmax_submit(struct engine *engine, struct error *err)
{
    uint64_t count = engine->logits_count;
    ASSERT(count > 0);
    if (engine_argmax_pending(engine) == ENGINE_ARGMAX_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "argmax: expected at most %d that were not waited for, found one more",
                         ENGINE_ARGMAX_LIMIT);
    uint64_t place = engine->argmax_submitted % ENGINE_ARGMAX_LIMIT;
    struct engine_argmax_entry *entry = &engine->argmax_entries[place];
    struct ops_target target = { engine->ops, engine->stream, DEVICE_HERE };
    struct device_view logits = engine_rows(&engine->scratch.logits_buffer[engine->logits_index],
                                            count);
    struct device_view ids = engine->scratch.argmax_ids, next = engine->scratch.indices;
    ids.shape = next.shape = shape_make(1, &count);
    ids.offset_bytes = place * engine->budget.options.logits_limit * sizeof(int32_t);
    struct device_ticket ticket = { 0, 0 };
    engine->device_id_count = 0;
    TRY(ops_argmax(&target, &logits, &ids, &next, err));
    TRY(copy_ids(engine, &ids, &ticket, err));
    entry->ticket = ticket;
    entry->count = engine->device_id_count = (uint32_t)count;
    entry->logits_index = engine->logits_index;
    entry->batch = engine->batch;
    entry->step = engine->step - 1;
    entry->is_used = false;
    engine->argmax_submitted++;
    return STATUS_OK;
}

/* ---- Wait ----------------------------------------------------------------------------------- */

enum status engine_argmax_wait(struct engine *engine, int32_t *ids, struct error *err)
{
    if (!engine_argmax_pending(engine))
        return error_set(err, STATUS_USAGE,
                         "argmax: expected one that was not waited for, found none");
    struct engine_argmax_entry *entry = oldest(engine);
    const void *landed = NULL;
    uint64_t bytes = 0;
    engine->argmax_waited++; /* also if it fails: a ticket is redeemed once */
    enum status status = device_ticket_redeem(engine->device, entry->ticket, DEVICE_HERE, &landed,
                                              &bytes, err);
    if (!status)
        memcpy(entry->ids, landed, entry->count * sizeof(*ids));
    device_ticket_release(engine->device, entry->ticket, DEVICE_HERE);
    TRY(status);
    memcpy(ids, entry->ids, entry->count * sizeof(*ids));
    for (uint32_t i = 0; entry->is_used && i < entry->count; i++)
        if (entry->slots[i] >= 0)
            engine->slot_ids[entry->slots[i]] = looked_up(ids[i]);
    return STATUS_OK;
}

enum status engine_argmax(struct engine *engine, int32_t *ids, struct error *err)
{
    TRY(engine_argmax_check_none(engine, "argmax", err));
    TRY(engine_argmax_submit(engine, err));
    return engine_argmax_wait(engine, ids, err);
}

enum status engine_argmax_logits(struct engine *engine, uint32_t row, float *logits,
                                 struct error *err)
{
    ASSERT(engine->argmax_waited > 0);
    const struct engine_argmax_entry *entry =
        &engine->argmax_entries[(engine->argmax_waited - 1) % COUNT_OF(engine->argmax_entries)];
    ASSERT(row < entry->count);
    if (engine->logits_batches[entry->logits_index] != entry->batch)
        return error_set(err, STATUS_USAGE,
                         "logits of an argmax: expected at most one batch of "
                         "ENGINE_TOKEN_FROM_DEVICE after it, found that they were overwritten");
    struct event_scope scope = { .step = entry->step, .layer = -1, .tensor = "logits" };
    device_scope_set(engine->device, engine->stream, &scope);
    return engine_read_logits(engine, entry->logits_index, row, logits, err);
}
