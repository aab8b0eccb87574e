/* tokenizer_vocab_test.c - vocabularies as a whole: which tokens end a text, what holds where a
 * file says little, large and hostile ones, and many threads at once. */
#include "tokenizer_build.h"

#include "base/parallel.h"
#include "memory_limit.h"

/* ---- Special tokens ------------------------------------------------------------------------- */

static struct vocab_file open_tokens(const char *const *texts, size_t count)
{
    static struct vocab vocab;
    vocab_init_bpe(&vocab, "gpt-2");
    for (size_t i = 0; i < count; i++)
        vocab_add(&vocab, texts[i], 0, TOKENIZER_CONTROL);
    return vocab_file_open(&vocab);
}

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *texts[3];
        bool ends[3];
        uint32_t end_of_turn;
    } sets[] = {
        { { "<|im_start|>", "<|im_end|>", "<|endoftext|>" }, { false, true, true }, 257 },
        { { "<|start|>", "<|end|>", "<|x|>" }, { false, true, false }, 257 },
        { { "<|return|>", "<|end|>", "<|call|>" }, { true, false, true }, 257 },
        { { "<|flush|>", "<|end|>", "<|calls|>" }, { true, false, true }, 257 },
        { { "<|flush|>", "<|end|>", "<|call|>" }, { true, true, true }, 257 },
        { { "</s>", "<|tool_response>", "x" }, { false, true, false }, TOKENIZER_NO_ID },
        { { "</s>", "<｜end▁of▁sentence｜>", "[e~[" }, { true, true, true }, 257 },
    };
    for (size_t i = 0; i < COUNT_OF(sets); i++) {
        struct vocab_file file = open_tokens(sets[i].texts, 3);
        for (uint32_t t = 0; t < 3; t++)
            if (tokenizer_is_end(file.tokenizer, 256 + t) != sets[i].ends[t])
                fail_msg("%s: expected %s end", sets[i].texts[t], sets[i].ends[t] ? "an" : "no");
        assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_EOT), sets[i].end_of_turn);
        /* A convention for files that do not say. */
        assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_BOS), 11);
        assert_true(tokenizer_is_end(file.tokenizer, 11));
        assert_false(tokenizer_is_end(file.tokenizer, TOKENIZER_NO_ID));
        vocab_file_close(&file);
    }
}

static void test_defaults_of_spm(void **state)
{
    (void)state;
    static struct vocab vocab;
    vocab_init_spm(&vocab);
    struct vocab_file file = vocab_file_open(&vocab);
    const struct tokenizer_info *info = tokenizer_info(file.tokenizer);
    assert_true(info->add_bos && !info->add_eos && info->add_space_prefix);
    assert_int_equal(info->token_count, 259);
    assert_null(info->pre);
    assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_BOS), 1);
    assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_EOS), 2);
    assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_UNK), 0);
    assert_int_equal(tokenizer_special_id(file.tokenizer, TOKENIZER_PADDING), TOKENIZER_NO_ID);
    assert_int_equal(tokenizer_token_find(file.tokenizer, text_view_of("</s>")), 2);
    assert_int_equal(tokenizer_token_find(file.tokenizer, text_view_of("none")), TOKENIZER_NO_ID);
    assert_int_equal(tokenizer_token_type(file.tokenizer, 2), TOKENIZER_CONTROL);
    vocab_file_close(&file);
    tokenizer_destroy(NULL);
}

/* ---- Large ---------------------------------------------------------------------------------- */

#define MANY 1000000u

static void add_key(struct text *text, const char *key, uint32_t type)
{
    gguf_build_add(text, strlen(key), 8);
    text_add(text, key);
    gguf_build_add(text, type, 4);
}

/* A million tokens, all special, many the beginning of others, many the same. */
static void add_many(struct text *text)
{
    text_add(text, "GGUF");
    gguf_build_add(text, 3, 4);
    gguf_build_add(text, 0, 8);
    gguf_build_add(text, 4, 8);
    add_key(text, "tokenizer.ggml.model", BUILD_STRING);
    gguf_build_add(text, 5, 8);
    text_add(text, "llama");
    add_key(text, "tokenizer.ggml.tokens", BUILD_ARRAY);
    gguf_build_add(text, BUILD_STRING, 4);
    gguf_build_add(text, MANY, 8);
    for (uint64_t i = 0; i < MANY; i++) {
        gguf_build_add(text, i % 40, 8);
        text_add_fill(text, (char)('a' + i % 7), (size_t)(i % 40));
    }
    add_key(text, "tokenizer.ggml.scores", BUILD_ARRAY);
    gguf_build_add(text, BUILD_F32, 4);
    gguf_build_add(text, MANY, 8);
    text_add_fill(text, 0, 4 * MANY);
    add_key(text, "tokenizer.ggml.token_type", BUILD_ARRAY);
    gguf_build_add(text, BUILD_I8, 4);
    gguf_build_add(text, MANY, 8);
    text_add_fill(text, TOKENIZER_CONTROL, MANY);
}

static void test_a_million_tokens(void **state)
{
    (void)state;
    struct text file_text, text;
    struct tokenizer_ids ids;
    struct tokenizer *tokenizer;
    struct error err;
    text_init(&file_text);
    add_many(&file_text);
    struct opened opened = open_bytes(text_get(&file_text), file_text.length);
    CHECK_OK(opened.status, &opened.err);
    /* Too little at first, so that it runs out at one place after the other. */
    for (uint64_t limit = 1u << 20; memory_limit_works() && limit < 64u << 20; limit += 9u << 20) {
        uint64_t before_failing = memory_limit_begin(limit);
        enum status failing = tokenizer_create(opened.file, &tokenizer, &err);
        memory_limit_end(before_failing);
        if (!failing)
            tokenizer_destroy(tokenizer);
        else
            assert_int_equal(failing, STATUS_NO_MEMORY);
    }
    uint64_t before = memory_limit_begin(256u << 20);
    enum status status = tokenizer_create(opened.file, &tokenizer, &err);
    memory_limit_end(before);
    CHECK_OK(status, &err);
    text_init(&text);
    tokenizer_ids_init(&ids);
    text_add_fill(&text, 'a', 100000);
    CHECK_OK(tokenizer_encode(tokenizer, (struct text_view){ text.bytes, text.length },
                              TOKENIZER_PARSE_SPECIAL, &ids, &err),
             &err);
    assert_int_equal(ids.count, (100000 + 38) / 39);
    /* Twenty-five thousand control tokens of the same text are not looked at one by one. */
    ids.count = 0;
    CHECK_OK(
        tokenizer_encode(tokenizer, (struct text_view){ text.bytes, text.length }, 0, &ids, &err),
        &err);
    tokenizer_ids_release(&ids);
    text_release(&text);
    tokenizer_destroy(tokenizer);
    opened_release(&opened);
    text_release(&file_text);
}

static void test_token_too_long(void **state)
{
    (void)state;
    static struct vocab vocab;
    static char longest[TOKENIZER_TOKEN_LIMIT_BYTES + 2];
    for (size_t over = 0; over < 2; over++) {
        memset(longest, 'x', TOKENIZER_TOKEN_LIMIT_BYTES + over);
        vocab_init_spm(&vocab);
        vocab_add(&vocab, longest, 0, TOKENIZER_NORMAL);
        struct opened opened = vocab_open(&vocab);
        struct tokenizer *tokenizer = NULL;
        struct error err;
        enum status status = tokenizer_create(opened.file, &tokenizer, &err);
        assert_int_equal(status, over ? STATUS_LIMIT : STATUS_OK);
        if (over)
            check_contains("too long", err.text, "tokenizer.ggml.tokens[259]: expected at most");
        tokenizer_destroy(tokenizer);
        opened_release(&opened);
    }
}

/* ---- Threads -------------------------------------------------------------------------------- */

static void encode_part(void *context, uint64_t part)
{
    const struct tokenizer *tokenizer = context;
    char text[32];
    snprintf(text, sizeof(text), "ab 12 %u é", (unsigned)part);
    for (int i = 0; i < 50; i++)
        check_round_trip(tokenizer, text_view_of(text), 0);
}

static void test_many_threads(void **state)
{
    (void)state;
    static struct vocab vocab;
    vocab_init_bpe(&vocab, "deepseek-llm");
    struct vocab_file file = vocab_file_open(&vocab);
    parallel_run(16, 4, encode_part, file.tokenizer);
    vocab_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_defaults_of_spm),
        cmocka_unit_test(test_a_million_tokens),
        cmocka_unit_test(test_token_too_long),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
