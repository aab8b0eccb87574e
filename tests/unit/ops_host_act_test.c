/* ops_host_act_test.c - swiglu on every path against float64, and the vector exp it uses. */
#include "ops_host_rig.h"

#include "ops/host/simd.h"

#include <float.h>

static const struct params_swiglu no_packing;

/* ---- swiglu --------------------------------------------------------------------------------- */

/* exp is within 1.05 units in the last place (2.1 * 2^-24); x e, 1 + e, the quotient and its
 * multiple by up round once each (4 * 2^-24); e's error enters the denominator with the opposite
 * sign and at most half its size. A subnormal e is off by at most one smallest unit, times |x| <
 * 104. */
static double swiglu_allowed(double expected, double up)
{
    return 6.2 * 0x1p-24 * fabs(expected) + 105 * 0x1p-149 * fabs(up) + 0x1p-149;
}

static double swiglu_expected(double x, double up)
{
    return x / (1 + exp(-x)) * up;
}

/* Where silu turns, underflows, or would overflow if it were computed carelessly. */
static const float gates[] = { 0.0f,      -0.0f,  1.0f,    -1.0f,   1e-30f,   -1e-30f,
                               0x1p-149f, 16.6f,  -16.6f,  87.3f,   -87.3f,   88.8f,
                               -88.8f,    103.9f, -103.9f, 104.1f,  -104.1f,  -200.0f,
                               200.0f,    1e30f,  -1e30f,  FLT_MAX, -FLT_MAX, -1.2784645f };

static void fill_gate(struct rig *rig)
{
    rig_fill(rig, 0, 3, 8);
    uint64_t width = rig->operands[0].shape.dims[0];
    uint64_t rows = rig->operands[0].shape.dims[1];
    for (size_t i = 0; i < COUNT_OF(gates) && i < width * rows; i++)
        rig_row(rig, 0, i / width)[i % width] = gates[i];
}

static void check_swiglu(enum cpu_path path, uint64_t width, uint64_t tokens)
{
    char name[96];
    snprintf(name, sizeof(name), "%s swiglu [%d, %d]", cpu_path_name(path), (int)width,
             (int)tokens);
    struct rig rig;
    rig_init(&rig, &no_packing, name);
    rig_operand(&rig, 0, DTYPE_F32, width, tokens, 4);
    rig_operand(&rig, 1, DTYPE_F32, width, tokens, 8);
    rig_operand(&rig, 2, DTYPE_F32, width, tokens, 12);
    fill_gate(&rig);
    rig_fill(&rig, 1, 4, 1);
    uint8_t *read[2] = { rig_copy(&rig, 0), rig_copy(&rig, 1) };
    rig_run(&rig, rig_kernel(path, "swiglu"), rig_tiles(tokens, TILE_TOKENS), false);
    for (uint64_t t = 0; t < tokens; t++) {
        for (uint64_t i = 0; i < width; i++) {
            double up = (double)rig_row(&rig, 1, t)[i];
            double expected = swiglu_expected((double)rig_row(&rig, 0, t)[i], up);
            if (fabs(expected) < (double)FLT_MAX)
                rig_check_near(&rig, t, i, rig_row(&rig, 2, t)[i], expected,
                               swiglu_allowed(expected, up));
        }
    }
    rig_check_margins(&rig);
    uint8_t *out = rig_copy(&rig, 2);
    memset(rig.memory[2].bytes, RIG_UNTOUCHED, rig.memory[2].byte_count);
    rig_run(&rig, rig_kernel(path, "swiglu"), rig_tiles(tokens, TILE_TOKENS), true);
    rig_check_same(&rig, "tiles backwards", 2, out);
    rig_check_same(&rig, "only read", 0, read[0]);
    rig_check_same(&rig, "only read", 1, read[1]);
    free(out);
    free(read[0]);
    free(read[1]);
    rig_release(&rig);
}

/* out = gate: the engine may work in place. */
static void check_swiglu_in_place(enum cpu_path path)
{
    struct rig rig;
    rig_init(&rig, &no_packing, "swiglu in place");
    for (size_t i = 0; i < 3; i++)
        rig_operand(&rig, i, DTYPE_F32, 37, 3, 0);
    rig_fill(&rig, 0, 1, 2);
    rig_fill(&rig, 1, 2, 2);
    rig_run(&rig, rig_kernel(path, "swiglu"), 1, false);
    uint8_t *apart = rig_copy(&rig, 2);
    rig.operands[2] = rig.operands[0];
    rig_run(&rig, rig_kernel(path, "swiglu"), 1, false);
    rig_check_same(&rig, "in place", 0, apart);
    free(apart);
    rig_release(&rig);
}

/* A lone NaN or infinity spreads to no other value, wherever it stands in a vector. */
static void check_swiglu_not_finite(enum cpu_path path)
{
    struct rig rig;
    rig_init(&rig, &no_packing, "swiglu, not finite");
    for (size_t i = 0; i < 3; i++)
        rig_operand(&rig, i, DTYPE_F32, 37, 1, 0);
    for (uint64_t place = 0; place < 37; place++) {
        rig_fill(&rig, 0, 1, 2);
        rig_fill(&rig, 1, 2, 2);
        rig_row(&rig, 1, 0)[(place + 1) % 37] = 1;
        rig_row(&rig, 0, 0)[(place + 1) % 37] = INFINITY;
        rig_row(&rig, 0, 0)[place] = NAN;
        rig_run(&rig, rig_kernel(path, "swiglu"), 1, false);
        for (uint64_t i = 0; i < 37; i++) {
            if (i == place)
                assert_true(isnan(rig_row(&rig, 2, 0)[i]));
            else if (i == (place + 1) % 37)
                assert_true(rig_row(&rig, 2, 0)[i] == INFINITY);
            else
                assert_true(isfinite(rig_row(&rig, 2, 0)[i]));
        }
    }
    rig_release(&rig);
}

static void test_swiglu(void **state)
{
    (void)state;
    static const uint64_t shapes[][2] = { { 1, 1 },  { 7, 5 },  { 8, 4 },  { 15, 3 },
                                          { 16, 1 }, { 17, 9 }, { 33, 2 }, { 1000, 5 } };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (size_t s = 0; s < COUNT_OF(shapes); s++)
            check_swiglu((enum cpu_path)path, shapes[s][0], shapes[s][1]);
        check_swiglu_in_place((enum cpu_path)path);
        check_swiglu_not_finite((enum cpu_path)path);
    }
}

/* ---- exp ------------------------------------------------------------------------------------ */

#if defined(__x86_64__)

TARGET_AVX2 static void exp_eight(const float *x, float *results)
{
    _mm256_storeu_ps(results, exp_avx2(_mm256_loadu_ps(x)));
}

TARGET_AVX512 static void exp_sixteen(const float *x, float *results)
{
    _mm512_storeu_ps(results, exp_avx512(_mm512_loadu_ps(x)));
}

static float from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* What simd.h promises; found over a thirtieth of all floats: 1.001 units, 0.75 subnormal ones. */
static void check_exp(float x, float found)
{
    double expected = exp((double)x);
    if (isnan(x)) {
        assert_true(isnan(found));
        return;
    }
    if (expected > (double)FLT_MAX * (1 + 0x1p-25)) {
        assert_true(found == INFINITY);
        return;
    }
    int exponent = 0;
    frexp(expected, &exponent);
    double unit = ldexp(1, exponent - 24);
    double allowed = exponent < -125 ? 0x1p-149 : 1.05 * unit;
    if (!(fabs((double)found - expected) <= allowed))
        fail_msg("exp(%.9g): expected %.9g, found %.9g, %.3f units", (double)x, expected,
                 (double)found, fabs((double)found - expected) / unit);
}

/* Both vector functions over floats of all sizes, 16 at a time. */
static void test_exp(void **state)
{
    (void)state;
    if (!cpu_path_is_supported(CPU_PATH_AVX2))
        skip();
    bool wide = cpu_path_is_supported(CPU_PATH_AVX512);
    float x[16], eight[16], sixteen[16];
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 16 * 1499) {
        for (uint32_t i = 0; i < 16; i++)
            x[i] = from_bits((uint32_t)bits + i * 1499);
        exp_eight(x, eight);
        exp_eight(x + 8, eight + 8);
        for (uint32_t i = 0; i < 16; i++)
            check_exp(x[i], eight[i]);
        if (!wide)
            continue;
        exp_sixteen(x, sixteen);
        for (uint32_t i = 0; i < 16; i++) {
            if (!isnan(x[i]) && memcmp(&eight[i], &sixteen[i], sizeof(float)) != 0)
                fail_msg("exp(%.9g): %.9g is not %.9g", (double)x[i], (double)eight[i],
                         (double)sixteen[i]);
        }
    }
}

static void test_exp_corners(void **state)
{
    (void)state;
    if (!cpu_path_is_supported(CPU_PATH_AVX2))
        skip();
    const float x[8] = { 0, -0.0f, -INFINITY, INFINITY, -104, 88.7228317f, 88.73f, -1e38f };
    float found[8];
    exp_eight(x, found);
    assert_true(found[0] == 1 && found[1] == 1);
    assert_true(found[2] == 0 && found[3] == INFINITY && found[4] == 0);
    assert_true(found[5] < INFINITY && found[6] == INFINITY && found[7] == 0);
}

#else

static void test_exp(void **state)
{
    (void)state;
    skip();
}

static void test_exp_corners(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_swiglu),
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_exp_corners),
    };
    return cmocka_run_group_tests_name("ops_host_act", tests, NULL, NULL);
}
