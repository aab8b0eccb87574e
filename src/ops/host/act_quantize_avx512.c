/* act_quantize_avx512.c - packs activations to struct host_act_block with AVX-512. The bytes are
 * those of act_quantize.c, whose constants and cases these are. */
#include "ops/host/act_quantize.h"

#if defined(__x86_64__)

#include "ops/host/matmul_avx512.h"

/* Quants of 16 values, stored. ret_sums: of those whose number mod 4 is 0 or 1, and 2 or 3. usable:
 * all lanes or none. */
AVX512_INLINE void store_levels(__m512 values, __m512 factor, __mmask16 usable, int8_t *levels,
                                int32_t ret_sums[2])
{
    __m512i rounded = _mm512_cvtps_epi32(_mm512_maskz_mul_ps(usable, values, factor));
    _mm_storeu_si128((__m128i *)(void *)levels, _mm512_cvtsepi32_epi8(rounded));
    ret_sums[0] = _mm512_mask_reduce_add_epi32(0x3333, rounded);
    ret_sums[1] = _mm512_mask_reduce_add_epi32(0xCCCC, rounded);
}

AVX512 void act_pack_q8_avx512(const float *values, size_t k, struct host_act_block *blocks)
{
    const __m512i magnitude_bits = _mm512_set1_epi32(0x7FFFFFFF);
    size_t block_count = k / ACT_BLOCK;
    for (size_t b = 0; b < block_count; b++, values += ACT_BLOCK) {
        __m512 first = _mm512_loadu_ps(values);
        __m512 second = _mm512_loadu_ps(values + 16);
        __m512i larger = _mm512_max_epu32(
            _mm512_and_si512(_mm512_castps_si512(first), magnitude_bits),
            _mm512_and_si512(_mm512_castps_si512(second), magnitude_bits));
        struct act_range range = act_range_of(_mm512_reduce_max_epu32(larger));
        __mmask16 usable = range.usable ? 0xFFFF : 0;
        __m512 factor = _mm512_set1_ps(range.factor);
        int32_t pair_sums[2][2];
        store_levels(first, factor, usable, blocks[b].levels, pair_sums[0]);
        store_levels(second, factor, usable, blocks[b].levels + 16, pair_sums[1]);
        act_block_finish(&blocks[b], range.scale, pair_sums);
    }
}

#endif
