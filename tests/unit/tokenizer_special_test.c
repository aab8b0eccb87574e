/* tokenizer_special_test.c - special tokens in a text: the longest of them first over the whole
 * text, as one search after the other finds them. */
#include "tokenizer_build.h"

#include "memory_limit.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdlib.h>

/* Prefixes, suffixes and overlaps of each other; two letters, so that random texts hit them. */
static const struct vocab_row rows[] = {
    { "a", 0, TOKENIZER_USER_DEFINED },   { "ab", 0, TOKENIZER_CONTROL },
    { "bab", 0, TOKENIZER_USER_DEFINED }, { "abb", 0, TOKENIZER_CONTROL },
    { "bbaa", 0, TOKENIZER_CONTROL },     { "abba", 0, TOKENIZER_USER_DEFINED },
    { "babab", 0, TOKENIZER_CONTROL },    { "aaaaaa", 0, TOKENIZER_USER_DEFINED },
    { "bbbb", 0, TOKENIZER_UNKNOWN },     { "b b", 0, TOKENIZER_NORMAL },
    { "bab", 0, TOKENIZER_CONTROL },      { "abb", 0, TOKENIZER_USER_DEFINED },
};
#define FIRST_ROW 256u /* its id */

static struct vocab_file open_rows(void)
{
    static struct vocab vocab;
    vocab_init_bpe(&vocab, "gpt-2");
    vocab_add_rows(&vocab, rows, COUNT_OF(rows));
    return vocab_file_open(&vocab);
}

/* ---- The slow way --------------------------------------------------------------------------- */

static bool is_searched(size_t row, bool parse_special)
{
    return rows[row].type == TOKENIZER_USER_DEFINED ||
           (parse_special &&
            (rows[row].type == TOKENIZER_CONTROL || rows[row].type == TOKENIZER_UNKNOWN));
}

/* One search per token, longest first and then by id, each in what those before have left. ids: the
 * row + 1 at a first byte, UINT32_MAX on the others, 0 where there is none. */
static void search_slowly(const char *text, bool parse_special, uint32_t *ids)
{
    memset(ids, 0, strlen(text) * sizeof(*ids));
    for (size_t length = 8; length > 0; length--) {
        for (size_t row = 0; row < COUNT_OF(rows); row++) {
            if (!is_searched(row, parse_special) || strlen(rows[row].text) != length)
                continue;
            for (size_t at = 0; text[at]; at++) {
                bool free_here = strncmp(text + at, rows[row].text, length) == 0;
                for (size_t i = 0; free_here && i < length; i++)
                    free_here = ids[at + i] == 0;
                for (size_t i = 0; free_here && i < length; i++)
                    ids[at + i] = i ? UINT32_MAX : (uint32_t)row + 1;
            }
        }
    }
}

static void check_same(const struct tokenizer *tokenizer, const char *text, bool parse_special)
{
    struct tokenizer_work work = { .tokenizer = tokenizer };
    struct tokenizer_special_match *matches;
    uint32_t ids[128];
    size_t count, next = 0;
    struct error err;
    CHECK_OK(
        tokenizer_special_split(&work, text_view_of(text), parse_special, &matches, &count, &err),
        &err);
    search_slowly(text, parse_special, ids);
    for (size_t at = 0; text[at]; at++) {
        if (ids[at] == 0 || ids[at] == UINT32_MAX)
            continue;
        if (next == count || matches[next].start != at ||
            matches[next].id != FIRST_ROW + ids[at] - 1)
            fail_msg("'%s': expected '%s' at %zu", text, rows[ids[at] - 1].text, at);
        assert_int_equal(matches[next].length, strlen(rows[ids[at] - 1].text));
        next++;
    }
    assert_int_equal(next, count);
    free(matches);
    tokenizer_heap_release(&work.heap);
}

static void test_same_as_one_by_one(void **state)
{
    (void)state;
    struct vocab_file file = open_rows();
    uint64_t seed = 3;
    for (int i = 0; i < 20000; i++) {
        char text[64];
        size_t length = vocab_random(&seed) % (sizeof(text) - 1);
        for (size_t at = 0; at < length; at++)
            text[at] = "abababab "[vocab_random(&seed) % 9];
        text[length] = '\0';
        check_same(file.tokenizer, text, i % 2);
    }
    vocab_file_close(&file);
}

static void test_known_texts(void **state)
{
    (void)state;
    struct vocab_file file = open_rows();
    static const struct {
        const char *text;
        unsigned flags;
        const char *expected;
    } texts[] = {
        { "", TOKENIZER_PARSE_SPECIAL, "" },
        { "xyz", TOKENIZER_PARSE_SPECIAL, "x|y|z" },
        { "abab", TOKENIZER_PARSE_SPECIAL, "a|bab" }, /* "bab" is longer than "ab" */
        { "abab", 0, "a|bab" },
        { "abba", TOKENIZER_PARSE_SPECIAL, "abba" },
        { "abbab", TOKENIZER_PARSE_SPECIAL, "abba|b" },
        { "b b", TOKENIZER_PARSE_SPECIAL, "b|Ġ|b" }, /* a normal token is not searched for */
        { "\xFF\xFE", TOKENIZER_PARSE_SPECIAL, "ÿ|þ" },
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        check_pieces(file.tokenizer, texts[i].text, text_view_of(texts[i].text), texts[i].flags,
                     texts[i].expected);
    vocab_file_close(&file);
}

/* Sanitizers make everything slow; the growth is the same. */
static size_t long_bytes(void)
{
    return memory_limit_works() ? 1u << 19 : 1u << 16;
}

static void test_time_is_linear(void **state)
{
    (void)state;
    static const char *const parts[] = { "a", "b", "ab", "ba", "bbaa", "babab", "aaaab" };
    struct vocab_file file = open_rows();
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        uint64_t took_ns[2];
        for (size_t j = 0; j < 2; j++) {
            struct tokenizer_work work = { .tokenizer = file.tokenizer };
            struct tokenizer_special_match *matches;
            struct text text;
            struct error err;
            size_t count;
            text_init(&text);
            while (text.length < (j ? long_bytes() : long_bytes() / 16))
                text_add(&text, parts[i]);
            uint64_t start_ns = processor_ns();
            CHECK_OK(tokenizer_special_split(&work, (struct text_view){ text.bytes, text.length },
                                             true, &matches, &count, &err),
                     &err);
            took_ns[j] = processor_ns() - start_ns;
            free(matches);
            tokenizer_heap_release(&work.heap);
            text_release(&text);
        }
        /* Sixteen times the text: quadratic time would be 256 times as long. */
        if (took_ns[1] > 80 * took_ns[0] + 100000000u)
            fail_msg("%s: short %.4f s, long %.4f s", parts[i], (double)took_ns[0] / 1e9,
                     (double)took_ns[1] / 1e9);
    }
    vocab_file_close(&file);
}

/* ---- White space ---------------------------------------------------------------------------- */

static void add_phi(struct gguf_build *build)
{
    gguf_build_string(build, "general.name", "Fine-tuned PHI-3 Mini");
}

static void add_other(struct gguf_build *build)
{
    gguf_build_string(build, "general.name", "phi-4");
}

/* Markers of Phi-3 take the white space after them, also before another marker; those of any other
 * model leave it. */
static void test_space_takers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *phi, *other;
    } cases[] = {
        { "<|user|>\n a", "<|user|>|▁|a", "<|user|>|▁|<0x0A>|▁|a" },
        { "<|user|> \t<|end|>\n", "<|user|>|<|end|>", "<|user|>|▁|▁|<0x09>|<|end|>|▁|<0x0A>" },
        { "[U]  a", "[U]|▁|a", "[U]|▁|▁|▁|a" },
        { "</s> a", "</s>|▁|a", "</s>|▁|▁|a" },
        { "<s> a", "<s>|▁|▁|a", "<s>|▁|▁|a" },
        { "<|endoftext|> a", "<|endoftext|>|▁|▁|a", "<|endoftext|>|▁|▁|a" },
        { "a <|user|>", "▁|a|▁|<|user|>", "▁|a|▁|<|user|>" },
    };
    static struct vocab vocab;
    for (int is_phi = 0; is_phi < 2; is_phi++) {
        vocab_init_spm(&vocab);
        vocab_add(&vocab, "▁", 0, 0);
        vocab_add(&vocab, "a", 0, 0);
        vocab_add(&vocab, "[U]", 0, TOKENIZER_USER_DEFINED);
        vocab_add(&vocab, "<|user|>", 0, TOKENIZER_CONTROL);
        vocab_add(&vocab, "<|end|>", 0, TOKENIZER_CONTROL);
        vocab_add(&vocab, "<|endoftext|>", 0, TOKENIZER_CONTROL);
        vocab.more = is_phi ? add_phi : add_other;
        struct vocab_file file = vocab_file_open(&vocab);
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            check_pieces(file.tokenizer, cases[i].text, text_view_of(cases[i].text),
                         TOKENIZER_PARSE_SPECIAL, is_phi ? cases[i].phi : cases[i].other);
        vocab_file_close(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_one_by_one),
        cmocka_unit_test(test_known_texts),
        cmocka_unit_test(test_time_is_linear),
        cmocka_unit_test(test_space_takers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
