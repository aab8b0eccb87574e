/* cmd_tokenize.c - greta tokenize: the tokens of a text. */
#include "cli/token_input.h"

#include <inttypes.h>
#include <string.h>

struct settings {
    const char *model;
    bool ids, no_bos, special, json;
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, offsetof(struct settings, model),
      "GGUF file with the tokenizer (default: the model that comes with greta)", NULL, true },
    { "--ids", NULL, CLI_FLAG, offsetof(struct settings, ids),
      "only the ids, on one line, separated by spaces", NULL, false },
    { "--no-bos", NULL, CLI_FLAG, offsetof(struct settings, no_bos),
      "no begin or end token around TEXT", NULL, false },
    { "--special", NULL, CLI_FLAG, offsetof(struct settings, special),
      "parse control tokens such as <s> in TEXT", NULL, false },
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "JSON instead of text", NULL,
      false },
};

/* ---- Printing ------------------------------------------------------------------------------- */

/* In quotes, on one line, with every byte visible. */
static void add_quoted(struct text *text, struct text_view view)
{
    text_add(text, "\"");
    for (size_t at = 0; at < view.length;) {
        static const char plain[] = "\\\"\n\r\t", escaped[] = "\\\"nrt";
        const char *found = memchr(plain, view.bytes[at], sizeof(plain) - 1);
        size_t length = text_utf8_length(view.bytes + at, view.length - at);
        length = length ? length : 1;
        if (found)
            text_addf(text, "\\%c", escaped[found - plain]);
        else
            text_add_printable(text, (struct text_view){ view.bytes + at, length }, length);
        at += length;
    }
    text_add(text, "\"");
}

static void add_lines(struct text *out, const struct tokenizer *tokenizer,
                      const struct tokenizer_ids *ids)
{
    struct text bytes;
    text_init(&bytes);
    for (size_t i = 0; i < ids->count; i++) {
        text_clear(&bytes);
        tokenizer_token_bytes(tokenizer, ids->ids[i], TOKENIZER_SHOW_SPECIAL, &bytes);
        text_addf(out, "%7" PRIu32 "  ", ids->ids[i]);
        add_quoted(out, (struct text_view){ text_get(&bytes), bytes.length });
        text_add(out, "\n");
    }
    out->failed = out->failed || bytes.failed;
    text_release(&bytes);
}

static enum status print_text(const struct settings *settings, const struct tokenizer *tokenizer,
                              const struct tokenizer_ids *ids, struct error *err)
{
    struct text out;
    enum status status = STATUS_OK;
    text_init(&out);
    if (!settings->ids)
        add_lines(&out, tokenizer, ids);
    for (size_t i = 0; settings->ids && i < ids->count; i++)
        text_addf(&out, "%s%" PRIu32, i ? " " : "", ids->ids[i]);
    if (settings->ids)
        text_add(&out, "\n");
    if (out.failed)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for %zu tokens", ids->count);
    else if (fwrite(text_get(&out), 1, out.length, stdout) != out.length || fflush(stdout) != 0)
        status = error_set(err, STATUS_IO, "cannot write to standard output");
    text_release(&out);
    return status;
}

static enum status print_json(const struct settings *settings, const struct tokenizer *tokenizer,
                              const struct tokenizer_ids *ids, struct error *err)
{
    struct emit *emit;
    struct text bytes;
    TRY(emit_create(EMIT_JSON, &emit, err));
    text_init(&bytes);
    emit_count(emit, "count", ids->count);
    emit_list_begin(emit, settings->ids ? "ids" : "tokens");
    for (size_t i = 0; i < ids->count; i++) {
        if (settings->ids) {
            emit_count(emit, NULL, ids->ids[i]);
            continue;
        }
        text_clear(&bytes);
        tokenizer_token_bytes(tokenizer, ids->ids[i], TOKENIZER_SHOW_SPECIAL, &bytes);
        emit_object_begin(emit, NULL);
        emit_count(emit, "id", ids->ids[i]);
        emit_view(emit, "text", (struct text_view){ text_get(&bytes), bytes.length });
        emit_object_end(emit);
    }
    emit_list_end(emit);
    enum status status = emit_finish(emit, stdout, err);
    emit_destroy(emit);
    text_release(&bytes);
    return status;
}

/* ---- The command ---------------------------------------------------------------------------- */

static void warn_twice(const struct cli_invocation *invocation, const struct tokenizer *tokenizer,
                       const struct tokenizer_ids *ids)
{
    uint32_t begin = tokenizer_special_id(tokenizer, TOKENIZER_BOS);
    if (begin != TOKENIZER_NO_ID && ids->count >= 2 && ids->ids[0] == begin && ids->ids[1] == begin)
        cli_warn(invocation, "the text begins with a begin token of its own: there are two now "
                             "(--no-bos adds none)");
}

static enum cli_exit run_tokenize(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    const char *operand = invocation->operands[0];
    struct token_model model = { 0 };
    struct tokenizer_ids ids;
    struct text text;
    struct error err;
    tokenizer_ids_init(&ids);
    text_init(&text);
    unsigned flags = (settings->no_bos ? 0u : TOKENIZER_ADD_SPECIAL) |
                     (settings->special ? TOKENIZER_PARSE_SPECIAL : 0u);
    enum status status = token_model_open(invocation, settings->model, &model, &err);
    if (status)
        goto done;
    if (strcmp(operand, "-") == 0)
        status = token_input_read(TOKENIZER_TEXT_LIMIT_BYTES, &text, &err);
    else
        text_add(&text, operand);
    if (!status)
        status = tokenizer_encode(
            model.tokenizer, (struct text_view){ text_get(&text), text.length }, flags, &ids, &err);
    if (status)
        goto done;
    warn_twice(invocation, model.tokenizer, &ids);
    status = settings->json ? print_json(settings, model.tokenizer, &ids, &err)
                            : print_text(settings, model.tokenizer, &ids, &err);
done:
    tokenizer_ids_release(&ids);
    text_release(&text);
    token_model_close(&model);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

const struct cli_command cli_tokenize = {
    .name = "tokenize",
    .operands = "TEXT|-",
    .operand_least = 1,
    .operand_most = 1,
    .summary = "show the tokens of a text",
    .description =
        "Prints what a model sees of a text: one line per token, its id and the bytes it stands "
        "for, quoted. TEXT - is standard input, any bytes, taken as it is to the last one.\n\n"
        "The tokenizer is the one in the GGUF file: SentencePiece, byte-level BPE with the "
        "splitting rule the file names, or the character BPE of Gemma 4. The model need not be one "
        "that greta can run.",
    .examples = "  greta tokenize 'Once upon a time'\n"
                "  greta tokenize --model model.gguf 'Once upon a time'\n"
                "  greta tokenize --model model.gguf --ids - < prompt.txt\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_tokenize,
};
