/* ops_host_rope_test.c - rope_table against the formulas in long double and against known numbers,
 * and rope against float64: both pairings, partial heads, bad positions. */
#include "ops_host_rig.h"

/* ---- Table ---------------------------------------------------------------------------------- */

static const struct params_rope_table plain = { .base = 10000,
                                                .frequency_scale = 1,
                                                .attention_factor = 1,
                                                .beta_fast = 32,
                                                .beta_slow = 1,
                                                .original_context_length = 4096 };

/* A known long-context setting: head 128, base 1e6, 32768 stretched by 4. */
static const struct params_rope_table stretched = { .base = 1e6f,
                                                    .frequency_scale = 0.25f,
                                                    .attention_factor = 1,
                                                    .ext_factor = 1,
                                                    .beta_fast = 32,
                                                    .beta_slow = 1,
                                                    .original_context_length = 32768,
                                                    .yarn = 1 };

static void make_table(struct rig *rig, const struct params_rope_table *params, bool with_factors,
                       uint64_t dimensions, uint64_t positions)
{
    rig_init(rig, params, "rope_table");
    if (with_factors) {
        rig_operand(rig, 0, DTYPE_F32, dimensions / 2, 1, 0);
        for (uint64_t k = 0; k < dimensions / 2; k++)
            rig_row(rig, 0, 0)[k] = 1 + 0.37f * (float)k;
    }
    rig_operand(rig, 1, DTYPE_F32, dimensions, positions, 0);
    rig_run(rig, rig_kernel(cpu_path_best(), "rope_table"), rig_tiles(positions, TILE_POSITIONS),
            true);
    rig_check_margins(rig);
}

/* The table is rounded to f32 once; angles in f64 are off by less than 1e-10 for positions up to
 * 2^17. */
static void check_pair(const struct rig *rig, uint64_t position, uint64_t k, long double frequency,
                       long double magnitude)
{
    uint64_t pairs = rig->operands[1].shape.dims[0] / 2;
    long double angle = (long double)position * frequency;
    double cosine = (double)(magnitude * cosl(angle));
    double sine = (double)(magnitude * sinl(angle));
    double slack = 1e-10 * (double)magnitude;
    rig_check_near(rig, position, k, rig_row(rig, 1, position)[k], cosine,
                   0x1p-24 * fabs(cosine) + slack);
    rig_check_near(rig, position, pairs + k, rig_row(rig, 1, position)[pairs + k], sine,
                   0x1p-24 * fabs(sine) + slack);
}

static void test_plain(void **state)
{
    (void)state;
    static const uint64_t shapes[][2] = {
        { 2, 1 }, { 8, 63 }, { 64, 64 }, { 80, 65 }, { 128, 1000 }
    };
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        struct rig rig;
        make_table(&rig, &plain, false, shapes[s][0], shapes[s][1]);
        for (uint64_t p = 0; p < shapes[s][1]; p++) {
            for (uint64_t k = 0; k < shapes[s][0] / 2; k++)
                check_pair(&rig, p, k, powl(10000, -2 * (long double)k / (long double)shapes[s][0]),
                           1);
        }
        rig_release(&rig);
    }
}

static void test_linear_and_factors(void **state)
{
    (void)state;
    struct params_rope_table params = plain;
    params.base = 500000;
    params.frequency_scale = 0.125f;
    params.attention_factor = 1.19f;
    params.ext_factor = 0.7f; /* without yarn it means nothing */
    params.log_multiplier = 2;
    struct rig rig;
    make_table(&rig, &params, true, 32, 131);
    for (uint64_t p = 0; p < 131; p++) {
        for (uint64_t k = 0; k < 16; k++) {
            long double own = powl(500000, -(long double)k / 16) /
                              (long double)rig_row(&rig, 0, 0)[k];
            check_pair(&rig, p, k, own / 8, (long double)1.19f);
        }
    }
    rig_release(&rig);
}

/* Pairs up to 23 turn more than 32 times in 32768 positions and keep their frequency, pairs from 40
 * on turn less than once and are stretched; in between, a straight ramp. */
static long double stretched_frequency(uint64_t k)
{
    long double own = powl(1e6L, -(long double)k / 64);
    long double share = k <= 23 ? 1 : k >= 40 ? 0 : 1 - ((long double)k - 23) / 17;
    return own * share + own / 4 * (1 - share);
}

static void check_stretched(const struct params_rope_table *params, long double magnitude)
{
    struct rig rig;
    make_table(&rig, params, false, 128, 300);
    for (uint64_t p = 0; p < 300; p += 13) {
        for (uint64_t k = 0; k < 64; k++)
            check_pair(&rig, p, k, stretched_frequency(k), magnitude);
    }
    rig_release(&rig);
}

static void test_yarn(void **state)
{
    (void)state;
    const long double log_4 = 1.3862943611198906188L;
    struct params_rope_table params = stretched;
    check_stretched(&params, 1 + 0.1L * log_4);
    params.attention_factor = 0.5f;
    check_stretched(&params, 0.5L * (1 + 0.1L * log_4));
    params.log_multiplier = 1;
    check_stretched(&params, 0.5L);
    params.log_multiplier = 0.75f;
    check_stretched(&params, 0.5L * (1 + 0.1L * log_4) / (1 + 0.075L * log_4));
}

/* yarn with ext_factor 0 is linear scaling, without YaRN's magnitude. */
static void test_yarn_off(void **state)
{
    (void)state;
    struct params_rope_table params = stretched;
    params.ext_factor = 0;
    struct rig rig;
    make_table(&rig, &params, false, 128, 100);
    for (uint64_t p = 0; p < 100; p++) {
        for (uint64_t k = 0; k < 64; k++)
            check_pair(&rig, p, k, powl(1e6L, -(long double)k / 64) / 4, 1);
    }
    rig_release(&rig);
}

/* Far positions: one tile of a table of 131072 rows. */
static void test_far(void **state)
{
    (void)state;
    struct rig rig;
    rig_init(&rig, &plain, "rope_table, far");
    rig_operand(&rig, 1, DTYPE_F32, 8, 131072, 0);
    rig_kernel(cpu_path_best(), "rope_table")(&rig.call, 2047);
    for (uint64_t p = 131008; p < 131072; p++) {
        for (uint64_t k = 0; k < 4; k++)
            check_pair(&rig, p, k, powl(10000, -(long double)k / 4), 1);
    }
    assert_true(rig_is_untouched((uint8_t *)rig_row(&rig, 1, 0), 131008 * 32));
    rig_release(&rig);
}

/* ---- Rotation ------------------------------------------------------------------------------- */

struct rotation {
    uint64_t head_dim, heads, dimensions, tokens;
    bool adjacent;
};

/* Where the pair of place i of a head is, and which it is; false for places past the table. */
static bool find_pair(const struct rotation *rotation, uint64_t i, uint64_t *k, uint64_t *other,
                      bool *first)
{
    uint64_t half = rotation->dimensions / 2;
    if (i >= rotation->dimensions)
        return false;
    *k = rotation->adjacent ? i / 2 : i % half;
    *first = rotation->adjacent ? i % 2 == 0 : i < half;
    uint64_t distance = rotation->adjacent ? 1 : half;
    *other = *first ? i + distance : i - distance;
    return true;
}

/* Both multiplications and their sum round once each. */
static void check_head(const struct rig *rig, const struct rotation *rotation, uint64_t token,
                       const float *before, const float *after, const float *table)
{
    for (uint64_t i = 0; i < rotation->head_dim; i++) {
        uint64_t k = 0, other = 0;
        bool first = false;
        double expected = (double)before[i], allowed = 0;
        if (find_pair(rotation, i, &k, &other, &first)) {
            double cosine = (double)table[k] * (double)before[i];
            double sine = (double)table[rotation->dimensions / 2 + k] * (double)before[other];
            expected = first ? cosine - sine : cosine + sine;
            allowed = 0x1p-24 * (fabs(cosine) + fabs(sine) + fabs(expected));
        }
        rig_check_near(rig, token, i, after[i], expected, allowed);
    }
}

static void check_rotation(enum cpu_path path, const struct rotation *rotation)
{
    const uint64_t table_rows = 11;
    static const int32_t some_positions[] = { 10, 0, -1, 3, 11, 7, INT32_MIN, 5, INT32_MAX };
    struct params_rope params = { (uint32_t)rotation->head_dim, rotation->adjacent };
    struct rig rig;
    uint64_t width = rotation->head_dim * rotation->heads;
    rig_init(&rig, &params, "");
    snprintf(rig.name, sizeof(rig.name), "%s rope head %d of %d, %d rotated%s", cpu_path_name(path),
             (int)rotation->heads, (int)rotation->head_dim, (int)rotation->dimensions,
             rotation->adjacent ? ", adjacent" : "");
    rig_operand(&rig, 0, DTYPE_F32, width, rotation->tokens, 8);
    rig_list(&rig, 1, some_positions, rotation->tokens);
    rig_operand(&rig, 2, DTYPE_F32, rotation->dimensions, table_rows, 0);
    rig_fill(&rig, 0, 1, 1);
    rig_fill(&rig, 2, 2, 1);
    uint8_t *before = rig_copy(&rig, 0);
    uint64_t tiles = rig_tiles(rotation->tokens, TILE_TOKENS);
    rig_run(&rig, rig_kernel(path, "rope"), tiles, false);
    uint64_t traps = 0;
    for (uint64_t t = 0; t < rotation->tokens; t++) {
        const uint8_t *old = before + t * (width * 4 + 8);
        if (some_positions[t] < 0 || (uint64_t)some_positions[t] >= table_rows) {
            rig_check_trap(&rig, traps++, 1, some_positions[t], table_rows);
            assert_memory_equal(rig_row(&rig, 0, t), old, width * 4);
            continue;
        }
        for (uint64_t i = 0; i < width; i += rotation->head_dim)
            check_head(&rig, rotation, t, (const float *)(const void *)old + i,
                       rig_row(&rig, 0, t) + i, rig_row(&rig, 2, (uint64_t)some_positions[t]));
    }
    assert_int_equal(rig.crumbs->trap_count, traps);
    rig_check_margins(&rig);
    uint8_t *after = rig_copy(&rig, 0);
    rig_restore(&rig, 0, before);
    rig_run(&rig, rig_kernel(path, "rope"), tiles, true);
    rig_check_same(&rig, "tiles backwards", 0, after);
    free(before);
    free(after);
    rig_release(&rig);
}

static void test_rotation(void **state)
{
    (void)state;
    static const struct rotation rotations[] = {
        { 8, 1, 8, 1, true },    { 8, 1, 8, 1, false },     { 40, 3, 40, 5, true },
        { 40, 3, 40, 5, false }, { 64, 5, 48, 9, false },   { 64, 5, 18, 9, true },
        { 16, 2, 2, 9, false },  { 128, 4, 128, 9, false }, { 1024, 1, 1024, 4, true },
    };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        for (size_t r = 0; r < COUNT_OF(rotations); r++) {
            if (cpu_path_is_supported((enum cpu_path)path))
                check_rotation((enum cpu_path)path, &rotations[r]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain), cmocka_unit_test(test_linear_and_factors),
        cmocka_unit_test(test_yarn),  cmocka_unit_test(test_yarn_off),
        cmocka_unit_test(test_far),   cmocka_unit_test(test_rotation),
    };
    return cmocka_run_group_tests_name("ops_host_rope", tests, NULL, NULL);
}
