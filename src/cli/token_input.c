/* token_input.c - see token_input.h. */
#include "cli/token_input.h"

#include "cli/default_model.h"

#include <errno.h>
#include <string.h>

enum status token_model_open(const struct cli_invocation *invocation, const char *path,
                             struct token_model *ret, struct error *err)
{
    struct token_model model = { 0 };
    struct default_model bundled;
    TRY(default_model_path(path, &bundled, &path, err));
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

static enum status read_stream(FILE *stream, const char *name, size_t limit_bytes,
                               struct text *text, struct error *err)
{
    char bytes[65536];
    size_t count;
    while ((count = fread(bytes, 1, sizeof(bytes), stream)) > 0) {
        text_add_bytes(text, bytes, count);
        if (text->length > limit_bytes)
            return error_set(err, STATUS_LIMIT, "%s: expected at most %zu bytes, found more", name,
                             limit_bytes);
    }
    if (ferror(stream))
        return error_set_os(err, errno, "%s: cannot read it", name);
    if (text->failed)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for it", name);
    return STATUS_OK;
}

enum status token_input_read(size_t limit_bytes, struct text *text, struct error *err)
{
    return read_stream(stdin, "standard input", limit_bytes, text, err);
}

enum status token_input_read_file(const char *path, size_t limit_bytes, struct text *text,
                                  struct error *err)
{
    if (strcmp(path, "-") == 0)
        return token_input_read(limit_bytes, text, err);
    FILE *stream = fopen(path, "re");
    if (!stream)
        return error_set_os(err, errno, "%s: cannot open it", path);
    enum status status = read_stream(stream, path, limit_bytes, text, err);
    fclose(stream);
    return status;
}
