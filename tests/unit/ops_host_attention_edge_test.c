/* ops_host_attention_edge_test.c - attention on every path: that it reads its own slots only,
 * scores that rise or fall, NaN, tokens taken together, and bad indices. */
#include "ops_host_attention_setup.h"

/* ---- Special contexts ----------------------------------------------------------------------- */

typedef void (*path_check)(enum cpu_path path);

static void each_path(path_check check)
{
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (cpu_path_is_supported((enum cpu_path)path))
            check((enum cpu_path)path);
    }
}

/* Slots of others hold NaN: they must have no part in the result. */
static void check_own_slots(enum cpu_path path)
{
    const struct setup setup = { DTYPE_F32, 40, 4, 2, 1 };
    for (size_t s = 0; s < COUNT_OF(spans); s++) {
        struct attention attention;
        attention_init(&attention, &setup, &spans[s], 1, SLOT_COUNT);
        for (uint64_t slot = 0; slot < SLOT_COUNT; slot++) {
            bool own = slot >= (uint64_t)spans[s].start &&
                       slot <= (uint64_t)spans[s].start + (uint64_t)spans[s].position;
            for (uint64_t i = 0; i < 80 && !own; i++)
                rig_row(&attention.rig, KEYS, slot)[i] = rig_row(&attention.rig, VALUES,
                                                                 slot)[i] = NAN;
        }
        attention_run(&attention, path, false);
        check_against_doubles(&attention);
        rig_release(&attention.rig);
    }
}

static void test_own_slots(void **state)
{
    (void)state;
    each_path(check_own_slots);
}

/* The running maximum rises with every chunk, or never after the first slot. */
static void check_slope(enum cpu_path path, float slope)
{
    static const struct span whole = { 0, 1023 };
    const struct setup setup = { DTYPE_F32, 16, 3, 1, 1 };
    struct attention attention;
    attention_init(&attention, &setup, &whole, 1, SLOT_COUNT);
    for (uint64_t i = 0; i < 48; i++)
        rig_row(&attention.rig, Q, 0)[i] = 1;
    for (uint64_t slot = 0; slot < SLOT_COUNT; slot++) {
        for (uint64_t i = 0; i < 16; i++)
            rig_row(&attention.rig, KEYS, slot)[i] = slope * (float)slot;
    }
    attention_run(&attention, path, false);
    check_against_doubles(&attention);
    rig_release(&attention.rig);
}

static void check_slopes(enum cpu_path path)
{
    static const float slopes[] = { 0, 1e-3f, -1e-3f, 0.1f, -0.1f, 1e3f, -1e3f };
    for (size_t s = 0; s < COUNT_OF(slopes); s++)
        check_slope(path, slopes[s]);
}

static void test_slopes(void **state)
{
    (void)state;
    each_path(check_slopes);
}

/* A NaN in a key makes the heads of its group NaN, for the tokens that see it, and no others. */
static void check_nan(enum cpu_path path, int32_t slot)
{
    static const struct span two[] = { { 0, 299 }, { 300, 100 } };
    const struct setup setup = { DTYPE_F32, 8, 6, 2, 1 };
    struct attention attention;
    attention_init(&attention, &setup, two, 2, SLOT_COUNT);
    rig_row(&attention.rig, KEYS, (uint64_t)slot)[11] = NAN; /* kv head 1 */
    attention_run(&attention, path, false);
    for (uint64_t i = 0; i < 48; i++) {
        assert_true(i < 24 ? isfinite(rig_row(&attention.rig, OUT, 0)[i])
                           : isnan(rig_row(&attention.rig, OUT, 0)[i]));
        assert_true(isfinite(rig_row(&attention.rig, OUT, 1)[i]));
    }
    rig_release(&attention.rig);
}

static void check_nans(enum cpu_path path)
{
    static const int32_t slots[] = { 0, 1, 8, 16, 255, 256, 299 };
    for (size_t s = 0; s < COUNT_OF(slots); s++)
        check_nan(path, slots[s]);
}

static void test_nan(void **state)
{
    (void)state;
    each_path(check_nans);
}

/* ---- Tokens taken together ------------------------------------------------------------------- */

/* Two sequences whose tokens meet in every way a tile can have them: in order across the end of a
 * chunk, out of order, twice the same, far apart, a bad one between them, the other sequence
 * between them, and a tile that is not full. */
static const struct span mixed[] = {
    { 3, 250 }, { 3, 251 }, { 3, 252 },   { 3, 253 },   { 3, 254 }, { 3, 255 },   { 3, 256 },
    { 3, 257 }, { 3, 258 }, { 3, 259 },   { 600, 0 },   { 3, 260 }, { 600, 1 },   { 600, 2 },
    { 600, 3 }, { 600, 4 }, { 600, 300 }, { 600, 7 },   { 600, 7 }, { 600, -1 },  { 600, 255 },
    { 600, 9 }, { 600, 1 }, { 3, 0 },     { 600, 423 }, { 3, 595 }, { 600, 256 },
};
/* Only the one token that looks at 423 slots after its first sees this. */
#define SEEN_ONCE (600u + 423u)

/* The results of tokens taken together, or each alone; the caller frees them. */
static float *run_mixed(enum cpu_path path, const struct setup *setup, bool same_sequence)
{
    struct attention attention;
    uint64_t width = (uint64_t)setup->head_dim * setup->heads;
    attention_init(&attention, setup, mixed, COUNT_OF(mixed), SLOT_COUNT);
    attention.params.same_sequence = same_sequence;
    if (setup->dtype == DTYPE_F32)
        rig_row(&attention.rig, VALUES, SEEN_ONCE)[0] = NAN;
    attention_run(&attention, path, false);
    rig_check_margins(&attention.rig);
    assert_int_equal(attention.rig.crumbs->trap_count, setup->kv_heads);
    float *results = malloc(COUNT_OF(mixed) * width * sizeof(float));
    for (uint64_t t = 0; t < COUNT_OF(mixed); t++)
        memcpy(results + t * width, rig_row(&attention.rig, OUT, t), width * sizeof(float));
    rig_release(&attention.rig);
    return results;
}

static void check_together(enum cpu_path path)
{
    static const struct setup setups[] = { { DTYPE_F16, 64, 8, 1, 1 },
                                           { DTYPE_F32, 40, 6, 2, 1 },
                                           { DTYPE_Q8_0, 32, 2, 2, 3 },
                                           { DTYPE_F32, 8, 3, 1, 1 } };
    for (size_t s = 0; s < COUNT_OF(setups); s++) {
        uint64_t width = (uint64_t)setups[s].head_dim * setups[s].heads;
        float *alone = run_mixed(path, &setups[s], false);
        float *same_sequence = run_mixed(path, &setups[s], true);
        for (uint64_t t = 0; t < COUNT_OF(mixed); t++)
            assert_memory_equal(same_sequence + t * width, alone + t * width,
                                width * sizeof(float));
        free(alone);
        free(same_sequence);
    }
}

static void test_together(void **state)
{
    (void)state;
    each_path(check_together);
}

/* ---- Every value a cache can hold ------------------------------------------------------------ */

/* Over a single slot attention gives its value back. */
static void check_values(enum cpu_path path, enum dtype dtype, const uint8_t *rows)
{
    const struct setup setup = { dtype, 1024, 2, 1, 1 };
    struct span single[64];
    for (int32_t t = 0; t < 64; t++)
        single[t] = (struct span){ t, 0 };
    struct attention attention;
    attention_init(&attention, &setup, single, 64, 64);
    struct rig *rig = &attention.rig;
    memcpy(rig->memory[VALUES].bytes, rows, rig->memory[VALUES].byte_count);
    float *values = decode_cache(rig, VALUES);
    attention_run(&attention, path, false);
    for (uint64_t i = 0; i < 64 * 2048; i++) {
        float expected = values[i / 2048 * 1024 + i % 1024];
        float found = rig_row(rig, OUT, i / 2048)[i % 2048];
        if (isnan(expected) ? !isnan(found) : found != expected)
            fail_msg("%s: value %d: expected %g, found %g", rig->name, (int)i, (double)expected,
                     (double)found);
    }
    free(values);
    rig_release(rig);
}

/* All halves; and blocks whose scale, whatever it is, meets every level. */
static void check_all_values(enum cpu_path path)
{
    uint8_t *halves = malloc(65536 * 2);
    for (uint32_t i = 0; i < 65536; i++)
        memcpy(halves + 2 * i, &(uint16_t){ (uint16_t)i }, 2);
    check_values(path, DTYPE_F16, halves);
    uint8_t *blocks = malloc(2048 * 34);
    for (uint32_t b = 0; b < 2048; b++) {
        memcpy(blocks + 34 * b, &(uint16_t){ (uint16_t)(b * 32 + b % 29) }, 2);
        for (uint32_t i = 0; i < 32; i++)
            blocks[34 * b + 2 + i] = (uint8_t)(b * 32 + i);
    }
    check_values(path, DTYPE_Q8_0, blocks);
    free(blocks);
    free(halves);
}

static void test_all_values(void **state)
{
    (void)state;
    each_path(check_all_values);
}

/* ---- Bad indices ---------------------------------------------------------------------------- */

static void check_traps(enum cpu_path path)
{
    static const struct {
        struct span span;
        uint32_t operand; /* 0: a good one */
        int64_t index;
        uint64_t bound;
    } rows[] = {
        { { 0, 3 }, 0, 0, 0 },
        { { -1, 3 }, STARTS, -1, SLOT_COUNT },
        { { SLOT_COUNT, 0 }, STARTS, SLOT_COUNT, SLOT_COUNT },
        { { INT32_MIN, 0 }, STARTS, INT32_MIN, SLOT_COUNT },
        { { INT32_MAX, INT32_MAX }, STARTS, INT32_MAX, SLOT_COUNT },
        { { 0, -1 }, POSITIONS, -1, SLOT_COUNT },
        { { 5, INT32_MIN }, POSITIONS, INT32_MIN, SLOT_COUNT - 5 },
        { { 24, 1000 }, POSITIONS, 1000, 1000 },
        { { 0, SLOT_COUNT }, POSITIONS, SLOT_COUNT, SLOT_COUNT },
        { { 1023, INT32_MAX }, POSITIONS, INT32_MAX, 1 },
        { { 24, 999 }, 0, 0, 0 },
    };
    const struct setup setup = { DTYPE_F16, 8, 6, 2, 1 };
    for (size_t r = 0; r < COUNT_OF(rows); r++) {
        struct attention attention;
        const struct span tokens[] = { { 3, 9 }, rows[r].span, { 4, 300 } };
        attention_init(&attention, &setup, tokens, 3, SLOT_COUNT);
        attention_run(&attention, path, false);
        rig_check_margins(&attention.rig);
        bool is_bad = rows[r].operand != 0;
        assert_int_equal(attention.rig.crumbs->trap_count, is_bad ? setup.kv_heads : 0);
        for (uint32_t i = 0; is_bad && i < setup.kv_heads; i++)
            rig_check_trap(&attention.rig, i, rows[r].operand, rows[r].index, rows[r].bound);
        for (uint64_t i = 0; is_bad && i < 48; i++)
            assert_true(rig_row(&attention.rig, OUT, 1)[i] == 0);
        float *keys = decode_cache(&attention.rig, KEYS);
        float *values = decode_cache(&attention.rig, VALUES);
        for (uint32_t head = 0; head < setup.heads; head++) {
            check_head(&attention, 0, head, keys, values);
            check_head(&attention, 2, head, keys, values);
        }
        free(keys);
        free(values);
        rig_release(&attention.rig);
    }
}

static void test_traps(void **state)
{
    (void)state;
    each_path(check_traps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_slots),  cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_nan),        cmocka_unit_test(test_together),
        cmocka_unit_test(test_all_values), cmocka_unit_test(test_traps),
    };
    return cmocka_run_group_tests_name("ops_host_attention_edge", tests, NULL, NULL);
}
