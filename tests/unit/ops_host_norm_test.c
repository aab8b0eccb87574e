/* ops_host_norm_test.c - rms_norm and head_norm on every path against float64, and that all paths
 * and cuts give the same bits. */
#include "ops_host_rig.h"

static const struct {
    uint64_t width, tokens;
} shapes[] = {
    { 1, 1 },  { 7, 5 },  { 8, 1 },   { 15, 4 },    { 16, 3 },   { 17, 9 },
    { 31, 2 }, { 32, 8 }, { 576, 5 }, { 1000, 13 }, { 8192, 2 }, { 16391, 1 },
};

static void make_rms_norm(struct rig *rig, const struct params_norm *params, uint64_t width,
                          uint64_t tokens, bool with_added, float size)
{
    rig_init(rig, params, "");
    rig_operand(rig, 0, DTYPE_F32, width, tokens, 4);
    if (with_added)
        rig_operand(rig, 1, DTYPE_F32, width, tokens, 8);
    rig_operand(rig, 2, DTYPE_F32, width, 1, 0);
    rig_operand(rig, 3, DTYPE_F32, width, tokens, 12);
    rig_fill(rig, 0, 1 + width, size);
    if (with_added)
        rig_fill(rig, 1, 2, size / 2);
    rig_fill(rig, 2, 3, 1);
}

static double mean_of_squares(const float *x, uint64_t width)
{
    double sum = 0;
    for (uint64_t i = 0; i < width; i++)
        sum += (double)x[i] * (double)x[i];
    return sum / (double)width;
}

/* The scale and the two multiplications round once each: 3 * 2^-24, and a little for the f64 sums. */
static void check_normalised(const struct rig *rig, uint64_t row, const float *x,
                             const float *weight, const float *out, uint64_t width, float epsilon)
{
    double scale = 1 / sqrt(mean_of_squares(x, width) + (double)epsilon);
    for (uint64_t i = 0; i < width; i++) {
        double expected = (double)x[i] * scale * (double)weight[i];
        rig_check_near(rig, row, i, out[i], expected, 3.001 * 0x1p-24 * fabs(expected) + 0x1p-149);
    }
}

static void check_rms_norm(enum cpu_path path, uint64_t width, uint64_t tokens, bool with_added,
                           float size)
{
    struct params_norm params = { .epsilon = 1e-5f };
    struct rig rig;
    make_rms_norm(&rig, &params, width, tokens, with_added, size);
    snprintf(rig.name, sizeof(rig.name), "%s rms_norm [%d, %d]%s size %g", cpu_path_name(path),
             (int)width, (int)tokens, with_added ? " added" : "", (double)size);
    uint8_t *before = rig_copy(&rig, 0);
    uint64_t tiles = rig_tiles(tokens, TILE_TOKENS);
    rig_run(&rig, rig_kernel(path, "rms_norm"), tiles, false);
    for (uint64_t t = 0; t < tokens; t++) {
        const float *old = (const float *)(const void *)(before + t * (width * 4 + 4));
        const float *x = rig_row(&rig, 0, t);
        for (uint64_t i = 0; i < width; i++) {
            float more = with_added ? rig_row(&rig, 1, t)[i] : 0;
            rig_check_near(&rig, t, i, x[i], (double)(float)((double)old[i] + (double)more), 0);
        }
        check_normalised(&rig, t, x, rig_row(&rig, 2, 0), rig_row(&rig, 3, t), width,
                         params.epsilon);
    }
    rig_check_margins(&rig);
    uint8_t *out = rig_copy(&rig, 3);
    rig_restore(&rig, 0, before);
    memset(rig.memory[3].bytes, RIG_UNTOUCHED, rig.memory[3].byte_count);
    rig_run(&rig, rig_kernel(CPU_PATH_PORTABLE, "rms_norm"), tiles, true);
    rig_check_same(&rig, "portable, tiles backwards", 3, out);
    free(out);
    free(before);
    rig_release(&rig);
}

/* A token alone gives the bits it gives among others. */
static void check_alone(enum cpu_path path)
{
    struct params_norm params = { .epsilon = 1e-6f };
    const uint64_t width = 77, tokens = 7;
    struct rig rig;
    make_rms_norm(&rig, &params, width, tokens, false, 3);
    rig_run(&rig, rig_kernel(path, "rms_norm"), 2, false);
    uint8_t *out = rig_copy(&rig, 3);
    for (uint64_t t = 0; t < tokens; t++) {
        rig.operands[0].data = rig_row(&rig, 0, t);
        rig.operands[3].data = rig_row(&rig, 3, t);
        memset(rig.operands[3].data, 0, width * sizeof(float));
        rig.operands[0].shape.dims[1] = rig.operands[3].shape.dims[1] = 1;
        rig_run(&rig, rig_kernel(path, "rms_norm"), 1, false);
        rig.operands[0].data = rig.memory[0].bytes;
    }
    rig_check_same(&rig, "a token alone", 3, out);
    free(out);
    rig_release(&rig);
}

/* out may be x. */
static void check_in_place(enum cpu_path path)
{
    struct params_norm params = { .epsilon = 1e-6f };
    struct rig rig;
    make_rms_norm(&rig, &params, 77, 3, true, 3);
    rig_run(&rig, rig_kernel(path, "rms_norm"), 1, false);
    float apart[77];
    memcpy(apart, rig_row(&rig, 3, 2), sizeof(apart));
    rig_fill(&rig, 0, 1 + 77, 3);
    rig.operands[3] = rig.operands[0];
    rig_run(&rig, rig_kernel(path, "rms_norm"), 1, false);
    assert_memory_equal(rig_row(&rig, 0, 2), apart, sizeof(apart));
    rig_release(&rig);
}

static void test_rms_norm(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t s = 0; s < COUNT_OF(shapes); s++) {
            check_rms_norm((enum cpu_path)path, shapes[s].width, shapes[s].tokens, false, 1);
            check_rms_norm((enum cpu_path)path, shapes[s].width, shapes[s].tokens, true, 1);
        }
        /* Squares beyond the range of f32, and far below epsilon. */
        check_rms_norm((enum cpu_path)path, 100, 2, true, 1e30f);
        check_rms_norm((enum cpu_path)path, 100, 2, true, 1e-30f);
        check_alone((enum cpu_path)path);
        check_in_place((enum cpu_path)path);
    }
}

static void check_head_norm(enum cpu_path path, uint64_t head_dim, uint64_t heads, uint64_t tokens)
{
    struct params_norm params = { .epsilon = 1e-6f };
    struct rig rig;
    rig_init(&rig, &params, "");
    snprintf(rig.name, sizeof(rig.name), "%s head_norm %d x %d, %d tokens", cpu_path_name(path),
             (int)heads, (int)head_dim, (int)tokens);
    rig_operand(&rig, 0, DTYPE_F32, head_dim * heads, tokens, 16);
    rig_operand(&rig, 1, DTYPE_F32, head_dim, 1, 0);
    rig_fill(&rig, 0, 7, 5);
    rig_fill(&rig, 1, 8, 1);
    uint8_t *before = rig_copy(&rig, 0);
    uint64_t tiles = rig_tiles(tokens, TILE_TOKENS);
    rig_run(&rig, rig_kernel(path, "head_norm"), tiles, true);
    for (uint64_t t = 0; t < tokens; t++) {
        const uint8_t *row = before + t * (head_dim * heads * 4 + 16);
        for (uint64_t h = 0; h < heads; h++)
            check_normalised(&rig, t, (const float *)(const void *)row + h * head_dim,
                             rig_row(&rig, 1, 0), rig_row(&rig, 0, t) + h * head_dim, head_dim,
                             params.epsilon);
    }
    rig_check_margins(&rig);
    uint8_t *out = rig_copy(&rig, 0);
    rig_restore(&rig, 0, before);
    rig_run(&rig, rig_kernel(CPU_PATH_PORTABLE, "head_norm"), tiles, false);
    rig_check_same(&rig, "portable", 0, out);
    free(out);
    free(before);
    rig_release(&rig);
}

static void test_head_norm(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        check_head_norm((enum cpu_path)path, 8, 1, 1);
        check_head_norm((enum cpu_path)path, 8, 3, 5);
        check_head_norm((enum cpu_path)path, 40, 7, 4);
        check_head_norm((enum cpu_path)path, 128, 16, 3);
        check_head_norm((enum cpu_path)path, 1024, 1, 2);
    }
}

/* The row of a NaN is NaN; the rows next to it are not. */
static void test_not_finite(void **state)
{
    (void)state;
    struct params_norm params = { .epsilon = 1e-5f };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct rig rig;
        make_rms_norm(&rig, &params, 19, 3, false, 1);
        rig_row(&rig, 0, 1)[18] = NAN;
        rig_run(&rig, rig_kernel((enum cpu_path)path, "rms_norm"), 1, false);
        for (uint64_t i = 0; i < 19; i++) {
            assert_true(isfinite(rig_row(&rig, 3, 0)[i]));
            assert_true(isnan(rig_row(&rig, 3, 1)[i]));
            assert_true(isfinite(rig_row(&rig, 3, 2)[i]));
        }
        rig_release(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rms_norm),
        cmocka_unit_test(test_head_norm),
        cmocka_unit_test(test_not_finite),
    };
    return cmocka_run_group_tests_name("ops_host_norm", tests, NULL, NULL);
}
