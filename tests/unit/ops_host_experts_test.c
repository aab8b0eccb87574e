/* ops_host_experts_test.c - gate_experts and sum_experts on every path against float64; paths agree
 * to the bit. */
#include "ops_host_rig.h"

/* ---- gate_experts --------------------------------------------------------------------------- */

static const float gates[] = { 0.0f,  -0.0f,  1e-30f, 16.6f,   -16.6f, 6.9999995f, 7.0f,   7.1f,
                               -7.1f, -86.9f, -87.1f, -200.0f, 200.0f, 1e30f,      -1e30f, -1.28f };

static double gate_expected(const struct params_gate_experts *params, double gate, double up)
{
    if (params->limit <= 0)
        return gate / (1 + exp(-gate)) * up;
    gate = fmin(gate, (double)params->limit);
    up = fmax(fmin(up, (double)params->limit), (double)-params->limit);
    return gate / (1 + exp(-(double)params->alpha * gate)) * (up + 1);
}

static void check_gate(enum cpu_path path, const struct params_gate_experts *params, bool weighted,
                       const uint8_t *same_as, uint8_t **ret_out)
{
    enum { WIDTH = 173, SLOTS = 6 };
    struct rig rig;
    rig_init(&rig, params, cpu_path_name(path));
    rig_operand(&rig, GATE_EXPERTS_GATE, DTYPE_F32, WIDTH, SLOTS, 0);
    rig_operand(&rig, GATE_EXPERTS_UP, DTYPE_F32, WIDTH, SLOTS, 0);
    rig_operand(&rig, GATE_EXPERTS_OUT, DTYPE_F32, WIDTH, SLOTS, 0);
    rig_fill(&rig, GATE_EXPERTS_GATE, 3, 6);
    rig_fill(&rig, GATE_EXPERTS_UP, 4, 6);
    memcpy(rig_row(&rig, GATE_EXPERTS_GATE, 1), gates, sizeof(gates));
    if (weighted) {
        rig_operand(&rig, GATE_EXPERTS_WEIGHTS, DTYPE_F32, SLOTS, 1, 0);
        rig_fill(&rig, GATE_EXPERTS_WEIGHTS, 5, 1);
    }
    rig_run(&rig, rig_kernel(path, "gate_experts"), rig_tiles(SLOTS, TILE_TOKENS), false);
    for (uint64_t i = 0; i < WIDTH * SLOTS; i++) {
        uint64_t s = i / WIDTH, place = i % WIDTH;
        float weight = weighted ? rig_row(&rig, GATE_EXPERTS_WEIGHTS, 0)[s] : 1;
        double up = (double)(rig_row(&rig, GATE_EXPERTS_UP, s)[place] * weight);
        double gate = (double)(rig_row(&rig, GATE_EXPERTS_GATE, s)[place] * weight);
        double expected = gate_expected(params, gate, up);
        /* alpha * gate is rounded, and its exponential is off by so much more. */
        rig_check_near(&rig, s, place, rig_row(&rig, GATE_EXPERTS_OUT, s)[place], expected,
                       (16 + fabs(fmax(gate, -87))) * 0x1p-24 * fabs(expected) + 2e-35 * fabs(up) +
                           2e-35);
    }
    rig_check_margins(&rig);
    if (same_as)
        rig_check_same(&rig, "as on the portable path", GATE_EXPERTS_OUT, same_as);
    *ret_out = rig_copy(&rig, GATE_EXPERTS_OUT);
    rig_release(&rig);
}

static void test_gate(void **state)
{
    (void)state;
    static const struct params_gate_experts settings[] = { { { 0 }, 0, 0 }, { { 0 }, 7, 1.702f } };
    for (size_t c = 0; c < COUNT_OF(settings) * 2; c++) {
        uint8_t *first = NULL;
        for (int path = 0; path < CPU_PATH_COUNT; path++) {
            if (!cpu_path_is_supported((enum cpu_path)path))
                continue;
            uint8_t *out;
            check_gate((enum cpu_path)path, &settings[c / 2], c % 2, first, &out);
            if (first)
                free(out);
            else
                first = out;
        }
        free(first);
    }
}

/* A NaN stays where it is, clamped or not. */
static void test_gate_nan(void **state)
{
    (void)state;
    static const struct params_gate_experts settings[] = { { { 0 }, 0, 0 }, { { 0 }, 7, 1.702f } };
    for (size_t c = 0; c < COUNT_OF(settings) * 2 * CPU_PATH_COUNT; c++) {
        enum cpu_path path = (enum cpu_path)(c / 4);
        if (!cpu_path_is_supported(path))
            continue;
        struct rig rig;
        rig_init(&rig, &settings[c % 2], cpu_path_name(path));
        rig_operand(&rig, GATE_EXPERTS_GATE, DTYPE_F32, 37, 1, 0);
        rig_operand(&rig, GATE_EXPERTS_UP, DTYPE_F32, 37, 1, 0);
        rig_operand(&rig, GATE_EXPERTS_OUT, DTYPE_F32, 37, 1, 0);
        for (uint64_t place = 0; place < 37; place++) {
            rig_fill(&rig, GATE_EXPERTS_GATE, 1, 2);
            rig_fill(&rig, GATE_EXPERTS_UP, 2, 2);
            rig_row(&rig, c / 2 % 2 ? GATE_EXPERTS_GATE : GATE_EXPERTS_UP, 0)[place] = NAN;
            rig_run(&rig, rig_kernel(path, "gate_experts"), 1, false);
            for (uint64_t i = 0; i < 37; i++)
                assert_int_equal(isnan(rig_row(&rig, GATE_EXPERTS_OUT, 0)[i]) != 0, i == place);
        }
        rig_release(&rig);
    }
}

/* ---- sum_experts ---------------------------------------------------------------------------- */

struct sum_case {
    uint64_t width, tokens, k;
    bool weights, shared, gate;
};

static void check_sum(enum cpu_path path, const struct sum_case *row, const uint8_t *same_as,
                      uint8_t **ret_out)
{
    struct rig rig;
    rig_init(&rig, NULL, cpu_path_name(path));
    rig_operand(&rig, SUM_EXPERTS_X, DTYPE_F32, row->width, row->tokens * row->k, 0);
    rig_operand(&rig, SUM_EXPERTS_OUT, DTYPE_F32, row->width, row->tokens, 0);
    rig_fill(&rig, SUM_EXPERTS_X, 3, 1);
    if (row->weights) {
        rig_operand(&rig, SUM_EXPERTS_WEIGHTS, DTYPE_F32, row->tokens * row->k, 1, 0);
        rig_fill(&rig, SUM_EXPERTS_WEIGHTS, 4, 1);
    }
    if (row->shared) {
        rig_operand(&rig, SUM_EXPERTS_SHARED, DTYPE_F32, row->width, row->tokens, 0);
        rig_fill(&rig, SUM_EXPERTS_SHARED, 5, 1);
    }
    if (row->gate) {
        rig_operand(&rig, SUM_EXPERTS_SHARED_GATE, DTYPE_F32, row->tokens, 1, 0);
        rig_fill(&rig, SUM_EXPERTS_SHARED_GATE, 6, 1);
        rig_row(&rig, SUM_EXPERTS_SHARED_GATE, 0)[0] = 0;
    }
    rig_run(&rig, rig_kernel(path, "sum_experts"), rig_tiles(row->tokens, TILE_TOKENS), true);
    for (uint64_t i = 0; i < row->width * row->tokens; i++) {
        uint64_t t = i / row->width, place = i % row->width;
        double sum = 0, size = 0;
        for (uint64_t s = t * row->k; s < (t + 1) * row->k; s++) {
            double weight = row->weights ? (double)rig_row(&rig, SUM_EXPERTS_WEIGHTS, 0)[s] : 1;
            sum += weight * (double)rig_row(&rig, SUM_EXPERTS_X, s)[place];
            size += fabs(weight * (double)rig_row(&rig, SUM_EXPERTS_X, s)[place]);
        }
        if (row->shared) {
            double gate = row->gate ? (double)rig_row(&rig, SUM_EXPERTS_SHARED_GATE, 0)[t] : 0;
            double part = (double)rig_row(&rig, SUM_EXPERTS_SHARED, t)[place] /
                          (row->gate ? 1 + exp(-gate) : 1);
            sum += part;
            size += 4 * fabs(part);
        }
        rig_check_near(&rig, t, place, rig_row(&rig, SUM_EXPERTS_OUT, t)[place], sum,
                       (double)(row->k + 2) * 0x1p-24 * size);
    }
    rig_check_margins(&rig);
    if (same_as)
        rig_check_same(&rig, "as on the portable path", SUM_EXPERTS_OUT, same_as);
    *ret_out = rig_copy(&rig, SUM_EXPERTS_OUT);
    rig_release(&rig);
}

static void test_sum(void **state)
{
    (void)state;
    static const struct sum_case cases[] = {
        { 1, 1, 1, true, false, false },  { 37, 5, 8, true, false, false },
        { 64, 3, 4, true, true, true },   { 100, 9, 6, true, true, false },
        { 33, 2, 1, false, true, false },
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        uint8_t *first = NULL;
        for (int path = 0; path < CPU_PATH_COUNT; path++) {
            if (!cpu_path_is_supported((enum cpu_path)path))
                continue;
            uint8_t *out;
            check_sum((enum cpu_path)path, &cases[c], first, &out);
            if (first)
                free(out);
            else
                first = out;
        }
        free(first);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gate),
        cmocka_unit_test(test_gate_nan),
        cmocka_unit_test(test_sum),
    };
    return cmocka_run_group_tests_name("ops_host_experts", tests, NULL, NULL);
}
