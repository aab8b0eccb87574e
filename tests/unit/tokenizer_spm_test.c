/* tokenizer_spm_test.c - SentencePiece: the order of merges, bytes for what has no token, where
 * spaces are added, and that control tokens cannot be written as text. */
#include "tokenizer_build.h"

#include "memory_limit.h"

#include <stdlib.h>

#define SPACE "▁"

/* "</s" and "<0x41" are here so that merging alone could reach "</s>" and "<0x41>". */
static const struct vocab_row rows[] = {
    { SPACE, -20, 0 },
    { "a", -21, 0 },
    { "b", -22, 0 },
    { "c", -23, 0 },
    { "<", -24, 0 },
    { ">", -25, 0 },
    { "/", -26, 0 },
    { "s", -27, 0 },
    { "ab", -5, 0 },
    { "bc", -4, 0 },
    { "abc", -9, 0 },
    { "aa", -3, 0 },
    { "aaaa", -3, 0 },
    { SPACE "a", -6, 0 },
    { SPACE SPACE, -2, 0 },
    { "é", -8, 0 },
    { "s>", -1, 0 },
    { "</", -1, 0 },
    { "</s", -1, 0 },
    { "<0", -7, 0 },
    { "<0x", -7, 0 },
    { "<0x4", -7, 0 },
    { "<0x41", -7, 0 },
    { "[IMG]", 0, TOKENIZER_USER_DEFINED },
    { "[IMG]]", 0, TOKENIZER_CONTROL },
    { "never", 0, TOKENIZER_UNUSED },
};

static struct vocab_file open_rows(void (*more)(struct gguf_build *build))
{
    static struct vocab vocab;
    vocab_init_spm(&vocab);
    vocab_add_rows(&vocab, rows, COUNT_OF(rows));
    vocab.more = more;
    return vocab_file_open(&vocab);
}

static void without_prefix(struct gguf_build *build)
{
    gguf_build_number(build, "tokenizer.ggml.add_space_prefix", BUILD_BOOL, 0);
}

static void begin_and_end(struct gguf_build *build)
{
    gguf_build_number(build, "tokenizer.ggml.add_bos_token", BUILD_BOOL, 0);
    gguf_build_number(build, "tokenizer.ggml.add_eos_token", BUILD_BOOL, 1);
}

enum { PLAIN = 0, ADD = TOKENIZER_ADD_SPECIAL, PARSE = TOKENIZER_PARSE_SPECIAL };

static const struct {
    const char *name, *text;
    void (*more)(struct gguf_build *build);
    unsigned flags;
    const char *expected;
} cases[] = {
    { "nothing", "", NULL, PLAIN, "" },
    { "nothing, with begin", "", NULL, ADD, "<s>" },
    { "a space is put in front", "a", NULL, PLAIN, "▁a" },
    { "and one that is there stays", " a", NULL, PLAIN, "▁▁|a" },
    { "highest score first, then what it makes possible", "cabc", NULL, PLAIN, "▁|c|abc" },
    { "leftmost of equals", "caaa", NULL, PLAIN, "▁|c|aa|a" },
    { "merged ones merge again", "caaaaa", NULL, PLAIN, "▁|c|aaaa|a" },
    { "a lower score that is first in the text", "caab", NULL, PLAIN, "▁|c|aa|b" },
    { "runs of spaces", "c    c", NULL, PLAIN, "▁|c|▁▁|▁▁|c" },
    { "two bytes, one token", "é", NULL, PLAIN, "▁|é" },
    { "no token: bytes", "ß", NULL, PLAIN, "▁|<0xC3>|<0x9F>" },
    { "not UTF-8: bytes", "\xC3", NULL, PLAIN, "▁|<0xC3>" },
    { "overlong: bytes", "\xC0\x80", NULL, PLAIN, "▁|<0xC0>|<0x80>" },
    { "the name of a byte is text", "<0x41>", NULL, PLAIN, "▁|<0x41|>" },
    { "begin", "a", NULL, ADD, "<s>|▁a" },
    { "end, no begin", "a", begin_and_end, ADD, "▁a|</s>" },
    { "flags off: neither", "a", begin_and_end, PLAIN, "▁a" },
    { "no space in front", "a", without_prefix, PLAIN, "a" },
    { "control token as text", "</s>", NULL, PLAIN, "▁|</s|>" },
    { "control token", "a</s>a", NULL, PARSE, "▁a|</s>|▁a" },
    { "unknown token is special too", "<unk>", NULL, PARSE, "<unk>" },
    { "user-defined, always", "a[IMG]a", NULL, PLAIN, "▁a|[IMG]|▁a" },
    { "user-defined, no space", "c[IMG]c", without_prefix, PLAIN, "c|[IMG]|c" },
    { "the longer special", "[IMG]]", NULL, PARSE, "[IMG]]" },
    { "the longer one is control", "[IMG]]", NULL, PLAIN, "[IMG]|▁|<0x5D>" },
    { "side by side", "<s><s>", NULL, PARSE, "<s>|<s>" },
};

static void test_cases(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct vocab_file file = open_rows(cases[i].more);
        check_pieces(file.tokenizer, cases[i].name, text_view_of(cases[i].text), cases[i].flags,
                     cases[i].expected);
        vocab_file_close(&file);
    }
}

static void test_no_bytes_means_unknown(void **state)
{
    (void)state;
    static struct vocab vocab;
    static const struct vocab_row few[] = { { "<unk>", 0, TOKENIZER_UNKNOWN },
                                            { "<s>", 0, TOKENIZER_CONTROL },
                                            { "</s>", 0, TOKENIZER_CONTROL },
                                            { SPACE, -1, 0 },
                                            { "a", -2, 0 },
                                            { "<0xC3>", 0, TOKENIZER_BYTE } };
    vocab = (struct vocab){ .model = "llama" };
    vocab_add_rows(&vocab, few, COUNT_OF(few));
    struct vocab_file file = vocab_file_open(&vocab);
    check_pieces(file.tokenizer, "one per character", text_view_of("aßaxx"), 0,
                 "▁|a|<unk>|a|<unk>|<unk>");
    vocab_file_close(&file);
}

/* A file without types: bytes are known by their names, begin and end by their ids. */
static void test_types_missing(void **state)
{
    (void)state;
    struct gguf_build build;
    static const char *const texts[] = { "<unk>", "<s>", "</s>", SPACE, "a", "<0x62>" };
    static const uint64_t scores[COUNT_OF(texts)] = { 0 };
    struct vocab_file file = { 0 };
    struct error err;
    gguf_build_init(&build, 3);
    gguf_build_string(&build, "tokenizer.ggml.model", "llama");
    gguf_build_strings(&build, "tokenizer.ggml.tokens", texts, COUNT_OF(texts));
    gguf_build_array(&build, "tokenizer.ggml.scores", BUILD_I32, scores, COUNT_OF(texts));
    file.opened = open_built(&build);
    CHECK_OK(file.opened.status, &file.opened.err);
    CHECK_OK(tokenizer_create(file.opened.file, &file.tokenizer, &err), &err);
    check_pieces(file.tokenizer, "types missing", text_view_of("ab<s>"), ADD | PARSE,
                 "<s>|▁|a|<0x62>|<s>");
    vocab_file_close(&file);
}

/* ---- Against the slow way ------------------------------------------------------------------- */

/* All pairs are looked at again after every merge: too slow to be wrong. */
static void merge_slowly(struct text *pieces, const char *text)
{
    char parts[128][32];
    size_t count = 0;
    for (size_t at = 0; text[at]; count++) {
        size_t length = text_utf8_length(text + at, strlen(text + at));
        snprintf(parts[count], sizeof(parts[count]), "%.*s", (int)length, text + at);
        at += length;
    }
    for (;;) {
        size_t best = SIZE_MAX;
        double best_score = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            char both[64];
            snprintf(both, sizeof(both), "%s%s", parts[i], parts[i + 1]);
            for (size_t row = 0; row < COUNT_OF(rows); row++)
                if (rows[row].type != TOKENIZER_CONTROL && strcmp(rows[row].text, both) == 0 &&
                    (best == SIZE_MAX || rows[row].score > best_score)) {
                    best = i;
                    best_score = rows[row].score;
                }
        }
        if (best == SIZE_MAX)
            break;
        char merged[sizeof(parts[0])];
        snprintf(merged, sizeof(merged), "%.15s%.15s", parts[best], parts[best + 1]);
        memcpy(parts[best], merged, sizeof(merged));
        memmove(parts + best + 1, parts + best + 2, (count - best - 2) * sizeof(parts[0]));
        count--;
    }
    for (size_t i = 0; i < count; i++)
        text_addf(pieces, "%s%s", i ? "|" : "", parts[i]);
}

static void test_same_as_slow_merging(void **state)
{
    (void)state;
    static const char *const letters[] = { "a", "b", "c", "s", "<", "/", ">", SPACE, "é" };
    struct vocab_file file = open_rows(without_prefix);
    uint64_t seed = 7;
    for (int i = 0; i < 2000; i++) {
        struct text text, slow;
        text_init(&text);
        text_init(&slow);
        for (uint64_t left = 1 + vocab_random(&seed) % 20; left > 0; left--)
            text_add(&text, letters[vocab_random(&seed) % COUNT_OF(letters)]);
        merge_slowly(&slow, text_get(&text));
        check_pieces(file.tokenizer, text_get(&text), text_view_of(text_get(&text)), 0,
                     text_get(&slow));
        text_release(&text);
        text_release(&slow);
    }
    vocab_file_close(&file);
}

/* ---- There and back ------------------------------------------------------------------------- */

#define RANDOM_STRINGS 10000

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const words[] = { " ",   "  ",   "a",     "abc",    "é",  "ß",     "🦙",
                                         "<s>", "</s>", "[IMG]", "[IMG]]", "\n", "<0x41>" };
    void (*const mores[])(struct gguf_build *) = { NULL, without_prefix };
    for (size_t m = 0; m < COUNT_OF(mores); m++) {
        struct vocab_file file = open_rows(mores[m]);
        struct text text;
        uint64_t seed = 11;
        text_init(&text);
        for (int i = 0; i < RANDOM_STRINGS; i++) {
            vocab_random_text(&text, words, COUNT_OF(words), &seed);
            struct text_view view = { text_get(&text), text.length };
            /* U+2581 is how a space is written: it cannot come back. */
            if (strstr(view.bytes, SPACE) == NULL)
                check_round_trip(file.tokenizer, view, TOKENIZER_ADD_SPECIAL);
        }
        text_release(&text);
        vocab_file_close(&file);
    }
}

/* ---- Long texts ----------------------------------------------------------------------------- */

/* Sanitizers make everything slow; the growth is the same. */
static size_t long_bytes(void)
{
    return memory_limit_works() ? 1u << 20 : 1u << 17;
}

static uint64_t time_of(const struct tokenizer *tokenizer, const char *part, size_t bytes)
{
    struct tokenizer_ids ids;
    struct text text;
    struct error err;
    tokenizer_ids_init(&ids);
    text_init(&text);
    while (text.length < bytes)
        text_add(&text, part);
    uint64_t start_ns = processor_ns();
    CHECK_OK(tokenizer_encode(tokenizer, (struct text_view){ text.bytes, text.length }, PARSE, &ids,
                              &err),
             &err);
    uint64_t took_ns = processor_ns() - start_ns;
    tokenizer_ids_release(&ids);
    text_release(&text);
    return took_ns;
}

/* Sixteen times the text: quadratic time would be 256 times as long. */
static void test_time_is_linear(void **state)
{
    (void)state;
    static const char *const parts[] = { "a", " ", "x", "<", "[IMG]", "\xFF", "[IMG", "ab" };
    struct vocab_file file = open_rows(NULL);
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        uint64_t one = time_of(file.tokenizer, parts[i], long_bytes() / 16);
        uint64_t sixteen = time_of(file.tokenizer, parts[i], long_bytes());
        if (sixteen > 80 * one + 100000000u)
            fail_msg("%s: short %.4f s, long %.4f s", parts[i], (double)one / 1e9,
                     (double)sixteen / 1e9);
    }
    vocab_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_no_bytes_means_unknown),
        cmocka_unit_test(test_types_missing), cmocka_unit_test(test_same_as_slow_merging),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_time_is_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
