/* attention.c - the driver of attention: from a tile to rows of the cache, chunk by chunk. The
 * order of all sums is in attention.h.
 *
 * A tile does a few tokens and the query heads that share one kv head. Tokens of one sequence go
 * together: each cache row that all of them look at is read and decoded once for all their heads;
 * what only some look at, each does for itself. Where the scratch does not hold all heads, it does
 * as many as fit at a time. Nothing of this changes a result. */
#include "ops/host/attention.h"

#include "base/status.h"
#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"

#include <math.h>
#include <string.h>

#define SCRATCH_FLOATS (DEVICE_SCRATCH_BYTES / sizeof(float))

/* The part of the cache that tokens of one sequence look at. */
struct context {
    const struct device_host_operand *keys, *values; /* [kv_dim, slot_count] */
    uint64_t start;                                  /* first slot */
    uint64_t counts[ATTENTION_TILE_TOKENS];          /* slots of each token, at least 1 */
    size_t token_count;
    uint64_t most;      /* slots that any token looks at */
    size_t first_value; /* of the kv head, in a cache row */
    size_t head_dim;
    float scale;
    float cap; /* 0: none */
};

/* Everything in the scratch of the call: the heads of each token follow those of the one before. */
struct work {
    struct attention_heads heads;
    float *rows;   /* [ATTENTION_ROWS][dims] */
    float *totals; /* [count][dims] */
    float *maxima; /* [count] */
    float *sums;   /* [count] */
};

static size_t round_up_to_lanes(size_t count)
{
    return (count + ATTENTION_LANES - 1) / ATTENTION_LANES * ATTENTION_LANES;
}

/* Floats of scratch that each head needs, and all need together. */
static size_t floats_per_head(size_t dims)
{
    return 3 * dims + ATTENTION_SCORES + 2;
}

static size_t floats_shared(size_t dims)
{
    return ATTENTION_ROWS * dims;
}

/* Lays out the scratch for `count` heads; all vectors are zero. */
static struct work work_make(float *scratch, size_t count, size_t dims)
{
    memset(scratch, 0, (floats_shared(dims) + count * floats_per_head(dims)) * sizeof(float));
    struct work work = { .heads = { .count = count, .dims = dims }, .rows = scratch };
    work.heads.queries = work.rows + ATTENTION_ROWS * dims;
    work.heads.chunk = work.heads.queries + count * dims;
    work.heads.scores = work.heads.chunk + count * dims;
    work.totals = work.heads.scores + count * ATTENTION_SCORES;
    work.maxima = work.totals + count * dims;
    work.sums = work.maxima + count;
    return work;
}

/* How many rows ahead are prefetched. The head's part of a row is short and the next one far away;
 * the hardware's own prefetching does not follow that. */
#define PREFETCH_ROWS 16u
#define CACHE_LINE_BYTES 64u

static void prefetch_row(const struct context *context, const struct device_host_operand *cache,
                         uint64_t slot, size_t part_bytes, size_t part_offset)
{
    const uint8_t *part = row_bytes(cache, context->start + slot) + part_offset;
    for (size_t i = 0; i < part_bytes; i += CACHE_LINE_BYTES)
        __builtin_prefetch(part + i);
}

/* Decodes up to ATTENTION_ROWS rows of the cache from slot on; returns how many. */
static size_t decode_rows(const struct context *context, const struct attention_methods *methods,
                          const struct device_host_operand *cache, uint64_t slot, uint64_t end,
                          const struct work *work)
{
    size_t count = end - slot < ATTENTION_ROWS ? (size_t)(end - slot) : ATTENTION_ROWS;
    const struct dtype_info *info = dtype_info(cache->dtype);
    size_t part_offset = context->first_value / info->block_elements * info->block_bytes;
    size_t part_bytes = context->head_dim * info->block_bytes / info->block_elements;
    for (size_t r = 0; r < count; r++) {
        if (slot + r + PREFETCH_ROWS < context->most)
            prefetch_row(context, cache, slot + r + PREFETCH_ROWS, part_bytes, part_offset);
        methods->decode(cache->dtype, row_bytes(cache, context->start + slot + r),
                        context->first_value, context->head_dim, work->rows + r * work->heads.dims);
    }
    return count;
}

/* Turns the scores of a chunk into weights, and brings what came before to the same maximum. */
static void weigh_chunk(const struct attention_methods *methods, const struct work *work,
                        size_t head, size_t slot_count, float cap)
{
    float *scores = work->heads.scores + head * ATTENTION_SCORES;
    float *totals = work->totals + head * work->heads.dims;
    size_t padded = round_up_to_lanes(slot_count);
    if (cap != 0)
        methods->limit(scores, padded, cap);
    for (size_t i = slot_count; i < padded; i++)
        scores[i] = -INFINITY; /* of weight 0 */
    float maximum = fmaxf(work->maxima[head], methods->largest(scores, padded));
    float factor = expf(work->maxima[head] - maximum);
    work->sums[head] = work->sums[head] * factor + methods->weigh(scores, padded, maximum);
    work->maxima[head] = maximum;
    for (size_t d = 0; d < work->heads.dims; d++)
        totals[d] *= factor;
}

/* The heads of some of the tokens. */
static struct attention_heads heads_of(const struct context *context, const struct work *work,
                                       size_t first_token, size_t token_count)
{
    size_t group = work->heads.count / context->token_count, first = first_token * group;
    return (struct attention_heads){ .count = token_count * group,
                                     .dims = work->heads.dims,
                                     .queries = work->heads.queries + first * work->heads.dims,
                                     .scores = work->heads.scores + first * ATTENTION_SCORES,
                                     .chunk = work->heads.chunk + first * work->heads.dims };
}

/* Slots of a chunk, for some heads. */
struct span {
    uint64_t chunk; /* first slot of the chunk */
    uint64_t first, end;
};

static void score_span(const struct context *context, const struct attention_methods *methods,
                       const struct work *work, const struct attention_heads *heads,
                       struct span span)
{
    for (uint64_t slot = span.first; slot < span.end; slot += ATTENTION_ROWS) {
        decode_rows(context, methods, context->keys, slot, span.end, work);
        methods->score(heads, work->rows, (size_t)(slot - span.chunk), context->scale);
    }
}

static void gather_span(const struct context *context, const struct attention_methods *methods,
                        const struct work *work, const struct attention_heads *heads,
                        struct span span)
{
    for (uint64_t slot = span.first; slot < span.end; slot += ATTENTION_ROWS) {
        size_t rows = decode_rows(context, methods, context->values, slot, span.end, work);
        methods->gather(heads, work->rows, rows, (size_t)(slot - span.chunk));
    }
}

/* The end of a chunk for a token. */
static uint64_t chunk_end(const struct context *context, size_t token, uint64_t chunk)
{
    uint64_t left = context->counts[token] - chunk;
    return chunk + (left < ATTENTION_CHUNK ? left : ATTENTION_CHUNK);
}

/* A chunk of which each of the tokens sees something. */
static void add_chunk(const struct context *context, const struct attention_methods *methods,
                      const struct work *work, size_t first_token, size_t token_count,
                      uint64_t chunk)
{
    struct attention_heads all = heads_of(context, work, first_token, token_count);
    size_t group = all.count / token_count, first_head = first_token * group;
    struct span seen_by_all = { chunk, chunk, UINT64_MAX };
    for (size_t t = 0; t < token_count; t++) {
        uint64_t end = chunk_end(context, first_token + t, chunk);
        seen_by_all.end = seen_by_all.end < end ? seen_by_all.end : end;
    }
    /* Whole groups of rows: each token goes on with a group. */
    seen_by_all.end -= (seen_by_all.end - chunk) % ATTENTION_ROWS;
    score_span(context, methods, work, &all, seen_by_all);
    for (size_t t = 0; t < token_count; t++) {
        struct attention_heads own = heads_of(context, work, first_token + t, 1);
        uint64_t end = chunk_end(context, first_token + t, chunk);
        score_span(context, methods, work, &own, (struct span){ chunk, seen_by_all.end, end });
        for (size_t head = 0; head < group; head++)
            weigh_chunk(methods, work, first_head + t * group + head, (size_t)(end - chunk),
                        context->cap);
    }
    memset(all.chunk, 0, all.count * all.dims * sizeof(float));
    gather_span(context, methods, work, &all, seen_by_all);
    for (size_t t = 0; t < token_count; t++) {
        struct attention_heads own = heads_of(context, work, first_token + t, 1);
        uint64_t end = chunk_end(context, first_token + t, chunk);
        gather_span(context, methods, work, &own, (struct span){ chunk, seen_by_all.end, end });
    }
    float *totals = work->totals + first_head * all.dims;
    for (size_t i = 0; i < all.count * all.dims; i++)
        totals[i] += all.chunk[i];
}

/* All chunks, in order. Those that not all tokens see are taken for each alone. */
static void add_chunks(const struct context *context, const struct attention_methods *methods,
                       const struct work *work)
{
    uint64_t least = UINT64_MAX;
    for (size_t t = 0; t < context->token_count; t++)
        least = context->counts[t] < least ? context->counts[t] : least;
    for (uint64_t chunk = 0; chunk < least; chunk += ATTENTION_CHUNK)
        add_chunk(context, methods, work, 0, context->token_count, chunk);
    uint64_t rest = (least + ATTENTION_CHUNK - 1) / ATTENTION_CHUNK * ATTENTION_CHUNK;
    for (size_t t = 0; t < context->token_count; t++) {
        for (uint64_t chunk = rest; chunk < context->counts[t]; chunk += ATTENTION_CHUNK)
            add_chunk(context, methods, work, t, 1, chunk);
    }
}

/* `count` heads of each token: q[token][0 .. count - 1] and the same of out, of head_dim values.
 * sinks: of these heads, or NULL. */
static void attend(const struct context *context, const struct attention_methods *methods,
                   float *scratch, const float *sinks, float *const q[], float *const out[],
                   size_t count)
{
    size_t head_dim = context->head_dim, dims = round_up_to_lanes(head_dim);
    struct work work = work_make(scratch, context->token_count * count, dims);
    for (size_t head = 0; head < work.heads.count; head++) {
        memcpy(work.heads.queries + head * dims, q[head / count] + head % count * head_dim,
               head_dim * sizeof(float));
        work.maxima[head] = sinks ? sinks[head % count] : -INFINITY;
        work.sums[head] = sinks ? 1 : 0;
    }
    add_chunks(context, methods, &work);
    for (size_t head = 0; head < work.heads.count; head++) {
        for (size_t d = 0; d < head_dim; d++)
            out[head / count][head % count * head_dim + d] = work.totals[head * dims + d] /
                                                             work.sums[head];
    }
}

/* The slots in the token's window. False if they are not all in the cache; a trap says which number
 * is wrong. */
static bool find_slots(const struct device_host_call *call, uint64_t token, uint64_t *ret_start,
                       uint64_t *ret_count)
{
    uint64_t slot_count = call->operands[ATTENTION_KEYS].shape.dims[1];
    uint64_t start = list_index(&call->operands[ATTENTION_STARTS], token);
    uint64_t position = list_index(&call->operands[ATTENTION_POSITIONS], token);
    if (!device_index_ok(call, ATTENTION_STARTS, start, slot_count) ||
        !device_index_ok(call, ATTENTION_POSITIONS, position, slot_count - start))
        return false;
    const struct params_attention *params = call->params;
    uint64_t hidden = params->window && position >= params->window ? position + 1 - params->window
                                                                   : 0;
    *ret_start = start + hidden;
    *ret_count = position + 1 - hidden;
    return true;
}

/* The heads of a group, `values` floats from `first` on in the rows of a few tokens. */
struct group {
    size_t heads, first, values;
    const float *sinks; /* of each head, or NULL */
    float *queries[ATTENTION_TILE_TOKENS];
    float *results[ATTENTION_TILE_TOKENS];
};

/* Heads the scratch holds. */
static size_t heads_limit(size_t head_dim)
{
    size_t dims = round_up_to_lanes(head_dim);
    ASSERT(floats_shared(dims) + floats_per_head(dims) <= SCRATCH_FLOATS);
    return (SCRATCH_FLOATS - floats_shared(dims)) / floats_per_head(dims);
}

/* All heads of the tokens at hand, as many at a time as the scratch holds; then there are none. */
static void attend_group(const struct device_host_call *call, struct context *context,
                         const struct attention_methods *methods, struct group *group)
{
    if (context->token_count == 0)
        return;
    size_t at_once = heads_limit(context->head_dim) / context->token_count;
    for (size_t head = 0; head < group->heads; head += at_once) {
        size_t count = group->heads - head < at_once ? group->heads - head : at_once;
        attend(context, methods, call->scratch, group->sinks ? group->sinks + head : NULL,
               group->queries, group->results, count);
        for (size_t t = 0; t < context->token_count; t++) {
            group->queries[t] += count * context->head_dim;
            group->results[t] += count * context->head_dim;
        }
    }
    context->token_count = 0;
    context->most = 0;
}

void host_attention_tile(const struct device_host_call *call, uint64_t tile,
                         const struct attention_methods *methods)
{
    const struct params_attention *params = call->params;
    const struct device_host_operand *q =
        &call->operands[ATTENTION_Q]; /* [head_dim * heads, tokens] */
    const struct device_host_operand *out = &call->operands[ATTENTION_OUT];       /* the same */
    const struct device_host_operand *packed = &call->operands[ATTENTION_PACKED]; /* or absent */
    struct context context = { .keys = &call->operands[ATTENTION_KEYS],
                               .values = &call->operands[ATTENTION_VALUES],
                               .head_dim = params->head_dim,
                               .scale = params->scale,
                               .cap = params->cap };
    uint64_t kv_heads = context.keys->shape.dims[0] / context.head_dim;
    uint64_t kv_head = tile % kv_heads;
    context.first_value = kv_head * context.head_dim;
    struct group group = { .heads = q->shape.dims[0] / context.keys->shape.dims[0] };
    group.values = group.heads * context.head_dim;
    group.first = kv_head * group.values;
    const float *sinks = call->operands[ATTENTION_SINKS].data; /* [heads], or NULL */
    group.sinks = sinks ? sinks + kv_head * group.heads : NULL;
    struct row_range tokens = tile_range(tile / kv_heads, attention_tile_tokens(params),
                                         q->shape.dims[1]);
    for (uint64_t t = tokens.first; t < tokens.end; t++) {
        uint64_t start, count;
        float *results = row_f32(out, t) + group.first;
        if (!find_slots(call, t, &start, &count)) {
            memset(results, 0, group.values * sizeof(float));
            continue;
        }
        if (start != context.start || context.token_count == heads_limit(context.head_dim))
            attend_group(call, &context, methods, &group);
        context.start = start;
        context.most = count > context.most ? count : context.most;
        context.counts[context.token_count] = count;
        group.queries[context.token_count] = row_f32(q, t) + group.first;
        group.results[context.token_count++] = results;
    }
    attend_group(call, &context, methods, &group);
    for (uint64_t t = tokens.first; t < tokens.end; t++)
        host_pack_part(&params->packing, out, packed, t, group.first, group.values);
}
