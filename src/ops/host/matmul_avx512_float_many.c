/* matmul_avx512_float_many.c - many rows of plain or decoded weights on AVX-512.
 *
 * Order: see matmul_avx512_float.c. A tile is 4 weight rows x 3 activation rows: 24 accumulators in
 * registers. k is cut into chunks, so that a chunk of 4 weight rows (converted to what the
 * instruction wants, in scratch) stays in the first cache and a chunk of the activation rows of a
 * block in the second; between chunks the accumulators of all tiles of a block wait in scratch. */
#include "ops/host/matmul_avx512_float.h"

#if defined(__x86_64__)

#include "tensor/quant.h"

/* How many f32 or bf16 a chunk has. */
#define FLOAT_CHUNK (FLOAT_CHUNK_BYTES / sizeof(float))
#define BF16_CHUNK (FLOAT_CHUNK_BYTES / sizeof(uint16_t))

enum element { ELEMENT_F32, ELEMENT_BF16 };

/* A chunk of one tile: steps of 128 bytes and, if k ends inside one (f32 only: bf16 activations are
 * padded), a rest of which the activations have only the lanes of the masks. */
struct tile {
    const uint8_t *weights; /* [FLOAT_TILE_WEIGHTS] rows of FLOAT_CHUNK_BYTES */
    const uint8_t *acts[FLOAT_TILE_ACTS];
    size_t whole_steps;
    bool has_rest;
    __mmask16 rest_masks[2];
};

AVX512_INLINE __m512 multiply_add(enum element element, __m512 weights, __m512 acts, __m512 sum)
{
    if (element == ELEMENT_F32)
        return _mm512_fmadd_ps(weights, acts, sum);
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(weights),
                            (__m512bh)_mm512_castps_si512(acts));
}

/* acts: vector v of each activation row of the tile. */
AVX512_INLINE void step_vector(enum element element, const uint8_t *weights, size_t v,
                               const __m512 acts[FLOAT_TILE_ACTS],
                               __m512 sums[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS][2])
{
    for (size_t w = 0; w < FLOAT_TILE_WEIGHTS; w++) {
        __m512 weight = _mm512_load_ps(weights + w * FLOAT_CHUNK_BYTES + 64 * v);
        /* In a register, or gcc would load it again for each use: loads are what is scarce. */
        __asm__("" : "+v"(weight));
        for (size_t a = 0; a < FLOAT_TILE_ACTS; a++)
            sums[w][a][v] = multiply_add(element, weight, acts[a], sums[w][a][v]);
    }
}

AVX512_INLINE void run_tile(enum element element, const struct tile *tile,
                            __m512 sums[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS][2])
{
    const uint8_t *weights = tile->weights;
    const uint8_t *acts_0 = tile->acts[0];
    const uint8_t *acts_1 = tile->acts[1];
    const uint8_t *acts_2 = tile->acts[2];
    for (size_t i = 0; i < tile->whole_steps; i++) {
        for (size_t v = 0; v < 2; v++) {
            __m512 acts[FLOAT_TILE_ACTS] = { _mm512_loadu_ps(acts_0 + 64 * v),
                                             _mm512_loadu_ps(acts_1 + 64 * v),
                                             _mm512_loadu_ps(acts_2 + 64 * v) };
            step_vector(element, weights, v, acts, sums);
        }
        weights += 128;
        acts_0 += 128;
        acts_1 += 128;
        acts_2 += 128;
    }
    if (!tile->has_rest)
        return;
    for (size_t v = 0; v < 2; v++) {
        __mmask16 mask = tile->rest_masks[v];
        __m512 acts[FLOAT_TILE_ACTS] = { _mm512_maskz_loadu_ps(mask, acts_0 + 64 * v),
                                         _mm512_maskz_loadu_ps(mask, acts_1 + 64 * v),
                                         _mm512_maskz_loadu_ps(mask, acts_2 + 64 * v) };
        step_vector(element, weights, v, acts, sums);
    }
}

/* What a block of the output is made of; the same for all its tiles. */
struct block {
    const struct host_matmul_task *task;
    size_t first_weight;
    size_t weight_count;
    size_t first_act;
    size_t act_count;
};

AVX512_INLINE void store_outputs(const struct block *block, size_t w_tile, size_t a_tile,
                                 __m512 sums[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS][2])
{
    const struct host_matmul_task *task = block->task;
    size_t w_begin = w_tile * FLOAT_TILE_WEIGHTS;
    size_t a_begin = a_tile * FLOAT_TILE_ACTS;
    float results[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS];
    for (size_t w = 0; w < FLOAT_TILE_WEIGHTS; w++) {
        for (size_t a = 0; a < FLOAT_TILE_ACTS; a++)
            results[w][a] = sum_lanes(_mm512_add_ps(sums[w][a][0], sums[w][a][1]));
    }
    for (size_t a = 0; a < smaller(FLOAT_TILE_ACTS, block->act_count - a_begin); a++) {
        float *output = task->output + (block->first_act + a_begin + a) * task->output_stride +
                        block->first_weight + w_begin;
        for (size_t w = 0; w < smaller(FLOAT_TILE_WEIGHTS, block->weight_count - w_begin); w++)
            output[w] = results[w][a];
    }
}

/* One chunk of one tile: accumulators in, steps, accumulators or outputs out. */
AVX512_INLINE void add_chunk(enum element element, const struct block *block,
                             const struct tile *tile, size_t w_tile, size_t a_tile, bool first,
                             bool last)
{
    struct float_scratch *scratch = (struct float_scratch *)(void *)block->task->scratch;
    struct float_sums *waiting = &scratch->sums[w_tile][a_tile];
    __m512 sums[FLOAT_TILE_WEIGHTS][FLOAT_TILE_ACTS][2];
    for (size_t w = 0; w < FLOAT_TILE_WEIGHTS; w++) {
        for (size_t a = 0; a < FLOAT_TILE_ACTS; a++) {
            for (size_t v = 0; v < 2; v++)
                sums[w][a][v] = first ? _mm512_setzero_ps()
                                      : _mm512_load_ps(waiting->lanes[w][a][v]);
        }
    }
    run_tile(element, tile, sums);
    if (last) {
        store_outputs(block, w_tile, a_tile, sums);
        return;
    }
    for (size_t w = 0; w < FLOAT_TILE_WEIGHTS; w++) {
        for (size_t a = 0; a < FLOAT_TILE_ACTS; a++) {
            for (size_t v = 0; v < 2; v++)
                _mm512_store_ps(waiting->lanes[w][a][v], sums[w][a][v]);
        }
    }
}

AVX512_INLINE void convert_f16(const uint8_t *halfs, size_t count, float *floats)
{
    size_t i = 0;
    for (; i + 16 <= count; i += 16)
        _mm512_storeu_ps(floats + i, _mm512_cvtph_ps(load_256(halfs + 2 * i)));
    for (; i < count; i++)
        floats[i] = f16_to_f32(load_u16(halfs + 2 * i));
}

/* Elements [k, k + count) of a row to chunk, and zeros up to a whole step. */
AVX512_INLINE void convert(enum element element, enum dtype dtype, const uint8_t *row, size_t k,
                           size_t count, uint8_t *chunk)
{
    float *floats = (float *)(void *)chunk;
    uint64_t start = 0;
    (void)dtype_row_bytes(dtype, k, &start);
    if (element == ELEMENT_BF16) {
        memcpy(chunk, row + start, count * sizeof(uint16_t));
        memset(chunk + 2 * count, 0, (BF16_STEP - count % BF16_STEP) % BF16_STEP * 2);
        return;
    }
    if (dtype == DTYPE_F32)
        memcpy(chunk, row + start, count * sizeof(float));
    else if (dtype == DTYPE_F16)
        convert_f16(row + start, count, floats);
    else
        quant_decode_row(dtype, row + start, count, floats);
    memset(floats + count, 0, (FLOAT_STEP - count % FLOAT_STEP) % FLOAT_STEP * sizeof(float));
}

/* Elements [k, k + count) of the block, the last chunk of which ends at the row's end. */
AVX512_INLINE void multiply_chunk(enum element element, const struct block *block, size_t k,
                                  size_t count)
{
    const struct host_matmul_task *task = block->task;
    struct float_scratch *scratch = (struct float_scratch *)(void *)task->scratch;
    size_t element_bytes = element == ELEMENT_F32 ? sizeof(float) : sizeof(uint16_t);
    size_t rest = element == ELEMENT_F32 ? count % FLOAT_STEP : 0;
    struct tile tile = {
        /* bf16 activations are padded: their last step is a whole one. */
        .whole_steps = element == ELEMENT_F32 ? count / FLOAT_STEP
                                              : (count + BF16_STEP - 1) / BF16_STEP,
        .has_rest = rest > 0,
        .rest_masks = { (__mmask16)((1u << smaller(rest, 16)) - 1),
                        (__mmask16)(rest > 16 ? (1u << (rest - 16)) - 1 : 0) },
    };
    for (size_t w = 0; w < FLOAT_BLOCK_WEIGHTS; w++) {
        size_t row = block->first_weight + w;
        if (w / FLOAT_TILE_WEIGHTS * FLOAT_TILE_WEIGHTS < block->weight_count)
            convert(element, task->dtype, weight_row_clamped(task, row), k, count,
                    scratch->weights[w]);
    }
    for (size_t w = 0; w * FLOAT_TILE_WEIGHTS < block->weight_count; w++) {
        tile.weights = scratch->weights[w * FLOAT_TILE_WEIGHTS];
        for (size_t a = 0; a * FLOAT_TILE_ACTS < block->act_count; a++) {
            for (size_t i = 0; i < FLOAT_TILE_ACTS; i++) {
                size_t act = smaller(a * FLOAT_TILE_ACTS + i, block->act_count - 1);
                tile.acts[i] = task->activations + k * element_bytes +
                               (block->first_act + act) * task->activation_row_bytes;
            }
            add_chunk(element, block, &tile, w, a, k == 0, k + count == task->k);
        }
    }
}

AVX512_INLINE void many_rows(enum element element, const struct host_matmul_task *task)
{
    size_t chunk = element == ELEMENT_F32 ? FLOAT_CHUNK : BF16_CHUNK;
    for (size_t w = 0; w < task->weight_rows; w += FLOAT_BLOCK_WEIGHTS) {
        for (size_t a = 0; a < task->activation_rows; a += FLOAT_BLOCK_ACTS) {
            struct block block = {
                .task = task,
                .first_weight = w,
                .weight_count = smaller(FLOAT_BLOCK_WEIGHTS, task->weight_rows - w),
                .first_act = a,
                .act_count = smaller(FLOAT_BLOCK_ACTS, task->activation_rows - a),
            };
            for (size_t k = 0; k < task->k; k += chunk)
                multiply_chunk(element, &block, k, smaller(chunk, task->k - k));
        }
    }
}

AVX512 void matmul_avx512_float_many(const struct host_matmul_task *task)
{
    many_rows(ELEMENT_F32, task);
}

AVX512 void matmul_avx512_bf16_many(const struct host_matmul_task *task)
{
    many_rows(ELEMENT_BF16, task);
}

#endif
