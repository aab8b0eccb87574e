/* gpu_ops_test.c - every op on a GPU against the host, on the same fresh numbers, with poisoned
 * outputs and guards next to every operand. The device is the first argument. */
#include "ops_both.h"
#include "ops_weights.h"

/* ---- Rows ----------------------------------------------------------------------------------- */

static void test_embed(void **state)
{
    (void)state;
    enum { WIDTH = 512, VOCAB = 19, TOKENS = 5 };
    static const int32_t ids[TOKENS] = { 3, 18, 0, 3, 11 };
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        if (!contract_allows(OPS_EMBED, 0, dtype))
            continue;
        uint64_t row_bytes = 0;
        assert_true(dtype_row_bytes((enum dtype)dtype, WIDTH, &row_bytes));
        uint8_t *bytes = malloc(row_bytes * VOCAB);
        assert_non_null(bytes);
        for (size_t i = 0; i < row_bytes * VOCAB; i++) /* any bits; small exponents */
            bytes[i] = (uint8_t)((int)(lab_random(&host) * 127) & 0x3F);
        struct device_view table[2], id[2], out[2];
        both(table, (enum dtype)dtype, WIDTH, VOCAB, bytes);
        both(id, DTYPE_I32, TOKENS, 1, ids);
        both(out, DTYPE_F32, WIDTH, TOKENS, NULL);
        BOTH_OK(ops_embed(&lab->target, &table[side], &id[side], &out[side], &lab->err));
        compare(dtype_name((enum dtype)dtype), out, 0);
        drop_both(table);
        drop_both(id);
        drop_both(out);
        free(bytes);
    }
}

static void test_norms(void **state)
{
    (void)state;
    static const uint64_t widths[] = { 8, 32, 64, 288, 1000, 4096, 20000 };
    enum { TOKENS = 3 };
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        uint64_t width = widths[i];
        float *values = lab_floats(&host, width * TOKENS),
              *more = lab_floats(&host, width * TOKENS);
        struct device_view x[2], added[2], weight[2], out[2];
        both(x, DTYPE_F32, width, TOKENS, values);
        both(added, DTYPE_F32, width, TOKENS, more);
        both(weight, DTYPE_F32, width, 1, more);
        both(out, DTYPE_F32, width, TOKENS, NULL);
        BOTH_OK(ops_rms_norm(&lab->target, &x[side], NULL, &weight[side], &out[side], NULL, 1e-5f,
                             &lab->err));
        compare("rms_norm", out, 2e-6);
        BOTH_OK(ops_rms_norm(&lab->target, &x[side], &added[side], &weight[side], &out[side], NULL,
                             1e-5f, &lab->err));
        compare("rms_norm with added", out, 2e-6);
        compare("x of rms_norm with added", x, 0);
        BOTH_OK(ops_add(&lab->target, &x[side], &added[side], &lab->err));
        compare("add", x, 0);
        BOTH_OK(ops_swiglu(&lab->target, &x[side], &added[side], &out[side], NULL, &lab->err));
        compare("swiglu", out, 2e-6);
        if (width % 32 == 0) {
            uint64_t head = 32;
            struct device_view head_weight[2];
            both(head_weight, DTYPE_F32, head, 1, more);
            BOTH_OK(ops_head_norm(&lab->target, &x[side], &head_weight[side], 1e-5f, &lab->err));
            compare("head_norm", x, 2e-6);
            drop_both(head_weight);
        }
        drop_both(x);
        drop_both(added);
        drop_both(weight);
        drop_both(out);
        free(values);
        free(more);
    }
}

/* A block of 32 values as levels: what divisions give, to the bit. Returns their sum. */
static int32_t pack_block(const float *values, int8_t *levels, float *ret_scale)
{
    float largest = 0;
    bool finite = true;
    for (size_t i = 0; i < 32; i++) {
        finite = finite && isfinite(values[i]);
        largest = fmaxf(largest, fabsf(values[i]));
    }
    bool usable = finite && largest >= 0x1p-110f;
    int32_t sum = 0;
    for (size_t i = 0; i < 32; i++) {
        levels[i] = usable ? (int8_t)rintf(values[i] * (127.0f / largest)) : 0;
        sum += levels[i];
    }
    *ret_scale = usable ? largest / 127.0f : finite ? 0.0f : NAN;
    return sum;
}

/* Packed rows of a GPU, from every op that packs. */
static void check_packed(const char *name, const struct device_view *packed, const float *values,
                         uint64_t k, uint64_t tokens)
{
    uint64_t row_bytes = packed->shape.dims[0];
    uint8_t *bytes = malloc(row_bytes * tokens);
    assert_non_null(bytes);
    lab_get(&gpu, packed, bytes);
    for (uint64_t t = 0; t < tokens; t++)
        for (uint64_t i = 0; i < k; i += 32) {
            const uint8_t *row = bytes + t * row_bytes;
            int8_t levels[32];
            float pair[2], scale;
            int32_t sum = pack_block(values + t * k + i, levels, &scale);
            memcpy(pair, row + k + i / 32 * 8, sizeof(pair));
            bool same = isnan(scale) ? isnan(pair[0])
                                     : pair[0] == scale && pair[1] == scale * (float)sum;
            if (!same || memcmp(levels, row + i, sizeof(levels)) != 0)
                fail_msg("%s: token %d, values from %d on: expected scale %a and its %d-fold, "
                         "found %a and %a, or other levels",
                         name, (int)t, (int)i, (double)scale, (int)sum, (double)pair[0],
                         (double)pair[1]);
        }
    free(bytes);
}

static void test_packing(void **state)
{
    (void)state;
    enum { K = 2080, TOKENS = 3 };
    float *values = lab_floats(&host, K * TOKENS), *ones = lab_floats(&host, K * TOKENS);
    float *result = malloc(K * TOKENS * sizeof(float));
    for (size_t i = 0; i < K; i++)
        values[i] *= i < 64 ? 1e-30f : 100;
    struct device_view x = lab_put_new(&gpu, DTYPE_F32, K, TOKENS, values);
    struct device_view weight = lab_put_new(&gpu, DTYPE_F32, K, 1, ones);
    struct device_view up = lab_put_new(&gpu, DTYPE_F32, K, TOKENS, ones);
    struct device_view out = lab_view(&gpu, DTYPE_F32, K, TOKENS);
    struct device_view packed = lab_view(
        &gpu, DTYPE_I8, ops_packed_row_bytes(&gpu.ops, DTYPE_Q8_0, K, TOKENS), TOKENS);
    struct ops_packing packing = { &packed, DTYPE_Q8_0 };
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &x, &packed, DTYPE_Q8_0, &gpu.err));
    check_packed("act_pack", &packed, values, K, TOKENS);
    LAB_OK(&gpu, ops_rms_norm(&gpu.target, &x, NULL, &weight, &out, &packing, 1e-5f, &gpu.err));
    lab_get(&gpu, &out, result);
    check_packed("rms_norm", &packed, result, K, TOKENS);
    LAB_OK(&gpu, ops_swiglu(&gpu.target, &x, &up, &out, &packing, &gpu.err));
    lab_get(&gpu, &out, result);
    check_packed("swiglu", &packed, result, K, TOKENS);
    free(result);
    free(ones);
    free(values);
}

/* Quants of blocks of every size there is: each power of two, by any number, the largest below it,
 * one; and what has no quants. */
static void test_packing_of_any_size(void **state)
{
    (void)state;
    enum { POWERS = 254, KINDS = 3, K = (POWERS * KINDS + 3) * 32 };
    float *values = lab_floats(&host, K);
    for (size_t block = 0; block < POWERS * KINDS; block++) {
        uint32_t mantissas[KINDS] = { (uint32_t)(fabsf(lab_random(&host)) * 8388607.0f), 0x7FFFFFu,
                                      0 };
        uint32_t bits = (uint32_t)(block / KINDS + 1) << 23 | mantissas[block % KINDS];
        float largest;
        memcpy(&largest, &bits, sizeof(largest));
        for (size_t i = 0; i < 32; i++)
            values[block * 32 + i] *= largest;
        values[block * 32 + block % 32] = block % 2 ? -largest : largest;
    }
    float *others = values + POWERS * KINDS * 32;
    memset(others, 0, 32 * sizeof(float));
    others[32] = INFINITY;
    others[64] = NAN;
    struct device_view x = lab_put_new(&gpu, DTYPE_F32, K, 1, values);
    struct device_view packed = lab_view(&gpu, DTYPE_I8,
                                         ops_packed_row_bytes(&gpu.ops, DTYPE_Q8_0, K, 1), 1);
    LAB_OK(&gpu, ops_act_pack(&gpu.target, &x, &packed, DTYPE_Q8_0, &gpu.err));
    check_packed("act_pack", &packed, values, K, 1);
    lab_drop(&gpu, packed);
    lab_drop(&gpu, x);
    free(values);
}

/* ---- Positions ------------------------------------------------------------------------------ */

static void test_rope(void **state)
{
    (void)state;
    static const struct ops_rope_settings settings[] = {
        { .base = 10000, .frequency_scale = 1, .attention_factor = 1 },
        { .base = 500000, .frequency_scale = 0.25f, .attention_factor = 1 },
        { .base = 10000,
          .frequency_scale = 0.125f,
          .attention_factor = 1,
          .ext_factor = 1,
          .beta_fast = 32,
          .beta_slow = 1,
          .original_context_length = 4096,
          .yarn = true },
    };
    enum { DIMENSIONS = 48, HEAD = 64, HEADS = 3, TOKENS = 4, POSITIONS = 3000 };
    static const int32_t positions[TOKENS] = { 0, 2999, 17, 1024 };
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        float *factor_values = lab_floats(&host, DIMENSIONS / 2);
        for (size_t f = 0; f < DIMENSIONS / 2; f++)
            factor_values[f] = 1 + fabsf(factor_values[f]);
        float *values = lab_floats(&host, HEAD * HEADS * TOKENS);
        struct device_view factors[2], table[2], x[2], also[2], position[2];
        both(factors, DTYPE_F32, DIMENSIONS / 2, 1, factor_values);
        both(table, DTYPE_F32, DIMENSIONS, POSITIONS, NULL);
        both(x, DTYPE_F32, HEAD * HEADS, TOKENS, values);
        both(also, DTYPE_F32, HEAD, TOKENS, values);
        both(position, DTYPE_I32, TOKENS, 1, positions);
        BOTH_OK(ops_rope_table(&lab->target, i ? &factors[side] : NULL, &table[side], &settings[i],
                               &lab->err));
        compare("rope_table", table, 1e-6);
        BOTH_OK(ops_rope(&lab->target, &x[side], &also[side], &position[side], &table[side], HEAD,
                         i == 1, &lab->err));
        compare("rope", x, 1e-5);
        compare("rope of the second", also, 1e-5);
        drop_both(factors);
        drop_both(table);
        drop_both(x);
        drop_both(also);
        drop_both(position);
        free(values);
        free(factor_values);
    }
}

/* ---- Choosing ------------------------------------------------------------------------------- */

static void test_gather_rows(void **state)
{
    (void)state;
    static const uint64_t widths[] = { 1, 100, 1030 };
    enum { TOKENS = 7, COUNT = 5 };
    static const int32_t picked[COUNT] = { 6, 0, 3, 3, 1 };
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        float *values = lab_floats(&host, widths[i] * TOKENS);
        struct device_view x[2], rows[2], out[2];
        both(x, DTYPE_F32, widths[i], TOKENS, values);
        both(rows, DTYPE_I32, COUNT, 1, picked);
        both(out, DTYPE_F32, widths[i], COUNT, NULL);
        BOTH_OK(ops_gather_rows(&lab->target, &x[side], &rows[side], &out[side], &lab->err));
        compare("gather_rows", out, 0);
        drop_both(x);
        drop_both(rows);
        drop_both(out);
        free(values);
    }
}

/* Rows for argmax, and what it must say of them whatever else is in them. */
enum { CHOICES = 7 };
static void make_logits(float *logits, uint64_t vocab, int32_t wanted[CHOICES])
{
    uint64_t last = vocab - 1;
    float *row = logits; /* the first of equals, in different blocks of the row */
    row[vocab / 3] = row[vocab / 2] = row[last] = 3;
    wanted[0] = (int32_t)(vocab / 3);
    row += vocab; /* of one block: neighbours, and a block's threads apart */
    row[vocab / 2] = row[vocab / 2 + 1] = row[vocab / 2 + 256] = 3;
    wanted[1] = (int32_t)(vocab / 2);
    row += vocab;
    row[last] = 3;
    wanted[2] = (int32_t)last;
    row += vocab;
    row[0] = row[last] = 3;
    wanted[3] = 0;
    row += vocab; /* -0 equals 0 */
    for (uint64_t i = 0; i < vocab; i++)
        row[i] = i == vocab / 4 || i == last ? (i == last ? 0.0f : -0.0f) : -1 + row[i] / 2;
    wanted[4] = (int32_t)(vocab / 4);
    row += vocab;
    row[1] = 3;
    row[last] = NAN;
    wanted[5] = -1;
    row += vocab;
    row[vocab / 2] = -INFINITY;
    wanted[6] = -1;
}

/* One block for a row, a few, and as many as there are at most, with more values each. */
static void test_argmax(void **state)
{
    (void)state;
    static const uint64_t vocabs[] = { 600, 2049, 20011, 140000 };
    for (size_t i = 0; i < COUNT_OF(vocabs); i++) {
        float *values = lab_floats(&host, vocabs[i] * CHOICES);
        int32_t wanted[CHOICES], found[CHOICES];
        make_logits(values, vocabs[i], wanted);
        struct device_view logits[2], ids[2], next[2], best[2], best_ids[2];
        both(logits, DTYPE_F32, vocabs[i], CHOICES, values);
        both(ids, DTYPE_I32, CHOICES, 1, NULL);
        both(next, DTYPE_I32, CHOICES, 1, NULL);
        both(best, DTYPE_F32, 3, CHOICES, NULL);
        both(best_ids, DTYPE_I32, 3, CHOICES, NULL);
        BOTH_OK(ops_argmax(&lab->target, &logits[side], &ids[side], &next[side], &lab->err));
        compare("argmax", ids, 0);
        compare("argmax, next", next, 0);
        lab_get(&gpu, &ids[1], found);
        assert_memory_equal(found, wanted, sizeof(wanted));
        BOTH_OK(ops_top_k(&lab->target, &logits[side], &best[side], &best_ids[side], &lab->err));
        compare("top_k, ids", best_ids, 0);
        compare("top_k", best, 0);
        struct device_view *all[] = { logits, ids, next, best, best_ids };
        for (size_t n = 0; n < COUNT_OF(all); n++)
            drop_both(all[n]);
        free(values);
    }
}

/* ---- Attention ------------------------------------------------------------------------------ */

/* Caches of two types, filled by kv_append in another order than their slots', which leaves SPARE
 * of them as they are. */
static void check_attention(enum dtype key_dtype, enum dtype value_dtype, uint64_t head_dim,
                            uint64_t kv_heads, uint64_t group, uint64_t slots)
{
    enum { TOKENS = 3, SPARE = 2 };
    char name[112];
    snprintf(name, sizeof(name), "keys %s, values %s, head %d, %d kv heads x %d, %d slots",
             dtype_name(key_dtype), dtype_name(value_dtype), (int)head_dim, (int)kv_heads,
             (int)group, (int)slots);
    uint64_t kv_dim = head_dim * kv_heads;
    float *k_rows = lab_floats(&host, kv_dim * slots), *v_rows = lab_floats(&host, kv_dim * slots),
          *q_values = lab_floats(&host, kv_dim * group * TOKENS);
    int32_t *slot_list = malloc(slots * sizeof(*slot_list));
    assert_non_null(slot_list);
    for (size_t i = 0; i < slots; i++)
        slot_list[i] = (int32_t)(slots - 1 - i);
    int32_t starts[TOKENS] = { 0, (int32_t)(slots / 3), (int32_t)slots - 1 };
    int32_t positions[TOKENS] = { (int32_t)slots - 1, (int32_t)(slots / 2), 0 };
    struct device_view k[2], v[2], list[2], keys[2], values[2], q[2], start[2], position[2], out[2];
    both(k, DTYPE_F32, kv_dim, slots, k_rows);
    both(v, DTYPE_F32, kv_dim, slots, v_rows);
    both(list, DTYPE_I32, slots, 1, slot_list);
    both(keys, key_dtype, kv_dim, slots + SPARE, NULL);
    both(values, value_dtype, kv_dim, slots + SPARE, NULL);
    both(q, DTYPE_F32, kv_dim * group, TOKENS, q_values);
    both(start, DTYPE_I32, TOKENS, 1, starts);
    both(position, DTYPE_I32, TOKENS, 1, positions);
    both(out, DTYPE_F32, kv_dim * group, TOKENS, NULL);
    BOTH_OK(ops_kv_append(&lab->target, &k[side], &v[side], &list[side], &keys[side], &values[side],
                          &lab->err));
    compare(name, keys, 0);
    compare(name, values, 0);
    BOTH_OK(ops_attention(
        &lab->target, &q[side], &keys[side], &values[side], &start[side], &position[side],
        &out[side], NULL,
        &(struct ops_attention_settings){ .head_dim = (uint32_t)head_dim, .scale = 0.3f },
        &lab->err));
    compare(name, out, 1e-5);
    struct device_view *all[] = { k, v, list, keys, values, q, start, position, out };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        drop_both(all[i]);
    free(slot_list);
    free(k_rows);
    free(v_rows);
    free(q_values);
}

static void test_attention(void **state)
{
    (void)state;
    check_attention(DTYPE_F16, DTYPE_F16, 128, 2, 4, 700);
    check_attention(DTYPE_F32, DTYPE_F32, 64, 1, 1, 300);
    check_attention(DTYPE_Q8_0, DTYPE_Q8_0, 128, 1, 6, 257);
    check_attention(DTYPE_F16, DTYPE_F16, 40, 3, 2, 5);
    check_attention(DTYPE_Q8_0, DTYPE_Q8_0, 32, 2, 1, 64);
    check_attention(DTYPE_F16, DTYPE_F16, 256, 1, 2, 65);
}

/* Keys of every type with values of every type; large heads have a kernel of their own. */
static void test_cache_types(void **state)
{
    (void)state;
    for (int keys = 0; keys < DTYPE_COUNT; keys++)
        for (int values = 0; values < DTYPE_COUNT; values++) {
            bool appended = contract_allows(OPS_KV_APPEND, 3, keys) &&
                            contract_allows(OPS_KV_APPEND, 4, values);
            assert_int_equal(appended, contract_allows(OPS_ATTENTION, 1, keys) &&
                                           contract_allows(OPS_ATTENTION, 2, values));
            if (!appended)
                continue;
            check_attention((enum dtype)keys, (enum dtype)values, 64, 2, 3, 140);
            check_attention((enum dtype)keys, (enum dtype)values, 160, 1, 2, 33);
        }
}

/* ---- The device ----------------------------------------------------------------------------- */

/* A replayed graph does what its launches do, as often as it is replayed. */
static void test_graph(void **state)
{
    (void)state;
    enum { WIDTH = 100, ROWS = 2 };
    float *values = lab_floats(&gpu, WIDTH * ROWS), found[WIDTH * ROWS];
    struct device_view x = lab_put_new(&gpu, DTYPE_F32, WIDTH, ROWS, values);
    struct device_view added = lab_put_new(&gpu, DTYPE_F32, WIDTH, ROWS, values);
    struct device_graph graph;
    LAB_OK(&gpu, device_graph_begin(gpu.device, gpu.target.stream, DEVICE_HERE, &gpu.err));
    LAB_OK(&gpu, ops_add(&gpu.target, &x, &added, &gpu.err));
    LAB_OK(&gpu, ops_add(&gpu.target, &x, &x, &gpu.err));
    LAB_OK(&gpu, device_graph_end(gpu.device, gpu.target.stream, DEVICE_HERE, &graph, &gpu.err));
    for (int i = 0; i < 3; i++)
        LAB_OK(&gpu,
               device_graph_replay(gpu.device, gpu.target.stream, graph, DEVICE_HERE, &gpu.err));
    lab_get(&gpu, &x, found);
    for (size_t i = 0; i < WIDTH * ROWS; i++) { /* ((v+v)*2+v)*2+v)*2 = 22 v */
        float wanted = values[i];
        for (int n = 0; n < 3; n++)
            wanted = (wanted + values[i]) * 2;
        assert_true(found[i] == wanted);
    }
    device_graph_destroy(gpu.device, graph, DEVICE_HERE);
    free(values);
}

/* More than one chunk of an upload, and not a multiple of one. */
static void test_upload(void **state)
{
    (void)state;
    size_t count = ((size_t)9 << 20) + 123;
    uint8_t *bytes = malloc(count), *found = malloc(count);
    assert_true(bytes && found);
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    struct device_view view = { .dtype = DTYPE_I8, .shape = shape_make(1, (uint64_t[]){ count }) };
    LAB_OK(&gpu, device_buffer_import(gpu.device, bytes, count, "weights", DEVICE_HERE,
                                      &view.buffer, &gpu.err));
    lab_get(&gpu, &view, found);
    assert_memory_equal(bytes, found, count);
    lab_drop(&gpu, view);
    free(bytes);
    free(found);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose_named(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_embed),   cmocka_unit_test(test_norms),
        cmocka_unit_test(test_packing), cmocka_unit_test(test_packing_of_any_size),
        cmocka_unit_test(test_rope),    cmocka_unit_test(test_gather_rows),
        cmocka_unit_test(test_argmax),  cmocka_unit_test(test_attention),
        cmocka_unit_test(test_graph),   cmocka_unit_test(test_cache_types),
        cmocka_unit_test(test_upload),
    };
    return cmocka_run_group_tests(tests, open_labs, close_labs);
}
