/* vocabulary.c - compares the tokenizer's tables with each other and with the size of the
 * embedding. Missing tables are not a problem here: a model can run on token ids alone. */
#include "model/model_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void check_tokens(const struct gguf_file *file, struct model_report *report)
{
    const struct gguf_value *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    if (!tokens)
        return;
    if (tokens->type != GGUF_ARRAY || tokens->element_type != GGUF_STRING) {
        model_problem_add(
            report, MODEL_PROBLEM_CANNOT_RUN,
            "tokenizer.ggml.tokens: expected an array of strings, found %s%s; convert "
            "the model again",
            tokens->type == GGUF_ARRAY ? "an array of " : "", gguf_type_name(tokens->element_type));
        return;
    }
    if (tokens->count != report->config.vocab_size)
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "tokenizer.ggml.tokens: expected %" PRIu32
                          " tokens (the vocab_size), found %" PRIu64
                          "; tokenizer and model do not belong together, convert the model again",
                          report->config.vocab_size, tokens->count);
}

/* Normal, unknown, control, user defined, unused, byte; 0 is undefined. */
#define TOKEN_TYPE_LAST 6

/* Finds the first invalid element; one is enough to know that the array is damaged. */
static void check_elements(const struct gguf_value *value, const char *key, bool is_type,
                           struct model_report *report)
{
    for (uint64_t i = 0; i < value->count; i++) {
        double number = 0;
        bool fine = gguf_value_f64(value, i, &number) && !isnan(number) &&
                    (!is_type || (number >= 0 && number <= TOKEN_TYPE_LAST));
        if (fine)
            continue;
        model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                          "%s: expected %s for token %" PRIu64
                          ", found %g; the file is damaged, get or convert it again",
                          key, is_type ? "0 to 6" : "a number", i, number);
        return;
    }
}

/* Arrays that hold one element per token. */
static void check_lengths(const struct gguf_file *file, struct model_report *report)
{
    static const char *const keys[] = { "tokenizer.ggml.scores", "tokenizer.ggml.token_type" };
    const struct gguf_value *tokens = gguf_find(file, "tokenizer.ggml.tokens");
    for (size_t i = 0; tokens && i < COUNT_OF(keys); i++) {
        const struct gguf_value *value = gguf_find(file, keys[i]);
        double number;
        if (!value)
            continue;
        if (value->type != GGUF_ARRAY || value->count != tokens->count ||
            (value->count && !gguf_value_f64(value, 0, &number)))
            model_problem_add(
                report, MODEL_PROBLEM_CANNOT_RUN,
                "%s: expected an array of %" PRIu64 " numbers, one per token, found %" PRIu64
                " of type %s; convert the model again",
                keys[i], tokens->count, value->count, gguf_type_name(value->element_type));
        else
            check_elements(value, keys[i], i == 1, report);
    }
}

static void check_special_ids(const struct gguf_file *file, struct model_report *report)
{
    static const char *const names[] = { "bos",       "eos",     "eot",     "eom",     "unknown",
                                         "seperator", "padding", "cls",     "mask",    "fim_pre",
                                         "fim_suf",   "fim_mid", "fim_pad", "fim_rep", "fim_sep" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char key[64];
        snprintf(key, sizeof(key), "tokenizer.ggml.%s_token_id", names[i]);
        const struct gguf_value *value = gguf_find(file, key);
        uint64_t id;
        int64_t number;
        if (!value)
            continue;
        /* Some files say "none" as -1. */
        if (value->type != GGUF_ARRAY && gguf_value_i64(value, 0, &number) && number == -1)
            continue;
        if (value->type == GGUF_ARRAY || !gguf_value_u64(value, 0, &id))
            model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected a token id, found %s; convert the model again", key,
                              gguf_type_name(value->type));
        else if (id >= report->config.vocab_size)
            model_problem_add(report, MODEL_PROBLEM_CANNOT_RUN,
                              "%s: expected an id below the vocabulary size %" PRIu32
                              ", found %" PRIu64 "; the file is damaged, get or convert it again",
                              key, report->config.vocab_size, id);
    }
}

void model_vocabulary_check(const struct gguf_file *file, struct model_report *report)
{
    check_tokens(file, report);
    check_lengths(file, report);
    check_special_ids(file, report);
}
