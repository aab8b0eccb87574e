/* tokenizer_shared_test.c - real tokenizers, with what others made of the same texts: the files
 * NAME.gguf, NAME.gguf.inp and NAME.gguf.out in shared/vocab next to the project. Skipped where
 * they are not there. */
#include "test.h"

#include "memory_limit.h"
#include "tokenizer/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const names[] = { "vocab/ggml-vocab-llama-spm.gguf",
                                     "vocab/ggml-vocab-llama-bpe.gguf",
                                     "vocab/ggml-vocab-qwen2.gguf", "vocab/ggml-vocab-gpt-2.gguf",
                                     "models/stories260K-f32.gguf" };
#define WITH_CASES 4u /* of these */

struct path {
    char text[512];
};

static struct path shared_path(const char *name)
{
    struct path path;
    const char *source = getenv("GRETA_SOURCE");
    snprintf(path.text, sizeof(path.text), "%s/../shared/%s", source ? source : ".", name);
    return path;
}

static bool is_there(const char *name)
{
    return access(shared_path(name).text, R_OK) == 0;
}

/* ---- One of the files, open ----------------------------------------------------------------- */

struct real {
    struct gguf_file *file;
    struct tokenizer *tokenizer;
};

static struct real real_open(const char *name)
{
    struct real real = { 0 };
    struct error err;
    CHECK_OK(gguf_open(shared_path(name).text, &real.file, &err), &err);
    CHECK_OK(tokenizer_create(real.file, &real.tokenizer, &err), &err);
    return real;
}

static void real_close(struct real *real)
{
    tokenizer_destroy(real->tokenizer);
    gguf_close(real->file);
}

static void read_whole(const char *name, struct text *text)
{
    struct path path = shared_path(name);
    FILE *in = fopen(path.text, "rb");
    char bytes[4096];
    size_t count;
    text_init(text);
    if (!in)
        fail_msg("cannot read %s", path.text);
    while ((count = fread(bytes, 1, sizeof(bytes), in)) > 0)
        text_add_bytes(text, bytes, count);
    fclose(in);
}

static struct text decode_all(const struct tokenizer *tokenizer, const struct tokenizer_ids *ids)
{
    struct tokenizer_decoder decoder;
    struct text text;
    struct error err;
    text_init(&text);
    tokenizer_decoder_init(&decoder, tokenizer, TOKENIZER_RAW);
    for (size_t i = 0; i < ids->count; i++)
        CHECK_OK(tokenizer_decoder_add(&decoder, ids->ids[i], &text, &err), &err);
    tokenizer_decoder_finish(&decoder, &text);
    return text;
}

static void check_round_trip(const struct tokenizer *tokenizer, const char *what,
                             struct text_view text)
{
    struct tokenizer_ids ids;
    struct error err;
    tokenizer_ids_init(&ids);
    CHECK_OK(tokenizer_encode(tokenizer, text, TOKENIZER_ADD_SPECIAL, &ids, &err), &err);
    struct text back = decode_all(tokenizer, &ids);
    if (back.length != text.length || memcmp(text_get(&back), text.bytes, text.length) != 0) {
        char shown[128], found[128];
        fail_msg("%s: '%s' came back as '%s'", what, text_printable(text, shown, sizeof(shown)),
                 text_printable((struct text_view){ text_get(&back), back.length }, found,
                                sizeof(found)));
    }
    text_release(&back);
    tokenizer_ids_release(&ids);
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static void check_case(const struct tokenizer *tokenizer, const char *name, size_t number,
                       struct text_view input, const char *expected)
{
    struct tokenizer_ids ids;
    struct text found;
    struct error err;
    tokenizer_ids_init(&ids);
    text_init(&found);
    CHECK_OK(tokenizer_encode(tokenizer, input, 0, &ids, &err), &err);
    for (size_t i = 0; i < ids.count; i++)
        text_addf(&found, " %u", ids.ids[i]);
    if (strcmp(text_get(&found), expected) != 0) {
        char shown[256];
        fail_msg("%s: case %zu: '%s': expected%s, found%s", name, number,
                 text_printable(input, shown, sizeof(shown)), expected, text_get(&found));
    }
    text_release(&found);
    tokenizer_ids_release(&ids);
    check_round_trip(tokenizer, name, input);
}

static void test_cases(void **state)
{
    static const char mark[] = "\n__ggml_vocab_test__\n";
    const char *name = *state;
    if (!is_there(name))
        skip();
    char other[128];
    struct text inputs, outputs;
    struct real real = real_open(name);
    snprintf(other, sizeof(other), "%s.inp", name);
    read_whole(other, &inputs);
    snprintf(other, sizeof(other), "%s.out", name);
    read_whole(other, &outputs);
    size_t count = 0;
    char *output = outputs.bytes;
    const char *input = inputs.bytes;
    for (const char *end = strstr(input, mark); end; end = strstr(input, mark)) {
        size_t length = strcspn(output, "\n");
        assert_int_equal(output[length], '\n');
        output[length] = '\0';
        check_case(real.tokenizer, name, count++,
                   (struct text_view){ input, (size_t)(end - input) }, output);
        output += length + 1;
        input = end + strlen(mark);
    }
    assert_true(count >= 40);
    assert_int_equal(*input, '\0');
    assert_int_equal(*output, '\0');
    print_message("%s: %zu of %zu cases exact\n", name, count, count);
    text_release(&inputs);
    text_release(&outputs);
    real_close(&real);
}

/* ---- Random strings ------------------------------------------------------------------------- */

#define RANDOM_STRINGS 10000

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void add_random(struct text *text, uint64_t *state)
{
    static const char *const bits[] = { " ",      "  ", "\n",   "\r\n", "\t", "the",
                                        "The",    "'s", "'LL",  "12",   "4",  "é",
                                        "\u0301", "我", "🦙", "<s>",  "▂",  "\u3000" };
    switch (next_random(state) % 4) {
    case 0:
        text_add_bytes(text, &(char){ (char)next_random(state) }, 1);
        break;
    case 1:
        text_add_bytes(text, &(char){ (char)(' ' + next_random(state) % 95) }, 1);
        break;
    default:
        text_add(text, bits[next_random(state) % COUNT_OF(bits)]);
    }
}

static void test_random_round_trip(void **state)
{
    const char *name = *state;
    if (!is_there(name))
        skip();
    struct real real = real_open(name);
    struct text text;
    uint64_t seed = 1;
    text_init(&text);
    for (int i = 0; i < RANDOM_STRINGS; i++) {
        text_clear(&text);
        for (uint64_t left = next_random(&seed) % 40; left > 0; left--)
            add_random(&text, &seed);
        check_round_trip(real.tokenizer, name, (struct text_view){ text_get(&text), text.length });
    }
    text_release(&text);
    real_close(&real);
}

/* ---- Long texts ----------------------------------------------------------------------------- */

/* Processor time, so that a busy machine does not matter. An optimised build needs a third of a
 * second; quadratic time would be hours. Sanitizers slow everything down by far. */
#define LONG_LIMIT_SECONDS 5.0

static void test_long_texts(void **state)
{
    static const char *const characters[] = { "a", " ", "\n", "1", "é", "\xFF", "<" };
    const char *name = *state;
    if (!is_there(name))
        skip();
    struct real real = real_open(name);
    size_t bytes = memory_limit_works() ? 1u << 20 : 1u << 16; /* less with sanitizers */
    for (size_t i = 0; i < COUNT_OF(characters); i++) {
        struct tokenizer_ids ids;
        struct text text;
        struct error err;
        tokenizer_ids_init(&ids);
        text_init(&text);
        while (text.length < bytes)
            text_add(&text, characters[i]);
        clock_t start = clock();
        CHECK_OK(tokenizer_encode(real.tokenizer, (struct text_view){ text.bytes, text.length },
                                  TOKENIZER_PARSE_SPECIAL, &ids, &err),
                 &err);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        char shown[16];
        print_message("%s: %zu KiB of '%s': %.3f s, %zu tokens\n", name, bytes >> 10,
                      text_printable(text_view_of(characters[i]), shown, sizeof(shown)), seconds,
                      ids.count);
        assert_true(seconds < LONG_LIMIT_SECONDS);
        tokenizer_ids_release(&ids);
        text_release(&text);
    }
    real_close(&real);
}

/* ---- What the files say of themselves ------------------------------------------------------- */

static void test_ends(void **state)
{
    (void)state;
    static const struct {
        const char *name, *end, *no_end;
        bool add_bos;
    } rows[] = {
        { "vocab/ggml-vocab-llama-spm.gguf", "</s>", "<s>", true },
        { "vocab/ggml-vocab-llama-bpe.gguf", "<|eot_id|>", "<|begin_of_text|>", true },
        { "vocab/ggml-vocab-qwen2.gguf", "<|im_end|>", "<|im_start|>", false },
        { "vocab/ggml-vocab-gpt-2.gguf", "<|endoftext|>", "the", false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!is_there(rows[i].name))
            skip();
        struct real real = real_open(rows[i].name);
        uint32_t end = tokenizer_token_find(real.tokenizer, text_view_of(rows[i].end));
        uint32_t no_end = tokenizer_token_find(real.tokenizer, text_view_of(rows[i].no_end));
        assert_int_not_equal(end, TOKENIZER_NO_ID);
        assert_int_not_equal(no_end, TOKENIZER_NO_ID);
        assert_true(tokenizer_is_end(real.tokenizer, end));
        assert_false(tokenizer_is_end(real.tokenizer, no_end));
        assert_int_equal(tokenizer_info(real.tokenizer)->add_bos, rows[i].add_bos);
        assert_false(tokenizer_info(real.tokenizer)->pre_missing);
        real_close(&real);
    }
}

int main(void)
{
    struct CMUnitTest tests[3 * COUNT_OF(names) + 1];
    size_t count = 0, there = 0;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        void *name = (void *)(uintptr_t)names[i];
        if (i < WITH_CASES)
            tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_cases, name);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_random_round_trip, name);
        tests[count++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_long_texts, name);
        there += is_there(names[i]);
    }
    tests[count++] = (struct CMUnitTest)cmocka_unit_test(test_ends);
    int failures = _cmocka_run_group_tests("shared", tests, count, NULL, NULL);
    /* Skipped is not passed: ctest is to say so. */
    return failures ? 1 : there ? 0 : 77;
}
