/* tensor_half_test.c - f16 and bf16, all bit patterns, against arithmetic and the compiler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"
#include "tensor_random.h"

#include <math.h>
#include <string.h>

#define RANDOM_PATTERNS 1000000

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint32_t to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static bool f16_is_nan(uint32_t bits)
{
    return (bits & 0x7FFF) > 0x7C00;
}

/* The definition of binary16, in double; infinities too, not NaN. */
static double f16_definition(uint32_t bits)
{
    int exponent = (int)(bits >> 10 & 31);
    double mantissa = (double)(bits & 1023);
    double magnitude;
    if (exponent == 31)
        magnitude = INFINITY;
    else if (exponent == 0)
        magnitude = ldexp(mantissa, -24);
    else
        magnitude = ldexp(1024 + mantissa, exponent - 25);
    return bits & 0x8000 ? -magnitude : magnitude;
}

static void test_f16_all_patterns(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = f16_to_f32((uint16_t)bits);
        uint16_t back = f16_from_f32(value);
        if (f16_is_nan(bits)) {
            assert_true(isnan(value));
            assert_true(f16_is_nan(back));
            assert_int_equal(back & 0x8000, bits & 0x8000);
            continue;
        }
        if (to_bits(value) != to_bits((float)f16_definition(bits)) || back != bits)
            fail_msg("0x%04X is %a and goes back to 0x%04X", bits, (double)value, back);
    }
}

/* Between two neighbours the nearer one wins, and in the middle the even one. */
static void test_f16_neighbours(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x7BFF; bits++) {
        float low = f16_to_f32((uint16_t)bits);
        float high = f16_to_f32((uint16_t)(bits + 1));
        float middle = (low + high) / 2; /* exact */
        uint32_t even = bits & 1 ? bits + 1 : bits;
        assert_int_equal(f16_from_f32(middle), even);
        assert_int_equal(f16_from_f32(-middle), even | 0x8000);
        assert_int_equal(f16_from_f32(nextafterf(middle, 0)), bits);
        assert_int_equal(f16_from_f32(nextafterf(middle, INFINITY)), bits + 1);
    }
}

static void test_f16_edges(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t f32;
        uint16_t f16;
    } rows[] = {
        { "zero", 0x00000000, 0x0000 },
        { "minus zero", 0x80000000, 0x8000 },
        { "one", 0x3F800000, 0x3C00 },
        { "largest finite, 65504", 0x477FE000, 0x7BFF },
        { "just below 65520", 0x477FEFFF, 0x7BFF },
        { "65520 overflows", 0x477FF000, 0x7C00 },
        { "largest f32", 0x7F7FFFFF, 0x7C00 },
        { "infinity", 0x7F800000, 0x7C00 },
        { "minus infinity", 0xFF800000, 0xFC00 },
        { "smallest normal", 0x38800000, 0x0400 },
        { "rounds up to the smallest normal", 0x387FF000, 0x0400 },
        { "largest subnormal", 0x387FC000, 0x03FF },
        { "smallest subnormal, 2^-24", 0x33800000, 0x0001 },
        { "2^-25 is a tie to zero", 0x33000000, 0x0000 },
        { "just above 2^-25", 0x33000001, 0x0001 },
        { "just below 2^-25", 0x32FFFFFF, 0x0000 },
        { "smallest f32", 0x00000001, 0x0000 },
        { "minus smallest f32", 0x80000001, 0x8000 },
        { "quiet NaN", 0x7FC00000, 0x7E00 },
        { "signalling NaN, payload lost, still NaN", 0x7F800001, 0x7E00 },
        { "NaN keeps sign and upper payload", 0xFFC02000, 0xFE01 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint16_t found = f16_from_f32(from_bits(rows[i].f32));
        if (found != rows[i].f16)
            fail_msg("%s: 0x%04X", rows[i].name, found);
    }
}

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 native_f16; /* not ISO C */

static uint16_t compiler_f16_bits(float value)
{
    native_f16 half = (native_f16)value;
    uint16_t bits;
    memcpy(&bits, &half, sizeof(bits));
    return bits;
}

static float compiler_f16_value(uint16_t bits)
{
    native_f16 half;
    memcpy(&half, &bits, sizeof(half));
    return (float)half;
}

static void check_against_compiler(uint32_t bits)
{
    float value = from_bits(bits);
    uint16_t found = f16_from_f32(value);
    uint16_t expected = compiler_f16_bits(value);
    if (isnan(value) ? !f16_is_nan(found) : found != expected)
        fail_msg("f32 0x%08X: 0x%04X, the compiler says 0x%04X", bits, found, expected);
}

static void test_f16_against_compiler(void **state)
{
    (void)state;
    struct random_state random = { 16 };
    for (size_t i = 0; i < RANDOM_PATTERNS; i++) {
        uint64_t bits = random_u64(&random);
        check_against_compiler((uint32_t)bits);
        /* Few random patterns are in the range of f16: force exponents 2^-27 to 2^17. */
        uint32_t exponent = 100 + (uint32_t)(bits >> 32) % 45;
        check_against_compiler(((uint32_t)bits & 0x807FFFFF) | exponent << 23);
    }
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        if (!f16_is_nan(bits))
            assert_int_equal(to_bits(f16_to_f32((uint16_t)bits)),
                             to_bits(compiler_f16_value((uint16_t)bits)));
    }
}
#else
static void test_f16_against_compiler(void **state)
{
    (void)state;
    skip(); /* this compiler has no _Float16 here */
}
#endif

static void test_bf16_all_patterns(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = bf16_to_f32((uint16_t)bits);
        uint16_t back = bf16_from_f32(value);
        assert_int_equal(to_bits(value), bits << 16);
        if (isnan(value))
            assert_int_equal(back, bits | 0x40);
        else
            assert_int_equal(back, bits);
    }
}

static void test_bf16_rounding(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t f32;
        uint16_t bf16;
    } rows[] = {
        { "below the middle", 0x3F807FFF, 0x3F80 },
        { "middle to even, down", 0x3F808000, 0x3F80 },
        { "above the middle", 0x3F808001, 0x3F81 },
        { "middle to even, up", 0x3F818000, 0x3F82 },
        { "negative middle", 0xBF818000, 0xBF82 },
        { "carry into the exponent", 0x3FFF8000, 0x4000 },
        { "largest f32 becomes infinity", 0x7F7FFFFF, 0x7F80 },
        { "subnormal", 0x00018000, 0x0002 },
        { "smallest f32", 0x00000001, 0x0000 },
        { "NaN whose payload is in the lost bits", 0x7F800001, 0x7FC0 },
        { "NaN that rounding would wrap", 0xFFFFFFFF, 0xFFFF },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint16_t found = bf16_from_f32(from_bits(rows[i].f32));
        if (found != rows[i].bf16)
            fail_msg("%s: 0x%04X", rows[i].name, found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16_all_patterns),  cmocka_unit_test(test_f16_neighbours),
        cmocka_unit_test(test_f16_edges),         cmocka_unit_test(test_f16_against_compiler),
        cmocka_unit_test(test_bf16_all_patterns), cmocka_unit_test(test_bf16_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
