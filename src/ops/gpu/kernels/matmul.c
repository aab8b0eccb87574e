/* matmul.c - products of weights with few rows of activations, for the types whose blocks lie at
 * multiples of 16 bytes: each weight is read once.
 *
 * A team takes MATMUL_ROWS rows of weights at a time and streams them through a ring of its own in
 * shared memory, 16 bytes a lane: what is on its way takes no registers, and enough of it fills the
 * memory's pipe. From there each lane takes units of neighbouring weights. Activations stay in the
 * processor's cache.
 *
 * Order of a sum: a lane adds its units in increasing order, then the lanes are added by halves. It
 * depends on the type and k alone. The first weights are asked for before the kernel that makes the
 * activations has ended: weights do not change.
 *
 * Operands: packed, three weights, three biases, three outputs. words[0]: bytes of a team's ring.
 */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/packing.h"
#include "ops/gpu/tiling.h"

#define ROWS MATMUL_ROWS
#define TOKENS_MOST MATMUL_TOKENS

/* What a lane takes of one row for one unit; a type uses what it needs of it. */
struct unit {
    words4 bytes[3];
    words2 scales;
    uint32_t d; /* f16 */
};

/* Units of a chunk that a lane has. */
INLINE uint32_t job_of(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 1;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 2;
    default:
        return 4;
    }
}

INLINE uint32_t unit_weights(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 64;
    case DTYPE_Q4_K:
    case DTYPE_Q5_K:
        return 32;
    case DTYPE_Q8_0_X8:
        return 16;
    case DTYPE_F32:
        return 4;
    default:
        return 8;
    }
}

/* Bytes of TEAM units, and of the part of a row before a lane's first unit. */
INLINE uint32_t team_bytes(uint32_t dtype)
{
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 1680;
    case DTYPE_Q4_K:
        return 4 * 144;
    case DTYPE_Q5_K:
        return 4 * 176;
    case DTYPE_Q8_0_X8:
        return 2 * 272;
    default:
        return TEAM * 16;
    }
}

INLINE uint32_t lane_bytes(uint32_t dtype)
{
    uint32_t lane = lane_index();
    switch (dtype) {
    case DTYPE_Q6_K_X8:
        return 0;
    case DTYPE_Q4_K:
        return lane / 8 * 144;
    case DTYPE_Q5_K:
        return lane / 8 * 176;
    case DTYPE_Q8_0_X8:
        return lane / 16 * 272;
    default:
        return lane * 16;
    }
}

INLINE words4 load_words4(const SHARED uint8_t *at)
{
    return *(const SHARED words4 *)at;
}

/* at: the row's bytes, moved by lane_bytes and whole teams' units. */
INLINE void load_unit(uint32_t dtype, const SHARED uint8_t *at, struct unit *unit)
{
    uint32_t lane = lane_index();
    if (dtype == DTYPE_Q4_K) {
        unit->bytes[0] = load_words4(at);
        unit->bytes[1] = load_words4(at + 16 + 16 * (lane % 8));
    } else if (dtype == DTYPE_Q5_K) {
        unit->bytes[0] = load_words4(at);
        unit->bytes[1] = load_words4(at + 48 + 16 * (lane % 8));
        unit->bytes[2] = load_words4(at + 16 + 16 * (lane % 2));
    } else if (dtype == DTYPE_Q6_K_X8) {
        /* Eight blocks side by side: 1024 bytes of nibbles, 512 of upper bits, 128 of scales, 16 of
         * d. Four lanes for each block, sixteen columns of a half for each lane. */
        uint32_t block = lane / 4, half = lane % 4 / 2, side = lane % 2;
        unit->bytes[0] = load_words4(at + 128 * block + 64 * half + 16 * side);
        unit->bytes[1] = load_words4(at + 128 * block + 64 * half + 32 + 16 * side);
        unit->bytes[2] = load_words4(at + 1024 + 64 * block + 32 * half + 16 * side);
        unit->scales = *(const SHARED words2 *)(at + 1536 + 16 * block + 8 * half);
        unit->d = *(const SHARED uint16_t *)(at + 1664 + 2 * block);
    } else if (dtype == DTYPE_Q8_0_X8) {
        /* 256 levels, then eight scales. */
        unit->bytes[0] = load_words4(at + 16 * (lane % 16));
        unit->d = *(const SHARED uint16_t *)(at + 256 + 2 * (lane % 16 / 2));
    } else {
        unit->bytes[0] = load_words4(at);
    }
}

/* ---- Units times activations ---------------------------------------------------------------- */

struct inputs {
    const GLOBAL uint8_t *acts[TOKENS_MOST]; /* packed rows */
    uint32_t k;
};

INLINE words4 acts_words4(const struct inputs *inputs, uint32_t t, uint32_t at)
{
    return *(const GLOBAL words4 *)(inputs->acts[t] + at);
}
/* {scale, scaled sum} of two neighbouring blocks of 32; `at` is a weight of the first. */
INLINE floats4 acts_scales(const struct inputs *inputs, uint32_t t, uint32_t at)
{
    return *(const GLOBAL floats4 *)(inputs->acts[t] + inputs->k + at / 32 * 8);
}

/* Scales and mins of groups 2 p and 2 p + 1 of a K block, in the bytes of two words. */
INLINE void unpack_scales(words4 head, uint32_t p, uint32_t *scales, uint32_t *mins)
{
    uint32_t shift = 16 * (p & 1);
    uint32_t a = head[1] >> shift, b = head[2] >> shift, c = head[3] >> shift;
    *scales = p < 2 ? a & 0x3F3Fu : (c & 0x0F0Fu) | (a >> 2 & 0x3030u);
    *mins = p < 2 ? b & 0x3F3Fu : (c >> 4 & 0x0F0Fu) | (b >> 2 & 0x3030u);
}

/* Q4_K and Q5_K: 16 weights each of two neighbouring groups. at: weight of the row that the block
 * begins with. */
INLINE void add_k(const struct unit units[ROWS], bool fifth, uint32_t at,
                  const struct inputs *inputs, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    uint32_t s = lane_index() % 8, p = s / 2, half = s % 2;
    uint32_t low[ROWS][4], high[ROWS][4];
    uint32_t scales[ROWS], min[ROWS];
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t mins;
        unpack_scales(units[r].bytes[0], p, &scales[r], &mins);
        min[r] = half ? mins >> 8 : mins & 255u;
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            low[r][i] = units[r].bytes[1][i] & 0x0F0F0F0Fu;
            high[r][i] = units[r].bytes[1][i] >> 4 & 0x0F0F0F0Fu;
            if (fifth) {
                low[r][i] |= (units[r].bytes[2][i] >> (2 * p) & 0x01010101u) << 4;
                high[r][i] |= (units[r].bytes[2][i] >> (2 * p + 1) & 0x01010101u) << 4;
            }
        }
    }
    at += 64 * p;
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        words4 first = acts_words4(inputs, t, at + 16 * half);
        words4 second = acts_words4(inputs, t, at + 32 + 16 * half);
        floats4 pairs = acts_scales(inputs, t, at);
        float sum_of_acts = half ? pairs[3] : pairs[1];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            int32_t dot_low = 0, dot_high = 0;
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                dot_low = dot4(low[r][i], first[i], dot_low);
                dot_high = dot4(high[r][i], second[i], dot_high);
            }
            uint32_t head = units[r].bytes[0][0];
            float d = f16_value((uint16_t)head), dmin = f16_value((uint16_t)(head >> 16));
            float scaled = pairs[0] * (float)((int32_t)(scales[r] & 255u) * dot_low);
            scaled = __builtin_fmaf(pairs[2], (float)((int32_t)(scales[r] >> 8) * dot_high),
                                    scaled);
            sums[r][t] = __builtin_fmaf(d, scaled, sums[r][t]);
            sums[r][t] = __builtin_fmaf(-dmin * (float)(int32_t)min[r], sum_of_acts, sums[r][t]);
        }
    }
}

/* Q6_K: 16 weights each of four groups of 32. at: weight that the eight blocks begin with. */
INLINE void add_q6_k(const struct unit units[ROWS], uint32_t at, const struct inputs *inputs,
                     uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    uint32_t lane = lane_index(), half = lane % 4 / 2, side = lane % 2;
    at += 256 * (lane / 4) + 128 * half;
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        uint32_t levels[ROWS][4];
        int32_t scale[ROWS];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            uint32_t byte = 2 * (g % 2) + side;
            scale[r] = (int8_t)(units[r].scales[g / 2] >> (8 * byte));
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t low = units[r].bytes[g % 2][i] >> (4 * (g / 2)) & 0x0F0F0F0Fu;
                uint32_t top = units[r].bytes[2][i];
                top = (g == 0   ? top << 4
                       : g == 1 ? top << 2
                       : g == 2 ? top
                                : top >> 2) &
                      0x30303030u;
                levels[r][i] = ((low | top) + 0x60606060u) ^ 0x80808080u; /* minus 32 each */
            }
        }
        UNROLL
        for (uint32_t t = 0; t < tokens; t++) {
            words4 acts = acts_words4(inputs, t, at + 32 * g + 16 * side);
            float act_scale = *(const GLOBAL float *)(inputs->acts[t] + inputs->k +
                                                      (at + 32 * g) / 32 * 8);
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++) {
                int32_t dot = 0;
                UNROLL
                for (uint32_t i = 0; i < 4; i++)
                    dot = dot4(levels[r][i], acts[i], dot);
                sums[r][t] = __builtin_fmaf(f16_value((uint16_t)units[r].d) * act_scale,
                                            (float)(scale[r] * dot), sums[r][t]);
            }
        }
    }
}

/* Q8_0: 16 weights of a block of 32. at: weight that the two times 256 begin with. */
INLINE void add_q8_0(const struct unit units[ROWS], uint32_t at, const struct inputs *inputs,
                     uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    at += 16 * lane_index();
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        words4 acts = acts_words4(inputs, t, at);
        float act_scale = *(const GLOBAL float *)(inputs->acts[t] + inputs->k + at / 32 * 8);
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            int32_t dot = 0;
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                dot = dot4(units[r].bytes[0][i], acts[i], dot);
            sums[r][t] = __builtin_fmaf(f16_value((uint16_t)units[r].d) * act_scale, (float)dot,
                                        sums[r][t]);
        }
    }
}

/* F16 and BF16: eight weights. */
INLINE void add_halves(const struct unit units[ROWS], bool is_f16, uint32_t at,
                       const struct inputs *inputs, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    at += 8 * lane_index();
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        const GLOBAL floats4 *acts = (const GLOBAL floats4 *)(inputs->acts[t] + 4 * at);
        floats4 first = acts[0], second = acts[1];
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            UNROLL
            for (uint32_t i = 0; i < 4; i++) {
                uint32_t word = units[r].bytes[0][i];
                float low = is_f16 ? f16_value((uint16_t)word) : float_of(word << 16);
                float high = is_f16 ? f16_value((uint16_t)(word >> 16))
                                    : float_of(word & 0xFFFF0000u);
                float a = i < 2 ? first[2 * i] : second[2 * i - 4];
                float b = i < 2 ? first[2 * i + 1] : second[2 * i - 3];
                sums[r][t] = __builtin_fmaf(low, a, sums[r][t]);
                sums[r][t] = __builtin_fmaf(high, b, sums[r][t]);
            }
        }
    }
}

INLINE void add_f32(const struct unit units[ROWS], uint32_t at, const struct inputs *inputs,
                    uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    at += 4 * lane_index();
    UNROLL
    for (uint32_t t = 0; t < tokens; t++) {
        floats4 acts = *(const GLOBAL floats4 *)(inputs->acts[t] + 4 * at);
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++) {
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sums[r][t] = __builtin_fmaf(float_of(units[r].bytes[0][i]), acts[i], sums[r][t]);
        }
    }
}

/* at: weight that the units of the whole team begin with. */
INLINE void add_unit(uint32_t dtype, const struct unit units[ROWS], uint32_t at,
                     const struct inputs *inputs, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K)
        add_k(units, dtype == DTYPE_Q5_K, at + 256 * (lane_index() / 8), inputs, tokens, sums);
    else if (dtype == DTYPE_Q6_K_X8)
        add_q6_k(units, at, inputs, tokens, sums);
    else if (dtype == DTYPE_Q8_0_X8)
        add_q8_0(units, at, inputs, tokens, sums);
    else if (dtype == DTYPE_F32)
        add_f32(units, at, inputs, tokens, sums);
    else
        add_halves(units, dtype == DTYPE_F16, at, inputs, tokens, sums);
}

/* ---- A part --------------------------------------------------------------------------------- */

/* The rows of one part that a team does: groups first, first + step, ... below count. */
struct way {
    const struct gpu_operand *weights, *bias, *out;
    uint32_t group, step, count;
    uint32_t first_token, token_count;
    SHARED uint8_t *ring;
};

/* A chunk of the rows of a group. */
struct place {
    uint32_t group, at, left; /* weights behind, bytes of the rows ahead */
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
    const uint32_t bytes = job_of(dtype) * team_bytes(dtype);
    if (place->left <= bytes) {
        place->group += way->step;
        if (place->group < way->count)
            enter_group(way, place->group, place);
        return true;
    }
    place->left -= bytes;
    place->at += job_of(dtype) * TEAM * unit_weights(dtype);
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++)
        place->rows[r] += bytes;
    return false;
}

/* Asks for a chunk. */
INLINE void fetch(uint32_t dtype, const struct place *place, SHARED uint8_t *stage)
{
    const uint32_t bytes = job_of(dtype) * team_bytes(dtype);
    uint32_t there = place->left < bytes ? place->left : bytes;
    UNROLL
    for (uint32_t r = 0; r < ROWS; r++) {
        const GLOBAL uint8_t *source = place->rows[r] + lane_index() * 16;
        SHARED uint8_t *target = stage + r * bytes + lane_index() * 16;
        UNROLL
        for (uint32_t i = 0; i < bytes; i += TEAM * 16)
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
            float sum = team_sum(sums[r][t], TEAM);
            uint32_t row = group * ROWS + r;
            if (lane_index() == r * tokens + t && row < way->out->width && t < way->token_count) {
                if (way->bias->address)
                    sum += row_f32(way->bias, 0)[row];
                row_f32(way->out, way->first_token + t)[row] = sum;
            }
            sums[r][t] = 0;
        }
    }
}

INLINE void make_inputs(const struct gpu_call *call, const struct way *way, uint32_t tokens,
                        struct inputs *inputs)
{
    inputs->k = (uint32_t)way->weights->width;
    UNROLL
    for (uint32_t t = 0; t < tokens; t++)
        inputs->acts[t] = row_at(&call->operands[0],
                                 way->first_token + (t < way->token_count ? t : 0));
}

/* Multiplies the chunk at `place` that is in the stage. */
INLINE void add_chunk(uint32_t dtype, const SHARED uint8_t *stage, uint32_t at,
                      const struct inputs *inputs, uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    const uint32_t bytes = job_of(dtype) * team_bytes(dtype), weights = unit_weights(dtype);
    const SHARED uint8_t *mine = stage + lane_bytes(dtype);
    UNROLL
    for (uint32_t j = 0; j < job_of(dtype); j++) {
        struct unit units[ROWS];
        if (at + lane_index() * weights < inputs->k) {
            UNROLL
            for (uint32_t r = 0; r < ROWS; r++)
                load_unit(dtype, mine + r * bytes + j * team_bytes(dtype), &units[r]);
            add_unit(dtype, units, at, inputs, tokens, sums);
        }
        at += TEAM * weights;
    }
}

/* waited: whether the kernel before this one is known to have ended. */
INLINE void walk(const struct gpu_call *call, const struct way *way, uint32_t dtype,
                 uint32_t tokens, bool *waited)
{
    const uint32_t stage_bytes = ROWS * job_of(dtype) * team_bytes(dtype);
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
        copy_wait(MATMUL_STAGES - 2);
        team_sync();
        if (ahead.group < way->count) {
            fetch(dtype, &ahead, way->ring + empty);
            advance(way, dtype, &ahead);
        }
        copy_commit();
        add_chunk(dtype, way->ring + full, now.at, &inputs, tokens, sums);
        empty = full;
        full = full + stage_bytes < MATMUL_STAGES * stage_bytes ? full + stage_bytes : 0;
        uint32_t group = now.group;
        if (advance(way, dtype, &now))
            store_sums(way, group, tokens, sums);
    }
    /* The next part uses the ring again. */
    copy_wait(0);
    team_sync();
}

INLINE void walk_part(const struct gpu_call *call, const struct way *way, bool levels,
                      uint32_t tokens, bool *waited)
{
    uint32_t dtype = way->weights->dtype;
    if (levels) {
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

/* levels: packed as PACK_LEVELS, else as PACK_F32. */
INLINE void multiply(const struct gpu_call *call, bool levels, uint32_t tokens)
{
    uint32_t teams = thread_count() / TEAM, step = block_count_x() * teams;
    uint32_t mine = block_x() * teams + team_index();
    uint32_t first_token = block_y() * tokens;
    uint32_t left = (uint32_t)call->operands[0].rows - first_token;
    bool waited = false;
    early_allow();
    for (uint32_t part = 0; part < 3; part++) {
        const struct gpu_operand *weights = &call->operands[1 + part];
        if (!weights->address)
            continue;
        struct way way = { .weights = weights,
                           .bias = &call->operands[4 + part],
                           .out = &call->operands[7 + part],
                           .group = mine,
                           .step = step,
                           .count = ((uint32_t)weights->rows + ROWS - 1) / ROWS,
                           .first_token = first_token,
                           .token_count = left < tokens ? left : tokens,
                           .ring = shared_memory() + team_index() * call->words[0] };
        if (mine < way.count)
            walk_part(call, &way, levels, tokens, &waited);
        /* The next part goes on with the team that would be next. */
        mine = (mine + step - way.count % step) % step;
    }
    if (!waited) {
        early_wait();
        leave_crumbs(call);
    }
}

KERNEL(matmul_levels_1)
{
    multiply(&call, true, 1);
}
KERNEL(matmul_levels_2)
{
    multiply(&call, true, 2);
}
KERNEL(matmul_levels_4)
{
    multiply(&call, true, 4);
}
KERNEL(matmul_levels_8)
{
    multiply(&call, true, 8);
}
KERNEL(matmul_floats_1)
{
    multiply(&call, false, 1);
}
KERNEL(matmul_floats_2)
{
    multiply(&call, false, 2);
}
KERNEL(matmul_floats_4)
{
    multiply(&call, false, 4);
}
KERNEL(matmul_floats_8)
{
    multiply(&call, false, 8);
}
