/* infer_prompts.h - the prompts of greta infer: from the command line, a file or standard input. */
#ifndef GRETA_CLI_INFER_PROMPTS_H
#define GRETA_CLI_INFER_PROMPTS_H

#include "base/text.h"
#include "cli/cli.h"

struct infer_prompts {
    struct text *texts; /* owned */
    size_t count;
};

struct infer_prompt_source {
    const struct cli_text_list *prompts;
    const char *file;        /* "-": standard input; NULL: none */
    const char *binary_file; /* read byte for byte; NULL: none */
    const char *separator;   /* separates the prompts of a file; NULL: one prompt */
    bool escapes;            /* \n and such in prompts and separator */
};

/* The most prompts a file may hold. */
#define INFER_PROMPT_LIMIT 10000u

/* A newline at the end of a file (or before a separator) is not part of a prompt. Initialises
 * *prompts whatever the outcome. */
MUST_CHECK enum status infer_prompts_read(struct infer_prompts *prompts,
                                          const struct infer_prompt_source *source,
                                          struct error *err);
void infer_prompts_release(struct infer_prompts *prompts);

/* Adds text with \n \r \t \' \" \\ and \xHH replaced by their characters. */
void infer_add_unescaped(struct text *out, const char *text);

#endif
