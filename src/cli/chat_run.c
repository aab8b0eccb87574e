/* chat_run.c - see chat_run.h. */
#include "cli/chat_run.h"

#include "cli/chat_template.h"

#include <stdio.h>
#include <string.h>

#define TOOLS_LIMIT_BYTES ((size_t)16 << 20)

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for the conversation");
}

/* ---- Opening --------------------------------------------------------------------------------- */

static enum status read_tools(struct chat_run *chat, const char *path, struct error *err)
{
    struct text text;
    json_error_t error;
    text_init(&text);
    enum status status = token_input_read_file(path, TOOLS_LIMIT_BYTES, &text, err);
    if (!status) {
        chat->tools = json_loadb(text_get(&text), text.length, JSON_ALLOW_NUL, &error);
        if (!json_is_array(chat->tools))
            status = error_set(err, STATUS_BAD_FILE, "%s: expected a JSON array of tools, found %s",
                               path, chat->tools ? "another value" : error.text);
    }
    text_release(&text);
    return status;
}

enum status chat_run_open(struct chat_run *chat, const struct cli_invocation *invocation,
                          const struct infer_settings *settings, struct template_failure *failure,
                          struct error *err)
{
    *chat = (struct chat_run){ .settings = *settings, .seed = infer_choose_seed(settings) };
    chat->run.invocation = invocation;
    chat->run.settings = &chat->settings;
    /* Each answer begins with the tokens of the turns before it, which need not run again. */
    const struct session_options options = { .wait_for_chunks = true, .share_from = 1 };
    if (settings->tools)
        TRY(read_tools(chat, settings->tools, err));
    TRY(infer_run_prepare_chat(&chat->run, err));
    TRY(chat_template_open(chat->run.file, settings->chat_template, chat->tools != NULL,
                           &chat->template, failure, err));
    TRY(session_create(chat->run.engine, chat->run.tokenizer, &options, &chat->session, err));
    return chat_begin_again(chat, settings->system, err);
}

void chat_run_release(struct chat_run *chat)
{
    session_destroy(chat->session);
    template_destroy(chat->template);
    json_decref(chat->messages);
    json_decref(chat->tools);
    infer_run_release(&chat->run);
}

/* ---- The conversation ------------------------------------------------------------------------ */

enum status chat_begin_again(struct chat_run *chat, const char *system, struct error *err)
{
    json_decref(chat->messages);
    chat->messages = json_array();
    if (!chat->messages)
        return no_memory(err);
    return system && system[0] ? chat_say(chat, "system", system, err) : STATUS_OK;
}

enum status chat_say(struct chat_run *chat, const char *role, const char *content,
                     struct error *err)
{
    json_t *message = json_pack("{s:s, s:s}", "role", role, "content", content);
    if (!message)
        return error_set(err, STATUS_USAGE, "expected UTF-8 text");
    return json_array_append_new(chat->messages, message) ? no_memory(err) : STATUS_OK;
}

bool chat_take_back(struct chat_run *chat, const char *role)
{
    size_t count = json_array_size(chat->messages);
    const json_t *last = count ? json_array_get(chat->messages, count - 1) : NULL;
    const char *is = json_string_value(json_object_get(last, "role"));
    return is && strcmp(is, role) == 0 && json_array_remove(chat->messages, count - 1) == 0;
}

enum status chat_say_result(struct chat_run *chat, const char *result, struct error *err)
{
    size_t results = 0, at = json_array_size(chat->messages);
    while (at > 0) {
        const json_t *message = json_array_get(chat->messages, --at);
        const char *role = json_string_value(json_object_get(message, "role"));
        const json_t *call = json_array_get(json_object_get(message, "tool_calls"), results);
        if (call) {
            TRY(chat_say(chat, "tool", result, err));
            json_t *said = json_array_get(chat->messages, json_array_size(chat->messages) - 1);
            json_object_set(said, "tool_call_id", json_object_get(call, "id"));
            json_object_set(said, "name",
                            json_object_get(json_object_get(call, "function"), "name"));
            return STATUS_OK;
        }
        if (!role || strcmp(role, "tool") != 0)
            break;
        results++;
    }
    return error_set(err, STATUS_USAGE, "/tool: there is no call without a result");
}
