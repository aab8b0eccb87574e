/* convert_vocabulary_test.c - the tokenizers of synthetic models: complete, distinct, mergeable. */
#include "convert_model.h"

#include "convert/convert_impl.h"

#include <stdio.h>
#include <string.h>

/* A model with nothing but a vocabulary worth speaking of. */
struct subject {
    struct temp_folder folder;
    struct gguf_file *file;
    struct text_view *tokens; /* by id */
    struct text_view *sorted;
    size_t count;
};

static int by_view(const void *left, const void *right)
{
    return text_view_compare(*(const struct text_view *)left, *(const struct text_view *)right);
}

static void subject_open(struct subject *subject, enum model_arch arch, uint32_t vocab_size)
{
    struct model_shape shape = small_shape(arch);
    shape.embedding_length = shape.feed_forward_length = shape.head_dim = 8;
    shape.head_count = shape.head_count_kv = shape.block_count = 1;
    shape.vocab_size = vocab_size;
    shape.tied_embeddings = true;
    temp_folder_init(&subject->folder);
    synth_model(&subject->folder, "m", &shape, CONVERT_F16, 1);
    subject->file = open_model(&subject->folder, "m");
    const struct gguf_value *tokens = gguf_find(subject->file, "tokenizer.ggml.tokens");
    assert_non_null(tokens);
    assert_int_equal(tokens->count, vocab_size);
    subject->count = (size_t)tokens->count;
    subject->tokens = calloc(subject->count, sizeof(*subject->tokens));
    subject->sorted = calloc(subject->count, sizeof(*subject->sorted));
    struct gguf_strings strings = gguf_strings_of(tokens);
    for (size_t i = 0; i < subject->count; i++)
        assert_true(gguf_strings_next(&strings, &subject->tokens[i]));
    memcpy(subject->sorted, subject->tokens, subject->count * sizeof(*subject->sorted));
    qsort(subject->sorted, subject->count, sizeof(*subject->sorted), by_view);
}

static void subject_close(struct subject *subject)
{
    gguf_close(subject->file);
    free(subject->tokens);
    free(subject->sorted);
    temp_folder_release(&subject->folder);
}

static bool has_token(const struct subject *subject, struct text_view token)
{
    return bsearch(&token, subject->sorted, subject->count, sizeof(token), by_view) != NULL;
}

static void check_distinct(const struct subject *subject)
{
    for (size_t i = 0; i < subject->count; i++) {
        if (subject->sorted[i].length == 0)
            fail_msg("an empty token");
        if (i && text_view_equal(subject->sorted[i - 1], subject->sorted[i]))
            fail_msg("token '%.*s' is there twice", (int)subject->sorted[i].length,
                     subject->sorted[i].bytes);
    }
}

/* The token a key names. */
static struct text_view special(const struct subject *subject, const char *key)
{
    struct error err;
    uint64_t id;
    CHECK_OK(gguf_get_u64(subject->file, key, &id, &err), &err);
    assert_true(id < subject->count);
    return subject->tokens[id];
}

static int64_t type_of_id(const struct subject *subject, uint64_t id)
{
    int64_t type = 0;
    assert_true(gguf_value_i64(gguf_find(subject->file, "tokenizer.ggml.token_type"), id, &type));
    return type;
}

/* ---- SentencePiece -------------------------------------------------------------------------- */

static void test_sentencepiece(void **state)
{
    (void)state;
    static const uint32_t sizes[] = { CONVERT_VOCAB_MIN, 260, 400, 1024, 32000 };
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        struct subject subject;
        subject_open(&subject, MODEL_ARCH_LLAMA, sizes[i]);
        check_distinct(&subject);
        for (unsigned byte = 0; byte < 256; byte++) {
            char name[8];
            snprintf(name, sizeof(name), "<0x%02X>", byte);
            assert_true(has_token(&subject, text_view_of(name)));
            assert_int_equal(type_of_id(&subject, 3 + byte), 6);
        }
        assert_true(text_view_is(special(&subject, "tokenizer.ggml.unknown_token_id"), "<unk>"));
        assert_true(text_view_is(special(&subject, "tokenizer.ggml.bos_token_id"), "<s>"));
        assert_true(text_view_is(special(&subject, "tokenizer.ggml.eos_token_id"), "</s>"));
        assert_int_equal(type_of_id(&subject, 0), 2);
        assert_int_equal(type_of_id(&subject, 1), 3);
        assert_null(gguf_find(subject.file, "tokenizer.ggml.merges"));
        subject_close(&subject);
    }
}

/* A token is reached by joining two others; the later one has the lower score. */
static void test_sentencepiece_scores_fall(void **state)
{
    (void)state;
    struct subject subject;
    subject_open(&subject, MODEL_ARCH_LLAMA, 2000);
    const struct gguf_value *scores = gguf_find(subject.file, "tokenizer.ggml.scores");
    assert_int_equal(scores->count, 2000);
    double before = 0;
    for (uint64_t id = 259; id < 2000; id++) {
        double score;
        assert_true(gguf_value_f64(scores, id, &score));
        assert_true(score < before);
        before = score;
    }
    assert_true(has_token(&subject, text_view_of("\xE2\x96\x81the")));
    assert_true(has_token(&subject, text_view_of("\xE2\x96\x81th")));
    subject_close(&subject);
}

/* ---- Byte-level BPE ------------------------------------------------------------------------- */

/* The character that stands for a byte, in UTF-8. */
static struct text_view byte_character(unsigned byte, char *buffer)
{
    unsigned moved = 0, code_point = byte;
    for (unsigned i = 0; i <= byte; i++) {
        bool printable = (i >= '!' && i <= '~') || (i >= 0xA1 && i <= 0xAC) || i >= 0xAE;
        if (i == byte && !printable)
            code_point = 0x100 + moved;
        moved += !printable;
    }
    size_t length = code_point < 0x80 ? 1 : 2;
    buffer[0] = (char)(length == 1 ? code_point : 0xC0 | code_point >> 6);
    buffer[1] = (char)(0x80 | (code_point & 0x3F));
    return (struct text_view){ buffer, length };
}

static void check_merges(const struct subject *subject)
{
    const struct gguf_value *merges = gguf_find(subject->file, "tokenizer.ggml.merges");
    assert_non_null(merges);
    struct gguf_strings strings = gguf_strings_of(merges);
    struct text_view merge;
    uint64_t count = 0;
    while (gguf_strings_next(&strings, &merge)) {
        const char *space = memchr(merge.bytes, ' ', merge.length);
        assert_non_null(space);
        struct text_view left = { merge.bytes, (size_t)(space - merge.bytes) };
        struct text_view right = { space + 1, merge.length - left.length - 1 };
        char joined[64];
        snprintf(joined, sizeof(joined), "%.*s%.*s", (int)left.length, left.bytes,
                 (int)right.length, right.bytes);
        if (!has_token(subject, left) || !has_token(subject, right) ||
            !has_token(subject, text_view_of(joined)))
            fail_msg("merge '%.*s' needs tokens that are not there", (int)merge.length,
                     merge.bytes);
        count++;
    }
    assert_int_equal(count, merges->count);
    /* Every token but bytes, special and unused ones is the result of a merge. */
    uint64_t pieces = 0;
    for (uint64_t id = 256; id < subject->count; id++)
        pieces += type_of_id(subject, id) == 1;
    assert_int_equal(count, pieces);
}

static void test_byte_level(void **state)
{
    (void)state;
    static const struct {
        enum model_arch arch;
        uint32_t vocab_size;
        const char *pre, *bos, *eos;
    } rows[] = {
        { MODEL_ARCH_QWEN2, CONVERT_VOCAB_MIN, "qwen2", "<|endoftext|>", "<|im_end|>" },
        { MODEL_ARCH_QWEN3, 260, "qwen2", "<|endoftext|>", "<|im_end|>" },
        { MODEL_ARCH_QWEN2, 400, "qwen2", "<|endoftext|>", "<|im_end|>" },
        { MODEL_ARCH_QWEN3, 1024, "qwen2", "<|endoftext|>", "<|im_end|>" },
        { MODEL_ARCH_QWEN2, 151936, "qwen2", "<|endoftext|>", "<|im_end|>" },
        { MODEL_ARCH_LLAMA, 128256, "llama-bpe", "<|begin_of_text|>", "<|end_of_text|>" },
        { MODEL_ARCH_LLAMA, 500000, "llama-bpe", "<|begin_of_text|>", "<|end_of_text|>" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct subject subject;
        struct error err;
        struct text_view words;
        subject_open(&subject, rows[i].arch, rows[i].vocab_size);
        check_distinct(&subject);
        for (unsigned byte = 0; byte < 256; byte++) {
            char buffer[2];
            assert_true(text_view_equal(subject.tokens[byte], byte_character(byte, buffer)));
        }
        check_merges(&subject);
        CHECK_OK(gguf_get_text(subject.file, "tokenizer.ggml.model", &words, &err), &err);
        assert_true(text_view_is(words, "gpt2"));
        CHECK_OK(gguf_get_text(subject.file, "tokenizer.ggml.pre", &words, &err), &err);
        assert_true(text_view_is(words, rows[i].pre));
        if (!text_view_is(special(&subject, "tokenizer.ggml.bos_token_id"), rows[i].bos) ||
            !text_view_is(special(&subject, "tokenizer.ggml.eos_token_id"), rows[i].eos))
            fail_msg("%s of %u: wrong special tokens", rows[i].pre, rows[i].vocab_size);
        assert_int_equal(type_of_id(&subject, subject.count - 1), 3);
        subject_close(&subject);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentencepiece),
        cmocka_unit_test(test_sentencepiece_scores_fall),
        cmocka_unit_test(test_byte_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
