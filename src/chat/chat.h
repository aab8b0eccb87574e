/* chat.h - conversations as a model reads them: which template, which variables, which text.
 *
 * A conversation is JSON in OpenAI's form: an array of messages with role and content. Nothing here
 * runs a model. */
#ifndef GRETA_CHAT_CHAT_H
#define GRETA_CHAT_CHAT_H

#include "gguf/gguf.h"
#include "template/template.h"
#include "tokenizer/tokenizer.h"

#include <jansson.h>

/* ---- Templates ------------------------------------------------------------------------------- */

/* The template of this name in the file (tokenizer.chat_template.NAME); NULL: the one that suits,
 * which is tool_use if there is one and with_tools, the default one otherwise. Borrowed from the
 * file. STATUS_NOT_FOUND if there is none. */
MUST_CHECK enum status chat_template_find(const struct gguf_file *file, const char *name,
                                          bool with_tools, struct text_view *ret,
                                          struct error *err);

/* A form that many models know and that files without a template are given: ChatML. NULL if there
 * is no form of this name. */
const char *chat_template_known(const char *name);

/* ---- Variables ------------------------------------------------------------------------------- */

/* Adds bos_token, eos_token and so on to the variables, as far as they are not there yet. */
MUST_CHECK enum status chat_add_tokens(json_t *variables, const struct tokenizer *tokenizer,
                                       struct error *err);

/* ---- Rendering ------------------------------------------------------------------------------- */

struct chat_rendering {
    const json_t *variables; /* an object with messages and whatever else the template reads */
    struct tm now;
    bool continue_final; /* the text ends where the last message does, for the model to go on */
};

/* Adds the text to *out; failure may be NULL. */
MUST_CHECK enum status chat_render(const struct template *template,
                                   const struct chat_rendering *rendering, struct text *out,
                                   struct template_failure *failure, struct error *err);

/* The local time of the machine. */
struct tm chat_now(void);

/* Ids of a rendering: what looks like a control token is one. The begin token is added if the
 * tokenizer adds one and the text has none. */
MUST_CHECK enum status chat_encode(const struct tokenizer *tokenizer, struct text_view text,
                                   struct tokenizer_ids *ids, struct error *err);

#endif
