/* tokenizer_metadata_test.c - what a file may say wrong, each with what is answered. */
#include "tokenizer_build.h"

#include <math.h>

/* ---- One key changed ------------------------------------------------------------------------ */

enum put_kind { PUT_NOTHING, PUT_NUMBER, PUT_STRING, PUT_STRINGS, PUT_NUMBERS };

/* A key with another value than usual. */
struct put {
    const char *key;
    enum put_kind kind;
    uint32_t type; /* BUILD_*, of the number or the elements */
    double number;
    const char *string;
    const char *strings[8];
    double numbers[8];
    size_t count;
};

static uint64_t bits_of(uint32_t type, double number)
{
    float single = (float)number;
    uint32_t bits;
    memcpy(&bits, &single, sizeof(bits));
    if (type == BUILD_F32)
        return bits;
    return number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
}

static void put_value(struct gguf_build *build, const struct put *put)
{
    uint64_t elements[8];
    for (size_t i = 0; i < COUNT_OF(elements); i++)
        elements[i] = bits_of(put->type, put->numbers[i]);
    switch (put->kind) {
    case PUT_NOTHING:
        break;
    case PUT_NUMBER:
        gguf_build_number(build, put->key, put->type, bits_of(put->type, put->number));
        break;
    case PUT_STRING:
        gguf_build_string(build, put->key, put->string);
        break;
    case PUT_STRINGS:
        gguf_build_strings(build, put->key, put->strings, put->count);
        break;
    case PUT_NUMBERS:
        gguf_build_array(build, put->key, put->type, elements, put->count);
        break;
    }
}

#define STRINGS(name, n, ...)                                                                      \
    {                                                                                              \
        .key = "tokenizer.ggml." name, .kind = PUT_STRINGS, .count = n, .strings = { __VA_ARGS__ } \
    }
#define NUMBERS(name, of, n, ...)                                                                  \
    {                                                                                              \
        .key = "tokenizer.ggml." name, .kind = PUT_NUMBERS, .type = of, .count = n, .numbers = {   \
            __VA_ARGS__                                                                            \
        }                                                                                          \
    }
#define NUMBER(name, of, value)                                                                    \
    {                                                                                              \
        .key = "tokenizer.ggml." name, .kind = PUT_NUMBER, .type = of, .number = value             \
    }
#define STRING(name, value)                                                                        \
    {                                                                                              \
        .key = "tokenizer.ggml." name, .kind = PUT_STRING, .string = value                         \
    }
#define DROPPED(name)                                                                              \
    {                                                                                              \
        .key = "tokenizer.ggml." name, .kind = PUT_NOTHING                                         \
    }

static const struct put spm_keys[] = {
    STRING("model", "llama"),
    STRINGS("tokens", 5, "<unk>", "<s>", "</s>", "▁", "a"),
    NUMBERS("scores", BUILD_F32, 5, 0, 0, 0, -1, -2),
    NUMBERS("token_type", BUILD_I32, 5, 2, 3, 3, 1, 1),
};
static const struct put bpe_keys[] = {
    STRING("model", "gpt2"),
    STRING("pre", "gpt-2"),
    STRINGS("tokens", 4, "a", "b", "ab", "<|end|>"),
    NUMBERS("token_type", BUILD_I32, 4, 1, 1, 1, 3),
    STRINGS("merges", 1, "a b"),
};

static struct opened open_changed(bool bpe, const struct put *change)
{
    const struct put *keys = bpe ? bpe_keys : spm_keys;
    size_t count = bpe ? COUNT_OF(bpe_keys) : COUNT_OF(spm_keys);
    struct gguf_build build;
    bool used = change->key == NULL;
    gguf_build_init(&build, 3);
    for (size_t i = 0; i < count; i++) {
        bool same = change->key && strcmp(keys[i].key, change->key) == 0;
        put_value(&build, same ? change : &keys[i]);
        used = used || same;
    }
    if (!used)
        put_value(&build, change);
    struct opened opened = open_built(&build);
    CHECK_OK(opened.status, &opened.err);
    return opened;
}

enum { SPM, BPE };

static const struct {
    const char *name;
    int kind;
    struct put change;
    enum status status; /* 0: it is fine */
    const char *words[3];
} rows[] = {
    { "as it is", SPM, { 0 }, STATUS_OK, { 0 } },
    { "as it is", BPE, { 0 }, STATUS_OK, { 0 } },
    { "no tokenizer", SPM, DROPPED("model"), STATUS_NOT_FOUND, { "tokenizer.ggml.model" } },
    { "kind is a number",
      SPM,
      NUMBER("model", BUILD_U32, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.model", "expected a string", "u32" } },
    { "kind of another sort",
      SPM,
      STRING("model", "bert"),
      STATUS_UNSUPPORTED,
      { "tokenizer.ggml.model", "expected llama", "found 'bert'" } },
    { "no tokens",
      SPM,
      DROPPED("tokens"),
      STATUS_NOT_FOUND,
      { "tokenizer.ggml.tokens", "found no such key" } },
    { "tokens are numbers",
      SPM,
      NUMBERS("tokens", BUILD_U32, 3, 1, 2, 3),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.tokens", "expected an array of strings", "an array of u32" } },
    { "tokens are one string",
      SPM,
      STRING("tokens", "abc"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.tokens", "expected an array of strings", "found string" } },
    { "tokens are none",
      SPM,
      STRINGS("tokens", 0, 0),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.tokens", "found none" } },
    { "one token more",
      SPM,
      STRINGS("tokens", 6, "<unk>", "<s>", "</s>", "▁", "a", "b"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.token_type", "expected an array of 6 whole numbers", "found 5" } },
    { "no scores", SPM, DROPPED("scores"), STATUS_NOT_FOUND, { "tokenizer.ggml.scores" } },
    { "scores are too few",
      SPM,
      NUMBERS("scores", BUILD_F32, 4, 0, 0, 0, 0),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.scores", "expected an array of 5 numbers", "found 4" } },
    { "scores are one number",
      SPM,
      NUMBER("scores", BUILD_F32, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.scores", "found 1 of type f32" } },
    { "scores are strings",
      SPM,
      STRINGS("scores", 5, "1", "2", "3", "4", "5"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.scores", "of type string" } },
    { "scores are whole numbers",
      SPM,
      NUMBERS("scores", BUILD_I32, 5, 0, 0, 0, -1, -2),
      STATUS_OK,
      { 0 } },
    { "a score that is no number",
      SPM,
      NUMBERS("scores", BUILD_F32, 5, 0, 0, (double)NAN),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.scores[2]", "expected a number", "nan" } },
    { "endless scores",
      SPM,
      NUMBERS("scores", BUILD_F32, 5, 0, 0, (double)INFINITY, (double)-INFINITY),
      STATUS_OK,
      { 0 } },
    { "types are too many",
      SPM,
      NUMBERS("token_type", BUILD_I32, 6, 2, 3, 3, 1, 1, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.token_type", "found 6" } },
    { "types are no whole numbers",
      SPM,
      NUMBERS("token_type", BUILD_F32, 5, 2, 3, 3, 1, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.token_type", "whole numbers", "f32" } },
    { "type 7",
      SPM,
      NUMBERS("token_type", BUILD_I32, 5, 2, 3, 3, 7, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.token_type[3]", "expected 0 to 6", "found 7" } },
    { "type -1",
      SPM,
      NUMBERS("token_type", BUILD_I32, 5, 2, 3, 3, 1, -1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.token_type[4]", "expected 0 to 6", "found -1" } },
    { "a byte that is none",
      SPM,
      NUMBERS("token_type", BUILD_I32, 5, 2, 3, 3, 1, 6),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.tokens[4]", "<0x0A>", "found 'a'" } },
    { "the same token twice",
      SPM,
      STRINGS("tokens", 5, "<unk>", "<s>", "</s>", "a", "a"),
      STATUS_OK,
      { 0 } },
    { "tokens of no text", SPM, STRINGS("tokens", 5, "", "", "", "", ""), STATUS_OK, { 0 } },
    { "tokens of any bytes",
      SPM,
      STRINGS("tokens", 5, "\xFF", "\xC3", "\x80\x80", "\xE2\x96", "\1"),
      STATUS_OK,
      { 0 } },
    { "begin past the end",
      SPM,
      NUMBER("bos_token_id", BUILD_U32, 5),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.bos_token_id", "below the number of tokens 5", "found 5" } },
    { "end past the end",
      BPE,
      NUMBER("eos_token_id", BUILD_U64, 4000000000.0),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.eos_token_id", "below the number of tokens 4", "found 4000000000" } },
    { "end is none", BPE, NUMBER("eos_token_id", BUILD_I32, -1), STATUS_OK, { 0 } },
    { "end is none, unsigned",
      BPE,
      NUMBER("eos_token_id", BUILD_U32, 4294967295.0),
      STATUS_OK,
      { 0 } },
    { "end is negative",
      BPE,
      NUMBER("eot_token_id", BUILD_I32, -2),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.eot_token_id", "expected a token id", "below 0" } },
    { "an id with a fraction",
      BPE,
      NUMBER("fim_pad_token_id", BUILD_F32, 1.5),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.fim_pad_token_id", "expected a token id", "f32" } },
    { "several ids",
      SPM,
      NUMBERS("unknown_token_id", BUILD_U32, 2, 0, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.unknown_token_id", "expected a token id", "an array of u32" } },
    { "add_bos is a number",
      SPM,
      NUMBER("add_bos_token", BUILD_U32, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.add_bos_token", "expected a bool" } },
    { "add_space_prefix is text",
      SPM,
      STRING("add_space_prefix", "yes"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.add_space_prefix", "expected a bool" } },
    { "splitting rule is a number",
      BPE,
      NUMBER("pre", BUILD_U8, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.pre", "expected a string" } },
    { "splitting rule of no name",
      BPE,
      STRING("pre", ""),
      STATUS_UNSUPPORTED,
      { "tokenizer.ggml.pre", "found ''" } },
    { "splitting rule with an end of line",
      BPE,
      STRING("pre", "a\nb"),
      STATUS_UNSUPPORTED,
      { "tokenizer.ggml.pre", "found 'a\\x0Ab'" } },
    { "no merges", BPE, DROPPED("merges"), STATUS_NOT_FOUND, { "tokenizer.ggml.merges" } },
    { "merges are none", BPE, STRINGS("merges", 0, 0), STATUS_OK, { 0 } },
    { "merges are numbers",
      BPE,
      NUMBERS("merges", BUILD_U32, 1, 1),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.merges", "expected an array of strings", "an array of u32" } },
    { "merges are one string",
      BPE,
      STRING("merges", "a b"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.merges", "expected an array of strings", "found string" } },
    { "a merge of one",
      BPE,
      STRINGS("merges", 2, "a b", "ab"),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.merges[1]", "expected two pieces", "found 'ab'" } },
    { "a merge of nothing",
      BPE,
      STRINGS("merges", 1, ""),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.merges[0]", "expected two pieces", "found ''" } },
    { "a merge with nothing",
      BPE,
      STRINGS("merges", 1, "a "),
      STATUS_BAD_FILE,
      { "tokenizer.ggml.merges[0]", "expected two pieces", "found 'a '" } },
    { "a merge of spaces", BPE, STRINGS("merges", 1, "   "), STATUS_OK, { 0 } },
    { "merges of what is no token",
      BPE,
      STRINGS("merges", 3, "x y", "xy z", "\xFF \xFE"),
      STATUS_OK,
      { 0 } },
    { "the same merge twice", BPE, STRINGS("merges", 2, "a b", "a b"), STATUS_OK, { 0 } },
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct opened opened = open_changed(rows[i].kind == BPE, &rows[i].change);
        struct tokenizer *tokenizer = NULL;
        struct error err = { 0 };
        enum status status = tokenizer_create(opened.file, &tokenizer, &err);
        if (status != rows[i].status)
            fail_msg("%s: expected %s, found %s: %s", rows[i].name, status_name(rows[i].status),
                     status_name(status), err.text);
        for (size_t w = 0; w < COUNT_OF(rows[i].words) && rows[i].words[w]; w++)
            check_contains(rows[i].name, err.text, rows[i].words[w]);
        if (status) {
            check_contains(rows[i].name, err.text, "built.gguf: ");
            assert_null(tokenizer);
        } else {
            /* Whatever it is, it can be used. */
            struct text pieces = vocab_pieces(tokenizer, text_view_of("a b <s> ab\xFF"),
                                              TOKENIZER_ADD_SPECIAL | TOKENIZER_PARSE_SPECIAL);
            text_release(&pieces);
        }
        tokenizer_destroy(tokenizer);
        opened_release(&opened);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
