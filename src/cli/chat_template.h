/* chat_template.h - the chat template that a command line asks for. */
#ifndef GRETA_CLI_CHAT_TEMPLATE_H
#define GRETA_CLI_CHAT_TEMPLATE_H

#include "chat/chat.h"
#include "cli/token_input.h"

#define CHAT_TEMPLATE_HELP                                                                         \
    "the template: a file, the name of one in the model (tool_use, ...) or chatml"

struct chat_source {
    struct token_model model; /* empty without a model */
    struct template *template;
};

/* named: --chat-template or NULL. model NULL: no model, and named must be a file or chatml. failure
 * tells what is wrong in the template, if that is what failed. Close whatever the outcome. */
MUST_CHECK enum status chat_source_open(struct chat_source *source,
                                        const struct cli_invocation *invocation, const char *model,
                                        const char *named, bool with_tools,
                                        struct template_failure *failure, struct error *err);
void chat_source_close(struct chat_source *source); /* empty is fine */

/* The same for a model that is open already. */
MUST_CHECK enum status chat_template_open(const struct gguf_file *file, const char *named,
                                          bool with_tools, struct template **ret,
                                          struct template_failure *failure, struct error *err);

/* Reports a failure: a message of a template's own as it is. */
enum cli_exit chat_fail(const struct cli_invocation *invocation,
                        const struct template_failure *failure, const struct error *err);

#endif
