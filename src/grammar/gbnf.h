/* gbnf.h - shared by the files that read GBNF. */
#ifndef GRETA_GRAMMAR_GBNF_H
#define GRETA_GRAMMAR_GBNF_H

#include "grammar/rules.h"
#include "grammar/source.h"

/* gbnf_text.c: "text", and [set]; the source is at the first character. */
MUST_CHECK enum status gbnf_literal(struct source *source, struct rules *rules, uint32_t *ret_node,
                                    struct error *err);
MUST_CHECK enum status gbnf_set(struct source *source, struct rules *rules, uint32_t *ret_node,
                                struct error *err);

#endif
