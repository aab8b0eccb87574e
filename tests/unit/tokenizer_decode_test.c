/* tokenizer_decode_test.c - ids to text: no half characters, whatever way a text is cut into
 * tokens; the space in front; control tokens; bytes that are no characters. */
#include "tokenizer_build.h"

#define REPLACEMENT "\uFFFD"

static const struct vocab_row spm_rows[] = {
    { "▁", -1, 0 },
    { "▁a", -1, 0 },
    { "b▁c", -1, 0 },
    { "[IMG]", 0, TOKENIZER_USER_DEFINED },
    { "▁[", 0, TOKENIZER_USER_DEFINED },
    { "\xE2\x96", -1, 0 },
    { "x▁", -1, 0 },
    { "▁▁", -1, 0 },
};
enum {
    UNK,
    BEGIN,
    END,
    BYTES,
    MARK = BYTES + 256,
    MARK_A,
    B_MARK_C,
    IMG,
    MARK_IMG,
    HALF,
    X_MARK,
    TWO
};

static struct vocab_file open_spm(void (*more)(struct gguf_build *build))
{
    static struct vocab vocab;
    vocab_init_spm(&vocab);
    vocab_add_rows(&vocab, spm_rows, COUNT_OF(spm_rows));
    vocab.more = more;
    return vocab_file_open(&vocab);
}

static void without_prefix(struct gguf_build *build)
{
    gguf_build_number(build, "tokenizer.ggml.add_space_prefix", BUILD_BOOL, 0);
}

static struct vocab_file open_bpe(void)
{
    static struct vocab vocab;
    vocab_init_bpe(&vocab, "gpt-2");
    vocab_add(&vocab, "<|end|>", 0, TOKENIZER_CONTROL); /* 256 */
    vocab_add(&vocab, "Ġ|Ġ", 0, TOKENIZER_USER_DEFINED);
    vocab_add(&vocab, "Ġa", 0, TOKENIZER_NORMAL);
    vocab_add(&vocab, "中Ġ\xFF", 0, TOKENIZER_NORMAL); /* outside of the alphabet */
    vocab_add(&vocab, "", 0, TOKENIZER_NORMAL);
    return vocab_file_open(&vocab);
}

/* ---- Known lists of ids --------------------------------------------------------------------- */

#define BYTE(b) (BYTES + (b))

static const struct {
    const char *name;
    uint32_t ids[8];
    size_t count;
    bool keep_space;
    unsigned flags;
    const char *expected;
} rows[] = {
    { "nothing", { 0 }, 0, false, 0, "" },
    { "one space is taken away", { MARK_A, MARK_A }, 2, false, 0, "a a" },
    { "only one", { TWO, MARK_A }, 2, false, 0, "  a" },
    { "not where none is added", { MARK_A }, 1, true, 0, " a" },
    { "after the begin token", { BEGIN, MARK_A }, 2, false, 0, "a" },
    { "and after every special one", { MARK_A, IMG, MARK_A }, 3, false, 0, "a[IMG]a" },
    { "spaces inside", { B_MARK_C, X_MARK }, 2, false, 0, "b cx " },
    { "user-defined is literal", { MARK_A, MARK_IMG }, 2, false, 0, "a▁[" },
    { "a byte 0x20 is no added space", { BYTE(0x20), MARK_A }, 2, false, 0, "  a" },
    { "control prints nothing", { BEGIN, MARK_A, END }, 3, false, 0, "a" },
    { "unless asked",
      { BEGIN, MARK_A, END, UNK },
      4,
      false,
      TOKENIZER_SHOW_SPECIAL,
      "<s>a</s><unk>" },
    { "a character of bytes", { BYTE(0xC3), BYTE(0xA9) }, 2, false, 0, "é" },
    { "control inside a character", { BYTE(0xC3), END, BYTE(0xA9) }, 3, false, 0, "é" },
    { "half a character", { BYTE(0xC3) }, 1, false, 0, REPLACEMENT },
    { "half a character, raw", { BYTE(0xC3) }, 1, false, TOKENIZER_RAW, "\xC3" },
    { "broken off", { BYTE(0xE4), BYTE(0xB8), BYTE('x') }, 3, false, 0, REPLACEMENT "x" },
    { "broken off, raw",
      { BYTE(0xE4), BYTE(0xB8), BYTE('x') },
      3,
      false,
      TOKENIZER_RAW,
      "\xE4\xB8x" },
    { "by the start of another",
      { BYTE(0xE4), BYTE(0xC3), BYTE(0xA9) },
      3,
      false,
      0,
      REPLACEMENT "é" },
    { "a continuation alone", { BYTE(0x80), BYTE('x') }, 2, false, 0, REPLACEMENT "x" },
    { "bytes that are never used",
      { BYTE(0xFF), BYTE(0xC0), BYTE(0xF5) },
      3,
      false,
      0,
      REPLACEMENT REPLACEMENT REPLACEMENT },
    { "a surrogate",
      { BYTE(0xED), BYTE(0xA0), BYTE(0x80) },
      3,
      false,
      0,
      REPLACEMENT REPLACEMENT REPLACEMENT },
    { "overlong", { BYTE(0xE0), BYTE(0x80) }, 2, false, 0, REPLACEMENT REPLACEMENT },
    { "half in one token, half in another", { HALF, BYTE(0x81) }, 2, false, 0, "▁" },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct vocab_file file = open_spm(rows[i].keep_space ? without_prefix : NULL);
        struct text text = vocab_decode(file.tokenizer, rows[i].ids, rows[i].count, rows[i].flags);
        if (strcmp(text_get(&text), rows[i].expected) != 0)
            fail_msg("%s: expected '%s', found '%s'", rows[i].name, rows[i].expected,
                     text_get(&text));
        text_release(&text);
        vocab_file_close(&file);
    }
}

static void test_byte_level(void **state)
{
    (void)state;
    static const struct {
        uint32_t ids[4];
        size_t count;
        unsigned flags;
        const char *expected;
    } lists[] = {
        { { 258, 256 }, 2, 0, " a" },     { { 258, 256 }, 2, TOKENIZER_SHOW_SPECIAL, " a<|end|>" },
        { { 257 }, 1, 0, "Ġ|Ġ" },         { { 259 }, 1, TOKENIZER_RAW, "中 \xFF" },
        { { 260, 'x', 260 }, 3, 0, "x" }, { { 0xF0, 0x9F, 0xA6, 0x99 }, 4, 0, "🦙" },
    };
    struct vocab_file file = open_bpe();
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct text text = vocab_decode(file.tokenizer, lists[i].ids, lists[i].count,
                                        lists[i].flags);
        assert_string_equal(text_get(&text), lists[i].expected);
        text_release(&text);
    }
    vocab_file_close(&file);
}

static void test_no_such_token(void **state)
{
    (void)state;
    struct vocab_file file = open_bpe();
    struct tokenizer_decoder decoder;
    struct text text;
    struct error err;
    text_init(&text);
    tokenizer_decoder_init(&decoder, file.tokenizer, 0);
    CHECK_FAILS(tokenizer_decoder_add(&decoder, 261, &text, &err), STATUS_REFUSED, &err);
    check_contains("past the end", err.text, "expected a token id below 261, found 261");
    CHECK_FAILS(tokenizer_decoder_add(&decoder, TOKENIZER_NO_ID, &text, &err), STATUS_REFUSED,
                &err);
    CHECK_OK(tokenizer_decoder_add(&decoder, 'x', &text, &err), &err); /* and goes on */
    assert_string_equal(text_get(&text), "x");
    text_release(&text);
    vocab_file_close(&file);
}

/* ---- Streams -------------------------------------------------------------------------------- */

static bool is_whole(const struct text *text)
{
    for (size_t at = 0; at < text->length;) {
        size_t length = text_utf8_length(text->bytes + at, text->length - at);
        if (length == 0)
            return false;
        at += length;
    }
    return true;
}

/* Byte by byte, what came so far is whole characters, and no character is held back. */
static void test_every_character_split(void **state)
{
    (void)state;
    static const char text[] = "aé中🦙\u0301\U0010FFFF\uD7FF\uE000ß.";
    struct vocab_file file = open_bpe();
    struct tokenizer_decoder decoder;
    struct text out;
    struct error err;
    text_init(&out);
    tokenizer_decoder_init(&decoder, file.tokenizer, 0);
    size_t whole = 0;
    for (size_t at = 0; text[at]; at++) {
        CHECK_OK(tokenizer_decoder_add(&decoder, (uint8_t)text[at], &out, &err), &err);
        size_t length = text_utf8_length(text + whole, at + 1 - whole);
        whole += length;
        assert_int_equal(out.length, whole);
        assert_memory_equal(out.bytes, text, whole);
    }
    tokenizer_decoder_finish(&decoder, &out);
    assert_string_equal(text_get(&out), text);
    text_release(&out);
    vocab_file_close(&file);
}

/* Any bytes at all: whole characters after each token, the same bytes at the end when raw. */
static void test_random_streams(void **state)
{
    (void)state;
    static const char *const words[] = {
        "é", "中", "🦙", "\xE4\xB8", "\xF0\x9F", "\xED\xA0", "a"
    };
    struct vocab_file file = open_bpe();
    struct text text, out, raw;
    struct error err;
    uint64_t seed = 23;
    text_init(&text);
    text_init(&out);
    text_init(&raw);
    for (int i = 0; i < 3000; i++) {
        struct tokenizer_decoder decoder, raw_decoder;
        vocab_random_text(&text, words, COUNT_OF(words), &seed);
        tokenizer_decoder_init(&decoder, file.tokenizer, 0);
        tokenizer_decoder_init(&raw_decoder, file.tokenizer, TOKENIZER_RAW);
        text_clear(&out);
        text_clear(&raw);
        for (size_t at = 0; at < text.length; at++) {
            uint8_t byte = (uint8_t)text.bytes[at];
            CHECK_OK(tokenizer_decoder_add(&decoder, byte, &out, &err), &err);
            CHECK_OK(tokenizer_decoder_add(&raw_decoder, byte, &raw, &err), &err);
            assert_true(is_whole(&out));
            assert_true(at + 1 - raw.length <= 3);
        }
        tokenizer_decoder_finish(&decoder, &out);
        tokenizer_decoder_finish(&raw_decoder, &raw);
        assert_true(is_whole(&out));
        assert_int_equal(raw.length, text.length);
        if (text.length)
            assert_memory_equal(raw.bytes, text.bytes, text.length);
    }
    text_release(&text);
    text_release(&out);
    text_release(&raw);
    vocab_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_byte_level),
        cmocka_unit_test(test_no_such_token),  cmocka_unit_test(test_every_character_split),
        cmocka_unit_test(test_random_streams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
