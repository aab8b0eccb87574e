/* infer_grammar.h - --grammar and --json-schema of greta infer. */
#ifndef GRETA_CLI_INFER_GRAMMAR_H
#define GRETA_CLI_INFER_GRAMMAR_H

#include "cli/infer_settings.h"

#include "grammar/grammar.h"

struct infer_grammar {
    struct grammar_vocabulary *vocabulary;
    struct grammar *grammar; /* NULL: none was asked for */
};

/* The tokenizer outlives it. Close *ret_grammar whatever the outcome. */
MUST_CHECK enum status infer_grammar_open(const struct infer_settings *settings,
                                          const struct tokenizer *tokenizer,
                                          struct infer_grammar *ret_grammar, struct error *err);
void infer_grammar_close(struct infer_grammar *grammar);

#endif
