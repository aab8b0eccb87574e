/* matmul_walk.h - rows of weights streamed through a warp's ring and multiplied with up to eight
 * tokens: what matmul.c and matmul_experts.c share. matmul.c says how it works. */
#ifndef GRETA_OPS_GPU_KERNELS_MATMUL_WALK_H
#define GRETA_OPS_GPU_KERNELS_MATMUL_WALK_H

#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/matmul_unit.h"

/* ---- A part --------------------------------------------------------------------------------- */

/* The rows of one part that a warp does: groups first, first + step, ... below count. */
struct way {
    const struct gpu_operand *weights, *bias, *out;
    uint32_t group, step, count;
    uint32_t first_token, token_count;
    SHARED uint8_t *ring;
};

/* A chunk of the rows of a group. */
struct place {
    uint32_t group, at, left; /* at: weights done; left: bytes of the rows still to do */
    const GLOBAL uint8_t *rows[ROWS];
};

INLINE void enter_group(const struct way *way, uint32_t group, struct place *place)
{
    place->group = group;
    place->at = 0;
    place->left = (uint32_t)way->weights->row_stride_bytes;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) { /* a row that is not there is read as the first */
        uint32_t row = group * ROWS + r;
        place->rows[r] = row_at(way->weights, row < way->weights->rows ? row : group * ROWS);
    }
}

/* To the next chunk; true at the end of the rows. */
INLINE bool advance(const struct way *way, uint32_t dtype, struct place *place)
{
    const uint32_t bytes = job_of(dtype) * warp_bytes(dtype);
    if (place->left <= bytes) {
        place->group += way->step;
        if (place->group < way->count)
            enter_group(way, place->group, place);
        return true;
    }
    place->left -= bytes;
    place->at += job_of(dtype) * WARP * unit_weights(dtype);
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++)
        place->rows[r] += bytes;
    return false;
}

/* Asks for a chunk. */
INLINE void fetch(uint32_t dtype, const struct place *place, SHARED uint8_t *stage)
{
    const uint32_t bytes = job_of(dtype) * warp_bytes(dtype);
    uint32_t there = place->left < bytes ? place->left : bytes;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        const GLOBAL uint8_t *source = place->rows[r] + lane_index() * 16;
        SHARED uint8_t *target = stage + r * bytes + lane_index() * 16;
        UNROLL
        for (uint32_t i = 0; i < bytes; i += WARP * 16)
            if (i + lane_index() * 16 < there)
                copy_async(target + i, source + i);
    }
}

INLINE void store_sums(const struct way *way, uint32_t group, uint32_t tokens,
                       float sums[ROWS][TOKENS_MOST])
{
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            float sum = warp_sum(sums[r][t], WARP);
            uint32_t row = group * ROWS + r;
            if (lane_index() == r * tokens + t && row < way->out->width && t < way->token_count)
                store_product(way->bias, way->out, way->first_token + t, row, sum);
            sums[r][t] = 0;
        }
    }
}

INLINE void make_inputs(const struct gpu_call *call, const struct way *way, uint32_t tokens,
                        struct inputs *inputs)
{
    inputs->k = (uint32_t)way->weights->width;
    inputs->acts = row_at(&call->operands[MATMUL_GROUP_PACKED], way->first_token);
    inputs->stride = (uint32_t)(call->operands[MATMUL_GROUP_PACKED].row_stride_bytes / 16);
    inputs->tokens = tokens;
    inputs->last = way->token_count - 1;
    UNROLL
    for (uint32_t t = 0; t < tokens; t++)
        inputs->offsets[t] = (t < inputs->last ? t : inputs->last) * inputs->stride;
}

/* Units of a chunk whose activations are asked for before its weights are waited for. */
#define JOB_MOST 4

/* Whether this lane has weights of the units that begin at `at`. */
INLINE bool has_unit(uint32_t dtype, uint32_t at, uint32_t k)
{
    return at + lane_index() * unit_weights(dtype) < k;
}

INLINE void load_chunk_acts(uint32_t dtype, const struct inputs *inputs, uint32_t at,
                            struct acts acts[JOB_MOST])
{
    UNROLL
    for (uint32_t j = 0; j < job_of(dtype); j++) {
        load_acts(dtype, inputs, 0, at, &acts[j]);
        at += WARP * unit_weights(dtype);
    }
}

/* Multiplies the chunk that is in the stage. first: activations of the only token, if it is one. */
INLINE void add_chunk(uint32_t dtype, const SHARED uint8_t *stage, uint32_t at,
                      const struct inputs *inputs, const struct acts first[JOB_MOST],
                      uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    const uint32_t bytes = job_of(dtype) * warp_bytes(dtype);
    const SHARED uint8_t *mine = stage + lane_bytes(dtype);
    UNROLL
    for (uint32_t j = 0; j < job_of(dtype); j++, at += WARP * unit_weights(dtype)) {
        bool there = has_unit(dtype, at, inputs->k);
        struct unit units[ROWS];
        if (tokens > 1 && !there)
            continue; /* at the end of a row: so are all that come */
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            load_unit(dtype, mine + r * bytes + j * warp_bytes(dtype), &units[r]);
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            struct acts acts;
            if (tokens > 1)
                load_acts(dtype, inputs, t, at, &acts);
            else
                acts = first[j];
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                float dot = dot_unit(dtype, &units[r], &acts);
                sums[r][t] += there ? dot : 0.0f;
            }
        }
    }
}

/* waited: whether the kernel before this one is known to have ended. */
INLINE void walk(const struct gpu_call *call, const struct way *way, uint32_t dtype,
                 uint32_t tokens, bool *waited)
{
    const uint32_t stage_bytes = ROWS * job_of(dtype) * warp_bytes(dtype);
    struct inputs inputs;
    struct place now, ahead;
    float sums[ROWS][TOKENS_MOST];
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        UNROLL
        for (uint32_t t = 0; t < tokens; t++)
            sums[r][t] = 0;
    }
    enter_group(way, way->group, &now);
    ahead = now;
    UNROLL
    for (uint32_t s = 0; s < MATMUL_STAGES - 1; s++) {
        if (ahead.group < way->count) {
            fetch(dtype, &ahead, way->ring + s * stage_bytes);
            advance(way, dtype, &ahead);
        }
        copy_commit();
    }
    if (!*waited) {
        early_wait();
        leave_crumbs(call);
        *waited = true;
    }
    make_inputs(call, way, tokens, &inputs);
    uint32_t full = 0, empty = (MATMUL_STAGES - 1) * stage_bytes;
    while (now.group < way->count) {
        struct acts acts[JOB_MOST];
        if (tokens == 1)
            load_chunk_acts(dtype, &inputs, now.at, acts);
        copy_wait(MATMUL_STAGES - 2);
        warp_sync();
        if (ahead.group < way->count) {
            fetch(dtype, &ahead, way->ring + empty);
            advance(way, dtype, &ahead);
        }
        copy_commit();
        add_chunk(dtype, way->ring + full, now.at, &inputs, acts, tokens, sums);
        empty = full;
        full = full + stage_bytes < MATMUL_STAGES * stage_bytes ? full + stage_bytes : 0;
        uint32_t group = now.group;
        if (advance(way, dtype, &now))
            store_sums(way, group, tokens, sums);
    }
    /* The next part uses the ring again. */
    copy_wait(0);
    warp_sync();
}

INLINE void walk_part(const struct gpu_call *call, const struct way *way, bool quants,
                      uint32_t tokens, bool *waited)
{
    uint32_t dtype = way->weights->dtype;
    if (quants) {
        if (dtype == DTYPE_Q4_K)
            walk(call, way, DTYPE_Q4_K, tokens, waited);
        else if (dtype == DTYPE_Q6_K_X8)
            walk(call, way, DTYPE_Q6_K_X8, tokens, waited);
        else if (dtype == DTYPE_Q8_0_X8)
            walk(call, way, DTYPE_Q8_0_X8, tokens, waited);
        else
            walk(call, way, DTYPE_Q5_K, tokens, waited);
    } else {
        if (dtype == DTYPE_BF16)
            walk(call, way, DTYPE_BF16, tokens, waited);
        else if (dtype == DTYPE_F16)
            walk(call, way, DTYPE_F16, tokens, waited);
        else
            walk(call, way, DTYPE_F32, tokens, waited);
    }
}

#endif
