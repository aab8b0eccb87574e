/* ops_host_pack_test.c - activations packed for the host's matmul kernels: the same bytes on every
 * path, within half a step of the values, with the sums that kernels rely on. */
#include "ops_host_matmul_product.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The packed bytes are the same on every path, and within half a level of the values. */
static void test_packed_activations(void **state)
{
    (void)state;
    static const size_t lengths[] = { 32, 64, 96, 128, 160, 4096, 11008 };
    struct random_state random = { .counter = 5 };
    for (size_t n = 0; n < COUNT_OF(lengths); n++) {
        size_t k = lengths[n];
        size_t bytes = host_act_row_bytes(HOST_ACT_Q8, k);
        assert_int_equal(bytes % 64, 0);
        struct guarded packed[CPU_PATH_COUNT];
        float *values = malloc(k * sizeof(float));
        double *back = malloc(k * sizeof(double));
        for (size_t i = 0; i < k; i++)
            values[i] = random_gaussian(&random) * (i / 32 % 5 == 4 ? 1e-41f : (float)(i % 7));
        for (int path = 0; path < CPU_PATH_COUNT; path++) {
            packed[path] = guarded_create(bytes, 64);
            if (cpu_path_is_supported((enum cpu_path)path))
                host_act_pack((enum cpu_path)path, HOST_ACT_Q8, values, k, packed[path].bytes);
            else
                memcpy(packed[path].bytes, packed[0].bytes, bytes);
            assert_memory_equal(packed[path].bytes, packed[0].bytes, bytes);
        }
        unpack_activations(HOST_ACT_Q8, packed[0].bytes, k, back);
        const struct host_act_block *blocks = (const void *)packed[0].bytes;
        for (size_t i = 0; i < k; i++) {
            double step = (double)blocks[i / 32].scale;
            assert_true(fabs(back[i] - (double)values[i]) <= step * 0.50001 + 1e-37);
        }
        for (int path = 0; path < CPU_PATH_COUNT; path++)
            guarded_destroy(&packed[path]);
        free(back);
        free(values);
    }
}

/* As the scalar conversion does it, with zeros up to a multiple of 64. */
static void test_rounded_activations(void **state)
{
    (void)state;
    enum { K = 77, PADDED = 128 };
    static const float odd[] = { 0.0f, -0.0f, 1e-45f, -1e-40f, 3.4e38f, INFINITY, -INFINITY, NAN };
    struct random_state random = { .counter = 9 };
    float values[K];
    for (size_t i = 0; i < K; i++)
        values[i] = i < COUNT_OF(odd) ? odd[i] : random_gaussian(&random);
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct guarded packed = guarded_create(host_act_row_bytes(HOST_ACT_BF16, K), 64);
        memset(packed.bytes, 0xAA, PADDED * sizeof(uint16_t));
        host_act_pack((enum cpu_path)path, HOST_ACT_BF16, values, K, packed.bytes);
        for (size_t i = 0; i < PADDED; i++) {
            uint16_t found;
            memcpy(&found, packed.bytes + 2 * i, sizeof(found));
            assert_int_equal(found, i < K ? bf16_from_f32(values[i]) : 0);
        }
        guarded_destroy(&packed);
    }
}

static void test_sums_of_packed_activations(void **state)
{
    (void)state;
    enum { K = 96 };
    float values[K];
    for (size_t i = 0; i < K; i++)
        values[i] = (float)i - 20;
    struct guarded packed = guarded_create(host_act_row_bytes(HOST_ACT_Q8, K), 64);
    memset(packed.bytes, 0xAA, host_act_row_bytes(HOST_ACT_Q8, K));
    host_act_pack(CPU_PATH_PORTABLE, HOST_ACT_Q8, values, K, packed.bytes);
    const struct host_act_block *blocks = (const void *)packed.bytes;
    for (size_t b = 0; b < 4; b++) {
        int first = 0;
        int second = 0;
        int pairs[2][2] = { { 0 } };
        for (size_t i = 0; i < 16; i++) {
            first += blocks[b].levels[i];
            second += blocks[b].levels[16 + i];
            pairs[0][i % 4 / 2] += blocks[b].levels[i];
            pairs[1][i % 4 / 2] += blocks[b].levels[16 + i];
        }
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(blocks[b].pair_offsets_32[i / 2][i % 2], -32 * pairs[i / 2][i % 2]);
        assert_int_equal(blocks[b].first_half_offset_32, -32 * first);
        assert_int_equal(blocks[b].second_half_offset_32, -32 * second);
        assert_int_equal(blocks[b].offset_128, -128 * (first + second));
        assert_int_equal(blocks[b].offset_8, -8 * (first + second));
        assert_true(blocks[b].scaled_sum == blocks[b].scale * (float)(first + second));
        assert_true(b < 3 || (blocks[b].scale == 0 && first == 0 && second == 0));
    }
    guarded_destroy(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_activations),
        cmocka_unit_test(test_sums_of_packed_activations),
        cmocka_unit_test(test_rounded_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
