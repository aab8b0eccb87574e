/* quant.c - which formats can be decoded and encoded, and by which function.
 *
 * The formats themselves are in decode_*.c and encode_*.c; half.c has the scalar conversions. */
#include "tensor/quant.h"

#include "base/status.h"
#include "tensor/quant_impl.h"

struct codec {
    quant_decode_function decode; /* NULL if greta cannot read the format */
    quant_encode_function encode; /* NULL if greta cannot write it */
};

/* A dtype without a row can be neither decoded nor encoded. */
static const struct codec codecs[DTYPE_COUNT] = {
    [DTYPE_F32] = { quant_decode_f32, quant_encode_f32 },
    [DTYPE_F16] = { quant_decode_f16, quant_encode_f16 },
    [DTYPE_BF16] = { quant_decode_bf16, quant_encode_bf16 },
    [DTYPE_Q8_0] = { quant_decode_q8_0, quant_encode_q8_0 },
    [DTYPE_Q4_0] = { quant_decode_q4_0, quant_encode_q4_0 },
    [DTYPE_Q4_1] = { quant_decode_q4_1, quant_encode_q4_1 },
    [DTYPE_Q5_0] = { quant_decode_q5_0, quant_encode_q5_0 },
    [DTYPE_Q5_1] = { quant_decode_q5_1, quant_encode_q5_1 },
    [DTYPE_Q2_K] = { quant_decode_q2_k, NULL },
    [DTYPE_Q3_K] = { quant_decode_q3_k, NULL },
    [DTYPE_Q4_K] = { quant_decode_q4_k, quant_encode_q4_k },
    [DTYPE_Q5_K] = { quant_decode_q5_k, quant_encode_q5_k },
    [DTYPE_Q6_K] = { quant_decode_q6_k, quant_encode_q6_k },
    [DTYPE_IQ4_NL] = { quant_decode_iq4_nl, NULL },
    [DTYPE_IQ4_XS] = { quant_decode_iq4_xs, NULL },
    [DTYPE_MXFP4] = { quant_decode_mxfp4, quant_encode_mxfp4 },
};

static const struct codec *codec_find(enum dtype dtype)
{
    ASSERT((size_t)dtype < DTYPE_COUNT);
    return &codecs[dtype];
}

static size_t row_block_count(enum dtype dtype, size_t element_count)
{
    const struct dtype_info *info = dtype_info(dtype);
    ASSERT(element_count % info->block_elements == 0);
    return element_count / info->block_elements;
}

bool quant_can_decode(enum dtype dtype)
{
    return codec_find(dtype)->decode != NULL;
}

bool quant_can_encode(enum dtype dtype)
{
    return codec_find(dtype)->encode != NULL;
}

void quant_decode_row(enum dtype dtype, const uint8_t *blocks, size_t element_count, float *values)
{
    const struct codec *codec = codec_find(dtype);
    ASSERT(codec->decode);
    codec->decode(blocks, row_block_count(dtype, element_count), values);
}

void quant_encode_row(enum dtype dtype, const float *values, size_t element_count, uint8_t *blocks)
{
    const struct codec *codec = codec_find(dtype);
    ASSERT(codec->encode);
    codec->encode(values, row_block_count(dtype, element_count), blocks);
}

size_t quant_first_bad(const float *values, size_t element_count)
{
    const uint32_t exponent_mask = 0x7F800000u; /* all ones in NaN and infinity only */
    for (size_t i = 0; i < element_count; i++) {
        if ((f32_bits(values[i]) & exponent_mask) == exponent_mask)
            return i;
    }
    return element_count;
}
