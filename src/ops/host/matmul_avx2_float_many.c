/* matmul_avx2_float_many.c - many rows of plain or decoded weights on AVX2.
 *
 * Order: see matmul_avx2_float.c. A tile is 4 weight rows x 3 activation rows, one of the four
 * vectors at a time: 12 accumulators in registers. k is cut into chunks, so that a chunk of 8
 * weight rows (as f32, in scratch) and of 3 activation rows stay in the first cache, and a chunk of
 * the activation rows of a block in the second; between chunks the accumulators of all tiles of a
 * block wait in scratch. */
#include "ops/host/matmul_avx2_float.h"

#if defined(__x86_64__)

#include "tensor/quant.h"

#define CHUNK 512
#define BLOCK_WEIGHTS 8
#define BLOCK_ACTS 96
#define TILE_WEIGHTS 4
#define TILE_ACTS 3

struct tile_sums {
    float lanes[FLOAT_TURNS][TILE_WEIGHTS][TILE_ACTS][8];
};

struct float_scratch {
    float weights[BLOCK_WEIGHTS][CHUNK];
    float acts[TILE_ACTS][FLOAT_STEP]; /* the last step of a row that ends inside it, and zeros */
    struct tile_sums sums[BLOCK_ACTS / TILE_ACTS][BLOCK_WEIGHTS / TILE_WEIGHTS];
};
_Static_assert(sizeof(struct float_scratch) <= AVX2_FLOAT_SCRATCH_BYTES, "scratch has room");

/* A chunk of one tile. */
struct tile {
    const float *weights; /* [TILE_WEIGHTS] rows of CHUNK */
    const float *acts[TILE_ACTS];
    const float *last_acts; /* [TILE_ACTS][FLOAT_STEP]: the step after the whole ones, or NULL */
    size_t whole_steps;
};

/* One vector of each row: 8 of k. */
AVX2_INLINE void add_vector(const float *weights, const float *acts_0, const float *acts_1,
                            const float *acts_2, __m256 sums[TILE_WEIGHTS][TILE_ACTS])
{
    __m256 acts[TILE_ACTS] = { _mm256_loadu_ps(acts_0), _mm256_loadu_ps(acts_1),
                               _mm256_loadu_ps(acts_2) };
    for (size_t w = 0; w < TILE_WEIGHTS; w++) {
        __m256 weight = _mm256_load_ps(weights + w * CHUNK);
        /* In a register, or gcc would load it again for each use. */
        __asm__("" : "+x"(weight));
        for (size_t a = 0; a < TILE_ACTS; a++)
            sums[w][a] = _mm256_fmadd_ps(weight, acts[a], sums[w][a]);
    }
}

/* Vector v of every step. */
AVX2_INLINE void run_turn(const struct tile *tile, size_t v, __m256 sums[TILE_WEIGHTS][TILE_ACTS])
{
    const float *weights = tile->weights + 8 * v;
    const float *acts_0 = tile->acts[0] + 8 * v;
    const float *acts_1 = tile->acts[1] + 8 * v;
    const float *acts_2 = tile->acts[2] + 8 * v;
    for (size_t i = 0; i < tile->whole_steps; i++) {
        add_vector(weights, acts_0, acts_1, acts_2, sums);
        weights += FLOAT_STEP;
        acts_0 += FLOAT_STEP;
        acts_1 += FLOAT_STEP;
        acts_2 += FLOAT_STEP;
    }
    if (tile->last_acts)
        add_vector(weights, tile->last_acts + 8 * v, tile->last_acts + FLOAT_STEP + 8 * v,
                   tile->last_acts + 2 * FLOAT_STEP + 8 * v, sums);
}

/* Accumulators in, steps, accumulators out. */
AVX2_INLINE void run_tile(const struct tile *tile, struct tile_sums *waiting, bool first)
{
    for (size_t v = 0; v < FLOAT_TURNS; v++) {
        __m256 sums[TILE_WEIGHTS][TILE_ACTS];
        for (size_t w = 0; w < TILE_WEIGHTS; w++)
            for (size_t a = 0; a < TILE_ACTS; a++)
                sums[w][a] = first ? _mm256_setzero_ps() : _mm256_load_ps(waiting->lanes[v][w][a]);
        run_turn(tile, v, sums);
        for (size_t w = 0; w < TILE_WEIGHTS; w++)
            for (size_t a = 0; a < TILE_ACTS; a++)
                _mm256_store_ps(waiting->lanes[v][w][a], sums[w][a]);
    }
}

/* A block of the output. */
struct block {
    const struct host_matmul_task *task;
    size_t first_weight;
    size_t weight_count;
    size_t first_act;
    size_t act_count;
};

AVX2_INLINE void store_outputs(const struct block *block, size_t w, size_t a,
                               const struct tile_sums *waiting)
{
    __m256 sums[FLOAT_TURNS];
    for (size_t v = 0; v < FLOAT_TURNS; v++)
        sums[v] = _mm256_load_ps(waiting->lanes[v][w % TILE_WEIGHTS][a % TILE_ACTS]);
    block->task->output[(block->first_act + a) * block->task->output_stride + block->first_weight +
                        w] = sum_turns(sums);
}

/* Elements [k, k + count) of a row, with zeros up to a whole step. */
AVX2_INLINE void convert(enum dtype dtype, const uint8_t *row, size_t k, size_t count, float *chunk)
{
    const struct dtype_info *info = dtype_info(dtype);
    const uint8_t *start = row + k / info->block_elements * info->block_bytes;
    size_t whole = count - count % 8;
    if (dtype == DTYPE_F16 || dtype == DTYPE_BF16) {
        enum float_source source = dtype == DTYPE_F16 ? FLOAT_F16 : FLOAT_BF16;
        uint8_t last[16] = { 0 };
        for (size_t i = 0; i < whole; i += 8)
            _mm256_store_ps(chunk + i, load_weights(source, start, i));
        memcpy(last, start + 2 * whole, 2 * (count - whole));
        if (whole < count)
            _mm256_store_ps(chunk + whole, load_weights(source, last, 0));
    } else {
        quant_decode_row(dtype, start, count, chunk);
    }
    memset(chunk + count, 0, (FLOAT_STEP - count % FLOAT_STEP) % FLOAT_STEP * sizeof(float));
}

/* The activation rows of a tile. If there are too few, the last one is repeated; its result is not
 * stored. */
AVX2_INLINE void find_acts(const struct block *block, size_t first, size_t k, size_t count,
                           struct float_scratch *scratch, struct tile *tile)
{
    const struct host_matmul_task *task = block->task;
    size_t rest = count % FLOAT_STEP;
    tile->last_acts = rest > 0 ? scratch->acts[0] : NULL;
    for (size_t i = 0; i < TILE_ACTS; i++) {
        size_t act = block->first_act + smaller(first + i, block->act_count - 1);
        const uint8_t *row = task->activations + act * task->activation_row_bytes;
        tile->acts[i] = (const float *)(const void *)row + k;
        if (rest > 0) {
            memset(scratch->acts[i], 0, sizeof(scratch->acts[i]));
            memcpy(scratch->acts[i], tile->acts[i] + count - rest, rest * sizeof(float));
        }
    }
}

/* Elements [k, k + count) of the block, the last chunk of which ends at the row's end. */
AVX2_INLINE void multiply_chunk(const struct block *block, size_t k, size_t count)
{
    const struct host_matmul_task *task = block->task;
    struct float_scratch *scratch = (struct float_scratch *)(void *)task->scratch;
    struct tile tile = { .whole_steps = count / FLOAT_STEP };
    for (size_t w = 0; w < BLOCK_WEIGHTS; w++)
        if (w / TILE_WEIGHTS * TILE_WEIGHTS < block->weight_count)
            convert(task->dtype, weight_row_clamped(task, block->first_weight + w), k, count,
                    scratch->weights[w]);
    for (size_t a = 0; a < block->act_count; a += TILE_ACTS) {
        find_acts(block, a, k, count, scratch, &tile);
        for (size_t w = 0; w < block->weight_count; w += TILE_WEIGHTS) {
            tile.weights = scratch->weights[w];
            run_tile(&tile, &scratch->sums[a / TILE_ACTS][w / TILE_WEIGHTS], k == 0);
        }
    }
}

AVX2 void matmul_avx2_float_many(const struct host_matmul_task *task)
{
    struct float_scratch *scratch = (struct float_scratch *)(void *)task->scratch;
    for (size_t o = 0; o < task->weight_rows; o += BLOCK_WEIGHTS) {
        for (size_t first = 0; first < task->activation_rows; first += BLOCK_ACTS) {
            struct block block = {
                .task = task,
                .first_weight = o,
                .weight_count = smaller(BLOCK_WEIGHTS, task->weight_rows - o),
                .first_act = first,
                .act_count = smaller(BLOCK_ACTS, task->activation_rows - first),
            };
            for (size_t k = 0; k < task->k; k += CHUNK)
                multiply_chunk(&block, k, smaller(CHUNK, task->k - k));
            for (size_t a = 0; a < block.act_count; a++)
                for (size_t w = 0; w < block.weight_count; w++)
                    store_outputs(&block, w, a, &scratch->sums[a / TILE_ACTS][w / TILE_WEIGHTS]);
        }
    }
}

#endif
