/* ops_layer_test.c - one whole layer of a model through the ops, on a ragged batch of two
 * sequences, against float64; and the same bits whatever the batch. */
#include "ops_lab.h"

#define WIDTH 64u
#define HEADS 4u
#define KV_HEADS 2u
#define HEAD_DIM 16u
#define KV_DIM (KV_HEADS * HEAD_DIM)
#define FEED 96u
#define VOCAB 50u
#define CONTEXT 24u
#define SLOTS 40u
#define EPSILON 1e-5f

/* Two sequences: one starts at slot 0, the other at slot 30. */
#define TOKENS 9u
static const int32_t ids[TOKENS] = { 3, 49, 7, 0, 12, 30, 5, 6, 44 };
static const int32_t positions[TOKENS] = { 0, 1, 2, 3, 4, 5, 0, 1, 2 };
static const int32_t starts[TOKENS] = { 0, 0, 0, 0, 0, 0, 30, 30, 30 };

/* Weights of one layer as the test has them, and on the device. */
struct matrix {
    float *values; /* [k, rows] */
    struct device_view view;
};

struct layer {
    bool adjacent, head_norms;
    struct matrix table, q, k, v, o, gate, up, down, attn_norm, ffn_norm, q_norm, k_norm;
};

static struct matrix make(struct lab *lab, uint64_t k, uint64_t rows, float scale, float offset)
{
    struct matrix matrix = { .values = lab_floats(lab, (size_t)(k * rows)) };
    for (uint64_t i = 0; i < k * rows; i++)
        matrix.values[i] = offset + scale * matrix.values[i];
    matrix.view = lab_put_new(lab, DTYPE_F32, k, rows, matrix.values);
    return matrix;
}

static void layer_init(struct lab *lab, struct layer *layer)
{
    layer->table = make(lab, WIDTH, VOCAB, 1, 0);
    layer->q = make(lab, WIDTH, HEADS * HEAD_DIM, 0.3f, 0);
    layer->k = make(lab, WIDTH, KV_DIM, 0.3f, 0);
    layer->v = make(lab, WIDTH, KV_DIM, 0.3f, 0);
    layer->o = make(lab, HEADS * HEAD_DIM, WIDTH, 0.3f, 0);
    layer->gate = make(lab, WIDTH, FEED, 0.3f, 0);
    layer->up = make(lab, WIDTH, FEED, 0.3f, 0);
    layer->down = make(lab, FEED, WIDTH, 0.3f, 0);
    layer->attn_norm = make(lab, WIDTH, 1, 0.2f, 1);
    layer->ffn_norm = make(lab, WIDTH, 1, 0.2f, 1);
    layer->q_norm = make(lab, HEAD_DIM, 1, 0.2f, 1);
    layer->k_norm = make(lab, HEAD_DIM, 1, 0.2f, 1);
}

static void layer_release(struct layer *layer)
{
    struct matrix *all[] = { &layer->table,  &layer->q,         &layer->k,        &layer->v,
                             &layer->o,      &layer->gate,      &layer->up,       &layer->down,
                             &layer->q_norm, &layer->attn_norm, &layer->ffn_norm, &layer->k_norm };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        free(all[i]->values);
}

/* ---- The reference -------------------------------------------------------------------------- */

static void ref_matmul(const float *w, const double *x, size_t k, size_t rows, double *out)
{
    for (size_t r = 0; r < rows; r++) {
        out[r] = 0;
        for (size_t i = 0; i < k; i++)
            out[r] += (double)w[r * k + i] * x[i];
    }
}

static void ref_norm(const double *x, const float *w, size_t n, double *out)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    double scale = 1 / sqrt(sum / (double)n + (double)EPSILON);
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * scale * (double)w[i];
}

static void ref_rope(double *head, int position, bool adjacent)
{
    for (size_t p = 0; p < HEAD_DIM / 2; p++) {
        double angle = position * pow(10000.0, -2.0 * (double)p / HEAD_DIM);
        size_t a = adjacent ? 2 * p : p, b = adjacent ? 2 * p + 1 : p + HEAD_DIM / 2;
        double x = head[a], y = head[b];
        head[a] = x * cos(angle) - y * sin(angle);
        head[b] = x * sin(angle) + y * cos(angle);
    }
}

static void ref_attention(const double *q, double (*keys)[KV_DIM], double (*values)[KV_DIM],
                          int start, int position, double *out)
{
    for (size_t h = 0; h < HEADS; h++) {
        size_t kv = h / (HEADS / KV_HEADS) * HEAD_DIM;
        double scores[SLOTS], sum = 0;
        for (int s = 0; s <= position; s++) {
            scores[s] = 0;
            for (size_t i = 0; i < HEAD_DIM; i++)
                scores[s] += q[h * HEAD_DIM + i] * keys[start + s][kv + i];
            scores[s] = exp(scores[s] / sqrt((double)HEAD_DIM));
            sum += scores[s];
        }
        for (size_t i = 0; i < HEAD_DIM; i++) {
            out[h * HEAD_DIM + i] = 0;
            for (int s = 0; s <= position; s++)
                out[h * HEAD_DIM + i] += scores[s] / sum * values[start + s][kv + i];
        }
    }
}

static void reference(const struct layer *layer, double *out)
{
    static double keys[SLOTS][KV_DIM], values[SLOTS][KV_DIM];
    for (size_t t = 0; t < TOKENS; t++) {
        double x[WIDTH], h[WIDTH], q[HEADS * HEAD_DIM], a[HEADS * HEAD_DIM], o[WIDTH];
        double gate[FEED], up[FEED];
        int slot = starts[t] + positions[t];
        for (size_t i = 0; i < WIDTH; i++)
            x[i] = (double)layer->table.values[(size_t)ids[t] * WIDTH + i];
        ref_norm(x, layer->attn_norm.values, WIDTH, h);
        ref_matmul(layer->q.values, h, WIDTH, HEADS * HEAD_DIM, q);
        ref_matmul(layer->k.values, h, WIDTH, KV_DIM, keys[slot]);
        ref_matmul(layer->v.values, h, WIDTH, KV_DIM, values[slot]);
        for (size_t i = 0; layer->head_norms && i < HEADS; i++)
            ref_norm(q + i * HEAD_DIM, layer->q_norm.values, HEAD_DIM, q + i * HEAD_DIM);
        for (size_t i = 0; layer->head_norms && i < KV_HEADS; i++)
            ref_norm(keys[slot] + i * HEAD_DIM, layer->k_norm.values, HEAD_DIM,
                     keys[slot] + i * HEAD_DIM);
        for (size_t i = 0; i < HEADS; i++)
            ref_rope(q + i * HEAD_DIM, positions[t], layer->adjacent);
        for (size_t i = 0; i < KV_HEADS; i++)
            ref_rope(keys[slot] + i * HEAD_DIM, positions[t], layer->adjacent);
        ref_attention(q, keys, values, starts[t], positions[t], a);
        ref_matmul(layer->o.values, a, HEADS * HEAD_DIM, WIDTH, o);
        for (size_t i = 0; i < WIDTH; i++)
            x[i] += o[i];
        ref_norm(x, layer->ffn_norm.values, WIDTH, h);
        ref_matmul(layer->gate.values, h, WIDTH, FEED, gate);
        ref_matmul(layer->up.values, h, WIDTH, FEED, up);
        for (size_t i = 0; i < FEED; i++)
            gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        ref_matmul(layer->down.values, gate, FEED, WIDTH, o);
        for (size_t i = 0; i < WIDTH; i++)
            out[t * WIDTH + i] = x[i] + o[i];
    }
}

/* ---- The ops -------------------------------------------------------------------------------- */

/* The cache and the table outlive the batches. */
struct memory {
    struct device_view keys, values, rope;
};

static void multiply(struct lab *lab, const struct matrix *weights, const struct device_view *x,
                     const struct device_view *out)
{
    uint64_t k = x->shape.dims[0], tokens = x->shape.dims[1];
    struct device_view packed = lab_view(
        lab, DTYPE_I8, ops_packed_row_bytes(&lab->ops, DTYPE_F32, k, tokens), tokens);
    LAB_OK(lab, ops_act_pack(&lab->target, x, &packed, DTYPE_F32, &lab->err));
    LAB_OK(lab, ops_matmul(&lab->target, &weights->view, &packed, NULL, out, &lab->err));
    LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
    lab_drop(lab, packed);
}

/* Tokens [first, first + count) of the batch through the layer; results to out. */
static void run(struct lab *lab, const struct layer *layer, struct memory *memory, size_t first,
                uint64_t count, float *out)
{
    const struct ops_target *target = &lab->target;
    struct error *err = &lab->err;
    int32_t slots[TOKENS];
    for (size_t i = 0; i < TOKENS; i++)
        slots[i] = starts[i] + positions[i];
    struct device_view id = lab_put_new(lab, DTYPE_I32, count, 1, ids + first);
    struct device_view position = lab_put_new(lab, DTYPE_I32, count, 1, positions + first);
    struct device_view start = lab_put_new(lab, DTYPE_I32, count, 1, starts + first);
    struct device_view slot = lab_put_new(lab, DTYPE_I32, count, 1, slots + first);
    struct device_view x = lab_view(lab, DTYPE_F32, WIDTH, count);
    struct device_view h = lab_view(lab, DTYPE_F32, WIDTH, count);
    struct device_view q = lab_view(lab, DTYPE_F32, HEADS * HEAD_DIM, count);
    struct device_view a = lab_view(lab, DTYPE_F32, HEADS * HEAD_DIM, count);
    struct device_view k = lab_view(lab, DTYPE_F32, KV_DIM, count);
    struct device_view v = lab_view(lab, DTYPE_F32, KV_DIM, count);
    struct device_view gate = lab_view(lab, DTYPE_F32, FEED, count);
    struct device_view up = lab_view(lab, DTYPE_F32, FEED, count);
    struct device_view o = lab_view(lab, DTYPE_F32, WIDTH, count);
    float scale = 1 / sqrtf((float)HEAD_DIM);
    LAB_OK(lab, ops_embed(target, &layer->table.view, &id, &x, err));
    LAB_OK(lab, ops_rms_norm(target, &x, NULL, &layer->attn_norm.view, &h, NULL, EPSILON, err));
    multiply(lab, &layer->q, &h, &q);
    multiply(lab, &layer->k, &h, &k);
    multiply(lab, &layer->v, &h, &v);
    if (layer->head_norms) {
        LAB_OK(lab, ops_head_norm(target, &q, &layer->q_norm.view, EPSILON, err));
        LAB_OK(lab, ops_head_norm(target, &k, &layer->k_norm.view, EPSILON, err));
    }
    LAB_OK(lab, ops_rope(target, &q, &k, &position, &memory->rope, HEAD_DIM, layer->adjacent, err));
    LAB_OK(lab, ops_kv_append(target, &k, &v, &slot, &memory->keys, &memory->values, err));
    LAB_OK(lab,
           ops_attention(target, &q, &memory->keys, &memory->values, &start, &position, &a, NULL,
                         &(struct ops_attention_settings){
                             .head_dim = HEAD_DIM, .scale = scale, .same_sequence = count > 1 },
                         err));
    multiply(lab, &layer->o, &a, &o);
    LAB_OK(lab, ops_rms_norm(target, &x, &o, &layer->ffn_norm.view, &h, NULL, EPSILON, err));
    multiply(lab, &layer->gate, &h, &gate);
    multiply(lab, &layer->up, &h, &up);
    LAB_OK(lab, ops_swiglu(target, &gate, &up, &gate, NULL, err));
    multiply(lab, &layer->down, &gate, &o);
    LAB_OK(lab, ops_add(target, &x, &o, err));
    lab_get(lab, &x, out + first * WIDTH);
    struct device_view all[] = { id, position, start, slot, x, h, q, a, k, v, gate, up, o };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        lab_drop(lab, all[i]);
}

static struct memory make_memory(struct lab *lab, enum dtype cache)
{
    struct ops_rope_settings settings = { .base = 10000,
                                          .frequency_scale = 1,
                                          .attention_factor = 1,
                                          .beta_fast = 32,
                                          .beta_slow = 1,
                                          .original_context_length = CONTEXT };
    struct memory memory = { .keys = lab_view(lab, cache, KV_DIM, SLOTS),
                             .values = lab_view(lab, cache, KV_DIM, SLOTS),
                             .rope = lab_view(lab, DTYPE_F32, HEAD_DIM, CONTEXT) };
    LAB_OK(lab, ops_rope_table(&lab->target, NULL, &memory.rope, &settings, &lab->err));
    return memory;
}

static void test_layer(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool adjacent, head_norms;
        enum dtype cache;
        double tolerance;
    } rows[] = {
        { "llama, f32 cache", true, false, DTYPE_F32, 1e-5 },
        { "qwen3, f32 cache", false, true, DTYPE_F32, 1e-5 },
        { "qwen2, f16 cache", false, false, DTYPE_F16, 2e-3 },
        { "llama, q8_0 cache", true, false, DTYPE_Q8_0, 2e-2 },
    };
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!lab_has_path((enum cpu_path)path))
            continue;
        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            struct lab lab;
            lab_open(&lab, (enum cpu_path)path, 2);
            struct layer layer = { .adjacent = rows[row].adjacent,
                                   .head_norms = rows[row].head_norms };
            layer_init(&lab, &layer);
            float out[TOKENS * WIDTH], again[TOKENS * WIDTH];
            double wanted[TOKENS * WIDTH];
            struct memory memory = make_memory(&lab, rows[row].cache);
            run(&lab, &layer, &memory, 0, TOKENS, out);
            reference(&layer, wanted);
            check_close(rows[row].name, out, wanted, TOKENS * WIDTH, rows[row].tolerance);
            /* A fresh cache, token by token, then in two chunks: the same bits. */
            memory = make_memory(&lab, rows[row].cache);
            for (size_t t = 0; t < TOKENS; t++)
                run(&lab, &layer, &memory, t, 1, again);
            check_close(rows[row].name, again, wanted, TOKENS * WIDTH, rows[row].tolerance);
            if (lab_is_host() && memcmp(out, again, sizeof(out)) != 0)
                fail_msg("%s, %s: token by token gives other bits", rows[row].name,
                         cpu_path_name((enum cpu_path)path));
            memory = make_memory(&lab, rows[row].cache);
            run(&lab, &layer, &memory, 0, 4, again);
            run(&lab, &layer, &memory, 4, TOKENS - 4, again);
            check_close(rows[row].name, again, wanted, TOKENS * WIDTH, rows[row].tolerance);
            if (lab_is_host() && memcmp(out, again, sizeof(out)) != 0)
                fail_msg("%s, %s: chunks give other bits", rows[row].name,
                         cpu_path_name((enum cpu_path)path));
            layer_release(&layer);
            lab_close(&lab);
        }
    }
}

/* ---- Indices past their bounds -------------------------------------------------------------- */

static void check_trap(struct lab *lab, const char *name, uint64_t index, uint64_t bound,
                       uint32_t operand)
{
    LAB_OK(lab, device_stream_sync(lab->device, lab->target.stream, DEVICE_HERE, &lab->err));
    if (lab->trap_count != 1 || lab->last_trap.trap.index != index ||
        lab->last_trap.trap.bound != bound || lab->last_trap.operand != operand)
        fail_msg("%s: %llu traps, the last: index %llu, bound %llu, operand %u", name,
                 (unsigned long long)lab->trap_count, (unsigned long long)lab->last_trap.trap.index,
                 (unsigned long long)lab->last_trap.trap.bound, lab->last_trap.operand);
    lab->trap_count = 0;
}

static void test_traps(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, CPU_PATH_COUNT, 1);
    struct error *err = &lab.err;
    const struct ops_target *target = &lab.target;
    struct memory memory = make_memory(&lab, DTYPE_F16);
    struct device_view table = lab_view(&lab, DTYPE_F32, WIDTH, VOCAB);
    struct device_view x = lab_view(&lab, DTYPE_F32, WIDTH, 1);
    struct device_view k = lab_view(&lab, DTYPE_F32, KV_DIM, 1);
    struct device_view zero = lab_put_new(&lab, DTYPE_I32, 1, 1, (int32_t[]){ 0 });
    struct device_view bad = lab_put_new(&lab, DTYPE_I32, 1, 1, (int32_t[]){ VOCAB });
    LAB_OK(&lab, ops_embed(target, &table, &bad, &x, err));
    check_trap(&lab, "token id past the vocabulary", VOCAB, VOCAB, 1);
    lab_put(&lab, &bad, (int32_t[]){ CONTEXT });
    LAB_OK(&lab, ops_rope(target, &x, NULL, &bad, &memory.rope, HEAD_DIM, true, err));
    check_trap(&lab, "position past the table", CONTEXT, CONTEXT, 1);
    lab_put(&lab, &bad, (int32_t[]){ SLOTS });
    LAB_OK(&lab, ops_kv_append(target, &k, &k, &bad, &memory.keys, &memory.values, err));
    check_trap(&lab, "slot past the cache", SLOTS, SLOTS, 2);
    lab_put(&lab, &bad, (int32_t[]){ 5 });
    LAB_OK(&lab, ops_gather_rows(target, &x, &bad, &x, err));
    check_trap(&lab, "row past the batch", 5, 1, 1);
    lab_put(&lab, &bad, (int32_t[]){ SLOTS });
    struct device_view q = lab_view(&lab, DTYPE_F32, HEAD_DIM * KV_HEADS, 1);
    struct device_view one_head = memory.keys, one_value = memory.values;
    LAB_OK(&lab, ops_attention(target, &q, &one_head, &one_value, &bad, &zero, &q, NULL,
                               &(struct ops_attention_settings){ .head_dim = HEAD_DIM, .scale = 1 },
                               err));
    LAB_OK(&lab, device_stream_sync(lab.device, lab.target.stream, DEVICE_HERE, err));
    assert_true(lab.trap_count >= 1);
    lab_close(&lab);
}

static void test_choosing(void **state)
{
    (void)state;
    struct lab lab;
    lab_open(&lab, CPU_PATH_COUNT, 2);
    struct error *err = &lab.err;
    enum { VOCABULARY = 1000, ROWS = 3, K = 5 };
    float *logits = lab_floats(&lab, VOCABULARY * ROWS);
    logits[7] = logits[900] = 5;  /* the first of equals */
    logits[VOCABULARY + 3] = NAN; /* smaller than everything; argmax has no answer */
    logits[VOCABULARY + 999] = 9; /* the last */
    logits[2 * VOCABULARY] = 4;   /* the first */
    struct device_view view = lab_put_new(&lab, DTYPE_F32, VOCABULARY, ROWS, logits);
    struct device_view best = lab_view(&lab, DTYPE_I32, ROWS, 1);
    struct device_view values = lab_view(&lab, DTYPE_F32, K, ROWS);
    struct device_view tokens = lab_view(&lab, DTYPE_I32, K, ROWS);
    struct device_view alone = lab_view(&lab, DTYPE_I32, ROWS, 1);
    struct device_view next = lab_view(&lab, DTYPE_I32, ROWS, 1);
    LAB_OK(&lab, ops_argmax(&lab.target, &view, &alone, NULL, err));
    LAB_OK(&lab, ops_argmax(&lab.target, &view, &best, &next, err));
    LAB_OK(&lab, ops_top_k(&lab.target, &view, &values, &tokens, err));
    int32_t chosen[ROWS], chosen_alone[ROWS], looked_up[ROWS], kept[K * ROWS];
    float kept_values[K * ROWS];
    lab_get(&lab, &best, chosen);
    lab_get(&lab, &alone, chosen_alone);
    lab_get(&lab, &next, looked_up);
    lab_get(&lab, &tokens, kept);
    lab_get(&lab, &values, kept_values);
    assert_true(chosen[0] == 7 && chosen[1] == -1 && chosen[2] == 0);
    assert_memory_equal(chosen_alone, chosen, sizeof(chosen));
    assert_true(looked_up[0] == 7 && looked_up[1] == 0 && looked_up[2] == 0);
    struct device_view short_next = lab_view(&lab, DTYPE_I32, ROWS - 1, 1);
    CHECK_FAILS(ops_argmax(&lab.target, &view, &best, &short_next, err), STATUS_REFUSED, err);
    assert_true(kept[0] == 7 && kept[1] == 900 && kept[K] == 999);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < K; i++) {
            size_t above = 0;
            for (size_t j = 0; j < VOCABULARY; j++)
                above += logits[row * VOCABULARY + j] > kept_values[row * K + i];
            assert_true(above <= i);
            assert_true(logits[row * VOCABULARY + (size_t)kept[row * K + i]] ==
                        kept_values[row * K + i]);
        }
    struct device_view too_many = lab_view(&lab, DTYPE_F32, VOCABULARY + 1, ROWS);
    struct device_view too_many_ids = lab_view(&lab, DTYPE_I32, VOCABULARY + 1, ROWS);
    CHECK_FAILS(ops_top_k(&lab.target, &view, &too_many, &too_many_ids, err), STATUS_REFUSED, err);
    free(logits);
    lab_close(&lab);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layer),
        cmocka_unit_test(test_traps),
        cmocka_unit_test(test_choosing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
