/* matmul_avx512.h - what the AVX-512 kernels of the quantized formats share.
 *
 * Order of every quantized AVX-512 kernel. The integer dot product of a block of 32 (Q6_K: of its
 * two halves) is exact. Block b belongs to class b mod 4; each class has one f32 accumulator, which
 * takes the class's blocks in order, by one fused multiply-add each (two with mins):
 *     Q8_0 Q4_0   sum = fma(dot * d, act scale, sum)
 *     Q4_K Q5_K   the same with d * scale, then sum = fma(-(dmin * min), act scaled sum, sum)
 *     Q6_K        sum = fma(fma(second dot, d * second scale, first dot * (d * first scale)),
 *                           act scale, sum)
 * The result is (class 0 + class 1) + (class 2 + class 3).
 *
 * Few rows: a tile is 4 weight rows; one vector holds the accumulators of 4 rows x 4 classes. One
 * step takes a group of 4 blocks of each row. Which lane is which is up to the format: whatever
 * needs the fewest shuffles, since those, not the products, are what a step is made of. For the
 * same reason the activations are spread out first, once per call, to vectors that match.
 * Many rows: a tile is 16 weight rows, unpacked to a panel in scratch; lane = row; the classes are
 * visited one after the other (matmul_avx512_panel.h). */
#ifndef GRETA_OPS_HOST_MATMUL_AVX512_H
#define GRETA_OPS_HOST_MATMUL_AVX512_H

#if defined(__x86_64__)

#include "ops/host/matmul_impl.h"

#include <immintrin.h>

#define AVX512                                                                                     \
    __attribute__((target("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,"           \
                          "avx512vnni,avx512bf16,gfni")))
#define AVX512_INLINE static inline __attribute__((always_inline)) AVX512

#define TILE_ROWS 4

/* Activation rows that few_rows takes at a time: their spread-out copies share the scratch. From
 * the next number on, unpacking a panel pays for itself (measured). */
#define FEW_ROWS_LIMIT 2
/* Bytes of scratch for the spread-out copy of a group of 128 activations, at most. */
#define ACT_STEP_LIMIT_BYTES 448

AVX512_INLINE __m512i load_512(const void *bytes)
{
    return _mm512_loadu_si512(bytes);
}

AVX512_INLINE __m128i load_128(const void *bytes)
{
    return _mm_loadu_si128((const __m128i *)bytes);
}

AVX512_INLINE __m256i load_256(const void *bytes)
{
    return _mm256_loadu_si256((const __m256i *)bytes);
}

AVX512_INLINE __m512i low_nibbles(__m512i bytes)
{
    return _mm512_and_si512(bytes, _mm512_set1_epi8(15));
}

AVX512_INLINE __m512i high_nibbles(__m512i bytes)
{
    return _mm512_and_si512(_mm512_srli_epi16(bytes, 4), _mm512_set1_epi8(15));
}

/* (a & mask) | b, in one instruction. */
AVX512_INLINE __m512i and_or(__m512i a, __m512i mask, __m512i b)
{
    return _mm512_ternarylogic_epi32(a, mask, b, 0xEA);
}

/* Four vectors with 4 partial sums in each 128-bit part; lane 4 p + v of the result is the sum of
 * part p of vector v. */
AVX512_INLINE __m512i sum_parts(const __m512i partial[4])
{
    __m512i vectors_01 = _mm512_add_epi32(_mm512_unpacklo_epi32(partial[0], partial[1]),
                                          _mm512_unpackhi_epi32(partial[0], partial[1]));
    __m512i vectors_23 = _mm512_add_epi32(_mm512_unpacklo_epi32(partial[2], partial[3]),
                                          _mm512_unpackhi_epi32(partial[2], partial[3]));
    return _mm512_add_epi32(_mm512_unpacklo_epi64(vectors_01, vectors_23),
                            _mm512_unpackhi_epi64(vectors_01, vectors_23));
}

AVX512_INLINE void store_first(__m128 results, float *output, size_t row_count)
{
    __mmask8 mask = (__mmask8)((1u << smaller(row_count, TILE_ROWS)) - 1);
    _mm_mask_storeu_ps(output, mask, results);
}

/* Four groups of 16 bytes, one per 128 bits. */
AVX512_INLINE __m512i load_4x128(const void *a, const void *b, const void *c, const void *d)
{
    __m512i all = _mm512_castsi128_si512(load_128(a));
    all = _mm512_inserti32x4(all, load_128(b), 1);
    all = _mm512_inserti32x4(all, load_128(c), 2);
    return _mm512_inserti32x4(all, load_128(d), 3);
}

AVX512_INLINE uint16_t load_u16(const uint8_t *bytes)
{
    uint16_t bits;
    memcpy(&bits, bytes, sizeof(bits));
    return bits;
}

/* The same field of four blocks of activations; offset: offsetof(struct host_act_block, ...). */
AVX512_INLINE __m128i load_field(const struct host_act_block *blocks, size_t offset)
{
    int32_t fields[4];
    for (size_t b = 0; b < 4; b++)
        memcpy(&fields[b], (const uint8_t *)&blocks[b] + offset, sizeof(fields[b]));
    return load_128(fields);
}

#define ACT_FIELD(blocks, field) load_field((blocks), offsetof(struct host_act_block, field))

/* Pointers to the rows of a tile. */
AVX512_INLINE void tile_rows(const struct host_matmul_task *task, size_t first_row,
                             const uint8_t *rows[TILE_ROWS])
{
    for (size_t r = 0; r < TILE_ROWS; r++)
        rows[r] = weight_row_clamped(task, first_row + r);
}

/* Prefetches the cache lines of the next tile at the pace this one is worked through, in the order
 * of their addresses: that is what the hardware's stream detection follows, while the four rows of
 * a tile side by side would defeat it. More streams run one, two, ... pages ahead of the first: one
 * alone cannot keep enough lines in flight (measured: 75 % of what reading in order achieves; with
 * three or four as much). Past the task's rows they go on with those of the thread's next task; a
 * prefetch of an address that is not mapped does nothing. */
#define PREFETCH_STREAMS 3
#define PREFETCH_STREAM_DISTANCE 4096

struct tile_prefetch {
    uintptr_t next;
    uintptr_t end;   /* of the next tile */
    uintptr_t limit; /* of the task's rows, if there is a next task */
    uintptr_t jump;  /* what brings an address past the limit to the next task */
};

AVX512_INLINE struct tile_prefetch tile_prefetch_begin(const struct host_matmul_task *task,
                                                       size_t first_row)
{
    uintptr_t weights = (uintptr_t)task->weights;
    uintptr_t limit = weights + task->weight_rows * task->weight_row_bytes;
    uintptr_t next_task = (uintptr_t)task->next_weights;
    uintptr_t next = weights + (first_row + TILE_ROWS) * task->weight_row_bytes;
    uintptr_t end = next + TILE_ROWS * task->weight_row_bytes;
    next = next < limit ? next : limit;
    /* Nothing was prefetched yet for the first tile. */
    if (first_row == 0 && !task->weights_are_coming)
        for (uintptr_t at = weights; at < next; at += 64)
            _mm_prefetch((const char *)at, _MM_HINT_T1);
    return (struct tile_prefetch){ .next = next,
                                   .end = next_task || end < limit ? end : limit,
                                   .limit = next_task ? limit : UINTPTR_MAX,
                                   .jump = next_task - limit };
}

/* bytes: what one step consumes. stream_count: usually PREFETCH_STREAMS. */
AVX512_INLINE void tile_prefetch_step(struct tile_prefetch *prefetch, size_t bytes,
                                      size_t stream_count)
{
    if (prefetch->next < prefetch->end) {
        for (size_t s = 0; s < stream_count; s++) {
            uintptr_t at = prefetch->next + s * PREFETCH_STREAM_DISTANCE;
            at += at >= prefetch->limit ? prefetch->jump : 0;
            for (size_t i = 0; i < bytes; i += 64)
                _mm_prefetch((const char *)(at + i), _MM_HINT_T1);
        }
    }
    prefetch->next += bytes;
}

#endif

#endif
