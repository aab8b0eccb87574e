/* ops_packing_test.c - ops that pack their rows as they go give the bytes of the plain op followed
 * by act_pack, however their tiles are cut. */
#include "ops_lab.h"

#define SLOTS 40

/* One weight type for each packing: 32-blocks, bf16, f32 (by path). */
static const enum dtype weight_types[] = { DTYPE_Q4_K, DTYPE_Q8_0, DTYPE_BF16, DTYPE_F32 };

struct rows {
    struct device_view plain, packed;
    uint8_t *bytes; /* of packed, read back */
    uint64_t byte_count;
};

static struct rows new_rows(struct lab *lab, enum dtype weights, uint64_t width, uint64_t tokens)
{
    struct rows rows = { .plain = lab_view(lab, DTYPE_F32, width, tokens),
                         .byte_count = ops_packed_row_bytes(&lab->ops, weights, width, tokens) *
                                       tokens };
    rows.packed = lab_view(lab, DTYPE_I8, rows.byte_count / tokens, tokens);
    rows.bytes = malloc(rows.byte_count);
    assert_non_null(rows.bytes);
    LAB_OK(lab, device_fill(lab->device, lab->target.stream, &rows.packed, 0x5A, DEVICE_HERE,
                            &lab->err));
    return rows;
}

static void drop_rows(struct lab *lab, struct rows *rows)
{
    lab_drop(lab, rows->plain);
    lab_drop(lab, rows->packed);
    free(rows->bytes);
}

/* fused was packed by its op; apart is packed here, from its plain rows. */
static void check_same(struct lab *lab, const char *name, struct rows *fused, struct rows *apart,
                       enum dtype weights)
{
    LAB_OK(lab, ops_act_pack(&lab->target, &apart->plain, &apart->packed, weights, &lab->err));
    lab_get(lab, &fused->packed, fused->bytes);
    lab_get(lab, &apart->packed, apart->bytes);
    for (uint64_t i = 0; i < apart->byte_count; i++)
        if (fused->bytes[i] != apart->bytes[i])
            fail_msg("%s for %s on %s: packed byte %d: expected %d, found %d", name,
                     dtype_name(weights), cpu_path_name(lab->ops.host_path), (int)i,
                     apart->bytes[i], fused->bytes[i]);
}

static void check_swiglu(struct lab *lab, enum dtype weights, uint64_t width, uint64_t tokens)
{
    float *values = lab_floats(lab, width * tokens);
    struct device_view gate = lab_put_new(lab, DTYPE_F32, width, tokens, values);
    struct device_view up = lab_put_new(lab, DTYPE_F32, width, tokens, values + 1);
    struct rows fused = new_rows(lab, weights, width, tokens);
    struct rows apart = new_rows(lab, weights, width, tokens);
    struct ops_packing packing = { &fused.packed, weights };
    LAB_OK(lab, ops_swiglu(&lab->target, &gate, &up, &fused.plain, &packing, &lab->err));
    LAB_OK(lab, ops_swiglu(&lab->target, &gate, &up, &apart.plain, NULL, &lab->err));
    check_same(lab, "swiglu", &fused, &apart, weights);
    drop_rows(lab, &fused);
    drop_rows(lab, &apart);
    lab_drop(lab, gate);
    lab_drop(lab, up);
    free(values);
}

static void check_attention(struct lab *lab, enum dtype weights, uint32_t head_dim,
                            uint32_t kv_heads, uint32_t group, uint64_t tokens)
{
    uint64_t kv_dim = (uint64_t)head_dim * kv_heads, width = kv_dim * group;
    float *values = lab_floats(lab, width * SLOTS);
    int32_t starts[8] = { 0 }, positions[8];
    /* The last one looks past the cache: its output is zeros, and so are its packed rows. */
    for (size_t t = 0; t < COUNT_OF(positions); t++)
        positions[t] = t + 1 == tokens && t > 0 ? SLOTS : (int32_t)(5 * t);
    struct device_view q = lab_put_new(lab, DTYPE_F32, width, tokens, values);
    struct device_view keys = lab_put_new(lab, DTYPE_F32, kv_dim, SLOTS, values);
    struct device_view cached = lab_put_new(lab, DTYPE_F32, kv_dim, SLOTS, values);
    struct device_view start = lab_view(lab, DTYPE_I32, tokens, 1);
    struct device_view position = lab_view(lab, DTYPE_I32, tokens, 1);
    lab_put(lab, &start, starts);
    lab_put(lab, &position, positions);
    struct rows fused = new_rows(lab, weights, width, tokens);
    struct rows apart = new_rows(lab, weights, width, tokens);
    struct ops_packing packing = { &fused.packed, weights };
    struct ops_attention_settings settings = { .head_dim = head_dim, .scale = 0.1f };
    LAB_OK(lab, ops_attention(&lab->target, &q, &keys, &cached, &start, &position, &fused.plain,
                              &packing, &settings, &lab->err));
    LAB_OK(lab, ops_attention(&lab->target, &q, &keys, &cached, &start, &position, &apart.plain,
                              NULL, &settings, &lab->err));
    check_same(lab, "attention", &fused, &apart, weights);
    drop_rows(lab, &fused);
    drop_rows(lab, &apart);
    struct device_view views[] = { q, keys, cached, start, position };
    for (size_t i = 0; i < COUNT_OF(views); i++)
        lab_drop(lab, views[i]);
    free(values);
}

static void test_packing(void **state)
{
    (void)state;
    for (int path = 0; path < CPU_PATH_COUNT; path++) {
        if (!cpu_path_is_supported((enum cpu_path)path))
            continue;
        struct lab lab;
        lab_open(&lab, (enum cpu_path)path, 3);
        for (size_t i = 0; i < COUNT_OF(weight_types); i++) {
            enum dtype weights = weight_types[i];
            check_swiglu(&lab, weights, 256, 1);  /* in one chunk */
            check_swiglu(&lab, weights, 2816, 1); /* the last chunk is shorter */
            check_swiglu(&lab, weights, 1280, 4);
            check_swiglu(&lab, weights, 1280, 6); /* whole rows again */
            check_attention(&lab, weights, 64, 2, 4, 1);
            check_attention(&lab, weights, 64, 4, 7, 3); /* chunks end inside a group of blocks */
            check_attention(&lab, weights, 32, 1, 8, 2);
            check_attention(&lab, weights, 16, 16, 1, 3); /* inside a block: packed afterwards */
        }
        lab_close(&lab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_packing) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
