/* grammar.h - constrained output: which tokens may come next, so that the text fits a grammar.
 *
 *     grammar_vocabulary_create(tokenizer)     once for each model: tries over the tokens' bytes
 *     grammar_create_gbnf / _create_schema     once for each grammar
 *     grammar_matcher_create                   once for each text
 *     grammar_matcher_mask, _accept            for each token
 *
 * A grammar is compiled to a pushdown automaton over bytes. Its states are made when they are
 * reached, interned, and kept with their transitions and masks, so that a mask is mostly a copy.
 * From every state that is reached the grammar can be completed. Grammars and schemas are hostile:
 * sizes, nesting, ambiguity and memory are bounded, and every error says where it is.
 *
 * A vocabulary does not change and may be used from any thread. A grammar and its matchers belong
 * to one thread at a time, and share what was computed. Destroy in the opposite order. */
#ifndef GRETA_GRAMMAR_GRAMMAR_H
#define GRETA_GRAMMAR_GRAMMAR_H

#include "base/status.h"
#include "base/text.h"
#include "tokenizer/tokenizer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest text of a grammar or a schema. */
#define GRAMMAR_TEXT_LIMIT_BYTES (4u << 20)

/* ---- Making --------------------------------------------------------------------------------- */

struct grammar_vocabulary;
struct grammar;

/* The tokenizer must outlive it. */
MUST_CHECK enum status grammar_vocabulary_create(const struct tokenizer *tokenizer,
                                                 struct grammar_vocabulary **ret_vocabulary,
                                                 struct error *err);
void grammar_vocabulary_destroy(struct grammar_vocabulary *vocabulary); /* NULL is fine */

/* From text in GBNF (docs/constrained-output.md). source: its name in errors. STATUS_USAGE for what
 * is no grammar, STATUS_UNSUPPORTED for left recursion, STATUS_LIMIT for one that is too large. */
MUST_CHECK enum status grammar_create_gbnf(const struct grammar_vocabulary *vocabulary,
                                           struct text_view text, const char *source,
                                           struct grammar **ret_grammar, struct error *err);
/* From a JSON schema: the grammar's texts are JSON and valid for it. STATUS_USAGE for what is no
 * schema or allows no value, STATUS_UNSUPPORTED for keywords that cannot be obeyed. */
MUST_CHECK enum status grammar_create_schema(const struct grammar_vocabulary *vocabulary,
                                             struct text_view text, const char *source,
                                             struct grammar **ret_grammar, struct error *err);
void grammar_destroy(struct grammar *grammar); /* NULL is fine */

/* ---- Matching ------------------------------------------------------------------------------- */

struct grammar_matcher;

MUST_CHECK enum status grammar_matcher_create(struct grammar *grammar,
                                              struct grammar_matcher **ret_matcher,
                                              struct error *err);
void grammar_matcher_destroy(struct grammar_matcher *matcher); /* NULL is fine */

/* Sets the logits [vocab_size] of tokens that may not come next to -infinity. End tokens may come
 * only where the grammar may end. STATUS_REFUSED if no token is left: the vocabulary cannot spell
 * what comes next. STATUS_LIMIT if the grammar is too ambiguous. */
MUST_CHECK enum status grammar_matcher_mask(struct grammar_matcher *matcher, float *logits,
                                            uint32_t vocab_size, struct error *err);
/* The token comes next. STATUS_REFUSED if it may not; nothing changes then. */
MUST_CHECK enum status grammar_matcher_accept(struct grammar_matcher *matcher, uint32_t id,
                                              struct error *err);
/* The same for bytes that are no token. */
MUST_CHECK enum status grammar_matcher_accept_bytes(struct grammar_matcher *matcher,
                                                    struct text_view bytes, struct error *err);
/* True if the text may end here. */
bool grammar_matcher_may_end(const struct grammar_matcher *matcher);
/* True if it must: nothing can follow, or an end token was accepted. */
bool grammar_matcher_must_end(const struct grammar_matcher *matcher);

#endif
