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

/* What one unit is multiplied with, of one token: levels or floats, and scales of blocks of 32. */
struct acts {
    words4 words[4];
    floats4 scales;
};

/* at: weight that the units of the whole team begin with. A lane that has none reads the first: a
 * load under a condition would take more registers. */
INLINE void load_acts(uint32_t dtype, const struct inputs *inputs, uint32_t t, uint32_t at,
                      struct acts *acts)
{
    const GLOBAL uint8_t *row = inputs->acts[t], *scales = row + inputs->k;
    uint32_t lane = lane_index();
    if (at + lane * unit_weights(dtype) >= inputs->k)
        at = lane = 0;
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K) {
        at += 256 * (lane / 8) + 64 * (lane % 8 / 2);
        acts->words[0] = *(const GLOBAL words4 *)(row + at + 16 * (lane % 2));
        acts->words[1] = *(const GLOBAL words4 *)(row + at + 32 + 16 * (lane % 2));
        acts->scales = *(const GLOBAL floats4 *)(scales + at / 32 * 8); /* with their sums */
    } else if (dtype == DTYPE_Q6_K_X8) {
        at += 128 * (lane / 2);
        UNROLL
        for (uint32_t g = 0; g < 4; g++) {
            acts->words[g] = *(const GLOBAL words4 *)(row + at + 32 * g + 16 * (lane % 2));
            acts->scales[g] = *(const GLOBAL float *)(scales + (at / 32 + g) * 8);
        }
    } else if (dtype == DTYPE_Q8_0_X8) {
        at += 16 * lane;
        acts->words[0] = *(const GLOBAL words4 *)(row + at);
        acts->scales[0] = *(const GLOBAL float *)(scales + at / 32 * 8);
    } else if (dtype == DTYPE_F32) {
        acts->words[0] = *(const GLOBAL words4 *)(row + 4 * (at + 4 * lane));
    } else {
        acts->words[0] = *(const GLOBAL words4 *)(row + 4 * (at + 8 * lane));
        acts->words[1] = *(const GLOBAL words4 *)(row + 4 * (at + 8 * lane) + 16);
    }
}

/* Scales and mins of groups 2 p and 2 p + 1 of a K block, in the bytes of two words. Neighbouring
 * lanes have different p: masks instead of a choice keep them together. */
INLINE void unpack_scales(words4 head, uint32_t p, uint32_t *scales, uint32_t *mins)
{
    uint32_t first_half = p < 2 ? 0xFFFFFFFFu : 0;
    uint32_t whole = first_half & 0x3F3Fu, low = ~first_half & 0x0F0Fu, top = ~first_half & 0x3030u;
    uint32_t shift = 16 * (p & 1);
    uint32_t a = head[1] >> shift, b = head[2] >> shift, c = head[3] >> shift;
    *scales = (a & whole) | (c & low) | (a >> 2 & top);
    *mins = (b & whole) | (c >> 4 & low) | (b >> 2 & top);
}

/* Q4_K and Q5_K: 16 weights each of two neighbouring groups. */
INLINE float dot_k(const struct unit *unit, bool fifth, const struct acts *acts)
{
    uint32_t s = lane_index() % 8, p = s / 2, half = s % 2;
    uint32_t scales, mins;
    int32_t dot_low = 0, dot_high = 0;
    unpack_scales(unit->bytes[0], p, &scales, &mins);
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t low = unit->bytes[1][i] & 0x0F0F0F0Fu;
        uint32_t high = unit->bytes[1][i] >> 4 & 0x0F0F0F0Fu;
        if (fifth) {
            low |= (unit->bytes[2][i] >> (2 * p) & 0x01010101u) << 4;
            high |= (unit->bytes[2][i] >> (2 * p + 1) & 0x01010101u) << 4;
        }
        dot_low = dot4(low, acts->words[0][i], dot_low);
        dot_high = dot4(high, acts->words[1][i], dot_high);
    }
    uint32_t head = unit->bytes[0][0];
    float d = f16_value((uint16_t)head), dmin = f16_value((uint16_t)(head >> 16));
    float min = dmin * (float)(int32_t)(mins >> (8 * half) & 255u);
    float scaled = acts->scales[0] * (float)((int32_t)(scales & 255u) * dot_low);
    scaled = __builtin_fmaf(acts->scales[2], (float)((int32_t)(scales >> 8) * dot_high), scaled);
    return __builtin_fmaf(d, scaled, -min * (half ? acts->scales[3] : acts->scales[1]));
}

/* Q6_K: 16 weights each of four groups of 32. */
INLINE float dot_q6_k(const struct unit *unit, const struct acts *acts)
{
    uint32_t side = lane_index() % 2;
    float sum = 0;
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        int32_t scale = (int8_t)(unit->scales[g / 2] >> (8 * (2 * (g % 2) + side)));
        int32_t dot = 0;
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t low = unit->bytes[g % 2][i] >> (4 * (g / 2)) & 0x0F0F0F0Fu;
            uint32_t top = unit->bytes[2][i];
            top = (g == 0 ? top << 4 : g == 1 ? top << 2 : g == 2 ? top : top >> 2) & 0x30303030u;
            /* minus 32 in each byte */
            dot = dot4(((low | top) + 0x60606060u) ^ 0x80808080u, acts->words[g][i], dot);
        }
        sum = __builtin_fmaf(acts->scales[g], (float)(scale * dot), sum);
    }
    return f16_value((uint16_t)unit->d) * sum;
}

/* Q8_0: 16 weights of a block of 32. */
INLINE float dot_q8_0(const struct unit *unit, const struct acts *acts)
{
    int32_t dot = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        dot = dot4(unit->bytes[0][i], acts->words[0][i], dot);
    return f16_value((uint16_t)unit->d) * acts->scales[0] * (float)dot;
}

/* F16 and BF16: eight weights. */
INLINE float dot_halves(const struct unit *unit, bool is_f16, const struct acts *acts)
{
    float sum = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t word = unit->bytes[0][i];
        float low = is_f16 ? f16_value((uint16_t)word) : float_of(word << 16);
        float high = is_f16 ? f16_value((uint16_t)(word >> 16)) : float_of(word & 0xFFFF0000u);
        sum = __builtin_fmaf(low, float_of(acts->words[i / 2][2 * (i % 2)]), sum);
        sum = __builtin_fmaf(high, float_of(acts->words[i / 2][2 * (i % 2) + 1]), sum);
    }
    return sum;
}

INLINE float dot_f32(const struct unit *unit, const struct acts *acts)
{
    float sum = 0;
    UNROLL
    for (uint32_t i = 0; i < 4; i++)
        sum = __builtin_fmaf(float_of(unit->bytes[0][i]), float_of(acts->words[0][i]), sum);
    return sum;
}

INLINE float dot_unit(uint32_t dtype, const struct unit *unit, const struct acts *acts)
{
    if (dtype == DTYPE_Q4_K || dtype == DTYPE_Q5_K)
        return dot_k(unit, dtype == DTYPE_Q5_K, acts);
    if (dtype == DTYPE_Q6_K_X8)
        return dot_q6_k(unit, acts);
    if (dtype == DTYPE_Q8_0_X8)
        return dot_q8_0(unit, acts);
    return dtype == DTYPE_F32 ? dot_f32(unit, acts) : dot_halves(unit, dtype == DTYPE_F16, acts);
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
        at += TEAM * unit_weights(dtype);
    }
}

/* Multiplies the chunk that is in the stage. first: activations of the only token, if it is one. */
INLINE void add_chunk(uint32_t dtype, const SHARED uint8_t *stage, uint32_t at,
                      const struct inputs *inputs, const struct acts first[JOB_MOST],
                      uint32_t tokens, float sums[ROWS][TOKENS_MOST])
{
    const uint32_t bytes = job_of(dtype) * team_bytes(dtype);
    const SHARED uint8_t *mine = stage + lane_bytes(dtype);
    UNROLL
    for (uint32_t j = 0; j < job_of(dtype); j++, at += TEAM * unit_weights(dtype)) {
        bool there = has_unit(dtype, at, inputs->k);
        struct unit units[ROWS];
        if (tokens > 1 && !there)
            continue; /* at the end of a row: so are all that come */
        UNROLL
        for (uint32_t r = 0; r < ROWS; r++)
            load_unit(dtype, mine + r * bytes + j * team_bytes(dtype), &units[r]);
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
        struct acts acts[JOB_MOST];
        if (tokens == 1)
            load_chunk_acts(dtype, &inputs, now.at, acts);
        copy_wait(MATMUL_STAGES - 2);
        team_sync();
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
