/* token_input.c - see token_input.h. */
#include "cli/token_input.h"

#include <errno.h>
#include <string.h>

enum status token_model_open(const struct cli_invocation *invocation, const char *path,
                             struct token_model *ret, struct error *err)
{
    struct token_model model = { 0 };
    if (!path)
        return error_set(err, STATUS_USAGE,
                         "expected --model FILE, found none (see greta %s --help)",
                         invocation->command->name);
    enum status status = gguf_open(path, &model.file, err);
    if (!status)
        status = tokenizer_create(model.file, &model.tokenizer, err);
    if (status) {
        token_model_close(&model);
        return status;
    }
    if (tokenizer_info(model.tokenizer)->pre_missing)
        cli_warn(invocation,
                 "%s: tokenizer.ggml.pre: expected the name of a splitting rule, found no such "
                 "key; using 'default', tokens may be wrong",
                 path);
    *ret = model;
    return STATUS_OK;
}

void token_model_close(struct token_model *model)
{
    tokenizer_destroy(model->tokenizer);
    gguf_close(model->file);
    *model = (struct token_model){ 0 };
}

enum status token_input_read(size_t limit_bytes, struct text *text, struct error *err)
{
    char bytes[65536];
    size_t count;
    while ((count = fread(bytes, 1, sizeof(bytes), stdin)) > 0) {
        text_add_bytes(text, bytes, count);
        if (text->length > limit_bytes)
            return error_set(err, STATUS_LIMIT,
                             "standard input: expected at most %zu bytes, found more", limit_bytes);
    }
    if (ferror(stdin))
        return error_set_os(err, errno, "standard input: cannot read it");
    if (text->failed)
        return error_set(err, STATUS_NO_MEMORY, "no memory for standard input");
    return STATUS_OK;
}
