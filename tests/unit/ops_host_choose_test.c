/* ops_host_choose_test.c - argmax and top_k on every path against sorting: ties, NaN, infinities,
 * zeros of both signs. */
#include "ops_host_rig.h"

#include <float.h>

struct candidate {
    float value;
    int32_t id;
};

/* Largest first, equals by id, NaN last. */
static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value) ? 1 : -1;
    if (!isnan(a->value) && a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

enum fill {
    FILL_RANDOM,
    FILL_TIES,
    FILL_RISING,
    FILL_FALLING,
    FILL_ODD,
    FILL_NAN,
    FILL_LOW,
    FILL_ONE_NAN,
    FILL_ONE_INFINITE,
    FILL_LARGE,
    FILL_COUNT
};

static float fill_value(enum fill fill, uint64_t i, uint64_t vocab, struct random_state *random)
{
    static const float odd[] = { NAN, -NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1, -1, 0x1p-149f };
    switch (fill) {
    case FILL_TIES:
        return (float)(random_u64(random) % 5);
    case FILL_RISING:
        return (float)i;
    case FILL_FALLING:
        return -(float)i;
    case FILL_ODD:
        return odd[random_u64(random) % COUNT_OF(odd)];
    case FILL_NAN:
        return NAN;
    case FILL_LOW:
        return random_u64(random) % 4 ? NAN : -INFINITY;
    case FILL_ONE_NAN:
        return i == vocab * 2 / 3 ? NAN : random_gaussian(random);
    case FILL_ONE_INFINITE:
        return i == vocab - 1 ? -INFINITY : random_gaussian(random);
    case FILL_LARGE: /* finite, though their sum is not */
        return random_u64(random) % 2 ? FLT_MAX : -FLT_MAX;
    default:
        return random_gaussian(random);
    }
}

static void check_row(const struct rig *rig, uint64_t row, uint64_t k)
{
    uint64_t vocab = rig->operands[0].shape.dims[0];
    const int32_t *ids = (const int32_t *)(const void *)rig_row(rig, 2, row);
    struct candidate *sorted = malloc(vocab * sizeof(*sorted));
    for (uint64_t i = 0; i < vocab; i++)
        sorted[i] = (struct candidate){ rig_row(rig, 0, row)[i], (int32_t)i };
    qsort(sorted, vocab, sizeof(*sorted), compare);
    for (uint64_t i = 0; i < k; i++) {
        if (ids[i] != sorted[i].id ||
            memcmp(&rig_row(rig, 1, row)[i], &sorted[i].value, sizeof(float)) != 0)
            fail_msg("%s: row %d place %d: expected %g of id %d, found %g of id %d", rig->name,
                     (int)row, (int)i, (double)sorted[i].value, sorted[i].id,
                     (double)rig_row(rig, 1, row)[i], ids[i]);
    }
    int32_t best = ((const int32_t *)rig->operands[3].data)[row], expected = sorted[0].id;
    for (uint64_t i = 0; i < vocab; i++)
        expected = isfinite(sorted[i].value) ? expected : -1;
    if (best != expected)
        fail_msg("%s: argmax of row %d: expected %d, found %d", rig->name, (int)row, expected,
                 best);
    int32_t next = ((const int32_t *)rig->operands[4].data)[row];
    if (next != (expected < 0 ? 0 : expected))
        fail_msg("%s: next of row %d: expected that of %d, found %d", rig->name, (int)row, expected,
                 next);
    free(sorted);
}

static void check_choose(enum cpu_path path, enum fill fill, uint64_t vocab, uint64_t k,
                         uint64_t rows)
{
    char name[96];
    snprintf(name, sizeof(name), "%s fill %d, %d of %d", cpu_path_name(path), (int)fill, (int)k,
             (int)vocab);
    struct rig rig;
    struct random_state random = { .counter = vocab + k };
    rig_init(&rig, NULL, name);
    rig_operand(&rig, 0, DTYPE_F32, vocab, rows, 4);
    rig_operand(&rig, 1, DTYPE_F32, k, rows, 0);
    rig_operand(&rig, 2, DTYPE_I32, k, rows, 0);
    rig_list(&rig, 3, NULL, rows);
    rig_list(&rig, 4, NULL, rows);
    for (uint64_t r = 0; r < rows; r++) {
        for (uint64_t i = 0; i < vocab; i++)
            rig_row(&rig, 0, r)[i] = fill_value(fill, i, vocab, &random);
    }
    rig_run(&rig, rig_kernel(path, "top_k"), rows, true);
    /* argmax has the same first operand, ids as its second, and what to look up next as its third:
     * first absent, so that the ids are there without it. */
    struct device_host_operand operands[3] = { rig.operands[0], rig.operands[3] };
    rig.call.operands = operands;
    rig_run(&rig, rig_kernel(path, "argmax"), rows, true);
    int32_t *alone = malloc(rows * sizeof(*alone));
    assert_non_null(alone);
    memcpy(alone, rig.operands[3].data, rows * sizeof(*alone));
    operands[2] = rig.operands[4];
    rig_run(&rig, rig_kernel(path, "argmax"), rows, true);
    assert_memory_equal(alone, rig.operands[3].data, rows * sizeof(*alone));
    free(alone);
    for (uint64_t r = 0; r < rows; r++)
        check_row(&rig, r, k);
    rig_check_margins(&rig);
    rig_check_no_traps(&rig);
    rig_release(&rig);
}

static void test_choose(void **state)
{
    (void)state;
    static const uint64_t shapes[][3] = { { 1, 1, 1 },    { 2, 1, 3 },     { 2, 2, 1 },
                                          { 7, 3, 2 },    { 7, 7, 2 },     { 64, 40, 3 },
                                          { 1000, 1, 2 }, { 1000, 50, 2 }, { 3001, 256, 1 },
                                          { 513, 513, 1 } };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        for (int fill = 0; fill < FILL_COUNT; fill++) {
            for (size_t s = 0; s < COUNT_OF(shapes); s++)
                check_choose((enum cpu_path)path, (enum fill)fill, shapes[s][0], shapes[s][1],
                             shapes[s][2]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),
    };
    return cmocka_run_group_tests_name("ops_host_choose", tests, NULL, NULL);
}
