/* quant.h - scalar reference conversion between float and every block format greta can read or
 * write. Kernels are tested against these; quantize and synth write with them.
 *
 * Rows are whole numbers of blocks: element_count is a multiple of dtype_info()->block_elements.
 * Blocks have no alignment (17, 18, 34, 210 bytes): all access is bytewise. Functions here hold no
 * state and may be called from any thread. */
#ifndef GRETA_TENSOR_QUANT_H
#define GRETA_TENSOR_QUANT_H

#include "tensor/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool quant_can_decode(enum dtype dtype);
bool quant_can_encode(enum dtype dtype);

/* Exact: every value is what the format's formula gives, in f32. dtype must be decodable. */
void quant_decode_row(enum dtype dtype, const uint8_t *blocks, size_t element_count, float *values);

/* values must be finite (see quant_first_bad). dtype must be encodable. */
void quant_encode_row(enum dtype dtype, const float *values, size_t element_count, uint8_t *blocks);

/* Index of the first NaN or infinity, or element_count if there is none. */
size_t quant_first_bad(const float *values, size_t element_count);

/* Scalar conversions; round to nearest even, subnormals kept, NaN stays NaN. */
float f16_to_f32(uint16_t bits);
uint16_t f16_from_f32(float value);
float bf16_to_f32(uint16_t bits);
uint16_t bf16_from_f32(float value);

#endif
