/* cmd_detokenize.c - greta detokenize: the text of token ids. */
#include "cli/token_input.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An id with its space takes at most twelve bytes: as many ids as the longest text can have. */
#define INPUT_LIMIT_BYTES (12u * (size_t)TOKENIZER_TEXT_LIMIT_BYTES)
#define WORD_BREAKS " \t\r\n,[]"

struct settings {
    const char *model;
    bool special, raw, json;
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, offsetof(struct settings, model),
      "GGUF file with the tokenizer (default: the model that comes with greta)", NULL, true },
    { "--special", NULL, CLI_FLAG, offsetof(struct settings, special),
      "control tokens as text; else they print nothing", NULL, false },
    { "--raw", NULL, CLI_FLAG, offsetof(struct settings, raw),
      "bytes that are no characters as they are; else U+FFFD stands for them", NULL, false },
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "JSON instead of text", NULL,
      false },
};

static enum status add_id(struct tokenizer_decoder *decoder, const char *word, size_t length,
                          struct text *out, struct error *err)
{
    char digits[16] = "", shown[64];
    if (length < sizeof(digits))
        memcpy(digits, word, length);
    char *end;
    errno = 0;
    unsigned long long id = strtoull(digits, &end, 10);
    if (length >= sizeof(digits) || digits[0] < '0' || digits[0] > '9' || *end || id > UINT32_MAX)
        return error_set(err, STATUS_USAGE, "expected a token id, found '%s'",
                         text_printable((struct text_view){ word, length }, shown, sizeof(shown)));
    return tokenizer_decoder_add(decoder, (uint32_t)id, out, err);
}

/* Ids separated by spaces, line ends or commas: what tokenize --ids prints, or a JSON list. */
static enum status add_ids(struct tokenizer_decoder *decoder, const char *words, struct text *out,
                           struct error *err)
{
    for (words += strspn(words, WORD_BREAKS); *words; words += strspn(words, WORD_BREAKS)) {
        size_t length = strcspn(words, WORD_BREAKS);
        TRY(add_id(decoder, words, length, out, err));
        words += length;
    }
    return STATUS_OK;
}

static enum status decode(const struct cli_invocation *invocation,
                          struct tokenizer_decoder *decoder, struct text *out, struct error *err)
{
    if (invocation->operand_count > 1 || strcmp(invocation->operands[0], "-") != 0) {
        for (size_t i = 0; i < invocation->operand_count; i++)
            TRY(add_ids(decoder, invocation->operands[i], out, err));
        return STATUS_OK;
    }
    struct text input;
    text_init(&input);
    enum status status = token_input_read(INPUT_LIMIT_BYTES, &input, err);
    if (!status && strlen(text_get(&input)) != input.length)
        status = error_set(err, STATUS_USAGE, "expected token ids, found a byte 0");
    if (!status)
        status = add_ids(decoder, text_get(&input), out, err);
    text_release(&input);
    return status;
}

static enum status print(const struct settings *settings, const struct text *out, struct error *err)
{
    if (out->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the text");
    if (!settings->json) {
        if (fwrite(text_get(out), 1, out->length, stdout) != out->length || fflush(stdout) != 0)
            return error_set(err, STATUS_IO, "cannot write to standard output");
        return STATUS_OK;
    }
    struct emit *emit;
    TRY(emit_create(EMIT_JSON, &emit, err));
    emit_view(emit, "text", (struct text_view){ text_get(out), out->length });
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    return status;
}

static enum cli_exit run_detokenize(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct token_model model = { 0 };
    struct tokenizer_decoder decoder;
    struct text out;
    struct error err;
    text_init(&out);
    enum status status = token_model_open(invocation, settings->model, &model, &err);
    if (status)
        goto done;
    tokenizer_decoder_init(&decoder, model.tokenizer,
                           (settings->special ? TOKENIZER_SHOW_SPECIAL : 0u) |
                               (settings->raw ? TOKENIZER_RAW : 0u));
    status = decode(invocation, &decoder, &out, &err);
    if (status)
        goto done;
    tokenizer_decoder_finish(&decoder, &out);
    status = print(settings, &out, &err);
done:
    text_release(&out);
    token_model_close(&model);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_detokenize = {
    .name = "detokenize",
    .operands = "ID...|-",
    .operand_least = 1,
    .operand_most = SIZE_MAX,
    .summary = "show the text of token ids",
    .description =
        "Prints the text of the ids and nothing else, not even a newline: with --raw, the ids that "
        "greta tokenize --ids made of any bytes give the same bytes. ID - reads the ids from "
        "standard input, separated by spaces, line ends or commas.",
    .examples =
        "  greta detokenize --model model.gguf 1 9038 2501 263 931\n"
        "  greta tokenize -m model.gguf --ids - < a | greta detokenize -m model.gguf --raw - > b\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_detokenize,
};
