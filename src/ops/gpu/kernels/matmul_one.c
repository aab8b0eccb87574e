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
 */
#include "ops/gpu/kernels/decode.h"
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

/* ---- Activations to registers --------------------------------------------------------------- */

INLINE words4 one_words(const GLOBAL uint8_t *at)
{
    return *(const GLOBAL words4 *)at;
}

INLINE void one_load_acts(const struct one_work *work, uint32_t dtype, struct one_acts *acts)
{
    const struct gpu_operand *packed = &work->call->operands[0];
    const GLOBAL uint8_t *row = row_at(packed, 0);
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
    const GLOBAL float *scales = (const GLOBAL float *)(row + k) + column / 32 * 2;
    if (dtype == DTYPE_Q4_K) {
        UNROLL
        for (uint32_t j = 0; j < 4; j++)
            acts->words[j] = one_words(row + column + 16 * j);
        acts->scales = *(const GLOBAL floats4 *)scales;
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

/* Multiplies the slices of the group's rows, which are in the stage. */
INLINE void one_add(const struct one_work *work, uint32_t dtype, uint32_t group,
                    const SHARED uint8_t *stage, uint32_t k, const struct one_acts *acts)
{
    uint32_t left = k - work->member * one_columns(dtype);
    SHARED float *sums = work->sums + (group - work->first) * ONE_ROWS_MOST * work->members;
    float sum = one_dot(dtype, stage, left, acts);
    if (one_rows(dtype) == 1) {
        sum = team_sum(sum, TEAM);
        if (lane_index() == 0)
            sums[work->member] = sum;
        return;
    }
    /* The lower half of the lanes adds up the first row, the upper half the second. */
    float second = one_dot(dtype, stage + one_slice_bytes(dtype), left, acts);
    bool upper = lane_index() >= TEAM / 2;
    float given = upper ? sum : second;
    sum = (upper ? second : sum) + team_swap_float(given, TEAM / 2);
    sum = team_sum(sum, TEAM / 2);
    if (lane_index() % (TEAM / 2) == 0)
        sums[(upper ? work->members : 0) + work->member] = sum;
}

/* Adds up the slices of all rows of the block. */
INLINE void one_finish(const struct one_work *work, uint32_t dtype)
{
    uint32_t count = (work->end - work->first) * ONE_ROWS_MOST;
    for (uint32_t i = thread_index(); i < count; i += thread_count()) {
        uint32_t before, group = work->first + i / ONE_ROWS_MOST, r = i % ONE_ROWS_MOST;
        uint32_t part = one_part(work, group, &before);
        const struct gpu_operand *bias = &work->call->operands[4 + part];
        const struct gpu_operand *out = &work->call->operands[7 + part];
        uint32_t rows = one_rows(dtype == ONE_ANY ? work->call->operands[1 + part].dtype : dtype);
        uint32_t row = (group - before) * rows + r;
        if (r >= rows || row >= out->width)
            continue;
        float sum = 0;
        for (uint32_t m = 0; m < work->members; m++)
            sum += work->sums[i * work->members + m];
        row_f32(out, 0)[row] = bias->address ? sum + row_f32(bias, 0)[row] : sum;
    }
}

INLINE void one_multiply(const struct gpu_call *call, uint32_t dtype)
{
    uint32_t teams = thread_count() / TEAM;
    struct one_work work = { .call = call,
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
    early_wait();
    leave_crumbs(call);
    struct one_acts acts;
    uint32_t loaded = dtype;
    if (dtype == ONE_ANY) {
        uint32_t before;
        loaded = call->operands[1 + one_part(&work, now < count ? now : 0, &before)].dtype;
    }
    one_load_acts(&work, loaded, &acts);
    SHARED uint8_t *full = work.ring, *behind = work.ring + call->words[0];
    for (; now < work.end; now += work.slots, ahead += work.slots) {
        copy_wait(ONE_STAGES - 2);
        team_sync();
        if (ahead < work.end)
            one_fetch(&work, dtype, ahead, empty);
        copy_commit();
        if (dtype == ONE_ANY) {
            uint32_t before, found = call->operands[1 + one_part(&work, now, &before)].dtype;
            if (found != loaded)
                one_load_acts(&work, found, &acts);
            loaded = found;
            if (found == DTYPE_Q4_K)
                one_add(&work, DTYPE_Q4_K, now, full, k, &acts);
            else if (found == DTYPE_Q6_K_X8)
                one_add(&work, DTYPE_Q6_K_X8, now, full, k, &acts);
            else
                one_add(&work, DTYPE_Q8_0_X8, now, full, k, &acts);
        } else {
            one_add(&work, dtype, now, full, k, &acts);
        }
        empty = full;
        full = full + stage_bytes < behind ? full + stage_bytes : work.ring;
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
