/* chat_commands.c - what begins with a slash in a conversation. */
#include "cli/chat_run.h"

#include "base/outfile.h"
#include "cli/token_input.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct command_result {
    bool leave, answer;
};

typedef enum status (*run_function)(struct chat_run *chat, const char *rest,
                                    struct command_result *result, struct error *err);

static enum status run_help(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err);

static enum status run_system(struct chat_run *chat, const char *rest,
                              struct command_result *result, struct error *err)
{
    (void)result;
    fprintf(stderr, "(a new conversation, %s)\n",
            rest[0] ? "with this system prompt" : "without a system prompt");
    return chat_begin_again(chat, rest, err);
}

static enum status run_clear(struct chat_run *chat, const char *rest, struct command_result *result,
                             struct error *err)
{
    char *system = NULL;
    const json_t *first = json_array_get(chat->messages, 0);
    const char *role = json_string_value(json_object_get(first, "role"));
    (void)rest;
    (void)result;
    if (role && strcmp(role, "system") == 0)
        system = strdup(json_string_value(json_object_get(first, "content")));
    enum status status = chat_begin_again(chat, system, err);
    free(system);
    fputs("(a new conversation)\n", stderr);
    return status;
}

static enum status run_save(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err)
{
    struct outfile out;
    (void)result;
    if (!rest[0])
        return error_set(err, STATUS_USAGE, "/save: expected a file name");
    char *json = json_dumps(chat->messages, JSON_INDENT(2));
    if (!json)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the conversation");
    enum status status = outfile_open_private(&out, rest, true, err);
    if (!status)
        status = outfile_write(&out, json, strlen(json), err);
    if (!status)
        status = outfile_write(&out, "\n", 1, err);
    if (!status)
        status = outfile_commit(&out, err);
    outfile_release(&out);
    free(json);
    if (!status)
        fprintf(stderr, "(saved %zu messages)\n", json_array_size(chat->messages));
    return status;
}

static bool are_messages(const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++)
        if (!json_is_string(json_object_get(json_array_get(messages, i), "role")))
            return false;
    return json_is_array(messages);
}

#define CONVERSATION_LIMIT_BYTES ((size_t)64 << 20)

static enum status run_load(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err)
{
    struct text text;
    json_error_t error;
    (void)result;
    if (!rest[0])
        return error_set(err, STATUS_USAGE, "/load: expected a file name");
    text_init(&text);
    enum status status = token_input_read_file(rest, CONVERSATION_LIMIT_BYTES, &text, err);
    if (!status) {
        json_t *messages = json_loadb(text_get(&text), text.length, 0, &error);
        if (are_messages(messages)) {
            json_decref(chat->messages);
            chat->messages = messages;
            fprintf(stderr, "(loaded %zu messages)\n", json_array_size(messages));
        } else {
            status = error_set(err, STATUS_BAD_FILE,
                               "%s: expected a JSON array of messages with roles", rest);
            json_decref(messages);
        }
    }
    text_release(&text);
    return status;
}

static enum status run_regen(struct chat_run *chat, const char *rest, struct command_result *result,
                             struct error *err)
{
    (void)rest;
    if (!chat_take_back(chat, "assistant"))
        return error_set(err, STATUS_USAGE, "/regen: there is no answer yet");
    result->answer = true;
    return STATUS_OK;
}

/* The model goes on when all its calls have results. */
static enum status run_tool(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err)
{
    TRY(chat_say_result(chat, rest, err));
    const json_t *calls = NULL;
    size_t results = 0, at = json_array_size(chat->messages);
    while (!calls && at > 0) {
        calls = json_object_get(json_array_get(chat->messages, --at), "tool_calls");
        results += !calls;
    }
    result->answer = results >= json_array_size(calls);
    return STATUS_OK;
}

/* ---- Settings -------------------------------------------------------------------------------- */

enum setting_kind { SETTING_F32, SETTING_U32, SETTING_I32, SETTING_SEED };

static const struct {
    const char *name;
    enum setting_kind kind;
    size_t offset;
} settings_rows[] = {
    { "temp", SETTING_F32, offsetof(struct infer_settings, temperature) },
    { "top-k", SETTING_U32, offsetof(struct infer_settings, top_k) },
    { "top-p", SETTING_F32, offsetof(struct infer_settings, top_p) },
    { "min-p", SETTING_F32, offsetof(struct infer_settings, min_p) },
    { "repeat-penalty", SETTING_F32, offsetof(struct infer_settings, repeat_penalty) },
    { "presence-penalty", SETTING_F32, offsetof(struct infer_settings, presence_penalty) },
    { "frequency-penalty", SETTING_F32, offsetof(struct infer_settings, frequency_penalty) },
    { "max-tokens", SETTING_I32, offsetof(struct infer_settings, max_tokens) },
    { "seed", SETTING_SEED, 0 },
};

static void show_settings(const struct chat_run *chat)
{
    for (size_t i = 0; i < COUNT_OF(settings_rows); i++) {
        const char *at = (const char *)&chat->settings + settings_rows[i].offset;
        fprintf(stderr, "  %s=", settings_rows[i].name);
        switch (settings_rows[i].kind) {
        case SETTING_F32:
            fprintf(stderr, "%g\n", (double)*(const float *)(const void *)at);
            break;
        case SETTING_U32:
            fprintf(stderr, "%u\n", *(const uint32_t *)(const void *)at);
            break;
        case SETTING_I32:
            fprintf(stderr, "%d\n", *(const int32_t *)(const void *)at);
            break;
        default:
            fprintf(stderr, "%" PRIu64 "\n", chat->seed);
        }
    }
}

static bool set_number(struct chat_run *chat, struct infer_settings *settings, size_t row,
                       const char *text)
{
    char *end, *at = (char *)settings + settings_rows[row].offset;
    double number = strtod(text, &end);
    bool is_whole = number >= -2147483648.0 && number <= 4294967295.0 &&
                    number == (double)(int64_t)number;
    if (end == text || *end)
        return false;
    switch (settings_rows[row].kind) {
    case SETTING_F32:
        *(float *)(void *)at = (float)number;
        return true;
    case SETTING_U32:
        if (is_whole && number >= 0)
            *(uint32_t *)(void *)at = (uint32_t)number;
        return is_whole && number >= 0;
    case SETTING_I32:
        if (is_whole && number <= 2147483647.0)
            *(int32_t *)(void *)at = (int32_t)number;
        return is_whole && number <= 2147483647.0;
    default:
        if (is_whole && number >= 0)
            chat->seed = (uint64_t)number;
        return is_whole && number >= 0;
    }
}

static enum status run_set(struct chat_run *chat, const char *rest, struct command_result *result,
                           struct error *err)
{
    struct infer_settings changed = chat->settings;
    size_t length = strcspn(rest, "= ");
    (void)result;
    if (!rest[0]) {
        show_settings(chat);
        return STATUS_OK;
    }
    for (size_t i = 0; i < COUNT_OF(settings_rows); i++) {
        const char *name = settings_rows[i].name;
        if (strlen(name) != length || strncmp(rest, name, length) != 0)
            continue;
        if (!rest[length] || !set_number(chat, &changed, i, rest + length + 1))
            return error_set(err, STATUS_USAGE, "/set %s: expected %s=NUMBER", name, name);
        struct sampler_settings sampling = infer_sampling(&changed, 0, 0);
        TRY(sampler_check(&sampling, err));
        chat->settings = changed;
        return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "/set: there is no setting '%.*s'; /set lists them",
                     (int)length, rest);
}

static double per_second(uint64_t count, uint64_t ns)
{
    return ns ? (double)count * 1e9 / (double)ns : 0;
}

static void show_totals(const char *what, const struct chat_totals *totals)
{
    uint64_t run = totals->prompt_tokens - totals->shared_tokens;
    fprintf(stderr,
            "%s: prompt %" PRIu64 " tokens (%" PRIu64 " kept from before), %.1f tokens/s; "
            "answer %" PRIu64 " tokens, %.1f tokens/s\n",
            what, totals->prompt_tokens, totals->shared_tokens, per_second(run, totals->prompt_ns),
            totals->answer_tokens, per_second(totals->answer_tokens, totals->answer_ns));
}

static enum status run_stats(struct chat_run *chat, const char *rest, struct command_result *result,
                             struct error *err)
{
    (void)rest;
    (void)result;
    (void)err;
    show_totals("last answer", &chat->last);
    show_totals("all answers", &chat->totals);
    fprintf(stderr, "context: %u of %u tokens\n", engine_length(chat->run.engine, 0),
            engine_budget(chat->run.engine)->options.context);
    return STATUS_OK;
}

static enum status run_exit(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err)
{
    (void)chat;
    (void)rest;
    (void)err;
    result->leave = true;
    return STATUS_OK;
}

static const struct {
    const char *name, *argument, *help;
    run_function run;
} commands[] = {
    { "help", "", "this list", run_help },
    { "system", " TEXT", "begin again with this system prompt", run_system },
    { "clear", "", "begin again with the same system prompt", run_clear },
    { "regen", "", "write the last answer again", run_regen },
    { "tool", " RESULT", "the result of the next call of a tool", run_tool },
    { "set", " NAME=NUMBER", "change a setting, such as temp=0.5; without NAME: list them",
      run_set },
    { "save", " FILE", "write the conversation as JSON", run_save },
    { "load", " FILE", "go on with a saved conversation", run_load },
    { "stats", "", "tokens and speed", run_stats },
    { "exit", "", "leave; Ctrl-D too", run_exit },
    { "quit", "", "the same", run_exit },
};

static enum status run_help(struct chat_run *chat, const char *rest, struct command_result *result,
                            struct error *err)
{
    (void)chat;
    (void)rest;
    (void)result;
    (void)err;
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        int width = 20 - (int)strlen(commands[i].name);
        fprintf(stderr, "  /%s%-*s %s\n", commands[i].name, width, commands[i].argument,
                commands[i].help);
    }
    fputs("A line that ends with \\ goes on in the next one; \"\"\" begins and ends a text of "
          "several lines.\nCtrl-C ends an answer.\n",
          stderr);
    return STATUS_OK;
}

enum status chat_command(struct chat_run *chat, const char *line, bool *ret_leave, bool *ret_answer,
                         struct error *err)
{
    struct command_result result = { false, false };
    size_t length = strcspn(line + 1, " ");
    const char *rest = line + 1 + length;
    while (*rest == ' ')
        rest++;
    for (size_t i = 0; i < COUNT_OF(commands); i++)
        if (strlen(commands[i].name) == length &&
            strncmp(line + 1, commands[i].name, length) == 0) {
            enum status status = commands[i].run(chat, rest, &result, err);
            *ret_leave = result.leave;
            *ret_answer = result.answer;
            return status;
        }
    return error_set(err, STATUS_USAGE, "there is no command '%.40s'; /help lists them", line);
}
