/* grammar_fixture.h - a small vocabulary with tokens of several kinds, grammars over it, and texts
 * written at random. */
#ifndef GRETA_TESTS_GRAMMAR_FIXTURE_H
#define GRETA_TESTS_GRAMMAR_FIXTURE_H

#include "tokenizer_build.h"

#include "grammar/matcher.h"

#include <math.h>
#include <stdlib.h>

/* Bytes are ids 0 to 255; Ġ is a space. Tokens that end a part and begin another one are those that
 * masks go wrong with. */
static const struct vocab_row grammar_rows[] = {
    { "{\"", 0, 0 },
    { "\"}", 0, 0 },
    { "\":", 0, 0 },
    { "\":Ġ", 0, 0 },
    { "\",\"", 0, 0 },
    { "\"]", 0, 0 },
    { "[\"", 0, 0 },
    { "\",Ġ\"", 0, 0 },
    { "true", 0, 0 },
    { "false", 0, 0 },
    { "null", 0, 0 },
    { "tr", 0, 0 },
    { "ab", 0, 0 },
    { "abc", 0, 0 },
    { "name", 0, 0 },
    { "\"name\":", 0, 0 },
    { "12", 0, 0 },
    { "123", 0, 0 },
    { "0.", 0, 0 },
    { "1,", 0, 0 },
    { "12}", 0, 0 },
    { "]}", 0, 0 },
    { "}}", 0, 0 },
    { "}]", 0, 0 },
    { "\\\"", 0, 0 },
    { "\\n", 0, 0 },
    { "\\u00", 0, 0 },
    { "Ã©", 0, 0 },
    { "Ã©Ã", 0, 0 },
    { "ĠĠĠĠ", 0, 0 },
    { "aaaaaaaa", 0, 0 },
    { "\"a\":1}", 0, 0 },
    { "a,", 0, 0 },
    { "ab,", 0, 0 },
    { "yes", 0, 0 },
    { "yesno", 0, 0 },
    { "no", 0, 0 },
    { "Ċ", 0, TOKENIZER_UNUSED },
    { "<tool>", 0, TOKENIZER_USER_DEFINED },
    { "<|end|>", 0, TOKENIZER_CONTROL },
    { "<|other|>", 0, TOKENIZER_CONTROL },
};

#define GRAMMAR_TOKENS (256u + (uint32_t)COUNT_OF(grammar_rows))

struct grammar_fixture {
    struct vocab_file file;
    struct grammar_vocabulary *vocabulary;
    uint32_t end; /* <|end|> */
};

static inline void grammar_add_ids(struct gguf_build *build)
{
    gguf_build_number(build, "tokenizer.ggml.eos_token_id", BUILD_U32, GRAMMAR_TOKENS - 2);
}

static inline struct grammar_fixture grammar_fixture_open(void)
{
    static struct vocab vocab;
    struct grammar_fixture fixture;
    struct error err;
    vocab_init_bpe(&vocab, "gpt-2");
    vocab_add_rows(&vocab, grammar_rows, COUNT_OF(grammar_rows));
    vocab.more = grammar_add_ids;
    fixture.file = vocab_file_open(&vocab);
    CHECK_OK(grammar_vocabulary_create(fixture.file.tokenizer, &fixture.vocabulary, &err), &err);
    fixture.end = tokenizer_token_find(fixture.file.tokenizer, text_view_of("<|end|>"));
    assert_true(tokenizer_is_end(fixture.file.tokenizer, fixture.end));
    return fixture;
}

static inline void grammar_fixture_close(struct grammar_fixture *fixture)
{
    grammar_vocabulary_destroy(fixture->vocabulary);
    vocab_file_close(&fixture->file);
}

/* Whether a text fits; "prefix" if more must follow. */
static inline const char *grammar_verdict(struct grammar *grammar, struct text_view text)
{
    struct grammar_matcher *matcher;
    struct error err;
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    enum status status = grammar_matcher_accept_bytes(matcher, text, &err);
    const char *verdict = status ? "no" : grammar_matcher_may_end(matcher) ? "yes" : "prefix";
    if (status)
        assert_int_equal(status, STATUS_REFUSED);
    grammar_matcher_destroy(matcher);
    return verdict;
}

/* ---- Masks ---------------------------------------------------------------------------------- */

/* True if the automaton can read the token, byte by byte. */
static inline bool grammar_can_read(struct grammar_matcher *matcher, uint32_t id)
{
    const struct grammar_vocabulary *vocabulary = matcher->grammar->vocabulary;
    struct automaton *automaton = &matcher->grammar->automaton;
    uint32_t state = matcher->state, end = vocabulary->starts[id + 1];
    struct error err;
    if (vocabulary->starts[id] == end)
        return tokenizer_is_end(vocabulary->tokenizer, id) && grammar_matcher_may_end(matcher);
    for (uint32_t at = vocabulary->starts[id]; at < end; at++)
        CHECK_OK(
            automaton_step(automaton, state, (uint8_t)vocabulary->bytes.bytes[at], &state, &err),
            &err);
    return state != STATE_DEAD;
}

/* Masks the logits, and checks every token against the automaton. Returns how many are left. */
static inline size_t grammar_check_mask(struct grammar_matcher *matcher, float *logits)
{
    struct error err;
    size_t allowed = 0;
    CHECK_OK(grammar_matcher_mask(matcher, logits, GRAMMAR_TOKENS, &err), &err);
    for (uint32_t id = 0; id < GRAMMAR_TOKENS; id++) {
        bool is_left = logits[id] > -INFINITY;
        if (is_left != grammar_can_read(matcher, id))
            fail_msg("token %u is %s the mask and should not be", id, is_left ? "in" : "not in");
        allowed += is_left;
    }
    assert_true(allowed > 0);
    return allowed;
}

/* Writes a text of at most `limit` tokens: the likeliest token of random logits, which favour the
 * ends of strings, arrays and objects more and more. False if it did not end. */
static inline bool grammar_write(struct grammar *grammar, uint64_t *random, size_t limit,
                                 struct text *text)
{
    struct grammar_matcher *matcher;
    struct error err;
    float logits[GRAMMAR_TOKENS];
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    text_clear(text);
    for (size_t i = 0; i < limit && !grammar_matcher_must_end(matcher); i++) {
        uint32_t best = 0;
        for (uint32_t id = 0; id < GRAMMAR_TOKENS; id++) {
            logits[id] = (float)(vocab_random(random) % 1000000);
            if (id == '"' || id == ']' || id == '}' || id >= GRAMMAR_TOKENS - 3)
                logits[id] += 20000 * (float)i;
        }
        grammar_check_mask(matcher, logits);
        for (uint32_t id = 0; id < GRAMMAR_TOKENS; id++)
            best = logits[id] > logits[best] ? id : best;
        CHECK_OK(grammar_matcher_accept(matcher, best, &err), &err);
        tokenizer_token_bytes(grammar->vocabulary->tokenizer, best, 0, text);
    }
    bool ended = grammar_matcher_must_end(matcher);
    grammar_matcher_destroy(matcher);
    return ended;
}

#endif
