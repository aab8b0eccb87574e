/* ops_host_images_test.c - every path has one kernel for every op. */
#include "ops_host_rig.h"

static const char *const ops[] = {
    "embed",         "rms_norm",       "head_norm",    "layer_norm",  "act_pack",  "matmul",
    "matmul_group",  "rope_table",     "rope",         "kv_append",   "attention", "swiglu",
    "gelu",          "scale",          "add",          "gather_rows", "argmax",    "top_k",
    "route_experts", "matmul_experts", "gate_experts", "sum_experts",
};

static void test_images(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        const struct device_image *image = host_kernels_image((enum cpu_path)path);
        assert_int_equal(image->count, COUNT_OF(ops));
        for (size_t i = 0; i < COUNT_OF(ops); i++)
            assert_true(rig_kernel((enum cpu_path)path, ops[i]) != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_images),
    };
    return cmocka_run_group_tests_name("ops_host_images", tests, NULL, NULL);
}
