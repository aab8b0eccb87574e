/* tokenizer_character_test.c - character BPE, as Gemma 4 has it: ranks decide, lines and runs of
 * newlines are apart, what is no token becomes its bytes, and every text comes back. */
#include "tokenizer_build.h"

static const char *const merges[] = {
    "b c", "a b", "▁ a", "▁a b", "é é", "\n \n", "a \n", "x y", "xy z", "▁ ▁", "▁▁ ▁▁", "< 0",
};
/* "xy" and "ab\n" are on no way to a token, or are none; the score of "ab" must not count. */
static const struct vocab_row rows[] = {
    { "a", 0, 0 },
    { "b", 0, 0 },
    { "c", 0, 0 },
    { "é", 0, 0 },
    { "▁", 0, 0 },
    { "bc", -9, 0 },
    { "ab", 9, 0 },
    { "▁a", 0, 0 },
    { "▁ab", 0, 0 },
    { "éé", 0, 0 },
    { "a\n", 0, 0 },
    { "\n\n", 0, 0 },
    { "\n\n\n", 0, 0 },
    { "xyz", 0, 0 },
    { "▁▁", 0, 0 },
    { "▁▁▁▁", 0, 0 },
    { "[U]", 0, TOKENIZER_USER_DEFINED },
    { "<turn|>", 0, TOKENIZER_CONTROL },
};

static void add_ids(struct gguf_build *build)
{
    gguf_build_number(build, "tokenizer.ggml.bos_token_id", BUILD_U32, 1);
    gguf_build_number(build, "tokenizer.ggml.eos_token_id", BUILD_U32, 2);
}

static struct vocab_file open_rows(void)
{
    static struct vocab vocab;
    vocab_init_spm(&vocab);
    vocab.model = "gemma4";
    vocab_add_rows(&vocab, rows, COUNT_OF(rows));
    vocab.merges = merges;
    vocab.merge_count = COUNT_OF(merges);
    vocab.more = add_ids;
    return vocab_file_open(&vocab);
}

static void test_cases(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *expected;
    } cases[] = {
        { "nothing", "", "" },
        { "no space in front", "a", "a" },
        { "rank, not score", "abc", "a|bc" },
        { "a space is U+2581", " a", "▁a" },
        { "a lower rank takes it away", " ab", "▁|ab" },
        { "and merges across words", "c    c", "c|▁▁▁▁|c" },
        { "characters, not bytes", "éé", "éé" },
        { "a line ends before its newline", "a\nb", "a|<0x0A>|b" },
        { "a run of newlines merges", "\n\n\n\n\n", "\n\n|\n\n|<0x0A>" },
        { "one that is a token stays whole", "\n\n\n", "\n\n\n" },
        { "by way of what is no token", "xyz", "xyz" },
        { "what is no token: bytes", "xya", "<0x78>|<0x79>|a" },
        { "a character without a token", "ü", "<0xC3>|<0xBC>" },
        { "bytes that are not UTF-8",
          "a\xFF\xC3"
          "b",
          "a|<0xFF>|<0xC3>|b" },
        { "the name of a byte is not the byte", "<0x0A>",
          "<0x3C>|<0x30>|<0x78>|<0x30>|<0x41>|<0x3E>" },
        { "user-defined tokens come first", "a[U]b", "a|[U]|b" },
        { "control tokens are text", "<turn|>",
          "<0x3C>|<0x74>|<0x75>|<0x72>|<0x6E>|<0x7C>|<0x3E>" },
    };
    struct vocab_file file = open_rows();
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_pieces(file.tokenizer, cases[i].name, text_view_of(cases[i].text), 0,
                     cases[i].expected);
    check_pieces(file.tokenizer, "with its begin token", text_view_of("a<turn|>"),
                 TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL, "<s>|a|<turn|>");
    vocab_file_close(&file);
}

static void test_facts(void **state)
{
    (void)state;
    struct vocab_file file = open_rows();
    const struct tokenizer_info *info = tokenizer_info(file.tokenizer);
    assert_int_equal(info->kind, TOKENIZER_CHARACTER);
    assert_null(info->pre);
    assert_false(info->pre_missing);
    assert_true(info->add_bos);
    assert_false(info->add_space_prefix);
    assert_true(tokenizer_is_end(file.tokenizer,
                                 tokenizer_token_find(file.tokenizer, text_view_of("<turn|>"))));
    vocab_file_close(&file);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const words[] = { "ab", " ab", "\n\n", "é", "xyz", "    ", "[U]", "<0x0A>" };
    struct vocab_file file = open_rows();
    struct text text;
    uint64_t random = 7;
    text_init(&text);
    for (int i = 0; i < 2000; i++) {
        vocab_random_text(&text, words, COUNT_OF(words), &random);
        check_round_trip(file.tokenizer, (struct text_view){ text_get(&text), text.length }, 0);
    }
    text_release(&text);
    vocab_file_close(&file);
}

/* Ids below the number of tokens only, and merges that are needed. */
static void test_no_merges(void **state)
{
    (void)state;
    static struct vocab vocab;
    struct tokenizer *tokenizer;
    struct gguf_build build;
    struct error err;
    vocab_init_spm(&vocab);
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "tokenizer.ggml.model", "gemma4");
    gguf_build_strings(&build, "tokenizer.ggml.tokens", vocab.texts, vocab.count);
    struct opened opened = open_built(&build);
    CHECK_OK(opened.status, &opened.err);
    CHECK_FAILS(tokenizer_create(opened.file, &tokenizer, &err), STATUS_NOT_FOUND, &err);
    check_contains("no merges", err.text, "tokenizer.ggml.merges");
    opened_release(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_facts),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_no_merges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
