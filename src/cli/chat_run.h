/* chat_run.h - a conversation with a model: what was said, and how the next answer is made. */
#ifndef GRETA_CLI_CHAT_RUN_H
#define GRETA_CLI_CHAT_RUN_H

#include "chat/chat.h"
#include "chat/reply.h"
#include "chat/tool_calls.h"
#include "cli/infer_run.h"

struct chat_totals {
    uint64_t prompt_tokens, shared_tokens, answer_tokens, answers;
    uint64_t prompt_ns, answer_ns;
};

struct chat_run {
    struct infer_run run;           /* model, device, engine */
    struct infer_settings settings; /* as they are now: /set changes them */
    struct template *template;
    struct session *session;
    json_t *messages, *tools; /* tools NULL: none */
    uint64_t seed;              /* of the next answer */
    enum session_reason reason; /* why the last one ended */
    uint32_t call_count;             /* of tools, so far */
    struct chat_totals totals, last; /* of all answers, of the last one */
};

/* Opens model, template and tools. Release whatever the outcome. */
MUST_CHECK enum status chat_run_open(struct chat_run *chat, const struct cli_invocation *invocation,
                                     const struct infer_settings *settings,
                                     struct template_failure *failure, struct error *err);
void chat_run_release(struct chat_run *chat);

/* Forgets everything but the system prompt; NULL or "" as a new one: none. */
MUST_CHECK enum status chat_begin_again(struct chat_run *chat, const char *system,
                                        struct error *err);
MUST_CHECK enum status chat_say(struct chat_run *chat, const char *role, const char *content,
                                struct error *err);
/* The result of the call of a tool that has none yet. STATUS_USAGE: there is no such call. */
MUST_CHECK enum status chat_say_result(struct chat_run *chat, const char *result,
                                       struct error *err);
/* Removes the last message if it has this role. */
bool chat_take_back(struct chat_run *chat, const char *role);

/* chat_answer.c: writes the model's next answer to standard output and adds it to the conversation.
 * After Ctrl-C that is what was written so far. */
MUST_CHECK enum status chat_answer(struct chat_run *chat, struct template_failure *failure,
                                   struct error *err);

/* The conversation on standard input; returns when it ends. */
enum cli_exit chat_converse(const struct cli_invocation *invocation, struct chat_run *chat);

/* What greta chat and greta infer -cnv or --chat do. */
enum cli_exit chat_main(const struct cli_invocation *invocation,
                        const struct infer_settings *settings);

/* chat_commands.c: runs "/name rest". *ret_leave: the conversation is over. *ret_answer: the model
 * is to answer. */
MUST_CHECK enum status chat_command(struct chat_run *chat, const char *line, bool *ret_leave,
                                    bool *ret_answer, struct error *err);

#endif
