/* ops_host_route_experts_test.c - route_experts against float64: scores, groups, ties, and logits
 * that are not finite. */
#include "ops_host_rig.h"

#include "ops/routing.h"

struct routing_case {
    const char *name;
    uint64_t experts, k, tokens;
    struct params_route_experts params;
    bool bias;
    uint32_t values; /* logits have so many different values; 0: any */
};

static const struct routing_case routing_cases[] = {
    { "mixtral", 8, 2, 9, { 0, 1, 1, 1, 1 }, false, 0 },
    { "one expert", 1, 1, 3, { 0, 1, 1, 1, 1 }, false, 0 },
    { "all of them", 5, 5, 4, { 0, 0, 1, 1, 1 }, false, 0 },
    { "as they are", 60, 4, 5, { 0, 0, 1, 1, 1 }, false, 0 },
    { "many", 128, 8, 6, { 0, 1, 1, 1, 1 }, false, 0 },
    { "sigmoid", 16, 1, 5, { 1, 0, 1, 1, 1 }, false, 0 },
    { "bias and groups", 256, 8, 5, { 1, 1, 2.5f, 8, 4 }, true, 0 },
    { "groups of one", 6, 2, 4, { 0, 0, 16, 6, 3 }, false, 0 },
    { "the most", ROUTE_EXPERTS_LIMIT, ROUTE_CHOSEN_LIMIT, 2, { 0, 1, 1, 1, 1 }, true, 0 },
    { "ties", 33, 7, 9, { 0, 1, 1, 1, 1 }, false, 4 },
    { "ties of saturated scores", 33, 7, 9, { 1, 0, 1, 1, 1 }, false, 3 },
};

/* A token's scores, and what they are chosen by, as the description of the op has them. */
static void expected_scores(const struct routing_case *row, const float *logits, const float *bias,
                            double *scores, double *choice)
{
    double largest = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < row->experts; i++)
        largest = fmax(largest, (double)logits[i]);
    for (uint64_t i = 0; i < row->experts; i++)
        sum += exp((double)logits[i] - largest);
    for (uint64_t i = 0; i < row->experts; i++) {
        double logit = (double)logits[i];
        scores[i] = row->params.sigmoid ? 1 / (1 + exp(-logit)) : exp(logit - largest) / sum;
        bool by_logit = !bias && row->params.group_count == 1;
        choice[i] = by_logit ? logit : scores[i] + (bias ? (double)bias[i] : 0);
    }
}

static size_t best_of(const double *values, size_t count)
{
    size_t best = 0;
    for (size_t i = 1; i < count; i++)
        best = values[i] > values[best] ? i : best;
    return best;
}

static void leave_out_groups(const struct routing_case *row, double *choice)
{
    size_t groups = row->params.group_count, size = row->experts / groups;
    double sums[64];
    assert_true(groups <= COUNT_OF(sums));
    for (size_t g = 0; g < groups; g++) {
        double *members = choice + g * size;
        size_t best = best_of(members, size);
        double kept = members[best];
        members[best] = -INFINITY;
        sums[g] = kept + (size > 1 ? members[best_of(members, size)] : 0);
        members[best] = kept;
    }
    for (size_t n = 0; n < groups; n++) {
        size_t best = best_of(sums, groups);
        if (n >= row->params.groups_used)
            for (size_t i = 0; i < size; i++)
                choice[best * size + i] = -INFINITY;
        sums[best] = -INFINITY;
    }
}

static void check_token(const struct rig *rig, const struct routing_case *row, uint64_t token)
{
    double scores[ROUTE_EXPERTS_LIMIT], choice[ROUTE_EXPERTS_LIMIT], sum = 0;
    const float *bias = row->bias ? rig_row(rig, ROUTE_EXPERTS_BIAS, 0) : NULL;
    const int32_t *ids = (const int32_t *)(const void *)rig_row(rig, ROUTE_EXPERTS_IDS, token);
    expected_scores(row, rig_row(rig, ROUTE_EXPERTS_LOGITS, token), bias, scores, choice);
    if (row->params.group_count > 1)
        leave_out_groups(row, choice);
    for (uint64_t n = 0; n < row->k; n++) {
        size_t best = best_of(choice, row->experts);
        if (ids[n] != (int32_t)best)
            fail_msg("%s: token %d choice %d: expected expert %d, found %d", rig->name, (int)token,
                     (int)n, (int)best, ids[n]);
        choice[best] = -INFINITY;
        sum += scores[best];
    }
    for (uint64_t n = 0; n < row->k; n++) {
        double weight = scores[ids[n]] / (row->params.normalise ? fmax(sum, 0x1p-14) : 1) *
                        (double)row->params.weight_scale;
        rig_check_near(rig, token, n, rig_row(rig, ROUTE_EXPERTS_WEIGHTS, token)[n], weight,
                       2e-6 * weight + 1e-36);
    }
}

static void init_routing(struct rig *rig, const struct routing_case *row)
{
    rig_init(rig, &row->params, row->name);
    rig_operand(rig, ROUTE_EXPERTS_LOGITS, DTYPE_F32, row->experts, row->tokens, 0);
    if (row->bias)
        rig_operand(rig, ROUTE_EXPERTS_BIAS, DTYPE_F32, row->experts, 1, 0);
    rig_operand(rig, ROUTE_EXPERTS_IDS, DTYPE_I32, row->k, row->tokens, 0);
    rig_operand(rig, ROUTE_EXPERTS_WEIGHTS, DTYPE_F32, row->k, row->tokens, 0);
    rig_fill(rig, ROUTE_EXPERTS_LOGITS, 11, 3);
    if (row->bias)
        rig_fill(rig, ROUTE_EXPERTS_BIAS, 12, 0.2f);
    for (uint64_t i = 0; row->values && i < row->experts * row->tokens; i++) {
        float *value = &rig_row(rig, ROUTE_EXPERTS_LOGITS, i / row->experts)[i % row->experts];
        *value = 20 + roundf(fabsf(*value) * 9) -
                 (float)row->values * floorf(roundf(fabsf(*value) * 9) / (float)row->values);
    }
}

static void test_routing(void **state)
{
    (void)state;
    for (size_t c = 0; c < COUNT_OF(routing_cases); c++) {
        const struct routing_case *row = &routing_cases[c];
        struct rig rig;
        init_routing(&rig, row);
        device_host_kernel kernel = rig_kernel(CPU_PATH_PORTABLE, "route_experts");
        rig_run(&rig, kernel, rig_tiles(row->tokens, TILE_TOKENS), false);
        for (uint64_t t = 0; t < row->tokens; t++)
            check_token(&rig, row, t);
        rig_check_margins(&rig);
        uint8_t *ids = rig_copy(&rig, ROUTE_EXPERTS_IDS);
        memset(rig.memory[ROUTE_EXPERTS_IDS].bytes, RIG_UNTOUCHED,
               rig.memory[ROUTE_EXPERTS_IDS].byte_count);
        rig_run(&rig, kernel, rig_tiles(row->tokens, TILE_TOKENS), true);
        rig_check_same(&rig, "tiles backwards", ROUTE_EXPERTS_IDS, ids);
        free(ids);
        rig_release(&rig);
    }
}

/* A logit that is not finite: the weights say so, and the ids are indices still. */
static void test_routing_not_finite(void **state)
{
    (void)state;
    static const float odd[] = { NAN, -NAN, INFINITY, -INFINITY };
    static const struct routing_case cases[] = {
        { "softmax, not finite", 40, 6, 3, { 0, 1, 1, 1, 1 }, false, 0 },
        { "groups, not finite", 40, 6, 3, { 1, 0, 1, 8, 2 }, true, 0 },
    };
    for (size_t c = 0; c < COUNT_OF(cases) * COUNT_OF(odd) * 40; c++) {
        const struct routing_case *row = &cases[c % COUNT_OF(cases)];
        struct rig rig;
        init_routing(&rig, row);
        rig_row(&rig, ROUTE_EXPERTS_LOGITS, 1)[c / 8] = odd[c / 2 % 4];
        rig_run(&rig, rig_kernel(CPU_PATH_PORTABLE, "route_experts"), 1, false);
        uint64_t chosen = 0;
        for (uint64_t n = 0; n < row->k; n++) {
            int32_t id = ((int32_t *)(void *)rig_row(&rig, ROUTE_EXPERTS_IDS, 1))[n];
            assert_true(id >= 0 && (uint64_t)id < row->experts);
            assert_false(chosen >> id & 1);
            chosen |= UINT64_C(1) << id;
            assert_true(isnan(rig_row(&rig, ROUTE_EXPERTS_WEIGHTS, 1)[n]));
        }
        check_token(&rig, row, 0);
        check_token(&rig, row, 2);
        rig_release(&rig);
    }
}

/* To its last bits, also where the reference's is subnormal: 0 then. */
static void test_exp(void **state)
{
    (void)state;
    for (float x = 0; x > -120; x -= 0.00731f) {
        double expected = x < -87 ? 0 : exp((double)x), found = (double)routing_exp(x);
        if (!(fabs(found - expected) <= 3 * 0x1p-24 * expected))
            fail_msg("exp(%a): expected %a, found %a", (double)x, expected, found);
    }
    assert_true(routing_exp(0) == 1 && routing_exp(-INFINITY) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp),
        cmocka_unit_test(test_routing),
        cmocka_unit_test(test_routing_not_finite),
    };
    return cmocka_run_group_tests_name("ops_host_route_experts", tests, NULL, NULL);
}
