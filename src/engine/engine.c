/* engine.c - opens and closes an engine, keeps its sequences, and runs batches. */
#include "engine/engine_impl.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ----------------------------------------------------------------------------------- */

/* Destroys the buffers of those views that have one. */
static void drop_views(struct engine *engine, const struct device_view *views, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (engine_has(&views[i]))
            device_buffer_destroy(engine->device, views[i].buffer, DEVICE_HERE);
}

void engine_close(struct engine *engine)
{
    if (!engine)
        return;
    engine_drop_replays(engine);
    engine_argmax_close(engine);
    /* Waits for queued work, so that no kernel uses the buffers destroyed below. */
    if (engine->stream.index)
        device_stream_destroy(engine->device, engine->stream, DEVICE_HERE);
    for (uint32_t i = 0; engine->layers && i < engine->config.block_count; i++) {
        drop_views(engine, engine->layers[i].weights, MODEL_ROLE_COUNT);
        drop_views(engine, &engine->layers[i].keys, 1);
        drop_views(engine, &engine->layers[i].values, 1);
    }
    drop_views(engine, engine->globals, MODEL_ROLE_COUNT);
    drop_views(engine, (const struct device_view *)&engine->scratch,
               sizeof(engine->scratch) / sizeof(struct device_view));
    free(engine->layers);
    free(engine->lengths);
    free(engine->new_lengths);
    free(engine->host_indices);
    free(engine->slot_ids);
    engine_taps_destroy(engine->taps);
    free(engine);
}

static enum status check_room(const struct engine *engine, struct error *err)
{
    uint64_t room = device_info(engine->device)->memory_bytes;
    char needed[TEXT_BYTES_CAPACITY], there[TEXT_BYTES_CAPACITY];
    if (engine->budget.total_bytes <= room)
        return STATUS_OK;
    return error_set(
        err, STATUS_NO_MEMORY,
        "memory: expected at most the %s of the device, found a need of %s (weights, kv "
        "cache for %" PRIu32 " x %" PRIu32 " tokens, scratch); use a smaller context, fewer "
        "sequences or another type",
        text_bytes(room, there), text_bytes(engine->budget.total_bytes, needed),
        engine->budget.options.sequence_limit, engine->budget.options.context);
}

static enum status allocate(struct engine *engine, struct error *err)
{
    const struct engine_options *options = &engine->budget.options;
    engine->layers = calloc(engine->config.block_count, sizeof(*engine->layers));
    engine->lengths = calloc(options->sequence_limit, sizeof(*engine->lengths));
    engine->new_lengths = calloc(options->sequence_limit, sizeof(*engine->new_lengths));
    engine->host_indices = calloc((size_t)options->batch_limit * (engine_list_count(engine) + 1),
                                  sizeof(*engine->host_indices));
    engine->slot_ids = calloc((size_t)options->context * options->sequence_limit,
                              sizeof(*engine->slot_ids));
    if (!engine->layers || !engine->lengths || !engine->new_lengths || !engine->host_indices ||
        !engine->slot_ids)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    return STATUS_OK;
}

static enum status open_parts(struct engine *engine, const struct gguf_file *file,
                              struct error *err)
{
    TRY(check_room(engine, err));
    TRY(allocate(engine, err));
    TRY(device_stream_create(engine->device, DEVICE_HERE, &engine->stream, err));
    TRY(engine_argmax_open(engine, err));
    TRY(engine_bind_weights(engine, file, err));
    return engine_make_memory(engine, err);
}

enum status engine_open(const struct ops *ops, const struct gguf_file *file,
                        const struct model_report *report, const struct engine_options *options,
                        struct engine **ret_engine, struct error *err)
{
    ASSERT(report->config_known);
    struct engine *engine = calloc(1, sizeof(*engine));
    if (!engine)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an engine");
    engine->ops = ops;
    engine->device = ops->device;
    engine->config = report->config;
    enum status status = engine_budget_make(report, ops, options, &engine->budget, err);
    if (!status)
        status = open_parts(engine, file, err);
    engine->budget.options.progress = NULL; /* only for this call */
    if (status)
        engine_close(engine);
    else
        *ret_engine = engine;
    return status;
}

const struct engine_budget *engine_budget(const struct engine *engine)
{
    return &engine->budget;
}

struct device_stream engine_stream(const struct engine *engine)
{
    return engine->stream;
}

uint32_t engine_vocab_size(const struct engine *engine)
{
    return engine->config.vocab_size;
}

/* ---- Sequences ------------------------------------------------------------------------------ */

uint32_t engine_length(const struct engine *engine, uint32_t sequence)
{
    ASSERT(sequence < engine->budget.options.sequence_limit);
    return engine->lengths[sequence];
}

void engine_rewind(struct engine *engine, uint32_t sequence, uint32_t length)
{
    ASSERT(sequence < engine->budget.options.sequence_limit && length <= engine->lengths[sequence]);
    engine->lengths[sequence] = length;
    engine_argmax_forget_slots(engine, sequence, length);
}

void engine_restart(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->budget.options.sequence_limit; i++)
        engine_rewind(engine, i, 0);
    engine->step = 0;
}

struct device_view engine_slots(const struct engine *engine, const struct device_view *cache,
                                uint32_t sequence, uint32_t length)
{
    struct device_view part = engine_rows(cache, length);
    uint64_t row_bytes = 0;
    ASSERT(dtype_row_bytes(cache->dtype, cache->shape.dims[0], &row_bytes));
    part.offset_bytes = (uint64_t)sequence * engine->budget.options.context * row_bytes;
    return part;
}

enum status engine_fork(struct engine *engine, uint32_t source, uint32_t target, struct error *err)
{
    uint32_t length = engine_length(engine, source);
    ASSERT(target < engine->budget.options.sequence_limit);
    TRY(engine_argmax_check_none(engine, "fork", err));
    for (uint32_t i = 0; source != target && length && i < engine->config.block_count; i++) {
        const struct device_view *caches[] = { &engine->layers[i].keys, &engine->layers[i].values };
        for (size_t c = 0; c < COUNT_OF(caches) && engine_has(caches[c]); c++) {
            struct device_view from = engine_slots(engine, caches[c], source, length);
            struct device_view to = engine_slots(engine, caches[c], target, length);
            TRY(device_copy_within(engine->device, engine->stream, &to, &from, DEVICE_HERE, err));
        }
    }
    uint32_t context = engine->budget.options.context;
    memmove(engine->slot_ids + (size_t)target * context,
            engine->slot_ids + (size_t)source * context, length * sizeof(*engine->slot_ids));
    engine->lengths[target] = length;
    return STATUS_OK;
}

/* ---- Batches -------------------------------------------------------------------------------- */

/* The first token of a chunk and the positions in it, for every token of the batch. */
static void list_chunks(struct engine *engine, size_t count)
{
    int32_t *positions = engine->host_indices + count, *starts = positions + count;
    int32_t *chunk_positions = engine->host_indices + 4 * count;
    int32_t *chunk_starts = chunk_positions + count;
    int32_t chunk = (int32_t)engine->config.chunk; /* below the context, which is an int32_t */
    for (size_t i = 0; i < count; i++) {
        chunk_positions[i] = positions[i] % chunk;
        chunk_starts[i] = starts[i] + positions[i] - chunk_positions[i];
    }
}

/* Writes the index lists of the batch, one after the other: ids, positions, starts, slots, where
 * there are chunks positions and starts in these, and the rows that want logits. */
static enum status list_batch(struct engine *engine, const struct engine_token *tokens,
                              size_t count, bool from_device, uint32_t *ret_logits,
                              struct error *err)
{
    const struct engine_options *options = &engine->budget.options;
    int32_t *ids = engine->host_indices, *positions = ids + count, *starts = positions + count;
    int32_t *slots = starts + count, *rows = ids + engine_list_count(engine) * count;
    memcpy(engine->new_lengths, engine->lengths, options->sequence_limit * sizeof(uint32_t));
    *ret_logits = 0;
    size_t neighbours = 0;
    for (size_t i = 1; i < count; i++)
        neighbours += tokens[i].sequence == tokens[i - 1].sequence;
    engine->same_sequence = neighbours > count / 2;
    for (size_t i = 0; i < count; i++) {
        uint32_t sequence = tokens[i].sequence;
        ASSERT(sequence < options->sequence_limit);
        uint32_t position = engine->new_lengths[sequence]++;
        if (position >= options->context)
            return error_set(err, STATUS_LIMIT,
                             "sequence %" PRIu32 ": expected at most the %" PRIu32
                             " tokens of the context, found one more",
                             sequence, options->context);
        ids[i] = tokens[i].id;
        positions[i] = (int32_t)position;
        starts[i] = (int32_t)(sequence * options->context);
        slots[i] = starts[i] + positions[i];
        if (!from_device)
            engine->slot_ids[slots[i]] = ids[i];
        if (!tokens[i].wants_logits)
            continue;
        if (*ret_logits == options->logits_limit)
            return error_set(err, STATUS_LIMIT,
                             "batch: expected at most %" PRIu32 " tokens that want logits",
                             options->logits_limit);
        rows[(*ret_logits)++] = (int32_t)i;
    }
    if (engine_has_chunks(engine))
        list_chunks(engine, count);
    return STATUS_OK;
}

/* Ids from the device are on it already; the other lists follow them. */
static enum status copy_indices(struct engine *engine, size_t count, uint32_t logits_count,
                                bool from_device, struct error *err)
{
    uint64_t there = from_device ? count : 0,
             index_count = engine_list_count(engine) * count + logits_count - there;
    struct device_view indices = engine->scratch.indices;
    indices.shape = shape_make(1, &index_count);
    indices.offset_bytes = there * sizeof(int32_t);
    struct event_scope scope = { .step = engine->step, .layer = -1, .tensor = "indices" };
    device_scope_set(engine->device, engine->stream, &scope);
    return device_copy_in(engine->device, engine->stream, &indices, engine->host_indices + there,
                          index_count * sizeof(int32_t), DEVICE_HERE, err);
}

enum status engine_forward(struct engine *engine, const struct engine_token *tokens, size_t count,
                           struct error *err)
{
    const struct engine_options *options = &engine->budget.options;
    if (count == 0 || count > options->batch_limit)
        return error_set(err, STATUS_LIMIT, "batch: expected 1 to %" PRIu32 " tokens, found %zu",
                         options->batch_limit, count);
    uint32_t logits_count;
    bool from_device;
    TRY(engine_argmax_check_batch(engine, tokens, count, &from_device, err));
    TRY(list_batch(engine, tokens, count, from_device, &logits_count, err));
    engine->device_id_count = 0; /* from here on the indices belong to this batch */
    TRY(copy_indices(engine, count, logits_count, from_device, err));
    const struct engine_batch batch = { .tokens = count,
                                        .from_device = from_device,
                                        .same_sequence = engine->same_sequence };
    struct engine_mode mode = engine_mode_of(engine, &batch);
    engine->logits_index = mode.logits_index;
    if (logits_count)
        engine->logits_batches[engine->logits_index] = engine->batch + 1;
    TRY(mode.replays ? engine_replay(engine, count, logits_count, err)
                     : engine_run(engine, count, logits_count, err));
    memcpy(engine->lengths, engine->new_lengths, options->sequence_limit * sizeof(uint32_t));
    if (from_device)
        engine_argmax_note_slots(engine, engine->host_indices + 3 * count);
    engine->logits_count = logits_count;
    engine->batch++;
    engine->step++;
    return STATUS_OK;
}

enum status engine_wait(struct engine *engine, struct error *err)
{
    TRY(device_stream_sync(engine->device, engine->stream, DEVICE_HERE, err));
    return engine->argmax_stream.index
               ? device_stream_sync(engine->device, engine->argmax_stream, DEVICE_HERE, err)
               : STATUS_OK;
}

uint32_t engine_logits_count(const struct engine *engine)
{
    return engine->logits_count;
}

enum status engine_read_logits(struct engine *engine, uint32_t buffer_index, uint32_t row,
                               float *logits, struct error *err)
{
    struct device_view view = engine_rows(&engine->scratch.logits_buffer[buffer_index], 1);
    view.offset_bytes = (uint64_t)row * engine->config.vocab_size * sizeof(float);
    return device_read(engine->device, engine->stream, &view, logits, DEVICE_HERE, err);
}

enum status engine_logits(struct engine *engine, uint32_t row, float *logits, struct error *err)
{
    ASSERT(row < engine->logits_count);
    return engine_read_logits(engine, engine->logits_index, row, logits, err);
}
