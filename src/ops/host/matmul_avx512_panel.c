/* matmul_avx512_panel.c - the product of an unpacked panel of 16 weight rows with activation rows.
 *
 * Eight activation rows at a time: eight chains of vpdpbusd hide its latency, and each vector of
 * weights is loaded once for eight uses. Each chain begins with what the offset of the weights will
 * have added, negated. Order: see matmul_avx512.h. */
#include "ops/host/matmul_avx512_panel.h"
#include "ops/host/matmul_impl.h"

#if defined(__x86_64__)

#define ROWS_LIMIT 8

/* A block of activations of several rows side by side; the first row's, the others follow at
 * row_bytes. */
struct act_cursor {
    const uint8_t *block;
    size_t row_bytes;
};

AVX512_INLINE __m512i broadcast_i32(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof(value));
    return _mm512_set1_epi32(value);
}

AVX512_INLINE __m512 broadcast_f32(const uint8_t *bytes)
{
    return _mm512_castsi512_ps(broadcast_i32(bytes));
}

#define SCALE_AT offsetof(struct host_act_block, scale)
#define SCALED_SUM_AT offsetof(struct host_act_block, scaled_sum)
#define OFFSET_128_AT offsetof(struct host_act_block, offset_128)
#define OFFSET_8_AT offsetof(struct host_act_block, offset_8)
#define FIRST_OFFSET_AT offsetof(struct host_act_block, first_half_offset_32)
#define SECOND_OFFSET_AT offsetof(struct host_act_block, second_half_offset_32)

/* Integer dot products of the quants [begin, end), in fours, with each of row_count rows. */
AVX512_INLINE void dot_rows(const struct panel_block *block, const struct act_cursor *act,
                            size_t row_count, size_t begin, size_t end, __m512i *dots)
{
    for (size_t i = begin; i < end; i++) {
        __m512i weights = _mm512_load_si512(block->levels[i]);
        for (size_t r = 0; r < row_count; r++)
            dots[r] = _mm512_dpbusd_epi32(dots[r], weights,
                                          broadcast_i32(act->block + r * act->row_bytes + 4 * i));
    }
}

/* Begins each dot product with its offset term. */
AVX512_INLINE void begin_dots(const struct act_cursor *act, size_t row_count, size_t offset_at,
                              __m512i *dots)
{
    for (size_t r = 0; r < row_count; r++)
        dots[r] = broadcast_i32(act->block + r * act->row_bytes + offset_at);
}

AVX512_INLINE void add_block(enum panel_kind kind, const struct panel_block *block,
                             const struct act_cursor *act, size_t row_count, __m512 *sums)
{
    __m512i dots[ROWS_LIMIT];
    __m512 terms[ROWS_LIMIT];
    __m512 scales = _mm512_load_ps(block->scales);
    __m512 extras = _mm512_load_ps(block->extras);
    if (kind == PANEL_HALVES) {
        begin_dots(act, row_count, FIRST_OFFSET_AT, dots);
        dot_rows(block, act, row_count, 0, 4, dots);
        for (size_t r = 0; r < row_count; r++)
            terms[r] = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[r]), scales);
        begin_dots(act, row_count, SECOND_OFFSET_AT, dots);
        dot_rows(block, act, row_count, 4, 8, dots);
        for (size_t r = 0; r < row_count; r++)
            terms[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[r]), extras, terms[r]);
    } else {
        if (kind == PANEL_MINS) {
            for (size_t r = 0; r < row_count; r++)
                dots[r] = _mm512_setzero_si512();
        } else {
            begin_dots(act, row_count, kind == PANEL_OFFSET_128 ? OFFSET_128_AT : OFFSET_8_AT,
                       dots);
        }
        dot_rows(block, act, row_count, 0, 8, dots);
        for (size_t r = 0; r < row_count; r++)
            terms[r] = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[r]), scales);
    }
    for (size_t r = 0; r < row_count; r++) {
        const uint8_t *block_of_row = act->block + r * act->row_bytes;
        sums[r] = _mm512_fmadd_ps(terms[r], broadcast_f32(block_of_row + SCALE_AT), sums[r]);
        if (kind == PANEL_MINS)
            sums[r] = _mm512_fnmadd_ps(extras, broadcast_f32(block_of_row + SCALED_SUM_AT),
                                       sums[r]);
        /* The same block of the rows after these, which are next: the second cache holds them. */
        if (row_count == ROWS_LIMIT)
            _mm_prefetch((const char *)((uintptr_t)block_of_row + ROWS_LIMIT * act->row_bytes),
                         _MM_HINT_T1);
    }
}

/* One panel and the activation rows it is to be multiplied with, the first of them at act_row. */
struct panel_job {
    const struct panel_block *panel;
    size_t block_count;
    const uint8_t *act_row;
    size_t act_row_bytes;
    float *output;
    size_t output_stride;
    __mmask16 output_mask;
    struct weight_prefetch prefetch;
};

/* The first row_count rows. */
AVX512_INLINE void multiply_rows(enum panel_kind kind, struct panel_job *job, size_t row_count)
{
    const struct panel_block *block = job->panel;
    struct weight_prefetch prefetch = job->prefetch;
    __m512 sums[ROWS_LIMIT];
    __m512 pairs[2][ROWS_LIMIT]; /* classes 0 + 1, classes 2 + 3 */
    for (size_t c = 0; c < ACT_GROUP_BLOCKS; c++) {
        struct act_cursor act = {
            .block = job->act_row + c * sizeof(struct host_act_block),
            .row_bytes = job->act_row_bytes,
        };
        for (size_t r = 0; r < row_count; r++)
            sums[r] = _mm512_setzero_ps();
        for (size_t b = c; b < job->block_count; b += ACT_GROUP_BLOCKS) {
            weight_prefetch_step(&prefetch);
            add_block(kind, block, &act, row_count, sums);
            block++;
            act.block += ACT_GROUP_BLOCKS * sizeof(struct host_act_block);
        }
        for (size_t r = 0; r < row_count; r++)
            pairs[c / 2][r] = c % 2 == 0 ? sums[r] : _mm512_add_ps(pairs[c / 2][r], sums[r]);
    }
    job->prefetch = prefetch;
    for (size_t r = 0; r < row_count; r++)
        _mm512_mask_storeu_ps(job->output + r * job->output_stride, job->output_mask,
                              _mm512_add_ps(pairs[0][r], pairs[1][r]));
}

/* One copy of the loops for each kind and number of rows: the compiler then keeps everything in
 * registers. */
#define DEFINE_MULTIPLY(name, kind)                                                                \
    AVX512 static void name(struct panel_job *job, size_t row_count)                               \
    {                                                                                              \
        switch (row_count) {                                                                       \
        case 1:                                                                                    \
            multiply_rows(kind, job, 1);                                                           \
            break;                                                                                 \
        case 2:                                                                                    \
            multiply_rows(kind, job, 2);                                                           \
            break;                                                                                 \
        case 3:                                                                                    \
            multiply_rows(kind, job, 3);                                                           \
            break;                                                                                 \
        case 4:                                                                                    \
            multiply_rows(kind, job, 4);                                                           \
            break;                                                                                 \
        case 5:                                                                                    \
            multiply_rows(kind, job, 5);                                                           \
            break;                                                                                 \
        case 6:                                                                                    \
            multiply_rows(kind, job, 6);                                                           \
            break;                                                                                 \
        case 7:                                                                                    \
            multiply_rows(kind, job, 7);                                                           \
            break;                                                                                 \
        default:                                                                                   \
            multiply_rows(kind, job, ROWS_LIMIT);                                                  \
        }                                                                                          \
    }

DEFINE_MULTIPLY(multiply_offset_128, PANEL_OFFSET_128)
DEFINE_MULTIPLY(multiply_offset_8, PANEL_OFFSET_8)
DEFINE_MULTIPLY(multiply_mins, PANEL_MINS)
DEFINE_MULTIPLY(multiply_halves, PANEL_HALVES)

typedef void (*multiply_function)(struct panel_job *job, size_t row_count);

static const multiply_function multiply_functions[] = {
    [PANEL_OFFSET_128] = multiply_offset_128,
    [PANEL_OFFSET_8] = multiply_offset_8,
    [PANEL_MINS] = multiply_mins,
    [PANEL_HALVES] = multiply_halves,
};

AVX512 void panel_matmul(const struct host_matmul_task *task, panel_unpack_function unpack,
                         enum panel_kind kind)
{
    struct panel_block *panel = (struct panel_block *)(void *)task->scratch;
    multiply_function multiply = multiply_functions[kind];
    size_t block_count = task->k / ACT_BLOCK;
    size_t calls = (task->activation_rows + ROWS_LIMIT - 1) / ROWS_LIMIT;
    if (task->activation_rows == 0)
        return;
    for (size_t o = 0; o < task->weight_rows; o += PANEL_ROWS) {
        const uint8_t *rows[PANEL_ROWS];
        for (size_t r = 0; r < PANEL_ROWS; r++)
            rows[r] = weight_row_clamped(task, o + r);
        unpack(rows, task->k, panel);
        struct panel_job job = {
            .panel = panel,
            .block_count = block_count,
            .act_row_bytes = task->activation_row_bytes,
            .output_stride = task->output_stride,
            .output_mask = (__mmask16)((1u << smaller(task->weight_rows - o, PANEL_ROWS)) - 1),
            .prefetch = weight_prefetch_begin(task, o + PANEL_ROWS, calls * block_count),
        };
        for (size_t a = 0; a < task->activation_rows; a += ROWS_LIMIT) {
            size_t count = smaller(ROWS_LIMIT, task->activation_rows - a);
            job.act_row = task->activations + a * task->activation_row_bytes;
            job.output = task->output + a * task->output_stride + o;
            multiply(&job, count);
        }
    }
}

#endif
