/* special_ids.c - tokens with a special meaning: those a text begins with, and those that end the
 * model's output. */
#include "tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define KEY_NAME "general.name"

/* "seperator" is how the files spell it. */
static const char *const key_words[] = {
    [TOKENIZER_BOS] = "bos",         [TOKENIZER_EOS] = "eos",
    [TOKENIZER_EOT] = "eot",         [TOKENIZER_EOM] = "eom",
    [TOKENIZER_UNK] = "unknown",     [TOKENIZER_SEPARATOR] = "seperator",
    [TOKENIZER_PADDING] = "padding", [TOKENIZER_CLS] = "cls",
    [TOKENIZER_MASK] = "mask",       [TOKENIZER_FIM_PRE] = "fim_pre",
    [TOKENIZER_FIM_SUF] = "fim_suf", [TOKENIZER_FIM_MID] = "fim_mid",
    [TOKENIZER_FIM_PAD] = "fim_pad", [TOKENIZER_FIM_REP] = "fim_rep",
    [TOKENIZER_FIM_SEP] = "fim_sep",
};
_Static_assert(COUNT_OF(key_words) == TOKENIZER_SPECIAL_COUNT, "every special token has a key");

/* An old convention for byte-level files that do not say it. */
#define BYTE_LEVEL_DEFAULT 11u

static void set_defaults(struct tokenizer *tokenizer)
{
    enum tokenizer_kind kind = tokenizer->info.kind;
    bool sentencepiece = kind == TOKENIZER_SENTENCEPIECE;
    uint32_t other = kind == TOKENIZER_BYTE_LEVEL ? BYTE_LEVEL_DEFAULT : TOKENIZER_NO_ID;
    for (size_t i = 0; i < TOKENIZER_SPECIAL_COUNT; i++)
        tokenizer->special_ids[i] = TOKENIZER_NO_ID;
    tokenizer->special_ids[TOKENIZER_BOS] = sentencepiece ? 1 : other;
    tokenizer->special_ids[TOKENIZER_EOS] = sentencepiece ? 2 : other;
    tokenizer->special_ids[TOKENIZER_UNK] = sentencepiece ? 0 : TOKENIZER_NO_ID;
    for (size_t i = 0; i < TOKENIZER_SPECIAL_COUNT; i++)
        if (tokenizer->special_ids[i] >= tokenizer->info.token_count)
            tokenizer->special_ids[i] = TOKENIZER_NO_ID;
}

static enum status load_id(struct tokenizer *tokenizer, const struct gguf_file *file,
                           enum tokenizer_special special, struct error *err)
{
    char key[64];
    snprintf(key, sizeof(key), "tokenizer.ggml.%s_token_id", key_words[special]);
    const struct gguf_value *value = gguf_find(file, key);
    uint64_t id;
    int64_t number = 0;
    if (!value)
        return STATUS_OK;
    /* Some files say "none" as -1, of either width. */
    bool scalar = value->type != GGUF_ARRAY;
    if (scalar &&
        ((gguf_value_i64(value, 0, &number) && number == -1) ||
         (value->type == GGUF_U32 && gguf_value_u64(value, 0, &id) && id == UINT32_MAX))) {
        tokenizer->special_ids[special] = TOKENIZER_NO_ID;
        return STATUS_OK;
    }
    if (!scalar || !gguf_value_u64(value, 0, &id))
        return error_set(err, STATUS_BAD_FILE, "%s: %s: expected a token id, found %s%s",
                         gguf_path(file), key, scalar ? "" : "an array of ",
                         number < 0 ? "a number below 0" : gguf_type_name(value->element_type));
    if (id >= tokenizer->info.token_count)
        return error_set(err, STATUS_BAD_FILE,
                         "%s: %s: expected an id below the number of tokens %" PRIu32
                         ", found %" PRIu64,
                         gguf_path(file), key, tokenizer->info.token_count, id);
    tokenizer->special_ids[special] = (uint32_t)id;
    return STATUS_OK;
}

/* ---- The end of what a model says ----------------------------------------------------------- */

static bool has(const struct tokenizer *tokenizer, const char *text)
{
    return tokenizer_token_find(tokenizer, text_view_of(text)) != TOKENIZER_NO_ID;
}

static void guess_end_of_turn(struct tokenizer *tokenizer)
{
    static const char *const texts[] = {
        "<|eot_id|>",        "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
        "<|end_of_text|>",   "<EOT>",      "_<EOT>",  "[EOT]",         "<｜end▁of▁sentence｜>",
        "<end_of_utterance>"
    };
    uint32_t *id = &tokenizer->special_ids[TOKENIZER_EOT];
    for (size_t i = 0; *id == TOKENIZER_NO_ID && i < COUNT_OF(texts); i++)
        *id = tokenizer_token_find(tokenizer, text_view_of(texts[i]));
}

/* Some models write these in the middle of an answer. */
static bool is_not_an_end(const struct tokenizer *tokenizer, struct text_view text)
{
    if (text_view_is(text, "<|end|>"))
        return (has(tokenizer, "<|return|>") && has(tokenizer, "<|call|>")) ||
               (has(tokenizer, "<|calls|>") && has(tokenizer, "<|flush|>"));
    return text_view_is(text, "</s>") && has(tokenizer, "<|tool_response>");
}

static void mark_ends(struct tokenizer *tokenizer)
{
    static const enum tokenizer_special specials[] = { TOKENIZER_EOS,     TOKENIZER_EOM,
                                                       TOKENIZER_FIM_PAD, TOKENIZER_FIM_REP,
                                                       TOKENIZER_FIM_SEP, TOKENIZER_EOT };
    static const char *const texts[] = { "<|eot_id|>",
                                         "<|im_end|>",
                                         "<|end|>",
                                         "<|return|>",
                                         "<|call|>",
                                         "<end_of_turn>",
                                         "<|endoftext|>",
                                         "<|eom_id|>",
                                         "<EOT>",
                                         "_<EOT>",
                                         "[EOT]",
                                         "[EOS]",
                                         "<|end_of_text|>",
                                         "<end_of_utterance>",
                                         "<eos>",
                                         "<turn|>",
                                         "</s>",
                                         "<｜end▁of▁sentence｜>",
                                         "<|flush|>",
                                         "<|calls|>",
                                         "<|tool_response>",
                                         "[e~[" };
    for (size_t i = 0; i < COUNT_OF(specials); i++) {
        uint32_t id = tokenizer->special_ids[specials[i]];
        if (id != TOKENIZER_NO_ID)
            tokenizer->symbols[id].is_end = true;
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct text_view text = text_view_of(texts[i]);
        uint32_t id = tokenizer_token_find(tokenizer, text);
        if (id != TOKENIZER_NO_ID && !is_not_an_end(tokenizer, text))
            tokenizer->symbols[id].is_end = true;
    }
}

/* In a file without types, at least these are not text. */
static void mark_control(struct tokenizer *tokenizer)
{
    static const enum tokenizer_special specials[] = { TOKENIZER_BOS, TOKENIZER_EOS };
    for (size_t i = 0; i < COUNT_OF(specials); i++) {
        uint32_t id = tokenizer->special_ids[specials[i]];
        if (id != TOKENIZER_NO_ID)
            tokenizer->symbols[id].type = TOKENIZER_CONTROL;
    }
    if (tokenizer->special_ids[TOKENIZER_UNK] != TOKENIZER_NO_ID)
        tokenizer->symbols[tokenizer->special_ids[TOKENIZER_UNK]].type = TOKENIZER_UNKNOWN;
}

/* True if the file says that the model's name has one of these in it, in any case. */
static bool is_named(const struct gguf_file *file, const char *const *parts, size_t count)
{
    struct text_view name;
    struct error unused;
    char lower[256];
    if (!gguf_find(file, KEY_NAME) || gguf_get_text(file, KEY_NAME, &name, &unused) ||
        name.length >= sizeof(lower))
        return false;
    for (size_t i = 0; i < name.length; i++)
        lower[i] = name.bytes[i] >= 'A' && name.bytes[i] <= 'Z' ? (char)(name.bytes[i] | 0x20)
                                                                : name.bytes[i];
    lower[name.length] = '\0';
    for (size_t i = 0; i < count; i++)
        if (strstr(lower, parts[i]))
            return true;
    return false;
}

/* Phi-3 was trained with markers that take the white space after them, which its files do not say.
 */
static void mark_space_takers(struct tokenizer *tokenizer, const struct gguf_file *file)
{
    static const char *const names[] = { "phi-3", "phi3" };
    static const char *const others[] = { "<unk>", "<s>", "<|endoftext|>" };
    if (!is_named(file, names, COUNT_OF(names)))
        return;
    for (uint32_t i = 0; i < tokenizer->info.token_count; i++) {
        uint8_t type = tokenizer->symbols[i].type;
        tokenizer->symbols[i].takes_space = type == TOKENIZER_CONTROL ||
                                            type == TOKENIZER_UNKNOWN ||
                                            type == TOKENIZER_USER_DEFINED;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        uint32_t id = tokenizer_token_find(tokenizer, text_view_of(others[i]));
        if (id != TOKENIZER_NO_ID)
            tokenizer->symbols[id].takes_space = false;
    }
}

static enum status load_flag(const struct gguf_file *file, const char *key, bool *flag,
                             struct error *err)
{
    return gguf_find(file, key) ? gguf_get_flag(file, key, flag, err) : STATUS_OK;
}

enum status tokenizer_special_ids_load(struct tokenizer *tokenizer, const struct gguf_file *file,
                                       struct error *err)
{
    set_defaults(tokenizer);
    for (size_t i = 0; i < TOKENIZER_SPECIAL_COUNT; i++)
        TRY(load_id(tokenizer, file, (enum tokenizer_special)i, err));
    if (!gguf_find(file, "tokenizer.ggml.token_type") &&
        tokenizer->info.kind != TOKENIZER_BYTE_LEVEL)
        mark_control(tokenizer);
    /* In this order: a guessed end of turn is an end only if its text is one. */
    mark_ends(tokenizer);
    mark_space_takers(tokenizer, file);
    guess_end_of_turn(tokenizer);
    struct tokenizer_info *info = &tokenizer->info;
    TRY(load_flag(file, "tokenizer.ggml.add_bos_token", &info->add_bos, err));
    TRY(load_flag(file, "tokenizer.ggml.add_eos_token", &info->add_eos, err));
    if (info->kind == TOKENIZER_SENTENCEPIECE)
        TRY(load_flag(file, "tokenizer.ggml.add_space_prefix", &info->add_space_prefix, err));
    return STATUS_OK;
}

uint32_t tokenizer_special_id(const struct tokenizer *tokenizer, enum tokenizer_special special)
{
    return tokenizer->special_ids[special];
}

bool tokenizer_is_end(const struct tokenizer *tokenizer, uint32_t id)
{
    return id < tokenizer->info.token_count && tokenizer->symbols[id].is_end;
}
