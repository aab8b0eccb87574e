/* token_input.h - what the tokenizer commands share. */
#ifndef GRETA_CLI_TOKEN_INPUT_H
#define GRETA_CLI_TOKEN_INPUT_H

#include "cli/cli.h"
#include "tokenizer/tokenizer.h"

struct token_model {
    struct gguf_file *file;
    struct tokenizer *tokenizer;
};

/* Opens the model and its tokenizer; warns if the file does not name the splitting rule. path NULL:
 * the bundled model. */
MUST_CHECK enum status token_model_open(const struct cli_invocation *invocation, const char *path,
                                        struct token_model *ret, struct error *err);
void token_model_close(struct token_model *model); /* empty is fine */

/* Reads all of standard input, any bytes, at most limit_bytes of them. */
MUST_CHECK enum status token_input_read(size_t limit_bytes, struct text *text, struct error *err);
/* Reads a whole file, which may be a pipe; "-" is standard input. */
MUST_CHECK enum status token_input_read_file(const char *path, size_t limit_bytes,
                                             struct text *text, struct error *err);

#endif
