/* tokenizer_pretokenize_test.c - splitting rules: pieces of known texts, every name, and that no
 * text takes a rule long. */
#include "tokenizer_build.h"

#include "memory_limit.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdlib.h>

static struct vocab_file open_rule(const char *name)
{
    static struct vocab vocab;
    vocab_init_bpe(&vocab, name);
    return vocab_file_open(&vocab);
}

/* Pieces divided by |, spaces as ·. */
static void check_split(const char *rule, const char *text, const char *expected)
{
    struct vocab_file file = open_rule(rule);
    struct tokenizer_work work = { .tokenizer = file.tokenizer };
    struct text found;
    struct error err;
    text_init(&found);
    CHECK_OK(tokenizer_pretokenize(&work, text_view_of(text), &err), &err);
    for (size_t i = 0; i < work.pieces.count; i++) {
        text_add(&found, i ? "|" : "");
        for (uint32_t j = 0; j < work.pieces.items[i].length; j++) {
            char byte = text[work.pieces.items[i].start + j];
            if (byte == ' ')
                text_add(&found, "·");
            else
                text_add_bytes(&found, &byte, 1);
        }
    }
    if (strcmp(text_get(&found), expected) != 0)
        fail_msg("%s: '%s': expected %s, found %s", rule, text, expected, text_get(&found));
    text_release(&found);
    free(work.pieces.items);
    free(work.pieces_before.items);
    pcre2_match_data_free(work.match_data);
    pcre2_match_context_free(work.match_context);
    vocab_file_close(&file);
}

#define GOLDEN "  Hello   world's  12345 TESTS I'VE\n\n  foo\tbar  "

static const struct {
    const char *rule, *text, *expected;
} rows[] = {
    { "llama-bpe", GOLDEN, "·|·Hello|··|·world|'s|·|·|123|45|·TESTS|·I|'VE|\n\n|·|·foo|\tbar|··" },
    { "qwen2", GOLDEN, "·|·Hello|··|·world|'s|·|·|1|2|3|4|5|·TESTS|·I|'VE|\n\n|·|·foo|\tbar|··" },
    { "gpt-2", GOLDEN, "·|·Hello|··|·world|'s|·|·12345|·TESTS|·I|'|VE|\n\n·|·foo|\t|bar|··" },
    { "default", GOLDEN, "·|·Hello|··|·world|'|s|·|·|123|45|·TESTS|·I|'|VE|\n\n·|·foo|\t|bar|··" },
    /* The rest follows from the patterns by hand. */
    { "qwen35", GOLDEN, "·|·Hello|··|·world|'s|·|·|1|2|3|4|5|·TESTS|·I|'VE|\n\n|·|·foo|\tbar|··" },
    { "qwen35", "e\u0301a", "e\u0301a" },
    { "qwen2", "e\u0301a", "e|\u0301a" },
    { "starcoder", "ab 123", "ab|·|1|2|3" },
    { "falcon", "a`1234 b", "a|`|123|4|·b" },
    { "deepseek-coder", "Hi  12,\n中b", "Hi|··|1|2|,|\n|中|b" },
    { "deepseek-llm", "Hi there.\nfoo  ", "Hi|·there|.|\n|foo|··" },
    { "deepseek-llm", "ab 1234 中", "ab|·|1234|·|中" },
    { "deepseek-v3", "Hi 1234中b .x\n", "Hi|·|123|4|中|b|·.|x|\n" },
    { "tekken", "helloWorld नमस्ते 12", "hello|World|·नमस्ते|·|1|2" },
    { "tekken", "a//\n/b", "a|//\n/|b" },
    { "gpt-4o", "helloWorld's IT'S 1234", "hello|World's|·IT'S|·|123|4" },
    { "gpt-2", "a\u00A0\u00A0b", "a|\u00A0|\u00A0|b" },
    { "llama-bpe", "\u017F'\u017F", "\u017F|'\u017F" },
};

static void test_splits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        check_split(rows[i].rule, rows[i].text, rows[i].expected);
}

/* ---- Names ---------------------------------------------------------------------------------- */

static void test_every_name(void **state)
{
    (void)state;
    static const char *const wanted[] = {
        "llama-bpe",    "llama3",
        "llama-v3",     "pixtral",
        "falcon3",      "falcon-h1",
        "lfm2",         "midm-2.0",
        "dbrx",         "smaug-bpe",
        "glm4",         "chatglm-bpe",
        "qwen2",        "deepseek-r1-qwen",
        "stablelm2",    "hunyuan",
        "megrez",       "qwen35",
        "gpt-2",        "phi-2",
        "mpt",          "olmo",
        "jais",         "gigachat",
        "modern-bert",  "roberta-bpe",
        "default",      "starcoder",
        "refact",       "command-r",
        "smollm",       "codeshell",
        "exaone",       "falcon",
        "deepseek-llm", "deepseek-coder",
        "deepseek-v3",  "hunyuan-dense",
        "joyai-llm",    "tekken",
        "gpt-4o",       "llama4",
        "kanana2",
    };
    size_t count = 0;
    while (tokenizer_pre_name(count).bytes)
        count++;
    assert_int_equal(count, COUNT_OF(wanted));
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        struct vocab_file file = open_rule(wanted[i]);
        const struct tokenizer_info *info = tokenizer_info(file.tokenizer);
        const struct tokenizer_rule *rule = tokenizer_rule_find(text_view_of(wanted[i]));
        assert_non_null(rule);
        assert_string_equal(info->pre, rule->name);
        assert_false(info->pre_missing);
        assert_int_equal(info->add_bos,
                         strcmp(info->pre, "llama-bpe") == 0 || strcmp(info->pre, "tekken") == 0);
        vocab_file_close(&file);
    }
    assert_null(tokenizer_rule_find(text_view_of("")));
    assert_null(tokenizer_rule_find(text_view_of("llama")));
}

static void test_missing_name(void **state)
{
    (void)state;
    struct vocab_file file = open_rule(NULL);
    assert_true(tokenizer_info(file.tokenizer)->pre_missing);
    assert_string_equal(tokenizer_info(file.tokenizer)->pre, "default");
    vocab_file_close(&file);
}

static void test_unknown_name(void **state)
{
    (void)state;
    static struct vocab vocab;
    struct tokenizer *tokenizer;
    struct error err;
    vocab_init_bpe(&vocab, "gpt-17");
    struct opened opened = vocab_open(&vocab);
    CHECK_FAILS(tokenizer_create(opened.file, &tokenizer, &err), STATUS_UNSUPPORTED, &err);
    check_contains("unknown", err.text, "tokenizer.ggml.pre");
    check_contains("unknown", err.text, "found 'gpt-17'");
    check_contains("first name", err.text, "llama-bpe, ");
    check_contains("last name", err.text, ", kanana2;");
    opened_release(&opened);
}

/* ---- Time ----------------------------------------------------------------------------------- */

/* Sanitizers make everything slow; the growth is the same. */
static size_t long_bytes(void)
{
    return memory_limit_works() ? 1u << 17 : 1u << 14;
}

static uint64_t time_of(const struct tokenizer *tokenizer, const char *part, const char *end,
                        size_t bytes, bool compiled)
{
    struct tokenizer_work work = { .tokenizer = tokenizer,
                                   .match_options = compiled ? 0 : PCRE2_NO_JIT };
    struct text text;
    struct error err;
    text_init(&text);
    while (text.length < bytes)
        text_add(&text, part);
    text_add(&text, end);
    uint64_t start_ns = processor_ns();
    CHECK_OK(tokenizer_pretokenize(&work, (struct text_view){ text.bytes, text.length }, &err),
             &err);
    uint64_t took_ns = processor_ns() - start_ns;
    size_t sum = 0;
    for (size_t i = 0; i < work.pieces.count; i++) {
        assert_int_equal(work.pieces.items[i].start, sum);
        sum += work.pieces.items[i].length;
    }
    assert_int_equal(sum, text.length);
    free(work.pieces.items);
    free(work.pieces_before.items);
    pcre2_match_data_free(work.match_data);
    pcre2_match_context_free(work.match_context);
    text_release(&text);
    return took_ns;
}

/* Eight times the text: quadratic time would be 64 times as long. Where code cannot be made at run
 * time, patterns are interpreted; that is slower and has other weak spots. */
static void check_growth(const struct tokenizer *tokenizer, const char *part, const char *end,
                         bool compiled)
{
    size_t bytes = compiled ? long_bytes() : 1u << 14;
    uint64_t one = time_of(tokenizer, part, end, bytes / 8, compiled);
    uint64_t eight = time_of(tokenizer, part, end, bytes, compiled);
    if (eight > 40 * one + 100000000u)
        fail_msg("%s: '%s' and '%s': short %.4f s, long %.4f s%s", tokenizer_info(tokenizer)->pre,
                 part, end, (double)one / 1e9, (double)eight / 1e9,
                 compiled ? "" : ", interpreted");
}

static void test_time_is_linear(void **state)
{
    (void)state;
    static const char *const parts[] = { "a", "A", "é", "नि", " ",  "\n", " \n",    "\t",
                                         "1", "!", "'", "a ", " a", "Aa", "\u00A0", "中" };
    static const char *const ends[] = { "", "x", "\n", "!", "1", "\u0301" };
    for (size_t r = 0; tokenizer_pre_name(r).bytes; r++) {
        struct text_view name = tokenizer_pre_name(r);
        char word[32];
        snprintf(word, sizeof(word), "%.*s", (int)name.length, name.bytes);
        struct vocab_file file = open_rule(word);
        /* Other names of a rule are the same rule. */
        bool first = strcmp(tokenizer_info(file.tokenizer)->pre, word) == 0;
        for (size_t i = 0; first && i < COUNT_OF(parts) * COUNT_OF(ends); i++) {
            const char *part = parts[i / COUNT_OF(ends)], *end = ends[i % COUNT_OF(ends)];
            check_growth(file.tokenizer, part, end, true);
            check_growth(file.tokenizer, part, end, false);
        }
        vocab_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splits),         cmocka_unit_test(test_every_name),
        cmocka_unit_test(test_missing_name),   cmocka_unit_test(test_unknown_name),
        cmocka_unit_test(test_time_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
