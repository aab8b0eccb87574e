/* tensor_dtype_test.c - the table of element types against the format's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/dtype.h"

#include <string.h>

struct dtype_row {
    const char *name;
    enum dtype dtype;
    uint32_t file_id;
    uint32_t block_elements;
    uint32_t block_bytes;
};

static const struct dtype_row dtype_rows[] = {
    { "F32", DTYPE_F32, 0, 1, 4 },
    { "F16", DTYPE_F16, 1, 1, 2 },
    { "Q4_0", DTYPE_Q4_0, 2, 32, 2 + 16 },
    { "Q4_1", DTYPE_Q4_1, 3, 32, 2 + 2 + 16 },
    { "Q5_0", DTYPE_Q5_0, 6, 32, 2 + 4 + 16 },
    { "Q5_1", DTYPE_Q5_1, 7, 32, 2 + 2 + 4 + 16 },
    { "Q8_0", DTYPE_Q8_0, 8, 32, 2 + 32 },
    { "Q8_1", DTYPE_Q8_1, 9, 32, 2 + 2 + 32 },
    { "Q2_K", DTYPE_Q2_K, 10, 256, 16 + 64 + 2 + 2 },
    { "Q3_K", DTYPE_Q3_K, 11, 256, 32 + 64 + 12 + 2 },
    { "Q4_K", DTYPE_Q4_K, 12, 256, 2 + 2 + 12 + 128 },
    { "Q5_K", DTYPE_Q5_K, 13, 256, 2 + 2 + 12 + 32 + 128 },
    { "Q6_K", DTYPE_Q6_K, 14, 256, 128 + 64 + 16 + 2 },
    { "Q8_K", DTYPE_Q8_K, 15, 256, 4 + 256 + 32 },
    { "IQ2_XXS", DTYPE_IQ2_XXS, 16, 256, 2 + 64 },
    { "IQ2_XS", DTYPE_IQ2_XS, 17, 256, 2 + 64 + 8 },
    { "IQ3_XXS", DTYPE_IQ3_XXS, 18, 256, 2 + 64 + 32 },
    { "IQ1_S", DTYPE_IQ1_S, 19, 256, 2 + 32 + 16 },
    { "IQ4_NL", DTYPE_IQ4_NL, 20, 32, 2 + 16 },
    { "IQ3_S", DTYPE_IQ3_S, 21, 256, 2 + 64 + 8 + 32 + 4 },
    { "IQ2_S", DTYPE_IQ2_S, 22, 256, 2 + 32 + 32 + 8 + 8 },
    { "IQ4_XS", DTYPE_IQ4_XS, 23, 256, 2 + 2 + 4 + 128 },
    { "I8", DTYPE_I8, 24, 1, 1 },
    { "I16", DTYPE_I16, 25, 1, 2 },
    { "I32", DTYPE_I32, 26, 1, 4 },
    { "I64", DTYPE_I64, 27, 1, 8 },
    { "F64", DTYPE_F64, 28, 1, 8 },
    { "IQ1_M", DTYPE_IQ1_M, 29, 256, 32 + 16 + 8 },
    { "BF16", DTYPE_BF16, 30, 1, 2 },
    { "TQ1_0", DTYPE_TQ1_0, 34, 256, 48 + 4 + 2 },
    { "TQ2_0", DTYPE_TQ2_0, 35, 256, 64 + 2 },
    { "MXFP4", DTYPE_MXFP4, 39, 32, 1 + 16 },
    { "NVFP4", DTYPE_NVFP4, 40, 64, 4 + 32 },
    { "Q1_0", DTYPE_Q1_0, 41, 128, 2 + 16 },
    { "Q2_0", DTYPE_Q2_0, 42, 64, 2 + 16 },
    { "Q8_0_X8", DTYPE_Q8_0_X8, DTYPE_NO_FILE_ID, 8 * 32, 8 * 34 },
    { "Q6_K_X8", DTYPE_Q6_K_X8, DTYPE_NO_FILE_ID, 8 * 256, 8 * 210 },
};
_Static_assert(COUNT_OF(dtype_rows) == DTYPE_COUNT, "every dtype is tested");

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dtype_rows); i++) {
        const struct dtype_row *row = &dtype_rows[i];
        const struct dtype_info *info = dtype_info(row->dtype);
        assert_string_equal(info->name, row->name);
        assert_string_equal(dtype_name(row->dtype), row->name);
        assert_int_equal(info->file_id, row->file_id);
        assert_int_equal(info->block_elements, row->block_elements);
        assert_int_equal(info->block_bytes, row->block_bytes);
    }
}

static void test_from_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dtype_rows); i++) {
        char lower[16] = { 0 };
        for (size_t k = 0; dtype_rows[i].name[k]; k++) {
            char c = dtype_rows[i].name[k];
            lower[k] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
        }
        enum dtype dtype = DTYPE_COUNT;
        assert_true(dtype_from_name(dtype_rows[i].name, &dtype));
        assert_int_equal(dtype, dtype_rows[i].dtype);
        dtype = DTYPE_COUNT;
        assert_true(dtype_from_name(lower, &dtype));
        assert_int_equal(dtype, dtype_rows[i].dtype);
    }
}

static void test_from_unknown_name(void **state)
{
    (void)state;
    static const char *const names[] = {
        "", "Q", "Q4", "Q4_", "Q4_00", "Q4_K_M", " Q4_K", "Q4_K ", "Q4-K", "F3", "F320", "Q4_2",
    };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        enum dtype dtype = DTYPE_COUNT;
        assert_false(dtype_from_name(names[i], &dtype));
        assert_int_equal(dtype, DTYPE_COUNT);
    }
}

/* Every id is exactly one of: a row, withdrawn, unknown. */
static void test_from_file_id(void **state)
{
    (void)state;
    static const struct {
        uint32_t file_id;
        const char *name;
    } withdrawn[] = {
        { 4, "Q4_2" },      { 5, "Q4_3" },        { 31, "Q4_0_4_4" },   { 32, "Q4_0_4_8" },
        { 33, "Q4_0_8_8" }, { 36, "IQ4_NL_4_4" }, { 37, "IQ4_NL_4_8" }, { 38, "IQ4_NL_8_8" },
    };
    for (uint32_t id = 0; id < 100; id++) {
        const struct dtype_row *expected = NULL;
        const char *expected_withdrawn = NULL;
        for (size_t i = 0; i < COUNT_OF(dtype_rows); i++) {
            if (dtype_rows[i].file_id == id)
                expected = &dtype_rows[i];
        }
        for (size_t i = 0; i < COUNT_OF(withdrawn); i++) {
            if (withdrawn[i].file_id == id)
                expected_withdrawn = withdrawn[i].name;
        }
        enum dtype dtype = DTYPE_COUNT;
        assert_int_equal(dtype_from_file_id(id, &dtype), expected != NULL);
        assert_int_equal(dtype, expected ? expected->dtype : DTYPE_COUNT);
        if (expected_withdrawn)
            assert_string_equal(dtype_withdrawn_name(id), expected_withdrawn);
        else
            assert_null(dtype_withdrawn_name(id));
    }
    enum dtype dtype = DTYPE_COUNT;
    assert_false(dtype_from_file_id(UINT32_MAX, &dtype));
    assert_null(dtype_withdrawn_name(UINT32_MAX));
}

static void test_row_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum dtype dtype;
        uint64_t element_count;
        bool fits;
        uint64_t bytes;
    } rows[] = {
        { "empty row", DTYPE_Q4_K, 0, true, 0 },
        { "one float", DTYPE_F32, 1, true, 4 },
        { "one block", DTYPE_Q8_0, 32, true, 34 },
        { "a row of blocks", DTYPE_Q6_K, 4096, true, 3360 },
        { "half a block", DTYPE_Q4_0, 16, false, 0 },
        { "one element short", DTYPE_Q4_K, 255, false, 0 },
        { "one element more", DTYPE_Q4_K, 257, false, 0 },
        { "largest that fits", DTYPE_F32, UINT64_MAX / 4, true, UINT64_MAX - 3 },
        { "one more wraps", DTYPE_F32, UINT64_MAX / 4 + 1, false, 0 },
        { "blocks that shrink cannot wrap", DTYPE_Q4_0, UINT64_MAX - 31, true,
          (UINT64_MAX / 32) * 18 },
        { "blocks that grow can", DTYPE_Q8_0, UINT64_MAX - 31, false, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t bytes = 777;
        bool fits = dtype_row_bytes(rows[i].dtype, rows[i].element_count, &bytes);
        if (fits != rows[i].fits || bytes != (fits ? rows[i].bytes : 777))
            fail_msg("%s: fits %d, %llu bytes", rows[i].name, fits, (unsigned long long)bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_from_name),
        cmocka_unit_test(test_from_unknown_name),
        cmocka_unit_test(test_from_file_id),
        cmocka_unit_test(test_row_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
