/* ops_host_kv_test.c - kv_append on every path: the bytes of each cache type, bad slots, values
 * that are not finite, and nothing touched but the slots. */
#include "ops_host_rig.h"

#include "tensor/quant.h"

#include <float.h>

static const enum dtype cache_dtypes[] = { DTYPE_F32, DTYPE_F16, DTYPE_Q8_0 };

/* What a slot must hold. One value at a time but for Q8_0, where a block decides together. */
static void expected_row(enum dtype dtype, const float *values, uint64_t width, uint8_t *bytes)
{
    if (dtype == DTYPE_Q8_0) {
        quant_encode_row(dtype, values, width, bytes);
        return;
    }
    for (uint64_t i = 0; i < width; i++) {
        uint16_t half = f16_from_f32(values[i]);
        if (dtype == DTYPE_F16)
            memcpy(bytes + 2 * i, &half, sizeof(half));
        else
            memcpy(bytes + 4 * i, &values[i], sizeof(float));
    }
}

static void make_append(struct rig *rig, enum dtype dtype, uint64_t width, const int32_t *slots,
                        uint64_t tokens, uint64_t slot_count)
{
    rig_init(rig, NULL, "");
    rig_operand(rig, 0, DTYPE_F32, width, tokens, 4);
    rig_operand(rig, 1, DTYPE_F32, width, tokens, 8);
    rig_list(rig, 2, slots, tokens);
    rig_operand(rig, 3, dtype, width, slot_count, 0);
    rig_operand(rig, 4, dtype, width, slot_count, 0);
    rig_fill(rig, 0, 1, 1);
    rig_fill(rig, 1, 2, 30);
}

/* Rows that hurt: zeros, subnormals, one large value, halves between levels, signs of zero. */
static void set_hard_rows(struct rig *rig)
{
    uint64_t width = rig->operands[0].shape.dims[0];
    for (uint64_t i = 0; i < width; i++) {
        rig_row(rig, 0, 0)[i] = i % 3 ? 0.0f : -0.0f;
        rig_row(rig, 1, 0)[i] = 0x1p-149f * (float)i;
        rig_row(rig, 0, 1)[i] = ((float)(i % 255) - 127) / 2;
        rig_row(rig, 1, 1)[i] = i % 32 == 7 ? 60000.0f : 1e-3f * (float)i;
        rig_row(rig, 0, 2)[i] = i % 32 == 9 ? 127.0f : (float)(i % 64) + 0.5f;
        rig_row(rig, 1, 2)[i] = i % 32 == 9 ? FLT_MAX : -FLT_MAX / (float)(i + 1);
    }
}

static void check_append(enum cpu_path path, enum dtype dtype, uint64_t width)
{
    static const int32_t slots[] = { 3, 0, 8, -1, 9, 5, INT32_MIN, 1, INT32_MAX };
    const uint64_t slot_count = 9;
    struct rig rig;
    make_append(&rig, dtype, width, slots, COUNT_OF(slots), slot_count);
    snprintf(rig.name, sizeof(rig.name), "%s kv_append %s width %d", cpu_path_name(path),
             dtype_name(dtype), (int)width);
    set_hard_rows(&rig);
    rig_run(&rig, rig_kernel(path, "kv_append"), rig_tiles(COUNT_OF(slots), TILE_TOKENS), true);
    size_t row_bytes = rig.memory[3].row_bytes;
    uint8_t *expected = malloc(row_bytes);
    for (uint64_t slot = 0; slot < slot_count; slot++) {
        uint64_t token = 0;
        while (token < COUNT_OF(slots) && slots[token] != (int32_t)slot)
            token++;
        for (size_t cache = 0; cache < 2; cache++) {
            const uint8_t *row = rig.memory[3 + cache].bytes + slot * row_bytes;
            if (token == COUNT_OF(slots)) {
                assert_true(rig_is_untouched(row, row_bytes));
                continue;
            }
            expected_row(dtype, rig_row(&rig, cache, token), width, expected);
            if (memcmp(row, expected, row_bytes) != 0)
                fail_msg("%s: slot %d of cache %zu differs", rig.name, (int)slot, cache);
        }
    }
    free(expected);
    assert_int_equal(rig.crumbs->trap_count, 4);
    rig_check_trap(&rig, 0, 2, INT32_MAX, slot_count);
    rig_check_trap(&rig, 1, 2, 9, slot_count);
    rig_check_trap(&rig, 2, 2, INT32_MIN, slot_count);
    rig_check_trap(&rig, 3, 2, -1, slot_count);
    rig_check_margins(&rig);
    rig_release(&rig);
}

static void test_kv_append(void **state)
{
    (void)state;
    static const uint64_t widths[] = { 1, 7, 8, 9, 24, 32, 64, 96, 1024 };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t d = 0; d < COUNT_OF(cache_dtypes); d++) {
            for (size_t w = 0; w < COUNT_OF(widths); w++) {
                if (widths[w] % dtype_info(cache_dtypes[d])->block_elements == 0)
                    check_append((enum cpu_path)path, cache_dtypes[d], widths[w]);
            }
        }
    }
}

/* Keys and values may be of different types. */
static void test_mixed_caches(void **state)
{
    (void)state;
    const int32_t slot = 1;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct rig rig;
        uint8_t expected[64 * 4];
        rig_init(&rig, NULL, "mixed caches");
        rig_operand(&rig, 0, DTYPE_F32, 64, 1, 0);
        rig_operand(&rig, 1, DTYPE_F32, 64, 1, 0);
        rig_list(&rig, 2, &slot, 1);
        rig_operand(&rig, 3, DTYPE_Q8_0, 64, 2, 0);
        rig_operand(&rig, 4, DTYPE_F16, 64, 2, 0);
        rig_fill(&rig, 0, 1, 1);
        rig_fill(&rig, 1, 2, 1);
        rig_run(&rig, rig_kernel((enum cpu_path)path, "kv_append"), 1, false);
        expected_row(DTYPE_Q8_0, rig_row(&rig, 0, 0), 64, expected);
        assert_memory_equal(rig.memory[3].bytes + 68, expected, 68);
        expected_row(DTYPE_F16, rig_row(&rig, 1, 0), 64, expected);
        assert_memory_equal(rig.memory[4].bytes + 128, expected, 128);
        rig_release(&rig);
    }
}

/* A Q8_0 block with a value that is not finite decodes to NaN; the next block is not harmed.
 */
static void check_bad_block(enum cpu_path path, float bad, uint64_t place)
{
    const int32_t slot = 0;
    float decoded[64];
    struct rig rig;
    make_append(&rig, DTYPE_Q8_0, 64, &slot, 1, 1);
    rig_row(&rig, 0, 0)[place] = bad;
    rig_run(&rig, rig_kernel(path, "kv_append"), 1, false);
    quant_decode_row(DTYPE_Q8_0, rig.memory[3].bytes, 64, decoded);
    for (uint64_t i = 0; i < 64; i++)
        assert_true(i / 32 == place / 32 ? isnan(decoded[i]) : isfinite(decoded[i]));
    rig_release(&rig);
}

/* F16 keeps NaN and infinity, and too large a value is infinity. */
static void check_bad_halves(enum cpu_path path)
{
    static const float values[] = {
        NAN, INFINITY, -INFINITY, 65519.996f, 65520, -65520, 1, 2, NAN
    };
    static const uint16_t halves[] = { 0x7E00, 0x7C00, 0xFC00, 0x7BFF, 0x7C00,
                                       0xFC00, 0x3C00, 0x4000, 0x7E00 };
    const int32_t slot = 0;
    struct rig rig;
    make_append(&rig, DTYPE_F16, COUNT_OF(values), &slot, 1, 1);
    memcpy(rig_row(&rig, 0, 0), values, sizeof(values));
    rig_run(&rig, rig_kernel(path, "kv_append"), 1, false);
    assert_memory_equal(rig.memory[3].bytes, halves, sizeof(halves));
    rig_release(&rig);
}

static void test_not_finite(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (uint64_t place = 0; place < 64; place++) {
            check_bad_block((enum cpu_path)path, NAN, place);
            check_bad_block((enum cpu_path)path, -INFINITY, place);
        }
        check_bad_halves((enum cpu_path)path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kv_append),
        cmocka_unit_test(test_mixed_caches),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests_name("ops_host_kv", tests, NULL, NULL);
}
