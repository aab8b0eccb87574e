/* gpu_experts_test.c - the ops of experts on a GPU and on the host: routing, gates and sums to the
 * bit, matmuls of every type against float64. The device is the first argument. */
#include "ops_both.h"
#include "ops_weights.h"

#include "ops/again.h"

/* ---- Routing -------------------------------------------------------------------------------- */

struct routing_case {
    const char *name;
    uint64_t experts, k, tokens;
    struct ops_routing routing;
    bool bias;
    float values; /* logits have so many different values; 0: any */
};

static void check_routing(const struct routing_case *row)
{
    float *logits = lab_floats(&host, row->experts * row->tokens);
    float *biases = lab_floats(&host, row->experts);
    for (uint64_t i = 0; i < row->experts * row->tokens; i++)
        logits[i] = row->values > 0 ? roundf(logits[i] * row->values) : logits[i] * 5;
    if (row->tokens > 3) {
        logits[row->experts] = NAN;
        logits[3 * row->experts - 1] = -INFINITY;
    }
    struct device_view logit[2], bias[2], id[2], weight[2];
    both(logit, DTYPE_F32, row->experts, row->tokens, logits);
    both(bias, DTYPE_F32, row->experts, 1, biases);
    both(id, DTYPE_I32, row->k, row->tokens, NULL);
    both(weight, DTYPE_F32, row->k, row->tokens, NULL);
    BOTH_OK(ops_route_experts(&lab->target, &logit[side], row->bias ? &bias[side] : NULL, &id[side],
                              &weight[side], &row->routing, &lab->err));
    compare(row->name, id, 0);
    compare(row->name, weight, 0);
    drop_both(logit);
    drop_both(bias);
    drop_both(id);
    drop_both(weight);
    free(biases);
    free(logits);
}

static void test_routing(void **state)
{
    (void)state;
    static const struct routing_case cases[] = {
        { "mixtral", 8, 2, 9, { OPS_SCORE_SOFTMAX, true, 1, 0, 0 }, false, 0 },
        { "one expert", 1, 1, 2, { OPS_SCORE_SOFTMAX, true, 1, 0, 0 }, false, 0 },
        { "as they are", 60, 4, 5, { OPS_SCORE_SOFTMAX, false, 1, 0, 0 }, false, 0 },
        { "many", 128, 8, 6, { OPS_SCORE_SOFTMAX, true, 1, 0, 0 }, false, 0 },
        { "sigmoid", 16, 1, 5, { OPS_SCORE_SIGMOID, false, 1, 0, 0 }, false, 0 },
        { "groups", 256, 8, 5, { OPS_SCORE_SIGMOID, true, 2.5f, 8, 4 }, true, 0 },
        { "groups of one", 6, 2, 4, { OPS_SCORE_SOFTMAX, false, 16, 6, 3 }, false, 0 },
        { "the most", 1024, 64, 2, { OPS_SCORE_SOFTMAX, true, 1, 0, 0 }, true, 0 },
        { "ties", 33, 7, 9, { OPS_SCORE_SOFTMAX, true, 1, 0, 0 }, false, 2 },
        { "ties in groups", 64, 7, 9, { OPS_SCORE_SOFTMAX, true, 1, 16, 5 }, false, 1 },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_routing(&cases[i]);
}

/* ---- Gates and sums ------------------------------------------------------------------------- */

static void check_gate(uint64_t width, uint64_t slots, bool weighted, float limit)
{
    float *values = lab_floats(&host, width * slots), *more = lab_floats(&host, width * slots);
    for (uint64_t i = 0; i < width * slots; i++) {
        values[i] *= i % 7 == 0 ? 100 : 9;
        more[i] *= 9;
    }
    struct device_view gate[2], up[2], weight[2], out[2];
    both(gate, DTYPE_F32, width, slots, values);
    both(up, DTYPE_F32, width, slots, more);
    both(weight, DTYPE_F32, slots, 1, more);
    both(out, DTYPE_F32, width, slots, NULL);
    struct ops_expert_gate settings = { .limit = limit, .alpha = 1.702f };
    BOTH_OK(ops_gate_experts(&lab->target, &gate[side], &up[side], weighted ? &weight[side] : NULL,
                             &out[side], NULL, &settings, &lab->err));
    compare("gate_experts", out, 0);
    drop_both(gate);
    drop_both(up);
    drop_both(weight);
    drop_both(out);
    free(values);
    free(more);
}

static void check_sum(uint64_t width, uint64_t tokens, uint64_t k, uint32_t with)
{
    float *values = lab_floats(&host, width * tokens * k);
    struct device_view x[2], weight[2], shared[2], gate[2], out[2];
    both(x, DTYPE_F32, width, tokens * k, values);
    both(weight, DTYPE_F32, tokens * k, 1, values + 1);
    both(shared, DTYPE_F32, width, tokens, values);
    both(gate, DTYPE_F32, tokens, 1, values);
    both(out, DTYPE_F32, width, tokens, NULL);
    BOTH_OK(ops_sum_experts(&lab->target, &x[side], with & 1 ? &weight[side] : NULL,
                            with & 2 ? &shared[side] : NULL, with & 4 ? &gate[side] : NULL,
                            &out[side], &lab->err));
    compare("sum_experts", out, 0);
    drop_both(x);
    drop_both(weight);
    drop_both(shared);
    drop_both(gate);
    drop_both(out);
    free(values);
}

static void test_around(void **state)
{
    (void)state;
    check_gate(300, 5, false, 0);
    check_gate(300, 5, true, 0);
    check_gate(37, 9, false, 7);
    check_gate(256, 3, true, 7);
    for (uint32_t with = 0; with < 8; with++)
        check_sum(with % 2 ? 300 : 37, 3, 2 + with, with);
}

/* ---- Matmul --------------------------------------------------------------------------------- */

struct matmul_case {
    uint64_t k, rows, experts, inputs, slots_per_input;
    bool bias;
};

static void check_matmul(struct lab *lab, enum dtype dtype, const struct matmul_case *c)
{
    uint64_t k = c->k > lab_weight_k(dtype) ? c->k : lab_weight_k(dtype);
    uint64_t slots = c->inputs * c->slots_per_input, count = slots * c->rows;
    float *decoded = malloc(k * c->rows * c->experts * sizeof(float));
    float *x = lab_floats(lab, k * c->inputs), *biases = lab_floats(lab, c->rows * c->experts);
    int32_t *ids = malloc(slots * sizeof(*ids));
    float *found = malloc(count * sizeof(*found));
    double *exact = malloc(count * sizeof(*exact));
    assert_true(decoded && ids && found && exact);
    struct device_view weights = lab_put_weights(lab, dtype, k, c->rows * c->experts, decoded);
    for (uint64_t s = 0; s < slots; s++) {
        ids[s] = (int32_t)(fabsf(lab_random(lab)) * 1000) % (int32_t)c->experts;
        multiply_exactly(decoded + (uint64_t)ids[s] * c->rows * k, x + s / c->slots_per_input * k,
                         c->bias ? biases + (uint64_t)ids[s] * c->rows : NULL, k, c->rows, 1,
                         exact + s * c->rows);
    }
    struct device_view input = lab_put_new(lab, DTYPE_F32, k, c->inputs, x);
    struct device_view packed = lab_view(lab, DTYPE_I8, ops_expert_row_bytes(&lab->ops, dtype, k),
                                         c->inputs);
    struct device_view bias = lab_put_new(lab, DTYPE_F32, c->rows, c->experts, biases);
    struct device_view id = lab_put_new(lab, DTYPE_I32, slots, 1, ids);
    struct device_view out = lab_view(lab, DTYPE_F32, c->rows, slots);
    LAB_OK(lab, ops_pack_for_experts(&lab->target, &input, &packed, dtype, &lab->err));
    LAB_OK(lab, ops_matmul_experts(&lab->target, &weights, &packed, c->bias ? &bias : NULL, &id,
                                   &out, &lab->err));
    lab_get(lab, &out, found);
    char name[96];
    snprintf(name, sizeof(name), "%s %s, %d slots of %d experts", lab->ops.on_gpu ? "GPU" : "host",
             dtype_name(dtype), (int)slots, (int)c->experts);
    check_close(name, found, exact, count, ops_tolerance(OPS_MATMUL_EXPERTS, dtype));
    LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
    struct device_view views[] = { weights, input, packed, bias, id, out };
    for (size_t i = 0; i < COUNT_OF(views); i++)
        lab_drop(lab, views[i]);
    free(exact);
    free(found);
    free(ids);
    free(biases);
    free(x);
    free(decoded);
}

static void test_matmul(void **state)
{
    (void)state;
    static const struct matmul_case cases[] = {
        { 256, 37, 5, 1, 2, true },  /* one token */
        { 512, 19, 3, 7, 2, false }, /* more slots than experts */
        { 256, 16, 4, 9, 1, true },  /* a row for each slot */
    };
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            if (!contract_allows(OPS_MATMUL_EXPERTS, MATMUL_EXPERTS_WEIGHTS, dtype))
                continue;
            check_matmul(&gpu, (enum dtype)dtype, &cases[i]);
            if (quant_can_decode((enum dtype)dtype))
                check_matmul(&host, (enum dtype)dtype, &cases[i]);
        }
}

/* A bad id: one trap that names the operand, and the other slots as they are. */
static void check_bad_id(enum dtype dtype, int32_t bad, uint64_t inputs)
{
    enum { K = 256, ROWS = 12, EXPERTS = 4 };
    uint64_t slots = 2 * inputs;
    float *decoded = malloc((size_t)K * ROWS * EXPERTS * sizeof(float));
    int32_t *ids = calloc(slots, sizeof(*ids));
    float *x = lab_floats(&gpu, K * inputs), *found[2];
    assert_true(decoded && ids);
    struct device_view weights = lab_put_weights(&gpu, dtype, K, ROWS * EXPERTS, decoded);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, K, inputs, x);
    struct device_view packed = lab_view(&gpu, DTYPE_I8, ops_expert_row_bytes(&gpu.ops, dtype, K),
                                         inputs);
    LAB_OK(&gpu, ops_pack_for_experts(&gpu.target, &input, &packed, dtype, &gpu.err));
    for (size_t run = 0; run < 2; run++) {
        ids[1] = run ? bad : 3;
        struct device_view id = lab_put_new(&gpu, DTYPE_I32, slots, 1, ids);
        struct device_view out = lab_view(&gpu, DTYPE_F32, ROWS, slots);
        found[run] = malloc(slots * ROWS * sizeof(float));
        assert_non_null(found[run]);
        uint64_t before = gpu.trap_count;
        LAB_OK(&gpu, ops_matmul_experts(&gpu.target, &weights, &packed, NULL, &id, &out, &gpu.err));
        lab_get(&gpu, &out, found[run]);
        LAB_OK(&gpu, device_stream_sync(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
        assert_int_equal(gpu.trap_count - before, run);
    }
    assert_int_equal(gpu.last_trap.trap.index, (uint64_t)(int64_t)bad);
    assert_int_equal(gpu.last_trap.trap.bound, EXPERTS);
    assert_memory_equal(found[0], found[1], ROWS * sizeof(float));
    assert_memory_equal(found[0] + 2 * ROWS, found[1] + 2 * ROWS,
                        (slots - 2) * ROWS * sizeof(float));
    for (size_t run = 0; run < 2; run++)
        free(found[run]);
    free(x);
    free(ids);
    free(decoded);
}

static void test_bad_ids(void **state)
{
    (void)state;
    check_bad_id(DTYPE_Q4_K, -1, 3);
    check_bad_id(DTYPE_F32, 4, 3);
    check_bad_id(DTYPE_MXFP4, INT32_MAX, 1);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routing),
        cmocka_unit_test(test_around),
        cmocka_unit_test(test_matmul),
        cmocka_unit_test(test_bad_ids),
    };
    return cmocka_run_group_tests(tests, open_labs, close_labs);
}
