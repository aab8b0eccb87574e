/* chat_answer.c - one answer: the conversation as tokens, what the model writes, what is kept of
 * it. */
#include "cli/chat_run.h"

#include <stdio.h>
#include <string.h>

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_NO_MEMORY, "no memory for the conversation");
}

/* An answer that must fit a grammar is all content: it has no place for thoughts or calls. */
static bool is_constrained(const struct chat_run *chat)
{
    return chat->run.grammar.grammar != NULL;
}

/* What the template is given. */
static json_t *variables_of(const struct chat_run *chat)
{
    json_t *variables = json_pack("{s:O, s:O?, s:n, s:b}", "messages", chat->messages, "tools",
                                  chat->tools, "documents", "add_generation_prompt", 1);
    const char *reasoning = is_constrained(chat) ? "off" : chat->settings.reasoning;
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
    if (part == CHAT_PART_TOOLS || (part == CHAT_PART_REASONING && !answer->colour))
        return;
    set_dimmed(answer, part == CHAT_PART_REASONING);
    fwrite(text.bytes, 1, text.length, stdout);
}

/* The text of a token without that of control tokens that mean nothing to people. Before it there
 * may be text that was held back. */
static struct text_view text_for_people(const struct tokenizer *tokenizer,
                                        const struct session_event *event)
{
    struct text_view text = event->token.text;
    struct text_view own = tokenizer_token_text(tokenizer, event->token.id);
    enum tokenizer_type type = tokenizer_token_type(tokenizer, event->token.id);
    bool control = type == TOKENIZER_CONTROL || type == TOKENIZER_UNKNOWN;
    bool hidden = tokenizer_is_end(tokenizer, event->token.id) ||
                  (control && !chat_reply_wants(own));
    if (hidden && text.length >= own.length &&
        memcmp(text.bytes + text.length - own.length, own.bytes, own.length) == 0)
        text.length -= own.length;
    return text;
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
        chat->last.answer_tokens++;
        if (is_constrained(chat))
            on_part(answer, CHAT_PART_CONTENT, text_for_people(tokenizer, event));
        else
            chat_reply_add(&answer->reply, text_for_people(tokenizer, event));
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
        .grammar = chat->run.grammar.grammar,
    };
    return session_add(chat->session, &request, ret_id, err);
}

/* Templates want the arguments of calls as objects, and OpenAI's clients as text. */
static enum status add_calls(json_t *message, json_t *calls, struct error *err)
{
    json_t *kept = json_deep_copy(calls);
    for (size_t i = 0; i < json_array_size(kept); i++) {
        json_t *function = json_object_get(json_array_get(kept, i), "function");
        const char *text = json_string_value(json_object_get(function, "arguments"));
        json_object_set_new(function, "arguments",
                            json_loads(text ? text : "{}", JSON_ALLOW_NUL, NULL));
    }
    return json_object_set_new(message, "tool_calls", kept) ? no_memory(err) : STATUS_OK;
}

static void print_calls(const json_t *calls)
{
    for (size_t i = 0; i < json_array_size(calls); i++) {
        fputc('\n', stdout);
        json_dumpf(json_array_get(calls, i), stdout, 0);
    }
}

/* Calls are in a part of their own, or the whole answer is one. What cannot be read as a call stays
 * text. */
static enum status find_calls(struct answer *answer, json_t **ret_calls, struct error *err)
{
    struct text *tools = &answer->parts[CHAT_PART_TOOLS];
    struct text *content = &answer->parts[CHAT_PART_CONTENT];
    struct text *written = tools->length ? tools : content;
    struct chat_run *chat = answer->chat;
    TRY(chat_tool_calls((struct text_view){ text_get(written), written->length }, chat->tools,
                        chat->call_count, ret_calls, err));
    size_t count = json_array_size(*ret_calls);
    chat->call_count += (uint32_t)count;
    if (count > 0 && written == content)
        text_clear(content);
    if (count == 0 && written == tools) {
        fwrite(text_get(tools), 1, tools->length, stdout);
        text_add_bytes(content, text_get(tools), tools->length);
    }
    return STATUS_OK;
}

static enum status keep_answer(struct answer *answer, struct error *err)
{
    struct text *parts = answer->parts;
    struct chat_run *chat = answer->chat;
    json_t *calls = NULL;
    if (!is_constrained(chat))
        TRY(find_calls(answer, &calls, err));
    enum status status = chat_say(chat, "assistant", text_get(&parts[CHAT_PART_CONTENT]), err);
    json_t *message = json_array_get(chat->messages, json_array_size(chat->messages) - 1);
    if (!status && parts[CHAT_PART_REASONING].length)
        json_object_set_new(message, "reasoning_content",
                            json_string(text_get(&parts[CHAT_PART_REASONING])));
    if (!status && json_array_size(calls)) {
        print_calls(calls);
        status = add_calls(message, calls, err);
    }
    json_decref(calls);
    return status;
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
    chat->reason = answer->reason;
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
