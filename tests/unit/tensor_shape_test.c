/* tensor_shape_test.c - counts, sizes and texts of shapes, up to where 64 bits end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"
#include "tensor/shape.h"

#include <stdio.h>
#include <string.h>

#define MAX UINT64_MAX
#define UNTOUCHED 777u

static void test_make(void **state)
{
    (void)state;
    struct shape scalar = shape_make(0, NULL);
    struct shape matrix = shape_make(2, (const uint64_t[]){ 5, 7 });
    assert_int_equal(scalar.rank, 0);
    assert_int_equal(matrix.rank, 2);
    for (size_t i = 0; i < SHAPE_RANK_LIMIT; i++) {
        assert_int_equal(scalar.dims[i], 1);
        assert_int_equal(matrix.dims[i], i == 0 ? 5 : i == 1 ? 7 : 1);
    }
}

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[SHAPE_RANK_LIMIT];
        bool elements_fit;
        uint64_t element_count;
        bool rows_fit;
        uint64_t row_count;
    } rows[] = {
        { "scalar", 0, { 0 }, true, 1, true, 1 },
        { "vector", 1, { 9 }, true, 9, true, 1 },
        { "matrix", 2, { 4096, 32000 }, true, 131072000, true, 32000 },
        { "all four", 4, { 2, 3, 5, 7 }, true, 210, true, 105 },
        { "empty row", 2, { 0, 6 }, true, 0, true, 6 },
        { "no rows", 2, { 6, 0 }, true, 0, true, 0 },
        { "largest count", 1, { MAX }, true, MAX, true, 1 },
        { "2^64 elements", 2, { 1ull << 32, 1ull << 32 }, false, 0, true, 1ull << 32 },
        { "2^64 rows", 3, { 1, 1ull << 32, 1ull << 32 }, false, 0, false, 0 },
        { "wraps to a small number", 3, { 3, MAX, MAX }, false, 0, false, 0 },
        { "empty although rows wrap", 3, { 0, MAX, MAX }, true, 0, false, 0 },
        { "empty, zero comes last", 4, { 2, MAX, MAX, 0 }, true, 0, true, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct shape shape = shape_make(rows[i].rank, rows[i].dims);
        uint64_t elements = UNTOUCHED;
        uint64_t row_count = UNTOUCHED;
        bool elements_fit = shape_element_count(&shape, &elements);
        bool rows_fit = shape_row_count(&shape, &row_count);
        if (elements_fit != rows[i].elements_fit ||
            elements != (elements_fit ? rows[i].element_count : UNTOUCHED))
            fail_msg("%s: elements", rows[i].name);
        if (rows_fit != rows[i].rows_fit || row_count != (rows_fit ? rows[i].row_count : UNTOUCHED))
            fail_msg("%s: rows", rows[i].name);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum dtype dtype;
        uint32_t rank;
        uint64_t dims[SHAPE_RANK_LIMIT];
        bool fits;
        uint64_t bytes;
    } rows[] = {
        { "scalar float", DTYPE_F32, 0, { 0 }, true, 4 },
        { "linear weight", DTYPE_Q4_K, 2, { 4096, 11008 }, true, 16ull * 144 * 11008 },
        { "experts", DTYPE_MXFP4, 3, { 64, 3, 5 }, true, 2 * 17 * 15 },
        { "row is no whole block", DTYPE_Q4_K, 2, { 128, 2 }, false, 0 },
        { "whole blocks over rows do not help", DTYPE_Q8_0, 2, { 16, 2 }, false, 0 },
        { "scalar of a block type", DTYPE_Q8_0, 0, { 0 }, false, 0 },
        { "no rows", DTYPE_Q8_0, 2, { 32, 0 }, true, 0 },
        { "empty rows", DTYPE_Q8_0, 4, { 0, MAX, MAX, 2 }, true, 0 },
        { "elements fit, bytes do not", DTYPE_F32, 2, { 1ull << 31, 1ull << 31 }, false, 0 },
        { "bytes fit exactly",
          DTYPE_F32,
          2,
          { 1ull << 30, (1ull << 32) - 1 },
          true,
          MAX - (1ull << 32) + 1 },
        { "a row wraps", DTYPE_F64, 1, { 1ull << 61 }, false, 0 },
        { "rows wrap", DTYPE_I8, 4, { 1, 1ull << 32, 1ull << 16, 1ull << 16 }, false, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct shape shape = shape_make(rows[i].rank, rows[i].dims);
        uint64_t bytes = UNTOUCHED;
        bool fits = shape_bytes(&shape, rows[i].dtype, &bytes);
        if (fits != rows[i].fits || bytes != (fits ? rows[i].bytes : UNTOUCHED))
            fail_msg("%s: fits %d, %llu bytes", rows[i].name, fits, (unsigned long long)bytes);
    }
}

static void test_equal(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct shape a;
        struct shape b;
        bool equal;
    } rows[] = {
        { "same", { 2, { 3, 4, 1, 1 } }, { 2, { 3, 4, 1, 1 } }, true },
        { "vector and column", { 1, { 3, 1, 1, 1 } }, { 2, { 3, 1, 1, 1 } }, true },
        { "scalar and [1]", { 0, { 1, 1, 1, 1 } }, { 1, { 1, 1, 1, 1 } }, true },
        { "transposed", { 2, { 3, 4, 1, 1 } }, { 2, { 4, 3, 1, 1 } }, false },
        { "vector and row", { 1, { 3, 1, 1, 1 } }, { 2, { 1, 3, 1, 1 } }, false },
        { "last differs", { 4, { 2, 2, 2, 2 } }, { 4, { 2, 2, 2, 3 } }, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (shape_equal(&rows[i].a, &rows[i].b) != rows[i].equal ||
            shape_equal(&rows[i].b, &rows[i].a) != rows[i].equal)
            fail_msg("%s", rows[i].name);
    }
}

static void test_text(void **state)
{
    (void)state;
    static const struct {
        uint32_t rank;
        uint64_t dims[SHAPE_RANK_LIMIT];
        const char *text;
    } rows[] = {
        { 0, { 0 }, "[]" },
        { 1, { 0 }, "[0]" },
        { 2, { 4096, 32000 }, "[4096, 32000]" },
        { 2, { 7, 1 }, "[7, 1]" },
        { 4,
          { MAX, MAX, MAX, MAX },
          "[18446744073709551615, 18446744073709551615, 18446744073709551615, "
          "18446744073709551615]" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct shape shape = shape_make(rows[i].rank, rows[i].dims);
        char text[SHAPE_TEXT_BYTES];
        memset(text, '#', sizeof(text));
        assert_ptr_equal(shape_text(&shape, text), text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_make),  cmocka_unit_test(test_counts), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_equal), cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
