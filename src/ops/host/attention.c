/* attention.c - the driver of attention: from a tile to rows of the cache, chunk by chunk. The
 * order of all sums is in attention.h.
 *
 * A tile does one token and the query heads that share one kv head, so that each cache row is read
 * and decoded once for all of them. Where the scratch does not hold all heads of the group, it does
 * as many as fit at a time; that changes no result. */
#include "ops/host/attention.h"

#include "base/status.h"
#include "ops/host/matmul_tiles.h"
#include "ops/host/rows.h"

#include <math.h>
#include <string.h>

#define SCRATCH_FLOATS (DEVICE_SCRATCH_BYTES / sizeof(float))

/* The part of the cache a token looks at. */
struct context {
    const struct device_host_operand *keys, *values; /* [kv_dim, slot_count] */
    uint64_t start;                                  /* first slot */
    uint64_t count;                                  /* slots, at least 1 */
    size_t first_value;                              /* of the kv head, in a cache row */
    size_t head_dim;
    float scale;
};

/* Everything in the scratch of the call. */
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
    return 3 * dims + ATTENTION_CHUNK + 2;
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
    work.totals = work.heads.scores + count * ATTENTION_CHUNK;
    work.maxima = work.totals + count * dims;
    work.sums = work.maxima + count;
    return work;
}

/* Rows this far ahead are asked for in time. The head's part of a row is short and the next one far
 * away, which the hardware's own prefetching does not follow. */
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
        if (slot + r + PREFETCH_ROWS < context->count)
            prefetch_row(context, cache, slot + r + PREFETCH_ROWS, part_bytes, part_offset);
        methods->decode(cache->dtype, row_bytes(cache, context->start + slot + r),
                        context->first_value, context->head_dim, work->rows + r * work->heads.dims);
    }
    return count;
}

/* Turns the scores of a chunk into weights, and brings what came before to the same maximum. */
static void weigh_chunk(const struct attention_methods *methods, const struct work *work,
                        size_t head, size_t slot_count)
{
    float *scores = work->heads.scores + head * ATTENTION_CHUNK;
    float *totals = work->totals + head * work->heads.dims;
    size_t padded = round_up_to_lanes(slot_count);
    for (size_t i = slot_count; i < padded; i++)
        scores[i] = -INFINITY; /* of weight 0 */
    float maximum = fmaxf(work->maxima[head], methods->largest(scores, padded));
    float factor = expf(work->maxima[head] - maximum);
    work->sums[head] = work->sums[head] * factor + methods->weigh(scores, padded, maximum);
    work->maxima[head] = maximum;
    for (size_t d = 0; d < work->heads.dims; d++)
        totals[d] *= factor;
}

static void add_chunk(const struct context *context, const struct attention_methods *methods,
                      const struct work *work, uint64_t first, uint64_t end)
{
    const struct attention_heads *heads = &work->heads;
    for (uint64_t slot = first; slot < end; slot += ATTENTION_ROWS) {
        decode_rows(context, methods, context->keys, slot, end, work);
        methods->score(heads, work->rows, (size_t)(slot - first), context->scale);
    }
    for (size_t head = 0; head < heads->count; head++)
        weigh_chunk(methods, work, head, (size_t)(end - first));
    memset(heads->chunk, 0, heads->count * heads->dims * sizeof(float));
    for (uint64_t slot = first; slot < end; slot += ATTENTION_ROWS) {
        size_t rows = decode_rows(context, methods, context->values, slot, end, work);
        methods->gather(heads, work->rows, rows, (size_t)(slot - first));
    }
    for (size_t i = 0; i < heads->count * heads->dims; i++)
        work->totals[i] += heads->chunk[i];
}

/* Heads q[0 .. count - 1] and the same of out, each of head_dim values. */
static void attend(const struct context *context, const struct attention_methods *methods,
                   float *scratch, const float *q, float *out, size_t count)
{
    size_t dims = round_up_to_lanes(context->head_dim);
    struct work work = work_make(scratch, count, dims);
    for (size_t head = 0; head < count; head++) {
        memcpy(work.heads.queries + head * dims, q + head * context->head_dim,
               context->head_dim * sizeof(float));
        work.maxima[head] = -INFINITY;
    }
    for (uint64_t slot = 0; slot < context->count; slot += ATTENTION_CHUNK) {
        uint64_t left = context->count - slot;
        add_chunk(context, methods, &work, slot,
                  slot + (left < ATTENTION_CHUNK ? left : ATTENTION_CHUNK));
    }
    for (size_t head = 0; head < count; head++) {
        for (size_t d = 0; d < context->head_dim; d++)
            out[head * context->head_dim + d] = work.totals[head * dims + d] / work.sums[head];
    }
}

/* False if the token's slots are not all in the cache; a trap says which number is wrong. */
static bool find_context(const struct device_host_call *call, uint64_t token,
                         struct context *context)
{
    uint64_t slot_count = context->keys->shape.dims[1];
    uint64_t start = list_index(&call->operands[3], token);
    uint64_t position = list_index(&call->operands[4], token);
    if (!device_index_ok(call, 3, start, slot_count) ||
        !device_index_ok(call, 4, position, slot_count - start))
        return false;
    context->start = start;
    context->count = position + 1;
    return true;
}

void host_attention_tile(const struct device_host_call *call, uint64_t tile,
                         const struct attention_methods *methods)
{
    const struct params_attention *params = call->params;
    const struct device_host_operand *q = &call->operands[0];      /* [head_dim * heads, tokens] */
    const struct device_host_operand *out = &call->operands[5];    /* the same */
    const struct device_host_operand *packed = &call->operands[6]; /* or absent */
    struct context context = { .keys = &call->operands[1],
                               .values = &call->operands[2],
                               .head_dim = params->head_dim,
                               .scale = params->scale };
    uint64_t kv_heads = context.keys->shape.dims[0] / context.head_dim;
    size_t group = q->shape.dims[0] / context.keys->shape.dims[0];
    uint64_t token = tile / kv_heads;
    uint64_t kv_head = tile % kv_heads;
    context.first_value = kv_head * context.head_dim;
    size_t group_values = group * context.head_dim;
    const float *queries = row_f32(q, token) + kv_head * group_values;
    float *results = row_f32(out, token) + kv_head * group_values;
    if (!find_context(call, token, &context)) {
        memset(results, 0, group_values * sizeof(float));
        host_pack_part(&params->packing, out, packed, token, kv_head * group_values, group_values);
        return;
    }
    size_t dims = round_up_to_lanes(context.head_dim);
    ASSERT(floats_shared(dims) + floats_per_head(dims) <= SCRATCH_FLOATS);
    size_t at_once = (SCRATCH_FLOATS - floats_shared(dims)) / floats_per_head(dims);
    for (size_t head = 0; head < group; head += at_once) {
        size_t count = group - head < at_once ? group - head : at_once;
        attend(&context, methods, call->scratch, queries + head * context.head_dim,
               results + head * context.head_dim, count);
    }
    host_pack_part(&params->packing, out, packed, token, kv_head * group_values, group_values);
}
