/* tensor_quant_test.c - which formats can be read and written, and the search for bad values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/quant.h"

#include <math.h>

/* Every format that is not listed can be neither decoded nor encoded. */
static const struct {
    enum dtype dtype;
    bool encodes;
} codec_rows[] = {
    { DTYPE_F32, true },   { DTYPE_F16, true },   { DTYPE_BF16, true },    { DTYPE_Q4_0, true },
    { DTYPE_Q4_1, true },  { DTYPE_Q5_0, true },  { DTYPE_Q5_1, true },    { DTYPE_Q8_0, true },
    { DTYPE_MXFP4, true }, { DTYPE_Q2_K, false }, { DTYPE_Q3_K, false },   { DTYPE_Q4_K, true },
    { DTYPE_Q5_K, true },  { DTYPE_Q6_K, true },  { DTYPE_IQ4_NL, false }, { DTYPE_IQ4_XS, false },
};

static void test_codecs(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        bool decodes = false;
        bool encodes = false;
        for (size_t i = 0; i < COUNT_OF(codec_rows); i++) {
            if (codec_rows[i].dtype == (enum dtype)dtype) {
                decodes = true;
                encodes = codec_rows[i].encodes;
            }
        }
        assert_int_equal(quant_can_decode((enum dtype)dtype), decodes);
        assert_int_equal(quant_can_encode((enum dtype)dtype), encodes);
    }
}

/* No block is read or written, and no pointer is looked at. */
static void test_no_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codec_rows); i++) {
        quant_decode_row(codec_rows[i].dtype, NULL, 0, NULL);
        if (codec_rows[i].encodes)
            quant_encode_row(codec_rows[i].dtype, NULL, 0, NULL);
    }
}

static void test_first_bad(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        float values[4];
        size_t index;
    } rows[] = {
        { "all finite", { 0, -1, 3.4e38f, 1e-45f }, 4 },
        { "NaN first", { NAN, 0, NAN, 0 }, 0 },
        { "infinity last", { 0, 0, 0, INFINITY }, 3 },
        { "minus infinity before NaN", { 0, -INFINITY, NAN, 0 }, 1 },
        { "negative NaN", { 0, 0, -NAN, 0 }, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (quant_first_bad(rows[i].values, 4) != rows[i].index)
            fail_msg("%s", rows[i].name);
    }
    assert_int_equal(quant_first_bad(NULL, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codecs),
        cmocka_unit_test(test_no_blocks),
        cmocka_unit_test(test_first_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
