/* matmul_one.c - products of weights with one row of activations: decoding one sequence.
 *
 * A team owns a slice of columns, keeps their activations in registers for the whole kernel, and
 * takes its slice of one row of weights after the other; the teams of a row (words[1] of them) each
 * have a slice. Weights come through a ring of the team's own in shared memory, 16 bytes a lane:
 * what is on its way takes no registers. It is asked for before the kernel that makes the
 * activations has ended, as much as the ring holds: weights do not change. A block is small enough
 * that the next kernel's block fits beside it, and fills its ring while this one still computes.
 *
 * A block does neighbouring rows. What its teams sum up for each of them lies in shared memory
 * until all are done; so nobody waits for anybody on the way.
 *
 * Order of a sum: a lane adds its units in increasing order, the lanes are added by halves, then
 * the slices in increasing order. It depends on the type and k alone.
 *
 * Operands: packed, three weights, three biases, three outputs. words[0]: bytes of a team's ring.
 * words[6]: where in shared memory the row is normalised (matmul_one_norm.h), or 0; there are no
 * biases then. */
#include "ops/gpu/kernels/decode.h"
#include "ops/gpu/kernels/matmul_one_norm.h"
#include "ops/gpu/tiling.h"

/* In the place of a type: whatever each part has, of those packed as levels. */
#define ONE_ANY DTYPE_COUNT

/* A lane's activations. Levels: 64 columns, and of the blocks they are in {scale, scaled sum} or
 * scales; for Q6_K also what 32 too much in each weight amounts to. Floats: 32 of them. */
struct one_acts {
    words4 words[8];
    floats4 scales;
    int32_t excess[4];
};

/* What a team does. */
struct one_work {
    const struct gpu_call *call;
    const uint8_t *packed;    /* the row, in whatever memory */
    uint32_t members, member; /* teams of a row, and which of them this is */
    uint32_t slots;           /* groups of rows that the block does at once */
    uint32_t first, end;      /* groups of the block, counted over all parts */
    uint32_t counts[3];       /* groups of each part */
    SHARED uint8_t *ring;
    SHARED float *sums; /* [groups of the block][ONE_ROWS_MOST][members] */
};

/* ---- Weights to the ring -------------------------------------------------------------------- */

INLINE uint32_t one_part(const struct one_work *work, uint32_t group, uint32_t *ret_before)
{
    uint32_t two = work->counts[0] + work->counts[1];
    *ret_before = group < work->counts[0] ? 0 : group < two ? work->counts[0] : two;
    return group < work->counts[0] ? 0 : group < two ? 1 : 2;
}

INLINE void one_fetch(const struct one_work *work, uint32_t dtype, uint32_t group,
                      SHARED uint8_t *stage)
{
    uint32_t before, part = one_part(work, group, &before);
    const struct gpu_operand *weights = &work->call->operands[1 + part];
    if (dtype == ONE_ANY)
        dtype = weights->dtype;
    const uint32_t slice = one_slice_bytes(dtype), rows = one_rows(dtype);
    uint32_t skipped = work->member * slice, lane_at = lane_index() * 16;
    uint32_t row_bytes = (uint32_t)weights->width / 256 * (slice / (one_columns(dtype) / 256));
    uint32_t there = row_bytes - skipped;
    uint32_t row = (group - before) * rows;
    const GLOBAL uint8_t *source = row_at(weights, row) + skipped + lane_at;
    /* A row that is not there is read as the one before. */
    uint64_t stride = row + 1 < weights->rows ? weights->row_stride_bytes : 0;
    SHARED uint8_t *target = stage + lane_at;
    UNROLL
    for (uint32_t r = 0; r < ONE_ROWS_MOST; r++) {
        if (r >= rows)
            break;
        UNROLL
        for (uint32_t i = 0; i < ONE_SLICE_MOST; i += TEAM * 16)
            if (i < slice && i + lane_at < slice && i + lane_at < there)
                copy_async(target + r * slice + i, source + r * stride + i);
    }
}

/* Asks for what the next product's block of this number reads once its ring is full: where this
 * kernel's own weights are few, memory has nothing to do while their activations are made.
 * words[2]: bytes; words[3]: groups of the ring; words[4]: groups in all; words[5]: rows of a
 * group. Operands 10, 11: the next weights. */
INLINE void one_ask_ahead(const struct gpu_call *call)
{
    if (call->words[2] == 0)
        return;
    const struct gpu_operand *weights = &call->operands[10];
    uint32_t first = (uint32_t)((uint64_t)call->words[4] * block_x() / block_count_x());
    uint32_t end = (uint32_t)((uint64_t)call->words[4] * (block_x() + 1) / block_count_x());
    uint32_t group = first + call->words[3];
    uint32_t in_first = ((uint32_t)weights->rows + call->words[5] - 1) / call->words[5];
    if (group >= end)
        return;
    if (group >= in_first) {
        group -= in_first;
        weights = &call->operands[11];
    }
    uint64_t row = (uint64_t)group * call->words[5];
    if (!weights->address || row >= weights->rows)
        return;
    uint64_t left = (weights->rows - row) * weights->row_stride_bytes;
    uint32_t bytes = left < call->words[2] ? (uint32_t)left : call->words[2];
    const GLOBAL uint8_t *at = row_at(weights, row);
    for (uint32_t i = thread_index() * CACHE_LINE; i < bytes; i += thread_count() * CACHE_LINE)
        ask_line(at + i);
}

/* ---- Activations to registers --------------------------------------------------------------- */

INLINE words4 one_words(const uint8_t *at)
{
    return *(const words4 *)(const void *)at;
}

INLINE void one_load_acts(const struct one_work *work, uint32_t dtype, struct one_acts *acts)
{
    const uint8_t *row = work->packed;
    uint32_t k = (uint32_t)(work->call->operands[1].width | work->call->operands[2].width |
                            work->call->operands[3].width);
    uint32_t lane = lane_index(), column = work->member * one_columns(dtype);
    if (dtype == DTYPE_BF16 || dtype == DTYPE_F16) {
        UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            uint32_t at = column + 256 * j + 8 * lane;
            at = at < k ? at : 0;
            acts->words[2 * j] = one_words(row + 4 * at);
            acts->words[2 * j + 1] = one_words(row + 4 * at + 16);
        }
        return;
    }
    column += 64 * lane;
    column = column < k ? column : 0; /* a lane without weights reads the first */
    const float *scales = (const float *)(const void *)(row + k) + column / 32 * 2;
    if (dtype == DTYPE_Q4_K) {
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            acts->words[j] = one_words(row + column + 16 * j);
        acts->scales = *(const floats4 *)(const void *)scales;
        acts->scales[2] *= 0.0625f; /* upper nibbles are taken sixteenfold */
    } else if (dtype == DTYPE_Q8_0_X8) {
        /* Lanes of an odd pair take the second block first: no two read one bank. */
        uint32_t other = lane & 2;
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            acts->words[j] = one_words(row + column + 16 * (j ^ other));
        acts->scales[0] = scales[other];
        acts->scales[1] = scales[other ^ 2];
    } else {
        uint32_t side = lane % 2;
        column -= 64 * side;
        scales -= 4 * side;
        UNROLL
        for (uint32_t g = 0; g < 4; g++) {
            acts->words[g] = one_words(row + column + 32 * g + 16 * side);
            acts->scales[g] = scales[2 * g];
            int32_t sum = 0;
            UNROLL
            for (uint32_t i = 0; i < 4; i++)
                sum = dot4(0x01010101u, acts->words[g][i], sum);
            acts->excess[g] = -32 * sum;
        }
    }
}

/* ---- A slice of a row ----------------------------------------------------------------------- */

INLINE words4 one_shared(const SHARED uint8_t *at)
{
    return *(const SHARED words4 *)at;
}

/* Four lanes for each block, 32 columns of two groups for each lane. */
INLINE float one_dot_q4_k(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = lane_index(), p = lane % 4, odd = 2 * (p % 2);
    const SHARED uint8_t *block = row + 144 * (lane / 4);
    words4 head = one_shared(block);
    words4 nibbles[2] = { one_shared(block + 16 + 32 * p), one_shared(block + 32 + 32 * p) };
    int32_t low = 0, high = 0;
    UNROLL
    for (uint32_t j = 0; j < 2; j++) {
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            low = dot4(nibbles[j][i] & 0x0F0F0F0Fu, acts->words[j][i], low);
            high = dot4_upper(nibbles[j][i], acts->words[2 + j][i], high);
        }
    }
    /* Bytes: two scales, two mins. Neighbouring lanes have different p: masks instead of a choice
     * keep them together. */
    uint32_t from = byte_selector(odd, odd + 1, odd + 4, odd + 5);
    uint32_t front = p < 2 ? 0xFFFFFFFFu : 0;
    uint32_t a = pick_bytes(head[1], head[2], from);
    uint32_t c = pick_bytes(head[3], head[3] >> 4, from);
    uint32_t bytes = (a & front & 0x3F3F3F3Fu) |
                     (~front & ((c & 0x0F0F0F0Fu) | (a >> 2 & 0x30303030u)));
    float d = f16_value((uint16_t)head[0]), dmin = f16_value((uint16_t)(head[0] >> 16));
    float sum = acts->scales[0] * (float)(bytes & 255u) * (float)low;
    sum = __builtin_fmaf(acts->scales[2] * (float)(bytes >> 8 & 255u), (float)high, sum);
    float min = acts->scales[1] * (float)(bytes >> 16 & 255u);
    min = __builtin_fmaf(acts->scales[3], (float)(bytes >> 24), min);
    return __builtin_fmaf(d, sum, -(dmin * min));
}

/* Eight blocks side by side: 1024 bytes of nibbles, 512 of upper bits, 128 of scales, 16 of d. Four
 * lanes for each block, sixteen columns of four groups for each lane. */
INLINE float one_dot_q6_k(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = lane_index(), block = lane / 4, half = lane % 4 / 2, side = lane % 2;
    const SHARED uint8_t *nibbles = row + 128 * block + 64 * half + 16 * side;
    words4 low[2] = { one_shared(nibbles), one_shared(nibbles + 32) };
    words4 top = one_shared(row + 1024 + 64 * block + 32 * half + 16 * side);
    words2 scales = *(const SHARED words2 *)(row + 1536 + 16 * block + 8 * half);
    float d = f16_value(*(const SHARED uint16_t *)(row + 1664 + 2 * block));
    float sum = 0;
    UNROLL
    for (uint32_t g = 0; g < 4; g++) {
        int32_t scale = (int8_t)(scales[g / 2] >> (8 * side + 16 * (g % 2)));
        int32_t dot = acts->excess[g];
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t level = low[g % 2][i] >> (4 * (g / 2)) & 0x0F0F0F0Fu;
            uint32_t bits = g == 0 ? top[i] << 4 : g == 1 ? top[i] << 2 : top[i] >> (2 * (g - 2));
            dot = dot4(level | (bits & 0x30303030u), acts->words[g][i], dot);
        }
        sum = __builtin_fmaf(acts->scales[g], (float)(scale * dot), sum);
    }
    return d * sum;
}

/* Eight times 256 levels and their eight scales. Four lanes for each, two blocks for each lane. */
INLINE float one_dot_q8_0(const SHARED uint8_t *row, const struct one_acts *acts)
{
    uint32_t lane = lane_index(), q = lane % 4, other = lane & 2;
    const SHARED uint8_t *block = row + 272 * (lane / 4);
    const SHARED uint16_t *d = (const SHARED uint16_t *)(block + 256) + 2 * q;
    int32_t dots[2] = { 0, 0 };
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        words4 levels = one_shared(block + 64 * q + 16 * (j ^ other));
        UNROLL
        for (uint32_t i = 0; i < 4; i++)
            dots[j / 2] = dot4(levels[i], acts->words[j][i], dots[j / 2]);
    }
    float sum = f16_value(d[other / 2]) * acts->scales[0] * (float)dots[0];
    return __builtin_fmaf(f16_value(d[other / 2 ^ 1]) * acts->scales[1], (float)dots[1], sum);
}

/* left: columns of the slice. */
INLINE float one_dot_halves(const SHARED uint8_t *row, bool is_f16, uint32_t left,
                            const struct one_acts *acts)
{
    float sums[2] = { 0, 0 };
    UNROLL
    for (uint32_t j = 0; j < 4; j++) {
        words4 words = one_shared(row + 512 * j + 16 * lane_index());
        if (256 * j >= left)
            words = (words4){ 0, 0, 0, 0 };
        UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float low = is_f16 ? f16_value((uint16_t)words[i]) : float_of(words[i] << 16);
            float high = is_f16 ? f16_value((uint16_t)(words[i] >> 16))
                                : float_of(words[i] & 0xFFFF0000u);
            words4 acts_now = acts->words[2 * j + i / 2];
            sums[0] = __builtin_fmaf(low, float_of(acts_now[2 * (i % 2)]), sums[0]);
            sums[1] = __builtin_fmaf(high, float_of(acts_now[2 * (i % 2) + 1]), sums[1]);
        }
    }
    return sums[0] + sums[1];
}

/* left: columns of the slice that are there. */
INLINE float one_dot(uint32_t dtype, const SHARED uint8_t *row, uint32_t left,
                     const struct one_acts *acts)
{
    if (dtype == DTYPE_BF16 || dtype == DTYPE_F16)
        return one_dot_halves(row, dtype == DTYPE_F16, left, acts);
    float dot = dtype == DTYPE_Q4_K      ? one_dot_q4_k(row, acts)
                : dtype == DTYPE_Q8_0_X8 ? one_dot_q8_0(row, acts)
                                         : one_dot_q6_k(row, acts);
    return 64 * lane_index() < left ? dot : 0.0f;
}

/* ---- The kernel ----------------------------------------------------------------------------- */

/* Groups whose sums a lane keeps until they are added up together. With code for every type, more
 * than one would not fit the registers. */
#define ONE_KEPT_MOST 4u
#define ONE_SUMS (ONE_KEPT_MOST * ONE_ROWS_MOST)
INLINE uint32_t one_kept(uint32_t dtype)
{
    return dtype == ONE_ANY ? 1 : ONE_KEPT_MOST;
}

/* Multiplies the slices of a group's rows, which are in the stage. */
INLINE void one_add(const struct one_work *work, uint32_t dtype, const SHARED uint8_t *stage,
                    uint32_t k, const struct one_acts *acts, float sums[ONE_ROWS_MOST])
{
    uint32_t left = k - work->member * one_columns(dtype);
    UNROLL
    for (uint32_t r = 0; r < one_rows(dtype); r++)
        sums[r] = one_dot(dtype, stage + r * one_slice_bytes(dtype), left, acts);
}

/* A lane keeps half of its rows, gives the other half away and adds what it is given. */
INLINE void one_fold(float sums[ONE_SUMS], uint32_t half, uint32_t bit)
{
    bool upper = lane_index() & bit;
    UNROLL
    for (uint32_t i = 0; i < half; i++) {
        float low = sums[i], high = sums[half + i];
        sums[i] = (upper ? high : low) + team_swap_float(upper ? low : high, bit);
    }
}

/* The lanes' sums of 2, 4 or 8 rows: lanes TEAM / rows * n end with row n. */
INLINE float one_add_lanes(float sums[ONE_SUMS], uint32_t rows)
{
    if (rows == 2) {
        one_fold(sums, 1, 16);
        return team_sum(sums[0], 16);
    }
    if (rows == 8) {
        one_fold(sums, 4, 16);
        one_fold(sums, 2, 8);
        one_fold(sums, 1, 4);
        return team_sum(sums[0], 4);
    }
    one_fold(sums, 2, 16);
    one_fold(sums, 1, 8);
    return team_sum(sums[0], 8);
}

/* Stores the sums of the groups from `group` on, `slots` apart. together: rows of a group that are
 * in `sums`, one behind the other. */
INLINE void one_keep(const struct one_work *work, uint32_t group, uint32_t rows, uint32_t together,
                     float sums[ONE_SUMS])
{
    uint32_t lanes = TEAM / rows;
    float sum = one_add_lanes(sums, rows);
    uint32_t n = lane_index() / lanes, place = group + n / together * work->slots;
    if (lane_index() % lanes == 0 && place < work->end)
        work->sums[((place - work->first) * ONE_ROWS_MOST + n % together) * work->members +
                   work->member] = sum;
}

/* Adds up the slices of all rows of the block. */
INLINE void one_finish(const struct one_work *work, uint32_t dtype)
{
    uint32_t count = (work->end - work->first) * ONE_ROWS_MOST;
    for (uint32_t i = thread_index(); i < count; i += thread_count()) {
        uint32_t before, group = work->first + i / ONE_ROWS_MOST, r = i % ONE_ROWS_MOST;
        uint32_t part = one_part(work, group, &before);
        const struct gpu_operand *bias = &work->call->operands[4 + part];
        bool biased = bias->address && work->call->words[6] == 0;
        const struct gpu_operand *out = &work->call->operands[7 + part];
        uint32_t rows = one_rows(dtype == ONE_ANY ? work->call->operands[1 + part].dtype : dtype);
        uint32_t row = (group - before) * rows + r;
        if (r >= rows || row >= out->width)
            continue;
        float sum = 0;
        for (uint32_t m = 0; m < work->members; m++)
            sum += work->sums[i * work->members + m];
        row_f32(out, 0)[row] = biased ? sum + row_f32(bias, 0)[row] : sum;
    }
}

/* The same where the type may be that of the group's part: loaded says for which type acts are. */
INLINE void one_add_any(const struct one_work *work, uint32_t dtype, uint32_t group,
                        const SHARED uint8_t *stage, uint32_t k, uint32_t *loaded,
                        struct one_acts *acts, float sums[ONE_ROWS_MOST])
{
    if (dtype != ONE_ANY) {
        one_add(work, dtype, stage, k, acts, sums);
        return;
    }
    uint32_t before, found = work->call->operands[1 + one_part(work, group, &before)].dtype;
    if (found != *loaded)
        one_load_acts(work, found, acts);
    *loaded = found;
    if (found == DTYPE_Q4_K)
        one_add(work, DTYPE_Q4_K, stage, k, acts, sums);
    else if (found == DTYPE_Q6_K_X8)
        one_add(work, DTYPE_Q6_K_X8, stage, k, acts, sums);
    else
        one_add(work, DTYPE_Q8_0_X8, stage, k, acts, sums);
}

INLINE void one_multiply(const struct gpu_call *call, uint32_t dtype)
{
    uint32_t teams = thread_count() / TEAM;
    struct one_work work = { .call = call,
                             .packed = (const uint8_t *)row_at(&call->operands[0], 0),
                             .members = call->words[1],
                             .member = team_index() % call->words[1],
                             .slots = teams / call->words[1],
                             .ring = shared_memory() + team_index() * call->words[0],
                             .sums = (SHARED float *)(shared_memory() + teams * call->words[0]) };
    early_allow();
    uint32_t count = 0, k = 0;
    UNROLL
    for (uint32_t part = 0; part < 3; part++) {
        const struct gpu_operand *weights = &call->operands[1 + part];
        uint32_t rows = one_rows(dtype == ONE_ANY ? weights->dtype : dtype);
        work.counts[part] = weights->address ? ((uint32_t)weights->rows + rows - 1) / rows : 0;
        count += work.counts[part];
        k |= (uint32_t)weights->width; /* the same for every part; some may be absent */
    }
    work.first = (uint32_t)((uint64_t)count * block_x() / block_count_x());
    work.end = (uint32_t)((uint64_t)count * (block_x() + 1) / block_count_x());
    const uint32_t stage_bytes = call->words[0] / ONE_STAGES;
    uint32_t now = work.first + team_index() / work.members, ahead = now;
    SHARED uint8_t *empty = work.ring;
    UNROLL
    for (uint32_t s = 0; s < ONE_STAGES - 1; s++, ahead += work.slots, empty += stage_bytes) {
        if (ahead < work.end)
            one_fetch(&work, dtype, ahead, empty);
        copy_commit();
    }
    one_ask_ahead(call);
    struct one_norm norm;
    bool normalises = call->words[6] != 0;
    if (normalises)
        one_norm_begin(call, &norm);
    early_wait();
    leave_crumbs(call);
    if (normalises) {
        SHARED uint8_t *memory = shared_memory() + call->words[6];
        one_norm_end(call, &norm, memory);
        work.packed = (const uint8_t *)(memory + TEAM * sizeof(float) + 16);
    }
    struct one_acts acts;
    uint32_t loaded = dtype;
    if (dtype == ONE_ANY) {
        uint32_t before;
        loaded = call->operands[1 + one_part(&work, now < count ? now : 0, &before)].dtype;
    }
    one_load_acts(&work, loaded, &acts);
    SHARED uint8_t *full = work.ring, *behind = work.ring + call->words[0];
    while (now < work.end) {
        uint32_t group = now;
        const uint32_t together = dtype == ONE_ANY ? ONE_ROWS_MOST : one_rows(dtype);
        float sums[ONE_SUMS];
        UNROLL
        for (uint32_t n = 0; n < ONE_SUMS; n++)
            sums[n] = 0;
        UNROLL
        for (uint32_t n = 0; n < one_kept(dtype); n++) {
            if (now < work.end) {
                copy_wait(ONE_STAGES - 2);
                team_sync();
                if (ahead < work.end)
                    one_fetch(&work, dtype, ahead, empty);
                copy_commit();
                one_add_any(&work, dtype, now, full, k, &loaded, &acts, sums + n * together);
                empty = full;
                full = full + stage_bytes < behind ? full + stage_bytes : work.ring;
                now += work.slots;
                ahead += work.slots;
            }
        }
        one_keep(&work, group, one_kept(dtype) * together, together, sums);
    }
    block_sync();
    one_finish(&work, dtype);
}

KERNEL(matmul_one_q4_k)
{
    one_multiply(&call, DTYPE_Q4_K);
}
KERNEL(matmul_one_q6_k)
{
    one_multiply(&call, DTYPE_Q6_K_X8);
}
KERNEL(matmul_one_q8_0)
{
    one_multiply(&call, DTYPE_Q8_0_X8);
}
KERNEL(matmul_one_levels)
{
    one_multiply(&call, ONE_ANY);
}
KERNEL(matmul_one_bf16)
{
    one_multiply(&call, DTYPE_BF16);
}
KERNEL(matmul_one_f16)
{
    one_multiply(&call, DTYPE_F16);
}
