/* reference_rounding.h - what the reference rounds, in place. witness may be NULL. */
#ifndef GRETA_TESTS_REFERENCE_ROUNDING_H
#define GRETA_TESTS_REFERENCE_ROUNDING_H

#include "tensor/dtype.h"

#include <stddef.h>

/* Blocks of 32: levels of -127 to 127 of the largest magnitude, the scale in f32. */
void reference_round_q8(double *x, size_t count, const float *witness);
void reference_round_bf16(double *x, size_t count, const float *witness);
/* Through a cache of F32 (nothing changes), F16 or Q8_0 and back. */
void reference_round_cached(enum dtype dtype, double *x, size_t count, const float *witness);

#endif
