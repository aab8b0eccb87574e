/* tokenizer_bpe_test.c - byte-level BPE: the order of merges, what is not a token, any bytes there
 * and back, long texts. */
#include "tokenizer_build.h"

#include "memory_limit.h"
#include "tokenizer/tokenizer_impl.h"

#include <stdlib.h>

static const char *const merges[] = {
    "a b", "b c",   "ab c",   "a bc", "Ġ a", "Ġa b", "Ã ©", "a a",  "aa aa",
    "x y", "xy xy", "xyxy x", "p q",  "< s", "<s >", "1 2", "12 3", "a b",
};
/* "xy" and "12" are no tokens, only on the way to some; "whole" is the end of no merge. */
static const struct vocab_row rows[] = {
    { "ab", 0, 0 },
    { "bc", 0, 0 },
    { "abc", 0, 0 },
    { "Ġa", 0, 0 },
    { "Ġab", 0, 0 },
    { "Ã©", 0, 0 },
    { "aa", 0, 0 },
    { "aaaa", 0, 0 },
    { "xyxy", 0, 0 },
    { "whole", 0, 0 },
    { "pq", 0, TOKENIZER_UNUSED },
    { "<s", 0, 0 },
    { "<s>", 0, TOKENIZER_CONTROL },
    { "123", 0, 0 },
};

static struct vocab_file open_rows(const char *pre)
{
    static struct vocab vocab;
    vocab_init_bpe(&vocab, pre);
    vocab_add_rows(&vocab, rows, COUNT_OF(rows));
    vocab.merges = merges;
    vocab.merge_count = COUNT_OF(merges);
    return vocab_file_open(&vocab);
}

static void test_cases(void **state)
{
    (void)state;
    static const struct {
        const char *name, *pre, *text, *expected;
    } cases[] = {
        { "nothing", "gpt-2", "", "" },
        { "lowest rank first", "gpt-2", "abc", "abc" },
        { "of overlapping ones too", "gpt-2", "xabcb", "x|abc|b" },
        { "leftmost of equals", "gpt-2", "aaa", "aa|a" },
        { "again and again", "gpt-2", "aaaaaaa", "aaaa|aa|a" },
        { "with its space", "gpt-2", "ab ac", "ab|Ġa|c" },
        { "a later merge is too late", "gpt-2", "ab ab", "ab|Ġ|ab" },
        { "two bytes of a character", "gpt-2", "é", "Ã©" },
        { "by way of what is no token", "gpt-2", "xyxy", "xyxy" },
        { "what is no token: bytes", "gpt-2", "xyz", "x|y|z" },
        { "and the longer one too", "gpt-2", "xyxyx", "x|y|x|y|x" },
        { "pieces do not merge", "qwen2", "123", "1|2|3" },
        { "pieces merge inside", "llama-bpe", "1234", "123|4" },
        { "whole, not by merges", "llama-bpe", "whole", "whole" },
        { "whole, only where the rule says so", "qwen2", "whole", "w|h|o|l|e" },
        { "unused is still a token", "gpt-2", "pq", "pq" },
        { "not UTF-8", "gpt-2",
          "a\xFF"
          "b\xC3",
          "a|ÿ|b|Ã" },
        { "control is not text", "gpt-2", "<s>", "<|s|>" },
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct vocab_file file = open_rows(cases[i].pre);
        check_pieces(file.tokenizer, cases[i].name, text_view_of(cases[i].text), 0,
                     cases[i].expected);
        vocab_file_close(&file);
    }
}

/* ---- Against the slow way ------------------------------------------------------------------- */

static void merge_slowly(struct text *pieces, const char *text)
{
    char parts[64][32];
    size_t count = strlen(text);
    for (size_t i = 0; i < count; i++)
        snprintf(parts[i], sizeof(parts[i]), "%c", text[i]);
    for (;;) {
        size_t best = SIZE_MAX, best_rank = COUNT_OF(merges);
        for (size_t i = 0; i + 1 < count; i++) {
            char pair[65];
            snprintf(pair, sizeof(pair), "%s %s", parts[i], parts[i + 1]);
            for (size_t rank = 0; rank < best_rank; rank++) {
                if (strcmp(merges[rank], pair) == 0) {
                    best = i;
                    best_rank = rank;
                }
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
    /* Symbols without a token become single bytes. */
    for (size_t i = 0; i < count; i++) {
        bool token = strlen(parts[i]) == 1;
        for (size_t row = 0; row < COUNT_OF(rows); row++)
            token = token || strcmp(rows[row].text, parts[i]) == 0;
        for (size_t at = 0; at < (token ? 1 : strlen(parts[i])); at++)
            text_addf(pieces, "%s%.*s", i || at ? "|" : "", token ? 32 : 1, parts[i] + at);
    }
}

static void test_same_as_slow_merging(void **state)
{
    (void)state;
    struct vocab_file file = open_rows("gpt-2");
    uint64_t seed = 5;
    for (int i = 0; i < 5000; i++) {
        char text[32] = "";
        struct text slow;
        size_t length = 1 + vocab_random(&seed) % 24;
        for (size_t at = 0; at < length; at++)
            text[at] = "aabbcxy"[vocab_random(&seed) % 7];
        text_init(&slow);
        merge_slowly(&slow, text);
        check_pieces(file.tokenizer, text, text_view_of(text), 0, text_get(&slow));
        text_release(&slow);
    }
    vocab_file_close(&file);
}

/* ---- There and back ------------------------------------------------------------------------- */

#define RANDOM_STRINGS 10000

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const words[] = { " ",  "  ", "ab",    "abc", "é",    "ß",    "🦙", "<s>",
                                         "xy", "\n", "\r\n ", "'s",  "I'LL", "1234", "Ġa",   "▁" };
    for (size_t r = 0; tokenizer_pre_name(r).bytes; r++) {
        char name[32];
        struct text_view view = tokenizer_pre_name(r);
        snprintf(name, sizeof(name), "%.*s", (int)view.length, view.bytes);
        struct vocab_file file = open_rows(name);
        struct text text;
        uint64_t seed = 11 + r;
        /* All of them once; in between as many as there are names. */
        int count = r == 0 ? RANDOM_STRINGS : RANDOM_STRINGS / 40;
        text_init(&text);
        for (int i = 0; i < count; i++) {
            vocab_random_text(&text, words, COUNT_OF(words), &seed);
            check_round_trip(file.tokenizer, (struct text_view){ text_get(&text), text.length }, 0);
        }
        text_release(&text);
        vocab_file_close(&file);
    }
}

static void test_every_byte(void **state)
{
    (void)state;
    struct vocab_file file = open_rows("llama-bpe");
    for (unsigned byte = 0; byte < 256; byte++) {
        char one = (char)byte, character[2];
        struct text text;
        text_init(&text);
        check_round_trip(file.tokenizer, (struct text_view){ &one, 1 }, 0);
        tokenizer_token_bytes(file.tokenizer, byte, 0, &text);
        assert_int_equal(text.length, 1);
        assert_int_equal((uint8_t)text.bytes[0], byte);
        text_release(&text);
        size_t length = tokenizer_byte_character((uint8_t)byte, character);
        uint32_t code_point = (uint8_t)character[0];
        if (length == 2)
            code_point = (code_point & 0x1F) << 6 | ((uint8_t)character[1] & 0x3F);
        assert_int_equal(tokenizer_character_byte(code_point), byte);
    }
    size_t known = 0;
    for (uint32_t code_point = 0; code_point < 0x400; code_point++)
        known += tokenizer_character_byte(code_point) >= 0;
    assert_int_equal(known, 256);
    vocab_file_close(&file);
}

static void test_bytes_missing(void **state)
{
    (void)state;
    static struct vocab vocab = { .model = "gpt2", .pre = "gpt-2" };
    vocab.count = 0;
    vocab_add(&vocab, "a", 0, 0);
    vocab_add(&vocab, "b", 0, 0);
    struct vocab_file file = vocab_file_open(&vocab);
    check_pieces(file.tokenizer, "bytes without a token are left out", text_view_of("axbé"), 0,
                 "a|b");
    vocab_file_close(&file);
}

/* ---- Long texts ----------------------------------------------------------------------------- */

/* Sanitizers make everything slow; the growth is the same. */
static size_t long_bytes(void)
{
    return memory_limit_works() ? 1u << 20 : 1u << 17;
}

/* Sixteen times the text: quadratic time would be 256 times as long. */
static void test_time_is_linear(void **state)
{
    (void)state;
    static const char *const parts[] = { "a", "x", "ab", " ", "\xFF", "xy", "a\xFF", "é" };
    struct vocab_file file = open_rows("llama-bpe");
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        uint64_t took_ns[2];
        for (size_t j = 0; j < 2; j++) {
            struct tokenizer_ids ids;
            struct text text;
            struct error err;
            tokenizer_ids_init(&ids);
            text_init(&text);
            while (text.length < (j ? long_bytes() : long_bytes() / 16))
                text_add(&text, parts[i]);
            uint64_t start_ns = processor_ns();
            CHECK_OK(tokenizer_encode(file.tokenizer, (struct text_view){ text.bytes, text.length },
                                      0, &ids, &err),
                     &err);
            took_ns[j] = processor_ns() - start_ns;
            tokenizer_ids_release(&ids);
            text_release(&text);
        }
        if (took_ns[1] > 80 * took_ns[0] + 100000000u)
            fail_msg("%s: short %.4f s, long %.4f s", parts[i], (double)took_ns[0] / 1e9,
                     (double)took_ns[1] / 1e9);
    }
    vocab_file_close(&file);
}

static void test_too_long(void **state)
{
    (void)state;
    struct vocab_file file = open_rows("gpt-2");
    struct tokenizer_ids ids;
    struct error err;
    tokenizer_ids_init(&ids);
    CHECK_OK(tokenizer_encode(file.tokenizer, text_view_of("ab"), 0, &ids, &err), &err);
    /* The text is not looked at. */
    CHECK_FAILS(tokenizer_encode(file.tokenizer,
                                 (struct text_view){ "", TOKENIZER_TEXT_LIMIT_BYTES + 1u }, 0, &ids,
                                 &err),
                STATUS_LIMIT, &err);
    assert_int_equal(ids.count, 1); /* as it was */
    tokenizer_ids_release(&ids);
    vocab_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),         cmocka_unit_test(test_same_as_slow_merging),
        cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_every_byte),
        cmocka_unit_test(test_bytes_missing), cmocka_unit_test(test_time_is_linear),
        cmocka_unit_test(test_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
