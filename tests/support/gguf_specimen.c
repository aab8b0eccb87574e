/* gguf_specimen.c - the two whole files that tests and the fuzzing corpus start from. */
#include "gguf_build.h"

#include "base/status.h"

/* 1.5 and -2.25 as their bits. */
#define F32_ONE_AND_A_HALF 0x3FC00000u
#define F64_MINUS_TWO_AND_A_QUARTER 0xC002000000000000ull

void gguf_build_specimen(struct gguf_build *build, uint32_t version)
{
    /* Large or odd enough that elements read as a length, or a length as elements, cannot pass. */
    static const uint64_t numbers[] = { 0xF1F2F3F4F5F6F7F8ull, 0xE1E2E3E4E5E6E7E8ull,
                                        0xD1D2D3D4D5D6D7D8ull };
    static const uint64_t flags[] = { 1, 0, 1 };
    static const char *const words[] = { "first string", "second string", "", "fourth string" };
    static const struct {
        const char *key, *array_key;
        uint32_t type;
        uint64_t bits;
    } rows[] = {
        { "t.u8", "t.array.u8", BUILD_U8, 200 },
        { "t.i8", "t.array.i8", BUILD_I8, (uint64_t)-100 },
        { "t.u16", "t.array.u16", BUILD_U16, 60000 },
        { "t.i16", "t.array.i16", BUILD_I16, (uint64_t)-30000 },
        { "t.u32", "t.array.u32", BUILD_U32, 4000000000u },
        { "t.i32", "t.array.i32", BUILD_I32, (uint64_t)-2000000000 },
        { "t.f32", "t.array.f32", BUILD_F32, F32_ONE_AND_A_HALF },
        { "t.bool", "t.array.bool", BUILD_BOOL, 1 },
        { "t.u64", "t.array.u64", BUILD_U64, UINT64_MAX },
        { "t.i64", "t.array.i64", BUILD_I64, (uint64_t)INT64_MIN },
        { "t.f64", "t.array.f64", BUILD_F64, F64_MINUS_TWO_AND_A_QUARTER },
    };
    gguf_build_init(build, version);
    gguf_build_string(build, "general.architecture", "specimen of all types");
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        gguf_build_number(build, rows[i].key, rows[i].type, rows[i].bits);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        gguf_build_array(build, rows[i].array_key, rows[i].type,
                         rows[i].type == BUILD_BOOL ? flags : numbers, 3);
    gguf_build_strings(build, "t.array.string", words, COUNT_OF(words));
    gguf_build_string(build, "general.name", "last entry of the file");

    /* Row sizes of 12 and 34 bytes: both need padding. */
    gguf_build_tensor(build, "scalar.f32", 0, NULL, BUILD_TENSOR_F32, 4);
    gguf_build_tensor(build, "vector.f32", 1, (const uint64_t[]){ 100 }, BUILD_TENSOR_F32, 400);
    gguf_build_tensor(build, "matrix.q8_0", 2, (const uint64_t[]){ 64, 3 }, BUILD_TENSOR_Q8_0, 204);
    gguf_build_tensor(build, "empty.f32", 2, (const uint64_t[]){ 64, 0 }, BUILD_TENSOR_F32, 0);
    gguf_build_tensor(build, "cube.f16", 3, (const uint64_t[]){ 5, 3, 2 }, BUILD_TENSOR_F16, 60);
    gguf_build_tensor(build, "hyper.i8", 4, (const uint64_t[]){ 2, 3, 5, 7 }, BUILD_TENSOR_I8, 210);
    gguf_build_finish(build);
}

void gguf_build_llama(struct gguf_build *build)
{
    enum { WIDTH = 8, TOKENS = 4 };
    static const struct {
        const char *key;
        uint32_t value;
    } numbers[] = {
        { "llama.context_length", 16 },      { "llama.embedding_length", WIDTH },
        { "llama.block_count", 1 },          { "llama.feed_forward_length", WIDTH },
        { "llama.attention.head_count", 1 }, { "tokenizer.ggml.bos_token_id", 1 },
    };
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[2];
    } tensors[] = {
        { "token_embd.weight", 2, { WIDTH, TOKENS } },
        { "output_norm.weight", 1, { WIDTH, 1 } },
        { "blk.0.attn_norm.weight", 1, { WIDTH, 1 } },
        { "blk.0.attn_q.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.attn_k.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.attn_v.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.attn_output.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.ffn_norm.weight", 1, { WIDTH, 1 } },
        { "blk.0.ffn_gate.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.ffn_up.weight", 2, { WIDTH, WIDTH } },
        { "blk.0.ffn_down.weight", 2, { WIDTH, WIDTH } },
    };
    static const char *const tokens[TOKENS] = { "<unk>", "<s>", "</s>", "a" };
    static const uint64_t scores[TOKENS] = { 0 };

    gguf_build_init(build, 3);
    gguf_build_string(build, "general.architecture", "llama");
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        gguf_build_number(build, numbers[i].key, BUILD_U32, numbers[i].value);
    gguf_build_number(build, "llama.attention.layer_norm_rms_epsilon", BUILD_F32, 0x3727C5ACu);
    gguf_build_strings(build, "tokenizer.ggml.tokens", tokens, TOKENS);
    gguf_build_array(build, "tokenizer.ggml.scores", BUILD_F32, scores, TOKENS);
    for (size_t i = 0; i < COUNT_OF(tensors); i++)
        gguf_build_tensor(build, tensors[i].name, tensors[i].rank, tensors[i].dims,
                          BUILD_TENSOR_F32, 4 * tensors[i].dims[0] * tensors[i].dims[1]);
    gguf_build_finish(build);
}
