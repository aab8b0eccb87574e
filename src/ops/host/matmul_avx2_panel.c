/* matmul_avx2_panel.c - the product of an unpacked panel of 16 weight rows with activation rows, on
 * AVX2. Order: see matmul_avx512.h.
 *
 * A tile is 16 weight rows x 3 activation rows: six vectors of sums, and six of the dot products of
 * a block of 32. Products of quants are added up in 16 bits for as long as they fit, since that
 * costs one addition for 32 products:
 *     quants up to 15: 8 vectors of them, a whole block (15 * 127 * 16 < 2^15)
 *     quants up to 31: 4
 *     quant - 32:      4, half a block; the sums wrap around, but what is left when the offset has
 *                      been taken away fits again (32 * 127 * 8 < 2^15)
 *     signed 8 bits:   1
 * Each class of blocks is cut into chunks that stay in the first cache while all activation rows
 * pass by; in between the sums wait in scratch. */
#include "ops/host/matmul_avx2_panel.h"

#if defined(__x86_64__)

/* Activation rows of a tile. */
#define TILE_ACTS 3
/* Blocks of a chunk: 10 KiB, with magnitudes 20. */
#define CHUNK_BLOCKS 16

struct panel_sums {
    float lanes[ACT_GROUP_BLOCKS][AVX2_PANEL_ACTS][PANEL_ROWS]; /* of each class */
};
_Static_assert(sizeof(struct panel_sums) == AVX2_PANEL_SUMS_BYTES, "scratch has room");

AVX2_INLINE __m256i broadcast_i32(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof(value));
    return _mm256_set1_epi32(value);
}

AVX2_INLINE __m256 broadcast_f32(const uint8_t *bytes)
{
    return _mm256_castsi256_ps(broadcast_i32(bytes));
}

/* A block of activations of several rows side by side; the first row's, the others follow at
 * row_bytes. */
struct act_cursor {
    const uint8_t *block;
    size_t row_bytes;
};

/* Additions in place, one at a time. Compilers would rather add in pairs, which takes more vectors
 * than there are registers. */
AVX2_INLINE void accumulate_16(__m256i *sum, __m256i term)
{
    __asm__("vpaddw %1, %0, %0" : "+x"(*sum) : "x"(term));
}

AVX2_INLINE void accumulate_32(__m256i *sum, __m256i term)
{
    __asm__("vpaddd %1, %0, %0" : "+x"(*sum) : "x"(term));
}

/* Adds the products of quants [begin, end), in fours, to 16-bit sums of two neighbours. fresh: the
 * sums begin here. */
AVX2_INLINE void multiply_add(const struct panel_block *block, const struct act_cursor *act,
                              size_t row_count, size_t begin, size_t end, bool fresh,
                              __m256i pairs[][2])
{
    for (size_t i = begin; i < end; i++) {
        __m256i weights[2] = { load_256(block->levels[i]), load_256(block->levels[i] + 32) };
        for (size_t r = 0; r < row_count; r++) {
            __m256i acts = broadcast_i32(act->block + r * act->row_bytes + 4 * i);
            for (size_t h = 0; h < 2; h++) {
                __m256i products = _mm256_maddubs_epi16(weights[h], acts);
                if (fresh && i == begin)
                    pairs[r][h] = products;
                else
                    accumulate_16(&pairs[r][h], products);
            }
        }
    }
}

/* Dot products of a block of signed quants. */
AVX2_INLINE void dot_signed(const struct panel_block *block, const struct act_cursor *act,
                            size_t row_count, __m256i dots[][2])
{
    for (size_t i = 0; i < 8; i++) {
        for (size_t r = 0; r < row_count; r++) {
            __m256i acts = broadcast_i32(act->block + r * act->row_bytes + 4 * i);
            for (size_t h = 0; h < 2; h++) {
                __m256i fours = add_neighbours(
                    multiply_signed(load_256(block[0].levels[i] + 32 * h),
                                    load_256(block[1].levels[i] + 32 * h), acts));
                if (i == 0)
                    dots[r][h] = fours;
                else
                    accumulate_32(&dots[r][h], fours);
            }
        }
    }
}

/* Dot products of a block, for all kinds that have one for 32 k. */
AVX2_INLINE void dot_block(enum avx2_panel_kind kind, const struct panel_block *block,
                           const struct act_cursor *act, size_t row_count, __m256i dots[][2])
{
    if (kind == AVX2_PANEL_SIGNED) {
        dot_signed(block, act, row_count, dots);
        return;
    }
    __m256i pairs[TILE_ACTS][2];
    multiply_add(block, act, row_count, 0, kind == AVX2_PANEL_MINS_31 ? 4 : 8, true, pairs);
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            dots[r][h] = add_neighbours(pairs[r][h]);
    if (kind == AVX2_PANEL_MINS_31) {
        multiply_add(block, act, row_count, 4, 8, true, pairs);
        for (size_t r = 0; r < row_count; r++)
            for (size_t h = 0; h < 2; h++)
                dots[r][h] = _mm256_add_epi32(dots[r][h], add_neighbours(pairs[r][h]));
    }
    if (kind == AVX2_PANEL_OFFSET_8) {
        for (size_t r = 0; r < row_count; r++) {
            __m256i offset = broadcast_i32(act->block + r * act->row_bytes + ACT_AT(offset_8));
            for (size_t h = 0; h < 2; h++)
                dots[r][h] = _mm256_add_epi32(dots[r][h], offset);
        }
    }
}

/* Dot products of half a block of 6-bit quants. */
AVX2_INLINE void dot_half(const struct panel_block *block, const struct act_cursor *act,
                          size_t row_count, size_t half, __m256i dots[][2])
{
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            dots[r][h] = broadcast_i32(act->block + r * act->row_bytes + ACT_AT(pair_offsets_32) +
                                       4 * half);
    multiply_add(block, act, row_count, 4 * half, 4 * half + 4, false, dots);
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            dots[r][h] = add_neighbours(dots[r][h]);
}

/* What a block adds to the sums, before it is multiplied with the activations' scales. */
AVX2_INLINE void terms_of_block(enum avx2_panel_kind kind, const struct panel_block *block,
                                const struct act_cursor *act, size_t row_count, __m256 terms[][2])
{
    __m256i dots[TILE_ACTS][2];
    if (kind == AVX2_PANEL_HALVES)
        dot_half(block, act, row_count, 0, dots);
    else
        dot_block(kind, block, act, row_count, dots);
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            terms[r][h] = _mm256_mul_ps(_mm256_cvtepi32_ps(dots[r][h]),
                                        _mm256_load_ps(block->scales + 8 * h));
    if (kind != AVX2_PANEL_HALVES)
        return;
    dot_half(block, act, row_count, 1, dots);
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            terms[r][h] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[r][h]),
                                          _mm256_load_ps(block->extras + 8 * h), terms[r][h]);
}

AVX2_INLINE void add_block(enum avx2_panel_kind kind, const struct panel_block *block,
                           const struct act_cursor *act, size_t row_count, __m256 sums[][2])
{
    __m256 terms[TILE_ACTS][2];
    terms_of_block(kind, block, act, row_count, terms);
    for (size_t r = 0; r < row_count; r++) {
        const uint8_t *of_row = act->block + r * act->row_bytes;
        __m256 scale = broadcast_f32(of_row + ACT_AT(scale));
        for (size_t h = 0; h < 2; h++)
            sums[r][h] = _mm256_fmadd_ps(terms[r][h], scale, sums[r][h]);
        if (kind == AVX2_PANEL_MINS_15 || kind == AVX2_PANEL_MINS_31) {
            __m256 scaled_sum = broadcast_f32(of_row + ACT_AT(scaled_sum));
            for (size_t h = 0; h < 2; h++)
                sums[r][h] = _mm256_fnmadd_ps(_mm256_load_ps(block->extras + 8 * h), scaled_sum,
                                              sums[r][h]);
        }
    }
}

static inline size_t blocks_apart(enum avx2_panel_kind kind)
{
    return kind == AVX2_PANEL_SIGNED ? 2 : 1;
}

/* A chunk of one class of a panel, and what it is to be multiplied with. */
struct chunk {
    const struct panel_block *blocks;
    size_t block_count;
    struct act_cursor act; /* the chunk's first block of the first activation row */
    float *sums;           /* [rows][PANEL_ROWS] */
    bool is_first;         /* of its class: sums begin at 0 */
};

/* The first row_count rows. */
AVX2_INLINE void multiply_rows(enum avx2_panel_kind kind, const struct chunk *chunk,
                               size_t row_count)
{
    const struct panel_block *block = chunk->blocks;
    struct act_cursor act = chunk->act;
    __m256 sums[TILE_ACTS][2];
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            sums[r][h] = chunk->is_first ? _mm256_setzero_ps()
                                         : _mm256_load_ps(chunk->sums + r * PANEL_ROWS + 8 * h);
    for (size_t b = 0; b < chunk->block_count; b++) {
        add_block(kind, block, &act, row_count, sums);
        block += blocks_apart(kind);
        act.block += ACT_GROUP_BLOCKS * sizeof(struct host_act_block);
    }
    for (size_t r = 0; r < row_count; r++)
        for (size_t h = 0; h < 2; h++)
            _mm256_store_ps(chunk->sums + r * PANEL_ROWS + 8 * h, sums[r][h]);
}

/* One copy of the loops for each kind and number of rows: the compiler then keeps everything in
 * registers. */
#define DEFINE_MULTIPLY(name, kind)                                                                \
    AVX2 static void name(const struct chunk *chunk, size_t row_count)                             \
    {                                                                                              \
        switch (row_count) {                                                                       \
        case 1:                                                                                    \
            multiply_rows(kind, chunk, 1);                                                         \
            break;                                                                                 \
        case 2:                                                                                    \
            multiply_rows(kind, chunk, 2);                                                         \
            break;                                                                                 \
        default:                                                                                   \
            multiply_rows(kind, chunk, TILE_ACTS);                                                 \
        }                                                                                          \
    }

DEFINE_MULTIPLY(multiply_signed_levels, AVX2_PANEL_SIGNED)
DEFINE_MULTIPLY(multiply_offset_8, AVX2_PANEL_OFFSET_8)
DEFINE_MULTIPLY(multiply_mins_15, AVX2_PANEL_MINS_15)
DEFINE_MULTIPLY(multiply_mins_31, AVX2_PANEL_MINS_31)
DEFINE_MULTIPLY(multiply_halves, AVX2_PANEL_HALVES)

typedef void (*multiply_function)(const struct chunk *chunk, size_t row_count);

static const multiply_function multiply_functions[] = {
    [AVX2_PANEL_SIGNED] = multiply_signed_levels, [AVX2_PANEL_OFFSET_8] = multiply_offset_8,
    [AVX2_PANEL_MINS_15] = multiply_mins_15,      [AVX2_PANEL_MINS_31] = multiply_mins_31,
    [AVX2_PANEL_HALVES] = multiply_halves,
};

/* A panel and the activation rows it is multiplied with at a time. */
struct panel_job {
    const struct host_matmul_task *task;
    const struct panel_block *panel;
    enum avx2_panel_kind kind;
    struct panel_sums *sums;
    size_t first_act;
    size_t act_count;
    struct weight_prefetch prefetch;
};

static size_t tiles_of(size_t act_count)
{
    return (act_count + TILE_ACTS - 1) / TILE_ACTS;
}

/* Calls of multiply for a panel and act_count rows. */
static size_t multiply_count(size_t block_count, size_t act_count)
{
    size_t chunks = 0;
    for (size_t c = 0; c < ACT_GROUP_BLOCKS; c++)
        chunks += panel_class_blocks(c, block_count) / CHUNK_BLOCKS + 1;
    return chunks * tiles_of(act_count);
}

/* One chunk with all activation rows of the job; from its number of block in the class on. */
static void multiply_chunk(struct panel_job *job, size_t class, size_t from, size_t block_count)
{
    const struct host_matmul_task *task = job->task;
    size_t first_block = class + from * ACT_GROUP_BLOCKS;
    size_t position = panel_position(class, task->k / ACT_BLOCK) + from;
    for (size_t a = 0; a < job->act_count; a += TILE_ACTS) {
        struct chunk chunk = {
            .blocks = job->panel + position * blocks_apart(job->kind),
            .block_count = block_count,
            .act = { task->activations + (job->first_act + a) * task->activation_row_bytes +
                         first_block * sizeof(struct host_act_block),
                     task->activation_row_bytes },
            .sums = job->sums->lanes[class][a],
            .is_first = from == 0,
        };
        multiply_functions[job->kind](&chunk, smaller(TILE_ACTS, job->act_count - a));
        weight_prefetch_step(&job->prefetch);
    }
}

/* (class 0 + class 1) + (class 2 + class 3), to the first row_count places. */
AVX2 static void store_sums(const struct panel_job *job, size_t act, float *output,
                            size_t row_count)
{
    float results[PANEL_ROWS];
    for (size_t h = 0; h < PANEL_ROWS; h += 8) {
        __m256 classes[ACT_GROUP_BLOCKS];
        for (size_t c = 0; c < ACT_GROUP_BLOCKS; c++)
            classes[c] = _mm256_load_ps(job->sums->lanes[c][act] + h);
        _mm256_storeu_ps(results + h, _mm256_add_ps(_mm256_add_ps(classes[0], classes[1]),
                                                    _mm256_add_ps(classes[2], classes[3])));
    }
    memcpy(output, results, row_count * sizeof(float));
}

static void multiply_panel(struct panel_job *job, size_t first_row)
{
    const struct host_matmul_task *task = job->task;
    size_t rows = smaller(task->weight_rows - first_row, PANEL_ROWS);
    for (size_t c = 0; c < ACT_GROUP_BLOCKS; c++) {
        size_t count = panel_class_blocks(c, task->k / ACT_BLOCK), from = 0;
        do { /* once at least, so that sums of nothing are 0 */
            multiply_chunk(job, c, from, smaller(CHUNK_BLOCKS, count - from));
            from += CHUNK_BLOCKS;
        } while (from < count);
    }
    for (size_t a = 0; a < job->act_count; a++)
        store_sums(job, a, task->output + (job->first_act + a) * task->output_stride + first_row,
                   rows);
}

void avx2_panel_matmul(const struct host_matmul_task *task, panel_unpack_function unpack,
                       enum avx2_panel_kind kind)
{
    struct panel_sums *sums = (struct panel_sums *)(void *)task->scratch;
    struct panel_block *panel = (struct panel_block *)(void *)(sums + 1);
    if (task->activation_rows == 0)
        return;
    for (size_t o = 0; o < task->weight_rows; o += PANEL_ROWS) {
        const uint8_t *rows[PANEL_ROWS];
        for (size_t r = 0; r < PANEL_ROWS; r++)
            rows[r] = weight_row_clamped(task, o + r);
        unpack(rows, task->k, panel);
        struct panel_job job = {
            .task = task,
            .panel = panel,
            .kind = kind,
            .sums = sums,
            .prefetch = weight_prefetch_begin(
                task, o + PANEL_ROWS, multiply_count(task->k / ACT_BLOCK, task->activation_rows)),
        };
        for (size_t a = 0; a < task->activation_rows; a += AVX2_PANEL_ACTS) {
            job.first_act = a;
            job.act_count = smaller(AVX2_PANEL_ACTS, task->activation_rows - a);
            multiply_panel(&job, o);
        }
    }
}

#endif
