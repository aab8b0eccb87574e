/* chat_template.c - see chat_template.h. */
#include "cli/chat_template.h"

#include "cli/colour.h"

#include <string.h>
#include <unistd.h>

#define TEMPLATE_LIMIT_BYTES ((size_t)2 << 20)

static enum status parse_file(const char *path, struct template **ret,
                              struct template_failure *failure, struct error *err)
{
    struct text source;
    text_init(&source);
    enum status status = token_input_read_file(path, TEMPLATE_LIMIT_BYTES, &source, err);
    if (!status)
        status = template_parse((struct text_view){ text_get(&source), source.length }, ret,
                                failure, err);
    text_release(&source);
    return status;
}

enum status chat_template_open(const struct gguf_file *file, const char *named, bool with_tools,
                               struct template **ret, struct template_failure *failure,
                               struct error *err)
{
    struct text_view source;
    const char *known = named ? chat_template_known(named) : NULL;
    if (named && (access(named, F_OK) == 0 || strcmp(named, "-") == 0 || (!file && !known)))
        return parse_file(named, ret, failure, err);
    if (known)
        source = text_view_of(known);
    else
        TRY(chat_template_find(file, named, with_tools, &source, err));
    return template_parse(source, ret, failure, err);
}

enum status chat_source_open(struct chat_source *source, const struct cli_invocation *invocation,
                             const char *model, const char *named, bool with_tools,
                             struct template_failure *failure, struct error *err)
{
    *source = (struct chat_source){ 0 };
    if (!model && !named)
        return error_set(err, STATUS_USAGE, "expected --model or --chat-template, found neither");
    if (model)
        TRY(token_model_open(invocation, model, &source->model, err));
    return chat_template_open(source->model.file, named, with_tools, &source->template, failure,
                              err);
}

void chat_source_close(struct chat_source *source)
{
    template_destroy(source->template);
    token_model_close(&source->model);
    *source = (struct chat_source){ 0 };
}

/* Line by line: what a terminal would obey is shown instead. */
static void put_message(const struct template_failure *failure)
{
    struct text shown;
    const char *message = text_get(&failure->message);
    size_t left = failure->message.length;
    text_init(&shown);
    while (left > 0) {
        const char *end = memchr(message, '\n', left);
        size_t length = end ? (size_t)(end - message) : left;
        text_add_printable(&shown, (struct text_view){ message, length }, SIZE_MAX);
        text_add(&shown, end ? "\n" : "");
        message += length + (end ? 1 : 0);
        left -= length + (end ? 1 : 0);
    }
    fwrite(text_get(&shown), 1, shown.length, stderr);
    fputc('\n', stderr);
    text_release(&shown);
}

enum cli_exit chat_fail(const struct cli_invocation *invocation,
                        const struct template_failure *failure, const struct error *err)
{
    if (failure->problem == TEMPLATE_PROBLEM_NONE)
        return cli_fail(invocation, err);
    fprintf(stderr, "%sgreta %s:%s ", cli_colour_begin(invocation->colour_err, CLI_COLOUR_BAD),
            invocation->command->name, cli_colour_end(invocation->colour_err));
    if (failure->problem != TEMPLATE_PROBLEM_RAISED && failure->line)
        fprintf(stderr, "template: line %u, column %u: ", failure->line, failure->column);
    put_message(failure);
    return CLI_EXIT_FAILED;
}
