/* gpu_strides_test.c - every operand whose rows may be apart, with rows that are: against the host,
 * and nothing between rows is written or read. The device is the first argument.
 *
 * Rows are apart by a number of values that leaves them aligned, so that kernels which read 16
 * bytes at a time take them, and by one that does not. */
#include "ops_both.h"
#include "ops_weights.h"

/* Operand o of an op was tested: bit 1 << o. */
static uint32_t tested[OPS_COUNT];

struct apart {
    struct device_view views[2], whole[2];
    uint64_t width, rows, gap;
};

/* Before the first row, between rows and after the last one are `gap` values of poison. values
 * NULL: poison in the rows too. */
static struct apart make_apart(enum ops_op op, const char *operand, uint64_t width, uint64_t rows,
                               uint64_t gap, const float *values)
{
    const struct device_contract *contract = ops_contract(op);
    uint64_t count = gap + (width + gap) * rows;
    struct apart apart = { .width = width, .rows = rows, .gap = gap };
    float *all = malloc(count * sizeof(float));
    assert_non_null(all);
    memset(all, DEVICE_POISON, count * sizeof(float));
    for (uint64_t r = 0; r < rows && values; r++)
        memcpy(all + gap + r * (width + gap), values + r * width, width * sizeof(float));
    both(apart.whole, DTYPE_F32, count, 1, all);
    for (size_t side = 0; side < 2; side++) {
        apart.views[side] = apart.whole[side];
        apart.views[side].shape = shape_make(2, (uint64_t[]){ width, rows });
        apart.views[side].offset_bytes = gap * sizeof(float);
        apart.views[side].row_stride_bytes = (width + gap) * sizeof(float);
    }
    for (uint32_t i = 0; i < contract->operand_count; i++)
        if (strcmp(contract->operands[i].name, operand) == 0)
            tested[op] |= 1u << i;
    free(all);
    return apart;
}

/* The rows of both, within tolerance of each other, 0: the same bits; and poison between them. */
static void check_apart(const char *name, struct apart *apart, double tolerance)
{
    uint64_t stride = apart->width + apart->gap, count = apart->gap + stride * apart->rows;
    float *found = malloc(count * sizeof(float));
    uint8_t poison[64 * sizeof(float)];
    assert_non_null(found);
    assert_true(apart->gap * sizeof(float) <= sizeof(poison));
    memset(poison, DEVICE_POISON, sizeof(poison));
    lab_get(&gpu, &apart->whole[1], found);
    for (uint64_t r = 0; r <= apart->rows; r++)
        if (memcmp(found + r * stride, poison, apart->gap * sizeof(float)) != 0)
            fail_msg("%s, rows apart by %d: what is before row %d was written", name,
                     (int)apart->gap, (int)r);
    free(found);
    compare(name, apart->views, tolerance);
}

static void drop_apart(struct apart *apart)
{
    drop_both(apart->whole);
}

/* ---- Rows ----------------------------------------------------------------------------------- */

#define WIDTH 192u

static void check_rows(uint64_t tokens, uint64_t gap)
{
    float *values = lab_floats(&host, WIDTH * tokens), *more = lab_floats(&host, WIDTH * tokens);
    int32_t *list = malloc(tokens * sizeof(int32_t));
    assert_non_null(list);
    for (uint64_t i = 0; i < tokens; i++)
        list[i] = (int32_t)(tokens - 1 - i);
    struct device_view table[2], ids[2];
    both(table, DTYPE_F32, WIDTH, tokens, values);
    both(ids, DTYPE_I32, tokens, 1, list);
    struct apart embedded = make_apart(OPS_EMBED, "out", WIDTH, tokens, gap, NULL);
    BOTH_OK(ops_embed(&lab->target, &table[side], &ids[side], &embedded.views[side], &lab->err));
    check_apart("embed", &embedded, 0);

    struct apart x = make_apart(OPS_ADD, "x", WIDTH, tokens, gap, values);
    struct apart added = make_apart(OPS_ADD, "added", WIDTH, tokens, gap, more);
    BOTH_OK(ops_add(&lab->target, &x.views[side], &added.views[side], &lab->err));
    check_apart("add", &x, 0);

    struct apart source = make_apart(OPS_GATHER_ROWS, "x", WIDTH, tokens, gap, values);
    struct apart gathered = make_apart(OPS_GATHER_ROWS, "out", WIDTH, tokens, gap, NULL);
    BOTH_OK(ops_gather_rows(&lab->target, &source.views[side], &ids[side], &gathered.views[side],
                            &lab->err));
    check_apart("gather_rows", &gathered, 0);
    struct apart *all[] = { &embedded, &x, &added, &source, &gathered };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        drop_apart(all[i]);
    drop_both(table);
    drop_both(ids);
    free(list);
    free(more);
    free(values);
}

/* Packed rows of the GPU are those of rows close together. */
static void check_packed(const char *name, const struct apart *rows,
                         const struct device_view *packed, enum dtype weights)
{
    uint64_t bytes = packed->shape.dims[0] * packed->shape.dims[1];
    float *values = malloc(rows->width * rows->rows * sizeof(float));
    uint8_t *wanted = malloc(bytes), *found = malloc(bytes);
    assert_true(values && wanted && found);
    lab_get(&gpu, &rows->views[1], values);
    struct device_view close = lab_put_new(&gpu, DTYPE_F32, rows->width, rows->rows, values);
    struct device_view again = lab_view(&gpu, DTYPE_I8, packed->shape.dims[0],
                                        packed->shape.dims[1]);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &close, &again, weights, &gpu.err));
    lab_get(&gpu, packed, found);
    lab_get(&gpu, &again, wanted);
    if (memcmp(found, wanted, bytes) != 0)
        fail_msg("%s, rows apart by %d, for %s: packed as other bytes than rows close together",
                 name, (int)rows->gap, dtype_name(weights));
    lab_drop(&gpu, close);
    lab_drop(&gpu, again);
    free(found);
    free(wanted);
    free(values);
}

/* norm, swiglu and act_pack, packed for weights of a type. */
static void check_packing(uint64_t tokens, uint64_t gap, enum dtype weights)
{
    float *values = lab_floats(&host, WIDTH * tokens), *more = lab_floats(&host, WIDTH * tokens);
    struct device_view weight[2];
    both(weight, DTYPE_F32, WIDTH, 1, more);
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, weights, WIDTH, tokens), tokens);
    struct ops_packing packing = { &packed, weights };
    struct apart x = make_apart(OPS_RMS_NORM, "x", WIDTH, tokens, gap, values);
    struct apart added = make_apart(OPS_RMS_NORM, "added", WIDTH, tokens, gap, more);
    struct apart out = make_apart(OPS_RMS_NORM, "out", WIDTH, tokens, gap, NULL);
    BOTH_OK(ops_rms_norm(&lab->target, &x.views[side], &added.views[side], &weight[side],
                         &out.views[side], side ? &packing : NULL, 1e-5f, &lab->err));
    check_apart("x of rms_norm", &x, 0);
    check_apart("rms_norm", &out, 2e-6);
    check_packed("rms_norm", &out, &packed, weights);
    struct apart gate = make_apart(OPS_SWIGLU, "gate", WIDTH, tokens, gap, values);
    struct apart up = make_apart(OPS_SWIGLU, "up", WIDTH, tokens, gap, more);
    struct apart product = make_apart(OPS_SWIGLU, "out", WIDTH, tokens, gap, NULL);
    BOTH_OK(ops_swiglu(&lab->target, &gate.views[side], &up.views[side], &product.views[side],
                       side ? &packing : NULL, &lab->err));
    check_apart("swiglu", &product, 2e-6);
    check_packed("swiglu", &product, &packed, weights);
    struct apart curved = make_apart(OPS_GELU, "out", WIDTH, tokens, gap, NULL);
    tested[OPS_GELU] |= 1u << GELU_X | 1u << GELU_UP;
    BOTH_OK(ops_gelu(&lab->target, &gate.views[side], &up.views[side], &curved.views[side],
                     side ? &packing : NULL, &lab->err));
    check_apart("gelu", &curved, 2e-6);
    check_packed("gelu", &curved, &packed, weights);
    tested[OPS_SCALE] |= 1u << SCALE_X;
    BOTH_OK(ops_scale(&lab->target, &curved.views[side], 3, 2, &lab->err));
    check_apart("scale", &curved, 2e-6);
    tested[OPS_LAYER_NORM] |= 1u << LAYER_NORM_X | 1u << LAYER_NORM_ADDED | 1u << LAYER_NORM_OUT;
    BOTH_OK(ops_layer_norm(&lab->target, &x.views[side], &added.views[side], &weight[side],
                           &weight[side], &out.views[side], side ? &packing : NULL,
                           &(struct ops_layer_norm_settings){ .epsilon = 1e-5f }, &lab->err));
    check_apart("x of layer_norm", &x, 0);
    check_apart("layer_norm", &out, 4e-6);
    check_packed("layer_norm", &out, &packed, weights);
    struct apart rows = make_apart(OPS_ACT_PACK, "x", WIDTH, tokens, gap, values);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &rows.views[1], &packed, weights, &gpu.err));
    check_packed("act_pack", &rows, &packed, weights);
    struct apart *all[] = { &x, &added, &out, &gate, &up, &product, &curved, &rows };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        drop_apart(all[i]);
    lab_drop(&gpu, packed);
    drop_both(weight);
    free(more);
    free(values);
}

/* ---- Matmul --------------------------------------------------------------------------------- */

/* One matmul and a group of three, against sums of f64. */
static void check_product(enum dtype dtype, uint64_t tokens, uint64_t gap)
{
    enum { ROWS = 34 };
    char name[96];
    uint64_t k = lab_weight_k(dtype);
    float *x = lab_floats(&gpu, k * tokens), *decoded = malloc(k * ROWS * sizeof(float));
    float *found = malloc(ROWS * tokens * sizeof(float));
    double *wanted = malloc(ROWS * tokens * sizeof(double));
    assert_true(decoded && found && wanted);
    snprintf(name, sizeof(name), "product of %s, %d tokens", dtype_name(dtype), (int)tokens);
    struct device_view weights = lab_put_weights(&gpu, dtype, k, ROWS, decoded);
    struct device_view input = lab_put_new(&gpu, DTYPE_F32, k, tokens, x);
    struct device_view packed = lab_view(&gpu, DTYPE_I8,
                                         ops_packed_row_bytes(&gpu.ops, dtype, k, tokens), tokens);
    struct apart outs[] = {
        make_apart(OPS_MATMUL, "out", ROWS, tokens, gap, NULL),
        make_apart(OPS_MATMUL_GROUP, "out_0", ROWS, tokens, gap, NULL),
        make_apart(OPS_MATMUL_GROUP, "out_1", ROWS, tokens, gap, NULL),
        make_apart(OPS_MATMUL_GROUP, "out_2", ROWS, tokens, gap, NULL),
    };
    const struct device_view *all[] = { &weights, &weights, &weights };
    const struct device_view *out_list[] = { &outs[1].views[1], &outs[2].views[1],
                                             &outs[3].views[1] };
    multiply_exactly(decoded, x, NULL, k, ROWS, tokens, wanted);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &input, &packed, dtype, &gpu.err));
    LAB_OK(&gpu, ops_matmul(&gpu.target, &weights, &packed, NULL, &outs[0].views[1], &gpu.err));
    LAB_OK(&gpu, ops_matmul_group(&gpu.target, 3, all, &packed, NULL, out_list, &gpu.err));
    for (size_t i = 0; i < COUNT_OF(outs); i++) {
        lab_get(&gpu, &outs[i].views[1], found);
        double error = normalised_error(found, wanted, ROWS * tokens);
        if (!(error < 1e-3)) /* another row's would be near 1 */
            fail_msg("%s, rows apart by %d: normalised error %g", name, (int)gap, error);
        lab_put(&host, &outs[i].views[0], found); /* of the GPU there are only gaps to look at */
        check_apart(name, &outs[i], 0);
        drop_apart(&outs[i]);
    }
    lab_drop(&gpu, weights);
    lab_drop(&gpu, input);
    lab_drop(&gpu, packed);
    free(wanted);
    free(found);
    free(decoded);
    free(x);
}

/* ---- Attention ------------------------------------------------------------------------------ */

#define SLOTS 150u

/* rope, kv_append and attention; together: as tokens of one sequence. */
static void check_attention(uint64_t tokens, uint64_t gap, uint64_t head, bool same_sequence)
{
    enum { KV_HEADS = 2, GROUP = 4 };
    uint64_t kv_dim = KV_HEADS * head, width = kv_dim * GROUP;
    float *values = lab_floats(&host, width * SLOTS);
    int32_t *lists = malloc(2 * tokens * sizeof(int32_t));
    assert_non_null(lists);
    for (uint64_t t = 0; t < tokens; t++) {
        lists[t] = 0;
        lists[tokens + t] = (int32_t)(SLOTS - tokens + t);
    }
    struct device_view table[2], starts[2], positions[2], keys[2], cached[2], weight[2];
    both(table, DTYPE_F32, head, SLOTS, values);
    both(weight, DTYPE_F32, head, 1, values);
    both(starts, DTYPE_I32, tokens, 1, lists);
    both(positions, DTYPE_I32, tokens, 1, lists + tokens);
    uint16_t *halves = malloc(2 * kv_dim * SLOTS);
    assert_non_null(halves);
    quant_encode_row(DTYPE_F16, values, kv_dim * SLOTS, (uint8_t *)halves);
    both(keys, DTYPE_F16, kv_dim, SLOTS, halves);
    both(cached, DTYPE_F16, kv_dim, SLOTS, halves);
    struct apart q = make_apart(OPS_ROPE, "x", width, tokens, gap, values);
    struct apart k = make_apart(OPS_ROPE, "also", kv_dim, tokens, gap, values);
    struct apart v = make_apart(OPS_KV_APPEND, "v", kv_dim, tokens, gap, values);
    struct apart out = make_apart(OPS_ATTENTION, "out", width, tokens, gap, NULL);
    tested[OPS_KV_APPEND] |= 1u << 0; /* k */
    tested[OPS_ATTENTION] |= 1u << 0; /* q */
    tested[OPS_HEAD_NORM] |= 1u << 0; /* x */
    BOTH_OK(ops_head_norm(&lab->target, &q.views[side], &weight[side], 1e-5f, &lab->err));
    check_apart("head_norm", &q, 2e-6);
    BOTH_OK(ops_rope(&lab->target, &q.views[side], &k.views[side], &positions[side], &table[side],
                     (uint32_t)head, false, &lab->err));
    check_apart("rope", &q, 1e-5);
    check_apart("rope of the second", &k, 1e-5);
    lab_get(&gpu, &k.views[1], values); /* so that keys have the same bits */
    lab_put(&host, &k.views[0], values);
    BOTH_OK(ops_kv_append(&lab->target, &k.views[side], &v.views[side], &positions[side],
                          &keys[side], &cached[side], &lab->err));
    compare("kv_append", keys, 0);
    compare("kv_append, values", cached, 0);
    BOTH_OK(ops_attention(&lab->target, &q.views[side], &keys[side], &cached[side], &starts[side],
                          &positions[side], &out.views[side], NULL,
                          &(struct ops_attention_settings){ .head_dim = (uint32_t)head,
                                                            .scale = 0.2f,
                                                            .same_sequence = same_sequence },
                          &lab->err));
    check_apart("attention", &out, tokens > 8 ? 2e-3 : 1e-5); /* on matrix units: halves */
    struct apart *all[] = { &q, &k, &v, &out };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        drop_apart(all[i]);
    struct device_view *plain[] = { table, weight, starts, positions, keys, cached };
    for (size_t i = 0; i < COUNT_OF(plain); i++)
        drop_both(plain[i]);
    free(halves);
    free(lists);
    free(values);
}

/* ---- Choosing ------------------------------------------------------------------------------- */

static void check_choosing(uint64_t vocab, uint64_t gap)
{
    enum { ROWS = 3, K = 4 };
    float *values = lab_floats(&host, vocab * ROWS);
    struct device_view ids[2], best[2], best_ids[2];
    both(ids, DTYPE_I32, ROWS, 1, NULL);
    both(best, DTYPE_F32, K, ROWS, NULL);
    both(best_ids, DTYPE_I32, K, ROWS, NULL);
    struct apart logits = make_apart(OPS_ARGMAX, "logits", vocab, ROWS, gap, values);
    tested[OPS_TOP_K] |= 1u << 0;
    BOTH_OK(ops_argmax(&lab->target, &logits.views[side], &ids[side], NULL, &lab->err));
    BOTH_OK(ops_top_k(&lab->target, &logits.views[side], &best[side], &best_ids[side], &lab->err));
    compare("argmax", ids, 0);
    compare("top_k", best, 0);
    compare("top_k, ids", best_ids, 0);
    drop_apart(&logits);
    drop_both(ids);
    drop_both(best);
    drop_both(best_ids);
    free(values);
}

/* ---- All of it ------------------------------------------------------------------------------ */

static const uint64_t gaps[] = { 4, 3 };

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        check_rows(3, gaps[i]);
        check_rows(11, gaps[i]);
        check_choosing(500, gaps[i]);
        check_choosing(9001, gaps[i]);
    }
}

static void test_packing(void **state)
{
    (void)state;
    static const enum dtype types[] = { DTYPE_F32, DTYPE_BF16, DTYPE_Q8_0, DTYPE_Q4_K };
    for (size_t i = 0; i < COUNT_OF(gaps); i++)
        for (size_t n = 0; n < COUNT_OF(types); n++) {
            check_packing(3, gaps[i], types[n]);
            check_packing(11, gaps[i], types[n]);
        }
}

static void test_products(void **state)
{
    (void)state;
    static const uint64_t token_counts[] = { 3, 20 };
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        for (int dtype = 0; dtype < DTYPE_COUNT; dtype++)
            for (size_t n = 0; n < COUNT_OF(token_counts); n++)
                if (contract_allows(OPS_MATMUL, 0, dtype))
                    check_product((enum dtype)dtype, token_counts[n], gaps[i]);
        check_product(DTYPE_Q4_K, 2, gaps[i]);
        check_product(DTYPE_Q5_K, 6, gaps[i]);
        check_product(DTYPE_F16, 390, gaps[i]); /* warpgroups store two values where they can */
    }
}

static void test_attention(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gaps); i++) {
        check_attention(3, gaps[i], 64, false);
        check_attention(3, gaps[i], 160, false);
        check_attention(60, gaps[i], 64, true);  /* tiles */
        check_attention(60, gaps[i], 64, false); /* blocks for tokens apart */
    }
}

/* A row of the contract that says more than was tested. */
static void test_nothing_is_missing(void **state)
{
    (void)state;
    for (int op = 0; op < OPS_COUNT; op++) {
        const struct device_contract *contract = ops_contract((enum ops_op)op);
        for (uint32_t i = 0; i < contract->operand_count; i++)
            if (contract->operands[i].strided != (tested[op] >> i & 1))
                fail_msg("%s, operand %s: rows may be apart: contract %d, tested %d",
                         contract->name, contract->operands[i].name, contract->operands[i].strided,
                         (int)(tested[op] >> i & 1));
    }
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_nothing_is_missing),
    };
    return cmocka_run_group_tests(tests, open_labs, close_labs);
}
