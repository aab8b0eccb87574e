/* chat_main.c - greta chat: the loop of a conversation, and a single answer. */
#include "cli/chat_run.h"

#include "cli/chat_template.h"
#include "cli/colour.h"
#include "cli/line_input.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FENCE "\"\"\""

/* ---- Input ----------------------------------------------------------------------------------- */

/* Lines between two fences, the first of which began `entry`. */
static enum status read_fenced(struct line_input *input, struct text *entry, struct error *err)
{
    struct text line, first;
    text_init(&line);
    text_init(&first);
    text_add(&first, text_get(entry) + strlen(FENCE));
    text_clear(entry);
    text_add(entry, text_get(&first));
    enum status status = STATUS_OK;
    char *end = strstr(entry->bytes, FENCE);
    for (bool begun = entry->length > 0; !end && !status; begun = true) {
        status = line_input_read(input, true, &line, err);
        if (status)
            break;
        text_add(entry, begun ? "\n" : "");
        text_add(entry, text_get(&line));
        end = strstr(entry->bytes, FENCE);
    }
    if (end)
        entry->length = (size_t)(end - entry->bytes);
    if (entry->bytes)
        entry->bytes[entry->length] = '\0';
    text_release(&line);
    text_release(&first);
    return status;
}

/* What a person enters: a line, lines that end with a backslash and the next, or lines between
 * fences. */
static enum status read_entry(struct line_input *input, struct text *entry, struct error *err)
{
    struct text line;
    TRY(line_input_read(input, false, entry, err));
    if (strncmp(text_get(entry), FENCE, strlen(FENCE)) == 0)
        return read_fenced(input, entry, err);
    enum status status = STATUS_OK;
    text_init(&line);
    while (!status && entry->length > 0 && entry->bytes[entry->length - 1] == '\\') {
        entry->bytes[entry->length - 1] = '\n';
        status = line_input_read(input, true, &line, err);
        if (!status)
            text_add(entry, text_get(&line));
    }
    text_release(&line);
    return status;
}

/* ---- The conversation ------------------------------------------------------------------------ */

/* A failure that the conversation survives: it is reported, and what was said since there were
 * `before` messages is taken back. True if the next turn makes sense. */
static bool survives(const struct cli_invocation *invocation, struct chat_run *chat, size_t before,
                     struct template_failure *failure, const struct error *err)
{
    bool is_own = failure->problem != TEMPLATE_PROBLEM_NONE || err->status == STATUS_USAGE ||
                  err->status == STATUS_LIMIT || err->status == STATUS_NOT_FOUND ||
                  err->status == STATUS_BAD_FILE || err->status == STATUS_IO;
    (void)chat_fail(invocation, failure, err);
    if (json_array_size(chat->messages) != before)
        (void)chat_take_back(chat, "user");
    template_failure_release(failure);
    template_failure_init(failure);
    return is_own;
}

/* An answer that was not finished looks like one that was. */
static void report_cut(const struct chat_run *chat)
{
    if (chat->run.invocation->quiet)
        return;
    if (chat->reason == SESSION_LENGTH)
        fputs("(the answer is cut off: it has as many tokens as --max-tokens allows)\n", stderr);
    else if (chat->reason == SESSION_CONTEXT)
        fputs("(the answer is cut off: the context is full; /clear forgets the conversation)\n",
              stderr);
}

/* A message with a NUL would be cut off there. */
static enum status check_text(const struct text *text, struct error *err)
{
    size_t length = strlen(text_get(text));
    return length == text->length
               ? STATUS_OK
               : error_set(err, STATUS_USAGE,
                           "message: expected text without NUL bytes, found one after %zu bytes",
                           length);
}

/* One entry and what follows from it. */
static enum status take_turn(struct chat_run *chat, const struct text *said, bool *ret_leave,
                             struct template_failure *failure, struct error *err)
{
    const char *entry = text_get(said);
    bool answer = true;
    TRY(check_text(said, err));
    if (entry[0] == '/')
        TRY(chat_command(chat, entry, ret_leave, &answer, err));
    else if (entry[0])
        TRY(chat_say(chat, "user", entry, err));
    else
        return STATUS_OK;
    if (!answer || *ret_leave)
        return STATUS_OK;
    TRY(chat_answer(chat, failure, err));
    report_cut(chat);
    if (chat->run.invocation->colour_out)
        fputc('\n', stdout);
    return STATUS_OK;
}

static enum status open_input(const struct cli_invocation *invocation, struct line_input **ret,
                              struct error *err)
{
    char path[CLI_FOLDER_BYTES + 32];
    const char *folder = invocation->environment->cache_folder;
    bool editing = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    if (folder[0] && mkdir(folder, 0700) != 0 && access(folder, W_OK) != 0)
        folder = "";
    snprintf(path, sizeof(path), "%s/chat_history", folder);
    if (editing && !invocation->quiet)
        fputs("/help lists commands; Ctrl-C ends an answer, Ctrl-D the conversation\n\n", stderr);
    return line_input_open(editing, folder[0] ? path : NULL, ret, err);
}

enum cli_exit chat_converse(const struct cli_invocation *invocation, struct chat_run *chat)
{
    struct line_input *input = NULL;
    struct template_failure failure;
    struct text entry;
    struct error err;
    bool leave = false;
    const char *first = chat->run.texts.count ? text_get(&chat->run.texts.texts[0]) : NULL;
    text_init(&entry);
    template_failure_init(&failure);
    enum status status = open_input(invocation, &input, &err);
    while (!status && !leave) {
        if (first)
            text_add(&entry, first);
        else
            status = read_entry(input, &entry, &err);
        first = NULL;
        if (status)
            break;
        line_input_remember(input, text_get(&entry));
        size_t before = json_array_size(chat->messages);
        status = take_turn(chat, &entry, &leave, &failure, &err);
        if (status && survives(invocation, chat, before, &failure, &err))
            status = STATUS_OK;
        text_clear(&entry);
        if (cli_is_interrupted() && !cli_forget_interrupt())
            status = error_set(&err, STATUS_INTERRUPTED, "interrupted");
    }
    line_input_close(input);
    text_release(&entry);
    template_failure_release(&failure);
    if (status == STATUS_NOT_FOUND || !status) /* the input has ended */
        return CLI_EXIT_OK;
    return status == STATUS_INTERRUPTED ? CLI_EXIT_INTERRUPTED : cli_fail(invocation, &err);
}

static enum cli_exit answer_once(const struct cli_invocation *invocation, struct chat_run *chat,
                                 struct template_failure *failure)
{
    struct error err;
    const struct text *said = &chat->run.texts.texts[0];
    enum status status = check_text(said, &err);
    if (!status)
        status = chat_say(chat, "user", text_get(said), &err);
    if (!status)
        status = chat_answer(chat, failure, &err);
    if (!status && ferror(stdout))
        status = error_set(&err, STATUS_IO, "cannot write to standard output");
    if (status)
        return chat_fail(invocation, failure, &err);
    if (!invocation->quiet)
        fprintf(stderr, "Seed: %llu\nEnded: %s\n", (unsigned long long)chat->seed - 1,
                chat->reason == SESSION_CANCELLED ? "interrupted"
                                                  : session_reason_name(chat->reason));
    return cli_is_interrupted() ? CLI_EXIT_INTERRUPTED : CLI_EXIT_OK;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static enum cli_exit tell_story(const struct cli_invocation *invocation,
                                const struct infer_settings *settings)
{
    struct infer_settings story = *settings;
    struct cli_invocation telling = *invocation;
    story.prompts = (struct cli_text_list){ .count = 1, .items = { "Once upon a time" } };
    story.show_prompt = true;
    if (story.max_tokens < 0)
        story.max_tokens = infer_defaults.max_tokens;
    telling.settings = &story;
    telling.operand_count = 0;
    fputs("The model that comes with greta only tells stories. To talk, name a model that chats "
          "with -m FILE. This is a story:\n\n",
          stderr);
    fflush(stderr);
    return infer_main(&telling);
}

/* What is about one prompt and its tokens has no meaning here. */
static enum status check_settings(const struct infer_settings *settings, struct error *err)
{
    const struct {
        const char *name;
        bool given;
    } rows[] = {
        { "--audit", settings->audit != NULL },
        { "--flight", settings->flight != NULL },
        { "--inject", settings->inject != NULL },
        { "--tap", settings->taps.count > 0 },
        { "--logits-out", settings->logits_path != NULL },
        { "--json", settings->json },
        { "--parallel", settings->parallel != 1 },
        { "--ignore-eos", settings->ignore_end },
    };
    static const char *const modes[] = { "auto", "off", "on", "low", "medium", "high" };
    const char *constraint = settings->grammar       ? "--grammar"
                             : settings->json_schema ? "--json-schema"
                                                     : NULL;
    size_t mode = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].given)
            return error_set(err, STATUS_USAGE,
                             "%s is not for conversations; use greta infer without --chat and -cnv",
                             rows[i].name);
    while (mode < COUNT_OF(modes) && strcmp(settings->reasoning, modes[mode]) != 0)
        mode++;
    if (mode == COUNT_OF(modes))
        return error_set(err, STATUS_USAGE,
                         "--reasoning: expected auto, on, off, low, medium or high, found '%s'",
                         settings->reasoning);
    if (constraint && (settings->tools || mode > 1))
        return error_set(err, STATUS_USAGE,
                         "%s: expected it without %s: such an answer has no place for %s",
                         constraint, settings->tools ? "--tools" : "--reasoning",
                         settings->tools ? "calls" : "thoughts");
    return STATUS_OK;
}

enum cli_exit chat_main(const struct cli_invocation *invocation,
                        const struct infer_settings *settings)
{
    struct chat_run chat = { .template = NULL };
    struct template_failure failure;
    struct error err;
    template_failure_init(&failure);
    enum status status = check_settings(settings, &err);
    if (status)
        return cli_fail(invocation, &err);
    if (!settings->model)
        return tell_story(invocation, settings);
    enum cli_exit code;
    status = chat_run_open(&chat, invocation, settings, &failure, &err);
    if (status)
        code = chat_fail(invocation, &failure, &err);
    else
        code = settings->once ? answer_once(invocation, &chat, &failure)
                              : chat_converse(invocation, &chat);
    template_failure_release(&failure);
    chat_run_release(&chat);
    return code;
}
