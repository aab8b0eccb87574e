/* cmd_render.c - greta render: the text that a model reads of a conversation. */
#include "cli/chat_template.h"
#include "cli/token_input.h"

#include <string.h>

struct settings {
    const char *model, *template, *now, *variables;
    bool continue_final;
};

static const struct settings defaults = { 0 };

static const struct cli_option options[] = {
    { "--model|-m", "FILE", CLI_TEXT, offsetof(struct settings, model),
      "GGUF file with the chat template, whose special tokens are variables too", NULL, true },
    { "--chat-template", "NAME|FILE", CLI_TEXT, offsetof(struct settings, template),
      CHAT_TEMPLATE_HELP, NULL, true },
    { "--variables", "FILE", CLI_TEXT, offsetof(struct settings, variables),
      "JSON object with the template's variables (messages, tools, add_generation_prompt, ...); - "
      "is standard input",
      NULL, true },
    { "--now", "TIME", CLI_TEXT, offsetof(struct settings, now),
      "what strftime_now gives, as 2026-02-03T04:05:06 (default: the local time)", NULL, false },
    { "--continue-final-message", NULL, CLI_FLAG, offsetof(struct settings, continue_final),
      "end where the last message ends, for the model to go on with it", NULL, false },
};

#define VARIABLES_LIMIT_BYTES ((size_t)64 << 20)

static enum status read_variables(const char *path, json_t **ret, struct error *err)
{
    struct text text;
    json_error_t error;
    if (!path)
        return error_set(err, STATUS_USAGE, "expected --variables FILE, found none");
    text_init(&text);
    enum status status = token_input_read_file(path, VARIABLES_LIMIT_BYTES, &text, err);
    if (status)
        goto done;
    json_t *json = json_loadb(text_get(&text), text.length, JSON_ALLOW_NUL, &error);
    if (!json_is_object(json)) {
        status = error_set(err, STATUS_BAD_FILE, "%s: line %d: expected a JSON object, found %s",
                           path, json ? 1 : error.line, json ? "another value" : error.text);
        json_decref(json);
        goto done;
    }
    *ret = json;
done:
    text_release(&text);
    return status;
}

/* A minute of 60 seconds is a leap second. */
static enum status parse_now(const char *text, struct tm *ret, struct error *err)
{
    struct tm now = { .tm_isdst = -1 };
    int length = 0;
    int count = sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &now.tm_year, &now.tm_mon, &now.tm_mday,
                       &now.tm_hour, &now.tm_min, &now.tm_sec, &length);
    struct tm wanted = now;
    now.tm_year -= 1900;
    now.tm_mon--;
    if (count != 6 || text[length] || now.tm_mon < 0 || now.tm_mon > 11 || now.tm_hour < 0 ||
        now.tm_hour > 23 || now.tm_min < 0 || now.tm_min > 59 || now.tm_sec < 0 ||
        now.tm_sec > 60 || mktime(&now) == (time_t)-1 || now.tm_mday != wanted.tm_mday)
        return error_set(err, STATUS_USAGE,
                         "--now: expected a time such as 2026-02-03T04:05:06, found '%s'", text);
    *ret = now;
    return STATUS_OK;
}

static enum cli_exit run_render(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    struct chat_source source = { 0 };
    struct chat_rendering rendering = { .now = chat_now(),
                                        .continue_final = settings->continue_final };
    struct template_failure failure;
    json_t *variables = NULL;
    struct text out;
    struct error err;
    text_init(&out);
    template_failure_init(&failure);
    enum status status = STATUS_OK;
    if (settings->now)
        status = parse_now(settings->now, &rendering.now, &err);
    if (!status)
        status = read_variables(settings->variables, &variables, &err);
    if (!status)
        status = chat_source_open(&source, invocation, settings->model, settings->template,
                                  json_array_size(json_object_get(variables, "tools")) > 0,
                                  &failure, &err);
    if (!status && source.model.tokenizer)
        status = chat_add_tokens(variables, source.model.tokenizer, &err);
    if (!status) {
        rendering.variables = variables;
        status = chat_render(source.template, &rendering, &out, &failure, &err);
    }
    if (!status) {
        fwrite(text_get(&out), 1, out.length, stdout);
        if (fflush(stdout) != 0)
            status = error_set(&err, STATUS_IO, "cannot write to standard output");
    }
    enum cli_exit code = status ? chat_fail(invocation, &failure, &err) : CLI_EXIT_OK;
    template_failure_release(&failure);
    chat_source_close(&source);
    json_decref(variables);
    text_release(&out);
    return code;
}

const struct cli_command cli_render = {
    .name = "render",
    .operands = "",
    .summary = "show the text a model reads of a conversation",
    .description =
        "Renders a conversation with a chat template and prints the text, byte for byte and "
        "without a newline of its own. The variables are one JSON object: messages, tools, "
        "documents, add_generation_prompt, bos_token and whatever else the template reads; one "
        "that is absent is undefined.\n\n"
        "With --model the template is the file's: tool_use if there are tools and such a template, "
        "otherwise the default one; special tokens that the variables do not have are the file's "
        "too.\n\n"
        "Exit status 1 if the template fails; the message of raise_exception is printed as it is, "
        "every other one has a line and a column. 2 if the request makes no sense, 3 if a file "
        "cannot be read. docs/chat-templates.md has the limits.",
    .examples =
        "  greta render --model model.gguf --variables conversation.json\n"
        "  greta render --chat-template chat_template.jinja --variables conversation.json\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_render,
};
