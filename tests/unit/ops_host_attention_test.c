/* ops_host_attention_test.c - attention on every path: against float64 for shapes and positions
 * that hurt, and its bits however the work is cut. */
#include "ops_host_attention_setup.h"

static const enum dtype cache_dtypes[] = { DTYPE_F32, DTYPE_F16, DTYPE_Q8_0 };

/* ---- The same bits -------------------------------------------------------------------------- */

/* Each token in a batch of its own. */
static void check_alone(struct attention *attention, enum cpu_path path)
{
    struct rig *rig = &attention->rig;
    struct device_host_operand operands[RIG_OPERANDS];
    memcpy(operands, rig->operands, sizeof(operands));
    uint8_t *out = rig_copy(rig, OUT);
    uint64_t token_count = attention->token_count;
    attention->token_count = 1;
    for (uint64_t t = 0; t < token_count; t++) {
        rig->operands[Q].data = rig_row(rig, Q, t);
        rig->operands[OUT].data = rig_row(rig, OUT, t);
        rig->operands[STARTS].data = (int32_t *)operands[STARTS].data + t;
        rig->operands[POSITIONS].data = (int32_t *)operands[POSITIONS].data + t;
        rig->operands[Q].shape.dims[1] = rig->operands[OUT].shape.dims[1] = 1;
        memset(rig_row(rig, OUT, t), RIG_UNTOUCHED, rig->memory[OUT].row_bytes);
        attention_run(attention, path, false);
    }
    attention->token_count = token_count;
    memcpy(rig->operands, operands, sizeof(operands));
    rig_check_same(rig, "a token alone", OUT, out);
    free(out);
}

/* An f32 cache that holds what the cache decodes to. */
static void check_decoded(const struct attention *attention, enum cpu_path path)
{
    const struct rig *rig = &attention->rig;
    struct setup setup = attention->setup;
    setup.dtype = DTYPE_F32;
    struct attention plain;
    attention_init(&plain, &setup, spans, attention->token_count,
                   rig->operands[KEYS].shape.dims[1]);
    for (size_t i = 0; i <= OUT; i++) {
        if (i != KEYS && i != VALUES) {
            memcpy(plain.rig.memory[i].bytes, rig->memory[i].bytes, rig->memory[i].byte_count);
            continue;
        }
        float *values = decode_cache(rig, i);
        memcpy(plain.rig.memory[i].bytes, values, plain.rig.memory[i].byte_count);
        free(values);
    }
    memset(plain.rig.memory[OUT].bytes, RIG_UNTOUCHED, plain.rig.memory[OUT].byte_count);
    attention_run(&plain, path, false);
    rig_check_same(&plain.rig, "an f32 cache of the same values", OUT, rig->memory[OUT].bytes);
    rig_release(&plain.rig);
}

/* Each query head with a launch of its own: head h of every group. */
static void check_single_heads(const struct attention *attention, enum cpu_path path)
{
    const struct rig *rig = &attention->rig;
    uint32_t head_dim = attention->setup.head_dim;
    uint32_t group = attention->setup.heads / attention->setup.kv_heads;
    struct setup setup = attention->setup;
    setup.heads = setup.kv_heads;
    struct attention single;
    attention_init(&single, &setup, spans, attention->token_count,
                   rig->operands[KEYS].shape.dims[1]);
    memcpy(single.rig.operands[STARTS].data, rig->operands[STARTS].data,
           rig->memory[STARTS].byte_count);
    memcpy(single.rig.operands[POSITIONS].data, rig->operands[POSITIONS].data,
           rig->memory[POSITIONS].byte_count);
    for (uint32_t h = 0; h < attention->setup.heads; h++) {
        uint32_t kv_head = h / group;
        for (uint64_t t = 0; t < attention->token_count; t++)
            memcpy(rig_row(&single.rig, Q, t) + kv_head * head_dim,
                   rig_row(rig, Q, t) + h * head_dim, head_dim * sizeof(float));
        if (h % group != 0 && group > 3 && h % 3 != 0)
            continue; /* a third of large groups will do */
        attention_run(&single, path, false);
        for (uint64_t t = 0; t < attention->token_count; t++)
            assert_memory_equal(rig_row(&single.rig, OUT, t) + kv_head * head_dim,
                                rig_row(rig, OUT, t) + h * head_dim, head_dim * sizeof(float));
    }
    rig_release(&single.rig);
}

static void check_setup(enum cpu_path path, const struct setup *setup)
{
    struct attention attention;
    attention_init(&attention, setup, spans, COUNT_OF(spans), SLOT_COUNT);
    struct rig *rig = &attention.rig;
    uint8_t *before[RIG_OPERANDS];
    for (size_t i = 0; i < RIG_OPERANDS; i++)
        before[i] = rig_copy(rig, i);
    attention_run(&attention, path, false);
    check_against_doubles(&attention);
    rig_check_margins(rig);
    rig_check_no_traps(rig);
    for (size_t i = 0; i < OUT; i++)
        rig_check_same(rig, "only read", i, before[i]);
    uint8_t *out = rig_copy(rig, OUT);
    rig_restore(rig, OUT, before[OUT]);
    attention_run(&attention, path, true);
    rig_check_same(rig, "tiles backwards", OUT, out);
    check_alone(&attention, path);
    check_decoded(&attention, path);
    check_single_heads(&attention, path);
    for (size_t i = 0; i < RIG_OPERANDS; i++)
        free(before[i]);
    free(out);
    rig_release(rig);
}

/* Query sizes: scores of a few units, and of hundreds, where nearly all weights are 0. */
static const struct setup setups[] = {
    { 0, 8, 1, 1, 1 },   { 0, 8, 4, 4, 1 },   { 0, 8, 24, 4, 1 },   { 0, 24, 8, 4, 2 },
    { 0, 40, 4, 4, 1 },  { 0, 40, 20, 4, 1 }, { 0, 64, 3, 3, 1 },   { 0, 64, 6, 3, 100 },
    { 0, 128, 7, 1, 1 }, { 0, 128, 4, 2, 1 }, { 0, 128, 5, 1, 30 },
};

static void check_path(enum cpu_path path)
{
    if (!cpu_path_is_supported(path))
        skip();
    for (size_t s = 0; s < COUNT_OF(setups); s++) {
        for (size_t d = 0; d < COUNT_OF(cache_dtypes); d++) {
            struct setup setup = setups[s];
            setup.dtype = cache_dtypes[d];
            if (setup.head_dim * setup.kv_heads % dtype_info(setup.dtype)->block_elements == 0)
                check_setup(path, &setup);
        }
    }
}

static void test_portable(void **state)
{
    (void)state;
    check_path(CPU_PATH_PORTABLE);
}

static void test_avx2(void **state)
{
    (void)state;
    check_path(CPU_PATH_AVX2);
}

static void test_avx512(void **state)
{
    (void)state;
    check_path(CPU_PATH_AVX512);
}

/* More heads in a group than the scratch holds at a time: each needs three vectors and more. */
static void test_large(void **state)
{
    (void)state;
    static const struct span few[] = { { 0, 4 }, { 2, 0 }, { 1, 5 } };
    const struct setup setup = { DTYPE_F16, 1024, DEVICE_SCRATCH_BYTES / (3 * 4096) + 5, 1, 1 };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct attention attention;
        attention_init(&attention, &setup, few, COUNT_OF(few), 7);
        attention_run(&attention, (enum cpu_path)path, false);
        check_against_doubles(&attention);
        check_single_heads(&attention, (enum cpu_path)path);
        rig_check_margins(&attention.rig);
        rig_release(&attention.rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_portable),
        cmocka_unit_test(test_avx2),
        cmocka_unit_test(test_avx512),
        cmocka_unit_test(test_large),
    };
    return cmocka_run_group_tests_name("ops_host_attention", tests, NULL, NULL);
}
