/* matmul_avx512_float.c - F32, F16, BF16 and everything decoded to f32, on AVX-512.
 *
 * Order. Two vectors of 16 f32 accumulators take turns.
 *   f32 (F32, F16 and decoded weights): vector v, lane l takes k = 16 v + l, then + 32, + 64, ...,
 *       each by one fused multiply-add; activations are f32.
 *   bf16: vector v, lane l takes the pairs k = 32 v + 2 l and the next, then + 64, ..., by one
 *       vdpbf16ps each (its own rounding, subnormals as zero); activations are rounded to bf16.
 * Where k ends inside a step, the rest of both vectors takes zeros. Then the vectors are added, and
 * lanes l and l + 8, l + 4, l + 2, l + 1.
 *
 * Few rows: one weight row after the other, in place; if the activations are too many to stay in
 * the first cache, tiles of 4 rows, so that each load of them serves four times. Many rows:
 * matmul_avx512_float_many.c. */
#include "ops/host/matmul_avx512_float.h"

#if defined(__x86_64__)

#include "tensor/quant.h"

/* 16 weights from index k on, of which count exist. */
AVX512_INLINE __m512 load_part(enum float_source source, const uint8_t *row, size_t k, size_t count)
{
    __mmask16 mask = (__mmask16)(count >= 16 ? 0xFFFFu : (1u << count) - 1);
    if (source == FLOAT_F16)
        return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, row + 2 * k));
    return _mm512_maskz_loadu_ps(mask, row + 4 * k);
}

AVX512_INLINE __m512 load_whole(enum float_source source, const uint8_t *row, size_t k)
{
    if (source == FLOAT_F16)
        return _mm512_cvtph_ps(load_256(row + 2 * k));
    return _mm512_loadu_ps(row + 4 * k);
}

/* Bytes of an activation row that stay in a first cache of 32 KiB while weights stream by. */
#define ACT_CACHED_BYTES (20 * 1024)

/* How many pages ahead lines of a single row are prefetched: measured, 15 to 25 % faster than the
 * hardware's own prefetching for f32 and f16 (bf16 is faster without). */
#define ROW_STREAMS 3

/* What a tile of rows works with. */
struct row_tile {
    const uint8_t *rows[TILE_ROWS];
    size_t row_count; /* 1 or TILE_ROWS: known when compiled */
    struct tile_prefetch prefetch;
};

AVX512_INLINE struct row_tile row_tile_begin(const struct host_matmul_task *task, size_t first_row,
                                             size_t row_count)
{
    struct row_tile tile = { .row_count = row_count };
    tile_rows(task, first_row, tile.rows);
    if (row_count == TILE_ROWS)
        tile.prefetch = tile_prefetch_begin(task, first_row);
    return tile;
}

/* Asks for what comes after the bytes at offset of each row: of the next tile or, in a single row,
 * further on in the same and the following rows. */
AVX512_INLINE void row_tile_prefetch(struct row_tile *tile, size_t offset, size_t bytes)
{
    if (tile->row_count == TILE_ROWS) {
        tile_prefetch_step(&tile->prefetch, TILE_ROWS * bytes, PREFETCH_STREAMS);
        return;
    }
    for (size_t i = 0; i < bytes; i += 64) {
        uintptr_t address = (uintptr_t)tile->rows[0] + offset + i;
        for (size_t s = 1; s <= ROW_STREAMS; s++)
            _mm_prefetch((const char *)(address + s * PREFETCH_STREAM_DISTANCE), _MM_HINT_T1);
    }
}

/* The two vectors of accumulators of each row of a tile. */
struct tile_sums {
    __m512 even[TILE_ROWS];
    __m512 odd[TILE_ROWS];
};

AVX512_INLINE struct tile_sums tile_sums_begin(void)
{
    struct tile_sums sums;
    for (size_t r = 0; r < TILE_ROWS; r++) {
        sums.even[r] = _mm512_setzero_ps();
        sums.odd[r] = _mm512_setzero_ps();
    }
    return sums;
}

AVX512_INLINE void tile_sums_store(const struct tile_sums *sums, float *output, size_t row_count)
{
    for (size_t r = 0; r < row_count; r++)
        output[r] = sum_lanes(_mm512_add_ps(sums->even[r], sums->odd[r]));
}

/* The rest of k, less than a step. */
AVX512_INLINE void add_rest(enum float_source source, const struct row_tile *tile,
                            const uint8_t *activations, size_t whole, size_t rest,
                            struct tile_sums *sums)
{
    size_t odd_rest = rest > 16 ? rest - 16 : 0;
    __m512 even_acts = load_part(FLOAT_F32, activations, whole, rest);
    __m512 odd_acts = load_part(FLOAT_F32, activations, whole + 16, odd_rest);
    for (size_t r = 0; r < tile->row_count; r++) {
        __m512 even = load_part(source, tile->rows[r], whole, rest);
        __m512 odd = load_part(source, tile->rows[r], whole + 16, odd_rest);
        sums->even[r] = _mm512_fmadd_ps(even, even_acts, sums->even[r]);
        sums->odd[r] = _mm512_fmadd_ps(odd, odd_acts, sums->odd[r]);
    }
}

AVX512_INLINE struct tile_sums dot_tile(enum float_source source, struct row_tile *tile,
                                        const uint8_t *activations, size_t k)
{
    struct tile_sums sums = tile_sums_begin();
    size_t bytes = source == FLOAT_F16 ? 2 : 4;
    size_t whole = k - k % FLOAT_STEP;
    for (size_t i = 0; i < whole; i += FLOAT_STEP) {
        row_tile_prefetch(tile, bytes * i, bytes * FLOAT_STEP);
        __m512 even_acts = _mm512_loadu_ps(activations + 4 * i);
        __m512 odd_acts = _mm512_loadu_ps(activations + 4 * i + 64);
        for (size_t r = 0; r < tile->row_count; r++) {
            __m512 even = load_whole(source, tile->rows[r], i);
            __m512 odd = load_whole(source, tile->rows[r], i + 16);
            sums.even[r] = _mm512_fmadd_ps(even, even_acts, sums.even[r]);
            sums.odd[r] = _mm512_fmadd_ps(odd, odd_acts, sums.odd[r]);
        }
    }
    if (whole < k)
        add_rest(source, tile, activations, whole, k - whole, &sums);
    return sums;
}

AVX512_INLINE void few_rows(enum float_source source, const struct host_matmul_task *task,
                            size_t tile_row_count)
{
    for (size_t o = 0; o < task->weight_rows; o += tile_row_count) {
        struct row_tile tile = row_tile_begin(task, o, tile_row_count);
        for (size_t a = 0; a < task->activation_rows; a++) {
            const uint8_t *activations = task->activations + a * task->activation_row_bytes;
            struct tile_sums sums = dot_tile(source, &tile, activations, task->k);
            tile_sums_store(&sums, task->output + a * task->output_stride + o,
                            smaller(tile_row_count, task->weight_rows - o));
        }
    }
}

AVX512 void matmul_avx512_f32_few(const struct host_matmul_task *task)
{
    if (4 * task->k <= ACT_CACHED_BYTES)
        few_rows(FLOAT_F32, task, 1);
    else
        few_rows(FLOAT_F32, task, TILE_ROWS);
}

AVX512 void matmul_avx512_f16_few(const struct host_matmul_task *task)
{
    if (4 * task->k <= ACT_CACHED_BYTES)
        few_rows(FLOAT_F16, task, 1);
    else
        few_rows(FLOAT_F16, task, TILE_ROWS);
}

AVX512 void matmul_avx512_decoded_few(const struct host_matmul_task *task)
{
    for (size_t o = 0; o < task->weight_rows; o++) {
        struct row_tile tile = { .rows = { task->scratch }, .row_count = 1 };
        float *decoded = (float *)(void *)task->scratch;
        quant_decode_row(task->dtype, weight_row(task, o), task->k, decoded);
        for (size_t a = 0; a < task->activation_rows; a++) {
            const uint8_t *activations = task->activations + a * task->activation_row_bytes;
            struct tile_sums sums = dot_tile(FLOAT_F32, &tile, activations, task->k);
            tile_sums_store(&sums, task->output + a * task->output_stride + o, 1);
        }
    }
}

AVX512_INLINE __m512 dot_pairs(__m512 sum, __m512i weights, __m512i activations)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)weights, (__m512bh)activations);
}

AVX512_INLINE struct tile_sums dot_tile_bf16(struct row_tile *tile, const uint8_t *activations,
                                             size_t k)
{
    struct tile_sums sums = tile_sums_begin();
    size_t whole = k - k % BF16_STEP;
    for (size_t i = 0; i < whole; i += BF16_STEP) {
        if (tile->row_count == TILE_ROWS)
            row_tile_prefetch(tile, 2 * i, 2 * BF16_STEP);
        __m512i even_acts = load_512(activations + 2 * i);
        __m512i odd_acts = load_512(activations + 2 * i + 64);
        for (size_t r = 0; r < tile->row_count; r++) {
            const uint8_t *weights = tile->rows[r] + 2 * i;
            sums.even[r] = dot_pairs(sums.even[r], load_512(weights), even_acts);
            sums.odd[r] = dot_pairs(sums.odd[r], load_512(weights + 64), odd_acts);
        }
    }
    if (whole < k) {
        uint64_t mask = ((uint64_t)1 << (k - whole)) - 1;
        __m512i even_acts = load_512(activations + 2 * whole);
        __m512i odd_acts = load_512(activations + 2 * whole + 64);
        for (size_t r = 0; r < tile->row_count; r++) {
            const uint8_t *rest = tile->rows[r] + 2 * whole;
            __m512i even = _mm512_maskz_loadu_epi16((__mmask32)mask, rest);
            __m512i odd = _mm512_maskz_loadu_epi16((__mmask32)(mask >> 32), rest + 64);
            sums.even[r] = dot_pairs(sums.even[r], even, even_acts);
            sums.odd[r] = dot_pairs(sums.odd[r], odd, odd_acts);
        }
    }
    return sums;
}

AVX512_INLINE void few_rows_bf16(const struct host_matmul_task *task, size_t tile_row_count)
{
    for (size_t o = 0; o < task->weight_rows; o += tile_row_count) {
        struct row_tile tile = row_tile_begin(task, o, tile_row_count);
        for (size_t a = 0; a < task->activation_rows; a++) {
            const uint8_t *activations = task->activations + a * task->activation_row_bytes;
            struct tile_sums sums = dot_tile_bf16(&tile, activations, task->k);
            tile_sums_store(&sums, task->output + a * task->output_stride + o,
                            smaller(tile_row_count, task->weight_rows - o));
        }
    }
}

AVX512 void matmul_avx512_bf16_few(const struct host_matmul_task *task)
{
    if (2 * task->k <= ACT_CACHED_BYTES)
        few_rows_bf16(task, 1);
    else
        few_rows_bf16(task, TILE_ROWS);
}

#endif
