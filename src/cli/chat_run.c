/* chat_run.c - see chat_run.h. */
#include "cli/chat_run.h"

#include "cli/chat_template.h"
#include "cli/colour.h"

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

/* What the template is given. */
static json_t *variables_of(const struct chat_run *chat)
{
    json_t *variables = json_pack("{s:O, s:O?, s:n, s:b}", "messages", chat->messages, "tools",
                                  chat->tools, "documents", "add_generation_prompt", 1);
    const char *reasoning = chat->settings.reasoning;
    if (!variables || strcmp(reasoning, "auto") == 0)
        return variables;
    bool on = strcmp(reasoning, "off") != 0;
    json_object_set_new(variables, "enable_thinking", json_boolean(on));
    json_object_set_new(variables, "thinking", json_boolean(on));
    if (on && strcmp(reasoning, "on") != 0)
        json_object_set_new(variables, "reasoning_effort", json_string(reasoning));
    return variables;
}

static enum status render(struct chat_run *chat, struct text *prompt,
                          struct template_failure *failure, struct error *err)
{
    struct chat_rendering rendering = { .now = chat_now() };
    json_t *variables = variables_of(chat);
    if (!variables)
        return no_memory(err);
    enum status status = chat_add_tokens(variables, chat->run.tokenizer, err);
    rendering.variables = variables;
    if (!status)
        status = chat_render(chat->template, &rendering, prompt, failure, err);
    json_decref(variables);
    return status;
}

/* ---- An answer ------------------------------------------------------------------------------- */

struct answer {
    struct chat_run *chat;
    struct chat_reply reply;
    struct text parts[CHAT_PART_COUNT];
    bool dimmed, colour;
    bool ended;
    enum session_reason reason;
    struct error failure;
};

static void set_dimmed(struct answer *answer, bool dimmed)
{
    if (dimmed == answer->dimmed)
        return;
    if (answer->colour)
        fputs(dimmed ? "\033[2m" : "\033[0m\n\n", stdout);
    answer->dimmed = dimmed;
}

/* Reasoning is dimmed on a terminal and left out of a pipe. */
static void on_part(void *context, enum chat_part part, struct text_view text)
{
    struct answer *answer = context;
    text_add_bytes(&answer->parts[part], text.bytes, text.length);
    if (part == CHAT_PART_REASONING && !answer->colour)
        return;
    set_dimmed(answer, part == CHAT_PART_REASONING);
    fwrite(text.bytes, 1, text.length, stdout);
}

static void on_event(struct answer *answer, const struct session_event *event)
{
    struct chat_run *chat = answer->chat;
    const struct tokenizer *tokenizer = chat->run.tokenizer;
    if (event->kind == SESSION_PROMPT) {
        if (event->prompt.done < event->prompt.total && chat->last.prompt_tokens == 0)
            chat->last.shared_tokens = event->prompt.done;
        chat->last.prompt_tokens = event->prompt.total;
    } else if (event->kind == SESSION_TOKEN) {
        bool control = tokenizer_token_type(tokenizer, event->token.id) == TOKENIZER_CONTROL;
        chat->last.answer_tokens++;
        if (!control || (!tokenizer_is_end(tokenizer, event->token.id) &&
                         chat_reply_wants(tokenizer_token_text(tokenizer, event->token.id))))
            chat_reply_add(&answer->reply, event->token.text);
    } else {
        answer->ended = true;
        answer->reason = event->end.reason;
        if (event->end.error)
            answer->failure = *event->end.error;
    }
}

static enum status run_request(struct answer *answer, uint64_t id, struct error *err)
{
    struct session *session = answer->chat->session;
    struct session_event event;
    while (!answer->ended) {
        enum status status = cli_is_interrupted() ? STATUS_OK : session_step(session, err);
        if (cli_is_interrupted())
            session_cancel(session, id);
        while (session_take(session, &event))
            on_event(answer, &event);
        fflush(stdout);
        TRY(status);
    }
    if (answer->reason != SESSION_FAILED)
        return STATUS_OK;
    *err = answer->failure;
    return err->status;
}

static enum status add_request(struct chat_run *chat, const struct tokenizer_ids *ids,
                               uint64_t *ret_id, struct error *err)
{
    const struct infer_settings *settings = &chat->settings;
    uint32_t context = engine_budget(chat->run.engine)->options.context;
    if (ids->count >= context)
        return error_set(err, STATUS_LIMIT,
                         "the conversation has %zu tokens and the context %u; /clear forgets it, "
                         "--ctx-size makes a larger context",
                         ids->count, context);
    struct session_request request = {
        .ids = ids->ids,
        .id_count = ids->count,
        .sampling = infer_sampling(settings, context, chat->seed++),
        .token_limit = settings->max_tokens >= 0 ? (uint32_t)settings->max_tokens
                                                 : SESSION_NO_LIMIT,
        .stops = chat->run.stop_texts,
        .stop_count = settings->stops.count,
        .show_special = true, /* what divides an answer may be control tokens */
    };
    return session_add(chat->session, &request, ret_id, err);
}

static enum status keep_answer(struct answer *answer, struct error *err)
{
    struct text *parts = answer->parts;
    struct chat_run *chat = answer->chat;
    text_add_bytes(&parts[CHAT_PART_CONTENT], text_get(&parts[CHAT_PART_TOOLS]),
                   parts[CHAT_PART_TOOLS].length);
    TRY(chat_say(chat, "assistant", text_get(&parts[CHAT_PART_CONTENT]), err));
    json_t *message = json_array_get(chat->messages, json_array_size(chat->messages) - 1);
    if (parts[CHAT_PART_REASONING].length)
        json_object_set_new(message, "reasoning_content",
                            json_string(text_get(&parts[CHAT_PART_REASONING])));
    return STATUS_OK;
}

static void add_totals(struct chat_run *chat, const struct session_timing *before)
{
    const struct session_timing *now = session_timing(chat->session);
    struct chat_totals *last = &chat->last, *all = &chat->totals;
    last->prompt_ns = now->prompt_ns - before->prompt_ns;
    last->answer_ns = now->decode_ns - before->decode_ns;
    all->prompt_tokens += last->prompt_tokens;
    all->shared_tokens += last->shared_tokens;
    all->answer_tokens += last->answer_tokens;
    all->prompt_ns += last->prompt_ns;
    all->answer_ns += last->answer_ns;
    all->answers++;
}

static enum status write_answer(struct answer *answer, const struct tokenizer_ids *ids,
                                struct text_view prompt, struct error *err)
{
    struct chat_run *chat = answer->chat;
    struct session_timing before = *session_timing(chat->session);
    uint64_t id;
    chat->last = (struct chat_totals){ 0 };
    chat_reply_begin(&answer->reply, prompt, on_part, answer);
    enum status status = add_request(chat, ids, &id, err);
    if (!status)
        status = run_request(answer, id, err);
    chat_reply_end(&answer->reply);
    if (answer->dimmed && answer->colour)
        fputs("\033[0m", stdout);
    chat_reply_release(&answer->reply);
    add_totals(chat, &before);
    return status ? status : keep_answer(answer, err);
}

enum status chat_answer(struct chat_run *chat, struct template_failure *failure, struct error *err)
{
    struct answer answer = { .chat = chat, .colour = chat->run.invocation->colour_out };
    struct tokenizer_ids ids;
    struct text prompt;
    text_init(&prompt);
    tokenizer_ids_init(&ids);
    for (size_t i = 0; i < CHAT_PART_COUNT; i++)
        text_init(&answer.parts[i]);
    enum status status = render(chat, &prompt, failure, err);
    struct text_view view = { text_get(&prompt), prompt.length };
    if (!status)
        status = chat_encode(chat->run.tokenizer, view, &ids, err);
    if (!status)
        status = write_answer(&answer, &ids, view, err);
    if (!status) {
        fputc('\n', stdout);
        fflush(stdout);
    }
    for (size_t i = 0; i < CHAT_PART_COUNT; i++)
        text_release(&answer.parts[i]);
    tokenizer_ids_release(&ids);
    text_release(&prompt);
    return status;
}
