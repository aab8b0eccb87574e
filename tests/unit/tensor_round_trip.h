/* tensor_round_trip.h - what the tests of the encoders share. */
#ifndef GRETA_TESTS_TENSOR_ROUND_TRIP_H
#define GRETA_TESTS_TENSOR_ROUND_TRIP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tensor/quant.h"

#include <math.h>
#include <stdlib.h>

#define GUARD_BYTE 0xA5

/* Encodes and decodes; checks that nothing was written after the last block. The blocks start at
 * an odd address. Returns false if a decoded value is not finite. */
static inline bool round_trip(enum dtype dtype, const float *values, size_t count, float *decoded)
{
    uint64_t bytes = 0;
    assert_true(dtype_row_bytes(dtype, count, &bytes));
    uint8_t *storage = malloc((size_t)bytes + 2);
    assert_non_null(storage);
    storage[0] = GUARD_BYTE;
    storage[bytes + 1] = GUARD_BYTE;
    quant_encode_row(dtype, values, count, storage + 1);
    assert_int_equal(storage[0], GUARD_BYTE);
    assert_int_equal(storage[bytes + 1], GUARD_BYTE);
    quant_decode_row(dtype, storage + 1, count, decoded);
    free(storage);
    return quant_first_bad(decoded, count) == count;
}

static inline double relative_rms_error(const float *values, const float *decoded, size_t count)
{
    double error = 0;
    double power = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = (double)decoded[i] - (double)values[i];
        error += difference * difference;
        power += (double)values[i] * (double)values[i];
    }
    return sqrt(error / power);
}

#endif
