/* ops_host_rows_test.c - embed, gather_rows and add on every path: exact results, bad indices, and
 * nothing touched but the rows. */
#include "ops_host_rig.h"

#include "tensor/quant.h"

static const enum dtype table_dtypes[] = {
    DTYPE_F32,  DTYPE_F16,    DTYPE_BF16,   DTYPE_Q8_0,  DTYPE_Q4_0, DTYPE_Q4_1,
    DTYPE_Q5_0, DTYPE_Q5_1,   DTYPE_Q2_K,   DTYPE_Q3_K,  DTYPE_Q4_K, DTYPE_Q5_K,
    DTYPE_Q6_K, DTYPE_IQ4_NL, DTYPE_IQ4_XS, DTYPE_MXFP4,
};

/* Bytes below 0x70 make no NaN in any type, so that floats can be compared. */
static void fill_table(struct rig *rig)
{
    struct random_state random = { .counter = 5 };
    for (size_t i = 0; i < rig->memory[0].byte_count; i++)
        rig->memory[0].bytes[i] = (uint8_t)(random_u64(&random) % 0x70);
}

static void check_embed(enum cpu_path path, enum dtype dtype, uint64_t width)
{
    static const int32_t ids[] = { 6, 0, 3, 3, -1, 5, 7, INT32_MIN, 1, INT32_MAX, 2 };
    const uint64_t vocab = 7;
    char name[96];
    snprintf(name, sizeof(name), "%s embed %s width %d", cpu_path_name(path), dtype_name(dtype),
             (int)width);
    struct rig rig;
    rig_init(&rig, NULL, name);
    rig_operand(&rig, 0, dtype, width, vocab, 0);
    rig_list(&rig, 1, ids, COUNT_OF(ids));
    rig_operand(&rig, 2, DTYPE_F32, width, COUNT_OF(ids), 12);
    fill_table(&rig);
    rig_run(&rig, rig_kernel(path, "embed"), rig_tiles(COUNT_OF(ids), TILE_TOKENS), false);
    float *expected = malloc(width * sizeof(float));
    for (size_t t = 0; t < COUNT_OF(ids); t++) {
        const uint8_t *row = (const uint8_t *)rig_row(&rig, 2, t);
        if (ids[t] < 0 || (uint64_t)ids[t] >= vocab) {
            assert_true(rig_is_untouched(row, width * sizeof(float)));
            continue;
        }
        quant_decode_row(dtype,
                         rig.memory[0].bytes + (uint64_t)ids[t] * rig.operands[0].row_stride_bytes,
                         width, expected);
        assert_memory_equal(row, expected, width * sizeof(float));
    }
    free(expected);
    assert_int_equal(rig.crumbs->trap_count, 4);
    rig_check_trap(&rig, 0, 1, -1, vocab);
    rig_check_trap(&rig, 1, 1, 7, vocab);
    rig_check_trap(&rig, 2, 1, INT32_MIN, vocab);
    rig_check_trap(&rig, 3, 1, INT32_MAX, vocab);
    rig_check_margins(&rig);
    rig_release(&rig);
}

static void test_embed(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t d = 0; d < COUNT_OF(table_dtypes); d++) {
            uint64_t block = dtype_info(table_dtypes[d])->block_elements;
            check_embed((enum cpu_path)path, table_dtypes[d], block);
            check_embed((enum cpu_path)path, table_dtypes[d], 3 * block);
        }
    }
}

static void check_gather(enum cpu_path path, uint64_t width)
{
    static const int32_t rows[] = { 4, -1, 0, 0, 5, 3, INT32_MIN };
    struct rig rig;
    rig_init(&rig, NULL, "gather_rows");
    rig_operand(&rig, 0, DTYPE_F32, width, 5, 20);
    rig_list(&rig, 1, rows, COUNT_OF(rows));
    rig_operand(&rig, 2, DTYPE_F32, width, COUNT_OF(rows), 4);
    rig_fill(&rig, 0, 9, 1);
    rig_run(&rig, rig_kernel(path, "gather_rows"), rig_tiles(COUNT_OF(rows), TILE_TOKENS), true);
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        if (rows[r] < 0 || rows[r] >= 5)
            assert_true(rig_is_untouched((uint8_t *)rig_row(&rig, 2, r), width * sizeof(float)));
        else
            assert_memory_equal(rig_row(&rig, 2, r), rig_row(&rig, 0, (uint64_t)rows[r]),
                                width * sizeof(float));
    }
    assert_int_equal(rig.crumbs->trap_count, 3);
    rig_check_trap(&rig, 0, 1, 5, 5); /* backwards: tile 1 comes first */
    rig_check_trap(&rig, 1, 1, INT32_MIN, 5);
    rig_check_trap(&rig, 2, 1, -1, 5);
    rig_check_margins(&rig);
    rig_release(&rig);
}

static void test_gather_rows(void **state)
{
    (void)state;
    static const uint64_t widths[] = { 1, 8, 17, 1000 };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        for (size_t w = 0; w < COUNT_OF(widths) && cpu_path_is_supported((enum cpu_path)path); w++)
            check_gather((enum cpu_path)path, widths[w]);
    }
}

static void check_add(enum cpu_path path, uint64_t width, uint64_t tokens)
{
    struct rig rig;
    rig_init(&rig, NULL, "add");
    rig_operand(&rig, 0, DTYPE_F32, width, tokens, 8);
    rig_operand(&rig, 1, DTYPE_F32, width, tokens, 0);
    rig_fill(&rig, 0, 1, 1);
    rig_fill(&rig, 1, 2, 100);
    uint8_t *before = rig_copy(&rig, 0);
    uint8_t *added = rig_copy(&rig, 1);
    rig_run(&rig, rig_kernel(path, "add"), rig_tiles(tokens, TILE_TOKENS), false);
    for (uint64_t t = 0; t < tokens; t++) {
        const float *x = (const float *)(const void *)(before + t * (width * 4 + 8));
        for (uint64_t i = 0; i < width; i++) {
            /* The f64 sum is exact enough that rounding it once more is the f32 sum. */
            float expected = (float)((double)x[i] + (double)rig_row(&rig, 1, t)[i]);
            rig_check_near(&rig, t, i, rig_row(&rig, 0, t)[i], (double)expected, 0);
        }
    }
    rig_check_same(&rig, "only read", 1, added);
    rig_check_margins(&rig);
    free(before);
    free(added);
    rig_release(&rig);
}

static void test_add(void **state)
{
    (void)state;
    static const uint64_t shapes[][2] = { { 1, 1 }, { 7, 5 }, { 16, 4 }, { 33, 9 }, { 4097, 2 } };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        for (size_t s = 0; s < COUNT_OF(shapes) && cpu_path_is_supported((enum cpu_path)path); s++)
            check_add((enum cpu_path)path, shapes[s][0], shapes[s][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),
        cmocka_unit_test(test_gather_rows),
        cmocka_unit_test(test_add),
    };
    return cmocka_run_group_tests_name("ops_host_rows", tests, NULL, NULL);
}
