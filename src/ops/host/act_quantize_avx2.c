/* act_quantize_avx2.c - packs activations to struct host_act_block with AVX2. The bytes are those
 * of act_quantize.c, whose constants and cases these are. */
#include "ops/host/act_quantize.h"

#if defined(__x86_64__)

#include "ops/host/matmul_avx2.h"

AVX2_INLINE uint32_t largest_lane(__m256i lanes)
{
    __m128i four = _mm_max_epu32(_mm256_castsi256_si128(lanes), _mm256_extracti128_si256(lanes, 1));
    __m128i two = _mm_max_epu32(four, _mm_shuffle_epi32(four, 0x4E));
    return (uint32_t)_mm_cvtsi128_si32(_mm_max_epu32(two, _mm_shuffle_epi32(two, 0xB1)));
}

/* Quants of 32 values, in order. */
AVX2_INLINE __m256i levels_of(const __m256 values[4], __m256 factor, __m256 usable)
{
    __m256i rounded[4];
    for (size_t i = 0; i < 4; i++)
        rounded[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_and_ps(values[i], usable), factor));
    /* Packing takes from the halves in turn: dwords 0 4 1 5 2 6 3 7 bring them back in order. */
    __m256i mixed = _mm256_packs_epi16(_mm256_packs_epi32(rounded[0], rounded[1]),
                                       _mm256_packs_epi32(rounded[2], rounded[3]));
    return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* Sums of the quants of each half whose number mod 4 is 0 or 1, and 2 or 3. */
AVX2_INLINE void sum_pairs(__m256i levels, int32_t ret_sums[2][2])
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), levels);
    pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0x4E));
    pairs = _mm256_add_epi16(pairs, _mm256_shuffle_epi32(pairs, 0xB1));
    int32_t halves[2] = { _mm256_extract_epi32(pairs, 0), _mm256_extract_epi32(pairs, 4) };
    for (size_t half = 0; half < 2; half++) {
        ret_sums[half][0] = (int16_t)(halves[half] & 0xFFFF);
        ret_sums[half][1] = halves[half] >> 16;
    }
}

AVX2 void act_pack_q8_avx2(const float *values, size_t k, struct host_act_block *blocks)
{
    const __m256 magnitude_bits = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF));
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++, values += ACT_BLOCK) {
        __m256 parts[4];
        __m256i larger = _mm256_setzero_si256();
        for (size_t i = 0; i < 4; i++) {
            parts[i] = _mm256_loadu_ps(values + 8 * i);
            __m256 magnitudes = _mm256_and_ps(parts[i], magnitude_bits);
            larger = _mm256_max_epu32(larger, _mm256_castps_si256(magnitudes));
        }
        struct act_range range = act_range_of(largest_lane(larger));
        __m256 usable = _mm256_castsi256_ps(_mm256_set1_epi32(range.usable ? -1 : 0));
        __m256i levels = levels_of(parts, _mm256_set1_ps(range.factor), usable);
        int32_t pair_sums[2][2];
        _mm256_storeu_si256((__m256i *)(void *)blocks[b].levels, levels);
        sum_pairs(levels, pair_sums);
        act_block_finish(&blocks[b], range.scale, pair_sums);
    }
}

#endif
