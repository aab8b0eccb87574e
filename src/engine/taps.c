/* taps.c - copies values out of a running batch. Each row of the table names a tensor, the moment
 * of the forward pass after which it is computed, the kinds of tap it belongs to, and where it is.
 * The copy is queued at that moment, before any op that would overwrite the tensor, and waited for.
 */
#include "engine/engine_impl.h"

#include "base/size.h"

#include "tensor/quant.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- The tensors ---------------------------------------------------------------------------- */

enum tap_form {
    FORM_ROWS,       /* rows of a scratch buffer, one for each token */
    FORM_SLOTS,      /* the same, one for each expert that a token uses */
    FORM_HEAD,       /* the columns of one head in such rows */
    FORM_WEIGHT,     /* a weight of the layer, or of the model */
    FORM_CACHE,      /* keys or values of each sequence of the batch, up to its length */
    FORM_CACHE_HEAD, /* one head of these */
};

struct tap_row {
    enum engine_moment moment;
    uint32_t kinds;
    const char *tensor;
    enum tap_form form;
    size_t offset; /* of the view in engine_scratch (caches: in engine_layer); weights: the role */
    enum model_role needs; /* a weight without which there is no such tensor */
};

#define ALWAYS MODEL_TOKEN_EMBD /* which every model has */

#define SCRATCH(field) offsetof(struct engine_scratch, field)
#define LAYER(field) offsetof(struct engine_layer, field)

/* In the order they are computed, also within a moment. */
static const struct tap_row rows[] = {
    { ENGINE_EMBEDDED, ENGINE_TAP_HIDDEN, "token_embd", FORM_ROWS, SCRATCH(x), ALWAYS },
    { ENGINE_ATTN_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "attn_norm.in", FORM_ROWS,
      SCRATCH(x), MODEL_ATTN_NORM },
    { ENGINE_ATTN_NORMED, ENGINE_TAP_NORM, "attn_norm.weight", FORM_WEIGHT, MODEL_ATTN_NORM,
      MODEL_ATTN_NORM },
    { ENGINE_ATTN_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "attn_norm.out", FORM_ROWS,
      SCRATCH(normed), MODEL_ATTN_NORM },
    { ENGINE_QKV_MULTIPLIED, ENGINE_TAP_HIDDEN, "attn_q", FORM_ROWS, SCRATCH(q), ALWAYS },
    { ENGINE_QKV_MULTIPLIED, ENGINE_TAP_HIDDEN, "attn_k", FORM_ROWS, SCRATCH(k), MODEL_ATTN_K },
    { ENGINE_QKV_MULTIPLIED, ENGINE_TAP_HIDDEN, "attn_v", FORM_ROWS, SCRATCH(v), MODEL_ATTN_K },
    { ENGINE_HEADS_READY, ENGINE_TAP_HIDDEN, "rope_q", FORM_ROWS, SCRATCH(q), ALWAYS },
    { ENGINE_HEADS_READY, ENGINE_TAP_HIDDEN, "rope_k", FORM_ROWS, SCRATCH(k), MODEL_ATTN_K },
    { ENGINE_KV_APPENDED, ENGINE_TAP_KV, "kv.keys", FORM_CACHE, LAYER(keys), ALWAYS },
    { ENGINE_KV_APPENDED, ENGINE_TAP_KV, "kv.values", FORM_CACHE, LAYER(values), ALWAYS },
    { ENGINE_KV_APPENDED, ENGINE_TAP_ATTN, "attn.q", FORM_HEAD, SCRATCH(q), ALWAYS },
    { ENGINE_KV_APPENDED, ENGINE_TAP_ATTN, "attn.k", FORM_CACHE_HEAD, LAYER(keys), ALWAYS },
    { ENGINE_KV_APPENDED, ENGINE_TAP_ATTN, "attn.v", FORM_CACHE_HEAD, LAYER(values), ALWAYS },
    { ENGINE_ATTENDED, ENGINE_TAP_ATTN, "attn.out", FORM_HEAD, SCRATCH(attn_out), ALWAYS },
    { ENGINE_ATTENDED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "attn_vector", FORM_ROWS,
      SCRATCH(attn_out), ALWAYS },
    { ENGINE_WO_MULTIPLIED, ENGINE_TAP_WO | ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "wo", FORM_ROWS,
      SCRATCH(added), ALWAYS },
    { ENGINE_ATTN_POST_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "attn_post_norm.out", FORM_ROWS,
      SCRATCH(added), MODEL_ATTN_POST_NORM },
    { ENGINE_FFN_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "ffn_norm.in", FORM_ROWS, SCRATCH(x),
      MODEL_FFN_NORM },
    { ENGINE_FFN_NORMED, ENGINE_TAP_NORM, "ffn_norm.weight", FORM_WEIGHT, MODEL_FFN_NORM,
      MODEL_FFN_NORM },
    { ENGINE_FFN_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "ffn_norm.out", FORM_ROWS,
      SCRATCH(normed), MODEL_FFN_NORM },
    { ENGINE_ROUTED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_router", FORM_ROWS,
      SCRATCH(router_logits), MODEL_FFN_ROUTER },
    { ENGINE_ROUTED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_expert_weights", FORM_ROWS,
      SCRATCH(expert_weights), MODEL_FFN_ROUTER },
    { ENGINE_EXPERTS_OPENED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_experts_gate", FORM_SLOTS,
      SCRATCH(expert_gate), MODEL_FFN_GATE_EXPERTS },
    { ENGINE_EXPERTS_OPENED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_experts_up", FORM_SLOTS,
      SCRATCH(expert_up), MODEL_FFN_UP_EXPERTS },
    { ENGINE_EXPERTS_OPENED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_experts_gate_up", FORM_SLOTS,
      SCRATCH(expert_gate_up), MODEL_FFN_GATE_UP_EXPERTS },
    { ENGINE_EXPERTS_GATED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_experts_gated", FORM_SLOTS,
      SCRATCH(expert_gate), MODEL_FFN_ROUTER },
    { ENGINE_EXPERTS_CLOSED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_experts_down", FORM_SLOTS,
      SCRATCH(expert_out), MODEL_FFN_ROUTER },
    { ENGINE_GATE_UP_MULTIPLIED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_gate", FORM_ROWS,
      SCRATCH(gate), MODEL_FFN_GATE },
    { ENGINE_GATE_UP_MULTIPLIED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_up", FORM_ROWS,
      SCRATCH(up), ALWAYS },
    { ENGINE_GATED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_swiglu", FORM_ROWS, SCRATCH(gate),
      ALWAYS },
    { ENGINE_DOWN_MULTIPLIED, ENGINE_TAP_MLP | ENGINE_TAP_HIDDEN, "ffn_down", FORM_ROWS,
      SCRATCH(added), ALWAYS },
    { ENGINE_FFN_POST_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "ffn_post_norm.out", FORM_ROWS,
      SCRATCH(added), MODEL_FFN_POST_NORM },
    { ENGINE_OUTPUT_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "output_norm.in", FORM_ROWS,
      SCRATCH(x), ALWAYS },
    { ENGINE_OUTPUT_NORMED, ENGINE_TAP_NORM, "output_norm.weight", FORM_WEIGHT, MODEL_OUTPUT_NORM,
      ALWAYS },
    { ENGINE_OUTPUT_NORMED, ENGINE_TAP_NORM | ENGINE_TAP_HIDDEN, "output_norm.out", FORM_ROWS,
      SCRATCH(normed), ALWAYS },
    { ENGINE_LOGITS_READY, ENGINE_TAP_LOGITS | ENGINE_TAP_HIDDEN, "logits", FORM_ROWS,
      SCRATCH(logits_buffer[0]), ALWAYS },
};

struct engine_taps {
    struct engine_tap_choice *choices; /* owned */
    size_t count;
    engine_tap_sink sink;
    void *context;
    uint8_t *raw;     /* as copied from the device, before decoding; owned */
    float *values;    /* owned */
    uint64_t largest; /* values that raw and values have room for */
};

/* ---- Choices -------------------------------------------------------------------------------- */

static enum status check_choice(const struct engine *engine, const struct engine_tap_choice *choice,
                                struct error *err)
{
    const struct model_config *config = &engine->config;
    if (choice->first_layer >= 0 && (uint32_t)choice->first_layer >= config->block_count)
        return error_set(err, STATUS_USAGE,
                         "tap: expected a layer below the model's %" PRIu32 ", found %" PRId32,
                         config->block_count, choice->first_layer);
    if ((choice->kinds & ENGINE_TAP_ATTN) && (uint32_t)choice->head >= config->head_count)
        return error_set(err, STATUS_USAGE,
                         "tap: expected a head below the model's %" PRIu32 ", found %" PRId32,
                         config->head_count, choice->head);
    return STATUS_OK;
}

/* ---- Life ----------------------------------------------------------------------------------- */

/* Values of the largest tensor that can be tapped. */
static uint64_t largest_tensor(const struct engine *engine)
{
    const struct engine_options *options = &engine->budget.options;
    const struct engine_scratch *scratch = &engine->scratch;
    uint64_t width = max_u64(max_u64(scratch->x.shape.dims[0], scratch->q.shape.dims[0]),
                             scratch->gate.shape.dims[0]);
    uint64_t slot_width = max_u64(scratch->expert_gate.shape.dims[0],
                                  scratch->expert_out.shape.dims[0]);
    slot_width = max_u64(slot_width, scratch->expert_gate_up.shape.dims[0]);
    width = max_u64(width, slot_width * engine->config.experts.used);
    width = max_u64(width, scratch->router_logits.shape.dims[0]);
    uint64_t cache = scratch->k.shape.dims[0] * options->context;
    return max_u64(max_u64(width * options->batch_limit, cache),
                   scratch->logits_buffer[0].shape.dims[0] * options->logits_limit);
}

enum status engine_taps_create(const struct engine *engine, const struct engine_tap_choice *choices,
                               size_t count, engine_tap_sink sink, void *context,
                               struct engine_taps **ret_taps, struct error *err)
{
    struct engine_taps *taps = calloc(1, sizeof(*taps));
    if (!taps)
        return error_set(err, STATUS_NO_MEMORY, "no memory for taps");
    *taps = (struct engine_taps){
        .count = count, .sink = sink, .context = context, .largest = largest_tensor(engine)
    };
    taps->choices = calloc(count, sizeof(*choices));
    taps->raw = malloc((size_t)taps->largest * sizeof(float));
    taps->values = malloc((size_t)taps->largest * sizeof(float));
    if (!taps->choices || !taps->raw || !taps->values) {
        engine_taps_destroy(taps);
        return error_set(err, STATUS_NO_MEMORY, "no memory for taps");
    }
    memcpy(taps->choices, choices, count * sizeof(*choices));
    *ret_taps = taps;
    return STATUS_OK;
}

void engine_taps_destroy(struct engine_taps *taps)
{
    if (!taps)
        return;
    free(taps->choices);
    free(taps->raw);
    free(taps->values);
    free(taps);
}

enum status engine_tap_set(struct engine *engine, const struct engine_tap_choice *choices,
                           size_t count, engine_tap_sink sink, void *context, struct error *err)
{
    struct engine_taps *taps = NULL;
    for (size_t i = 0; i < count; i++)
        TRY(check_choice(engine, &choices[i], err));
    if (count)
        TRY(engine_taps_create(engine, choices, count, sink, context, &taps, err));
    engine_taps_destroy(engine->taps);
    engine->taps = taps;
    return STATUS_OK;
}

/* ---- Copying out ---------------------------------------------------------------------------- */

/* A tensor being copied out. */
struct take {
    struct engine *engine;
    struct tap_record record;
    struct device_view view; /* whole rows */
    uint64_t first, width;   /* the columns of a row that are wanted */
};

static enum status read_values(struct take *take, struct error *err)
{
    struct engine *engine = take->engine;
    struct engine_taps *taps = engine->taps;
    const struct device_view *view = &take->view;
    uint64_t row_bytes = 0, whole = view->shape.dims[0], rows_there = view->shape.dims[1];
    ASSERT(whole * rows_there <= taps->largest && dtype_row_bytes(view->dtype, whole, &row_bytes));
    struct event_scope before = engine->scope;
    event_set_text(engine->scope.tensor, sizeof(engine->scope.tensor), take->record.place.tensor);
    device_scope_set(engine->device, engine->stream, &engine->scope);
    enum status status = device_read(engine->device, engine->stream, view, taps->raw, DEVICE_HERE,
                                     err);
    engine->scope = before;
    device_scope_set(engine->device, engine->stream, &engine->scope);
    TRY(status);
    if (view->dtype == DTYPE_F32)
        memcpy(taps->values, taps->raw, (size_t)(whole * rows_there) * sizeof(float));
    else
        for (uint64_t r = 0; r < rows_there; r++)
            quant_decode_row(view->dtype, taps->raw + r * row_bytes, (size_t)whole,
                             taps->values + r * whole);
    for (uint64_t r = 0; take->width < whole && r < rows_there; r++)
        memmove(taps->values + r * take->width, taps->values + r * whole + take->first,
                (size_t)take->width * sizeof(float));
    return STATUS_OK;
}

static enum status hand_out(struct take *take, struct error *err)
{
    struct engine_taps *taps = take->engine->taps;
    struct tap_record *record = &take->record;
    TRY(read_values(take, err));
    uint64_t dims[] = { take->width, take->view.shape.dims[1] };
    record->shape = shape_make(2, dims);
    record->source_dtype = take->view.dtype;
    record->stats = tap_stats_of(taps->values, dims[0] * dims[1]);
    return taps->sink(taps->context, record, taps->values, err);
}

/* The cache of every sequence that has tokens in this batch. */
static enum status take_cache(struct take *take, const struct device_view *cache, struct error *err)
{
    const struct engine *engine = take->engine;
    for (uint32_t s = 0; s < engine->budget.options.sequence_limit; s++) {
        if (engine->new_lengths[s] == engine->lengths[s])
            continue;
        take->record.place.sequence = (int32_t)s;
        take->view = engine_slots(engine, cache, s, engine->new_lengths[s]);
        TRY(hand_out(take, err));
    }
    return STATUS_OK;
}

static enum status take_row(struct engine *engine, const struct tap_row *row, int32_t layer,
                            uint64_t batch_rows, int32_t head, struct error *err)
{
    struct take take = { .engine = engine,
                         .record.place = {
                             .layer = layer, .step = engine->step, .sequence = -1, .head = -1 } };
    struct model_layer numbers = model_layer(&engine->config, layer < 0 ? 0 : (uint32_t)layer);
    uint64_t dim = numbers.head_dim;
    uint32_t sharing = engine->config.head_count / numbers.head_count_kv;
    event_set_text(take.record.place.tensor, sizeof(take.record.place.tensor), row->tensor);
    if (row->form == FORM_WEIGHT) {
        take.view = layer < 0 ? engine->globals[row->offset]
                              : engine->layers[layer].weights[row->offset];
        take.width = take.view.shape.dims[0];
        return hand_out(&take, err);
    }
    bool of_cache = row->form == FORM_CACHE || row->form == FORM_CACHE_HEAD;
    const char *base = of_cache ? (const char *)&engine->layers[numbers.cache]
                                : (const char *)&engine->scratch;
    struct device_view view = *(const struct device_view *)(const void *)(base + row->offset);
    uint64_t width = of_cache ? 0 : engine_layer_width(engine, row->offset, layer);
    if (width)
        view.shape.dims[0] = width;
    take.width = view.shape.dims[0];
    if (row->form == FORM_HEAD || row->form == FORM_CACHE_HEAD) {
        take.record.place.head = head;
        take.width = dim;
        take.first = dim * (of_cache ? (uint32_t)head / sharing : (uint32_t)head);
    }
    if (of_cache)
        return take_cache(&take, &view, err);
    uint64_t rows_of_token = row->form == FORM_SLOTS ? engine->config.experts.used : 1;
    take.view = engine_rows(&view, batch_rows * rows_of_token);
    return hand_out(&take, err);
}

static bool covers(const struct engine *engine, const struct engine_tap_choice *choice,
                   const struct tap_row *row, int32_t layer)
{
    return (choice->kinds & row->kinds) && layer >= choice->first_layer &&
           layer <= choice->last_layer && engine->step >= choice->first_step &&
           engine->step <= choice->last_step;
}

/* True if an earlier choice takes the same tensor (and the same head, for a tensor by head). */
static bool is_taken(const struct engine *engine, const struct engine_tap_choice *choice,
                     const struct tap_row *row, int32_t layer)
{
    bool by_head = row->form == FORM_HEAD || row->form == FORM_CACHE_HEAD;
    for (const struct engine_tap_choice *at = engine->taps->choices; at < choice; at++)
        if (covers(engine, at, row, layer) && (!by_head || at->head == choice->head))
            return true;
    return false;
}

/* False for a tensor that this model does not compute. */
static bool is_there(const struct engine *engine, const struct tap_row *row, int32_t layer)
{
    if (row->needs == ALWAYS)
        return true;
    const struct engine_layer *at = &engine->layers[layer];
    return engine_has(row->needs == MODEL_FFN_GATE ? &at->gate.weights
                      : row->needs == MODEL_ATTN_K ? &at->k.weights
                                                   : &at->weights[row->needs]);
}

enum status engine_tap_moment(struct engine *engine, enum engine_moment moment, int32_t layer,
                              uint64_t batch_rows, struct error *err)
{
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (size_t c = 0; c < engine->taps->count && rows[i].moment == moment; c++) {
            const struct engine_tap_choice *choice = &engine->taps->choices[c];
            if (is_there(engine, &rows[i], layer) && covers(engine, choice, &rows[i], layer) &&
                !is_taken(engine, choice, &rows[i], layer))
                TRY(take_row(engine, &rows[i], layer, batch_rows, choice->head, err));
        }
    }
    return STATUS_OK;
}
