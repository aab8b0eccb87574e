/* convert_mix_test.c - which tensor gets which type, and how large whole models become. */
#include "test.h"

#include "base/text.h"
#include "convert/convert_impl.h"

#include <stdio.h>
#include <string.h>

static enum dtype type_of(enum convert_type type, uint32_t layers, bool tied, const char *name,
                          uint64_t row)
{
    struct convert_mix mix = { type, layers, tied };
    struct shape shape = shape_make(2, (const uint64_t[]){ row, 64 });
    return convert_dtype(&mix, text_view_of(name), &shape);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool known;
        enum convert_type type;
        uint32_t file_type;
    } rows[] = {
        { "f32", true, CONVERT_F32, 0 },
        { "f16", true, CONVERT_F16, 1 },
        { "bf16", true, CONVERT_BF16, 32 },
        { "q8_0", true, CONVERT_Q8_0, 7 },
        { "q4_0", true, CONVERT_Q4_0, 2 },
        { "q4_k_m", true, CONVERT_Q4_K_M, 15 },
        { "q5_k_m", true, CONVERT_Q5_K_M, 17 },
        { "q6_k", true, CONVERT_Q6_K, 18 },
        { "mxfp4", true, CONVERT_MXFP4, 38 },
        { "Q4_K_M", true, CONVERT_Q4_K_M, 15 },
        { "q4_k", true, CONVERT_Q4_K_M, 15 },
        { "Q5_K", true, CONVERT_Q5_K_M, 17 },
        { "BF16", true, CONVERT_BF16, 32 },
        { "", false, 0, 0 },
        { "q4", false, 0, 0 },
        { "q6_k_m", false, 0, 0 },
        { "q8_0 ", false, 0, 0 },
        { "q4_k_m_and_a_lot_more", false, 0, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum convert_type type = CONVERT_TYPE_COUNT;
        bool known = convert_type_find(rows[i].name, &type);
        if (known != rows[i].known || type != (known ? rows[i].type : CONVERT_TYPE_COUNT))
            fail_msg("'%s'", rows[i].name);
        if (known)
            assert_int_equal(convert_file_type(type), rows[i].file_type);
    }
    for (int i = 0; i < CONVERT_TYPE_COUNT; i++) {
        enum convert_type type;
        assert_true(convert_type_find(convert_type_name((enum convert_type)i), &type));
        assert_int_equal(type, i);
    }
}

/* "0-3, 6, 9": the layers whose tensor has the type. */
static void list_layers(enum convert_type mix, uint32_t layers, const char *tensor,
                        enum dtype dtype, struct text *list)
{
    text_clear(list);
    for (uint32_t layer = 0; layer < layers; layer++) {
        char name[64];
        snprintf(name, sizeof(name), "blk.%u.%s.weight", layer, tensor);
        if (type_of(mix, layers, false, name, 256) == dtype)
            text_addf(list, "%s%u", list->length ? " " : "", layer);
    }
}

static void test_upgraded_layers(void **state)
{
    (void)state;
    static const struct {
        enum convert_type type;
        uint32_t layers;
        const char *tensor;
        const char *list;
    } rows[] = {
        { CONVERT_Q4_K_M, 32, "attn_v", "0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31" },
        { CONVERT_Q4_K_M, 32, "ffn_down", "0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31" },
        { CONVERT_Q5_K_M, 32, "attn_v", "0 1 2 3 6 9 12 15 18 21 24 27 28 29 30 31" },
        { CONVERT_Q4_K_M, 28, "ffn_down", "0 1 2 5 8 11 14 17 20 23 24 25 26 27" },
        { CONVERT_Q4_K_M, 4, "attn_v", "2 3" },
        { CONVERT_Q4_K_M, 1, "attn_v", "0" },
        { CONVERT_Q4_K_M, 32, "attn_q", "" },
        { CONVERT_Q4_K_M, 32, "ffn_up", "" },
        { CONVERT_Q4_0, 32, "attn_v", "" },
        { CONVERT_Q8_0, 32, "ffn_down", "" },
    };
    struct text list;
    text_init(&list);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        list_layers(rows[i].type, rows[i].layers, rows[i].tensor, DTYPE_Q6_K, &list);
        assert_string_equal(text_get(&list), rows[i].list);
    }
    text_release(&list);
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum convert_type type;
        bool tied;
        const char *tensor;
        uint64_t row;
        enum dtype dtype;
    } rows[] = {
        { "most matrices", CONVERT_Q4_K_M, false, "blk.5.attn_q.weight", 4096, DTYPE_Q4_K },
        { "output", CONVERT_Q4_K_M, false, "output.weight", 4096, DTYPE_Q6_K },
        { "output of Q5_K_M", CONVERT_Q5_K_M, false, "output.weight", 4096, DTYPE_Q6_K },
        { "output of Q4_0", CONVERT_Q4_0, false, "output.weight", 4096, DTYPE_Q6_K },
        { "output of Q8_0", CONVERT_Q8_0, false, "output.weight", 4096, DTYPE_Q8_0 },
        { "output of F16", CONVERT_F16, false, "output.weight", 4096, DTYPE_F16 },
        { "embedding", CONVERT_Q4_K_M, false, "token_embd.weight", 4096, DTYPE_Q4_K },
        { "tied embedding", CONVERT_Q4_K_M, true, "token_embd.weight", 4096, DTYPE_Q6_K },
        { "tied embedding of Q8_0", CONVERT_Q8_0, true, "token_embd.weight", 4096, DTYPE_Q8_0 },
        { "fused attention", CONVERT_Q4_K_M, false, "blk.0.attn_qkv.weight", 4096, DTYPE_Q5_K },
        { "fused of Q5_K_M", CONVERT_Q5_K_M, false, "blk.0.attn_qkv.weight", 4096, DTYPE_Q5_K },
        { "Q4_K in rows of 32", CONVERT_Q4_K_M, false, "blk.5.attn_q.weight", 896, DTYPE_Q5_0 },
        { "Q5_K in rows of 32", CONVERT_Q5_K_M, false, "blk.5.attn_q.weight", 896, DTYPE_Q5_1 },
        { "Q6_K in rows of 32", CONVERT_Q6_K, false, "blk.5.attn_q.weight", 896, DTYPE_Q8_0 },
        { "upgraded in rows of 32", CONVERT_Q4_K_M, false, "blk.0.attn_v.weight", 896, DTYPE_Q8_0 },
        { "Q4_K in rows of 172", CONVERT_Q4_K_M, false, "blk.5.ffn_up.weight", 172, DTYPE_F16 },
        { "Q8_0 in rows of 172", CONVERT_Q8_0, false, "blk.5.ffn_up.weight", 172, DTYPE_F16 },
        { "Q4_0 in rows of 172", CONVERT_Q4_0, false, "blk.5.ffn_up.weight", 172, DTYPE_F16 },
        { "F32 in rows of 1", CONVERT_F32, false, "blk.5.ffn_up.weight", 1, DTYPE_F32 },
        { "BF16", CONVERT_BF16, false, "blk.5.ffn_up.weight", 172, DTYPE_BF16 },
        { "experts of MXFP4", CONVERT_MXFP4, false, "blk.5.ffn_up_exps.weight", 2880, DTYPE_MXFP4 },
        { "others of MXFP4", CONVERT_MXFP4, false, "blk.5.attn_q.weight", 2880, DTYPE_Q8_0 },
        { "MXFP4 in rows of 172", CONVERT_MXFP4, false, "blk.5.ffn_up_exps.weight", 172,
          DTYPE_F16 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum dtype dtype = type_of(rows[i].type, 32, rows[i].tied, rows[i].tensor, rows[i].row);
        if (dtype != rows[i].dtype)
            fail_msg("%s: expected %s, found %s", rows[i].name, dtype_name(rows[i].dtype),
                     dtype_name(dtype));
    }
}

static void test_what_is_quantized(void **state)
{
    (void)state;
    static const struct {
        const char *tensor;
        struct shape shape;
        bool quantized;
    } rows[] = {
        { "token_embd.weight", { 2, { 64, 8, 1, 1 } }, true },
        { "blk.0.ffn_up_exps.weight", { 3, { 64, 8, 4, 1 } }, true },
        { "blk.0.attn_norm.weight", { 1, { 64, 1, 1, 1 } }, false },
        { "blk.0.attn_q.bias", { 1, { 64, 1, 1, 1 } }, false },
        { "blk.0.attn_q.bias", { 2, { 64, 2, 1, 1 } }, false },
        { "blk.0.odd_norm.weight", { 2, { 64, 2, 1, 1 } }, false },
        { "blk.0.attn_q.weight", { 2, { 64, 1, 1, 1 } }, false },
        { "rope_freqs.weight", { 1, { 64, 1, 1, 1 } }, false },
        { "blk.0.ffn_gate_inp.weight", { 2, { 64, 8, 1, 1 } }, false },
        { "position_embd.weight", { 2, { 64, 8, 1, 1 } }, false },
        { "token_types.weight", { 2, { 64, 8, 1, 1 } }, false },
        { "weight", { 2, { 64, 8, 1, 1 } }, true },
        { "w", { 2, { 64, 8, 1, 1 } }, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (convert_is_quantized(text_view_of(rows[i].tensor), &rows[i].shape) != rows[i].quantized)
            fail_msg("%s", rows[i].tensor);
}

/* ---- Whole models --------------------------------------------------------------------------- */

static uint64_t model_bytes(const struct model_shape *shape, enum convert_type type)
{
    struct convert_mix mix = { type, shape->block_count, shape->tied_embeddings };
    struct model_config config = { .arch = shape->arch,
                                   .embedding_length = shape->embedding_length,
                                   .block_count = shape->block_count,
                                   .feed_forward_length = shape->feed_forward_length,
                                   .head_count = shape->head_count,
                                   .head_count_kv = shape->head_count_kv,
                                   .head_dim = shape->head_dim,
                                   .vocab_size = shape->vocab_size };
    uint64_t sum = 0;
    for (size_t i = 0; i < MODEL_ROLE_COUNT; i++) {
        enum model_role role = (enum model_role)i;
        uint32_t layers = model_role_is_per_layer(role) ? config.block_count : 1;
        for (uint32_t layer = 0; layer < layers; layer++) {
            struct model_tensor planned = model_tensor(&config, role, layer);
            if (planned.presence != MODEL_REQUIRED &&
                (role != MODEL_OUTPUT || shape->tied_embeddings))
                continue;
            struct text_view name = text_view_of(planned.name);
            /* The tensor table and the mix agree on what a matrix is. */
            assert_int_equal(planned.is_matrix, convert_is_quantized(name, &planned.shape));
            enum dtype dtype = planned.is_matrix ? convert_dtype(&mix, name, &planned.shape)
                                                 : DTYPE_F32;
            uint64_t bytes;
            assert_true(shape_bytes(&planned.shape, dtype, &bytes));
            sum += bytes;
        }
    }
    return sum;
}

/* As the files that people download. */
static void test_sizes_of_whole_models(void **state)
{
    (void)state;
    static const struct {
        const char *slug;
        enum convert_type type;
        const char *size;
    } rows[] = {
        { "llama3-8b", CONVERT_Q4_K_M, "4.58 GiB" }, { "llama3-8b", CONVERT_Q8_0, "7.95 GiB" },
        { "llama3-8b", CONVERT_F16, "14.96 GiB" },   { "llama2-7b", CONVERT_Q4_0, "3.56 GiB" },
        { "llama2-7b", CONVERT_Q4_K_M, "3.80 GiB" }, { "llama2-7b", CONVERT_Q6_K, "5.15 GiB" },
        { "llama2-7b", CONVERT_Q5_K_M, "4.45 GiB" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char size[TEXT_BYTES_CAPACITY];
        text_bytes(model_bytes(model_shape_find(rows[i].slug), rows[i].type), size);
        if (strcmp(size, rows[i].size) != 0)
            fail_msg("%s %s: expected %s, found %s", rows[i].slug, convert_type_name(rows[i].type),
                     rows[i].size, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_upgraded_layers),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_what_is_quantized),
        cmocka_unit_test(test_sizes_of_whole_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
