/* matcher.c - the place of a text in a grammar: what may come next, what came. */
#include "grammar/matcher.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/* What an automaton and its masks may grow to before most of them is dropped. */
#define KEPT_LIMIT_BYTES ((size_t)64 << 20)

/* ---- A grammar ------------------------------------------------------------------------------ */

enum status grammar_create_take(const struct grammar_vocabulary *vocabulary,
                                struct program *program, struct grammar **ret_grammar,
                                struct error *err)
{
    struct grammar *grammar = calloc(1, sizeof(*grammar));
    if (!grammar) {
        program_release(program);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    }
    *grammar = (struct grammar){ .vocabulary = vocabulary, .program = *program };
    *program = (struct program){ 0 };
    grammar->word_count = (vocabulary->token_count + 63) / 64;
    grammar->walk = calloc(vocabulary->longest_bytes + 1u, sizeof(*grammar->walk));
    grammar->bits = calloc(grammar->word_count + 1, sizeof(*grammar->bits));
    enum status status = STATUS_OK;
    if (!grammar->walk || !grammar->bits)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a grammar");
    if (!status)
        status = automaton_init(&grammar->automaton, &grammar->program, err);
    if (status)
        grammar_destroy(grammar);
    else
        *ret_grammar = grammar;
    return status;
}

void grammar_destroy(struct grammar *grammar)
{
    if (!grammar)
        return;
    ASSERT(!grammar->matchers);
    grammar_forget_masks(grammar);
    automaton_release(&grammar->automaton);
    program_release(&grammar->program);
    free(grammar->masks);
    free(grammar->walk);
    free(grammar->bits);
    free(grammar);
}

/* Replaces the automaton by one with only what the matchers hold. */
static enum status renew(struct grammar *grammar, struct error *err)
{
    struct automaton fresh;
    size_t count = 0, at = 0;
    for (struct grammar_matcher *m = grammar->matchers; m; m = m->next)
        count++;
    uint32_t *states = calloc(count + 1, sizeof(*states));
    if (!states)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the states of a grammar");
    for (struct grammar_matcher *m = grammar->matchers; m; m = m->next)
        states[at++] = m->state;
    enum status status = automaton_init(&fresh, &grammar->program, err);
    if (!status) {
        status = automaton_compact(&grammar->automaton, &fresh, states, count, err);
        if (status)
            automaton_release(&fresh);
    }
    if (!status) {
        automaton_release(&grammar->automaton);
        grammar->automaton = fresh;
        grammar_forget_masks(grammar);
        grammar->kept_bytes = automaton_bytes(&fresh);
        at = 0;
        for (struct grammar_matcher *m = grammar->matchers; m; m = m->next)
            m->state = states[at++];
    }
    free(states);
    return status;
}

static enum status begin(struct grammar *grammar, struct error *err)
{
    size_t bytes = automaton_bytes(&grammar->automaton) +
                   grammar->mask_count * grammar->word_count * sizeof(*grammar->bits);
    automaton_begin(&grammar->automaton);
    return bytes > KEPT_LIMIT_BYTES + 2 * grammar->kept_bytes ? renew(grammar, err) : STATUS_OK;
}

/* ---- A matcher ------------------------------------------------------------------------------ */

enum status grammar_matcher_create(struct grammar *grammar, struct grammar_matcher **ret_matcher,
                                   struct error *err)
{
    struct grammar_matcher *matcher = calloc(1, sizeof(*matcher));
    if (!matcher)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a matcher");
    matcher->grammar = grammar;
    enum status status = begin(grammar, err);
    if (!status)
        status = automaton_start(&grammar->automaton, &matcher->state, err);
    if (status) {
        free(matcher);
        return status;
    }
    matcher->next = grammar->matchers;
    matcher->place = &grammar->matchers;
    if (matcher->next)
        matcher->next->place = &matcher->next;
    grammar->matchers = matcher;
    *ret_matcher = matcher;
    return STATUS_OK;
}

void grammar_matcher_destroy(struct grammar_matcher *matcher)
{
    if (!matcher)
        return;
    *matcher->place = matcher->next;
    if (matcher->next)
        matcher->next->place = matcher->place;
    free(matcher);
}

bool grammar_matcher_may_end(const struct grammar_matcher *matcher)
{
    return matcher->ended || matcher->grammar->automaton.states[matcher->state].has_end;
}

bool grammar_matcher_must_end(const struct grammar_matcher *matcher)
{
    const struct state *state = &matcher->grammar->automaton.states[matcher->state];
    return matcher->ended || (state->has_end && state->count == 1);
}

static void apply_bits(const uint64_t *bits, uint32_t count, float *logits)
{
    for (uint32_t first = 0; first < count; first += 64) {
        uint64_t word = bits[first / 64];
        uint32_t end = count - first < 64 ? count - first : 64;
        if (word == UINT64_MAX)
            continue;
        for (uint32_t i = 0; i < end; i++)
            if (!(word >> i & 1))
                logits[first + i] = -INFINITY;
    }
}

enum status grammar_matcher_mask(struct grammar_matcher *matcher, float *logits,
                                 uint32_t vocab_size, struct error *err)
{
    struct grammar *grammar = matcher->grammar;
    const struct grammar_vocabulary *vocabulary = grammar->vocabulary;
    uint32_t count = vocab_size < vocabulary->token_count ? vocab_size : vocabulary->token_count;
    uint64_t any = 0;
    if (matcher->ended)
        return error_set(err, STATUS_REFUSED, "grammar: the text has ended");
    TRY(begin(grammar, err));
    TRY(grammar_find_bits(grammar, matcher->state, err));
    if (grammar_matcher_may_end(matcher))
        for (uint32_t i = 0; i < vocabulary->end_count; i++)
            grammar->bits[vocabulary->ends[i] / 64] |= (uint64_t)1 << (vocabulary->ends[i] % 64);
    for (size_t i = 0; i < (count + 63) / 64; i++)
        any |= grammar->bits[i];
    if (!any)
        return error_set(err, STATUS_REFUSED,
                         "grammar: expected a token that can come next, found none in the "
                         "vocabulary");
    apply_bits(grammar->bits, count, logits);
    for (uint32_t id = count; id < vocab_size; id++)
        logits[id] = -INFINITY; /* no token has this id */
    return STATUS_OK;
}

/* ---- What came ------------------------------------------------------------------------------ */

enum status grammar_matcher_accept_bytes(struct grammar_matcher *matcher, struct text_view bytes,
                                         struct error *err)
{
    TRY(begin(matcher->grammar, err));
    uint32_t state = matcher->ended ? STATE_DEAD : matcher->state;
    for (size_t i = 0; i < bytes.length && state != STATE_DEAD; i++)
        TRY(automaton_step(&matcher->grammar->automaton, state, (uint8_t)bytes.bytes[i], &state,
                           err));
    if (state == STATE_DEAD) {
        char shown[64];
        return error_set(err, STATUS_REFUSED, "grammar: expected other text, found '%s'",
                         text_printable(bytes, shown, sizeof(shown)));
    }
    matcher->state = state;
    return STATUS_OK;
}

enum status grammar_matcher_accept(struct grammar_matcher *matcher, uint32_t id, struct error *err)
{
    const struct grammar_vocabulary *vocabulary = matcher->grammar->vocabulary;
    if (id < vocabulary->token_count && tokenizer_is_end(vocabulary->tokenizer, id) &&
        grammar_matcher_may_end(matcher) && !matcher->ended) {
        matcher->ended = true;
        return STATUS_OK;
    }
    if (id >= vocabulary->token_count || vocabulary->starts[id] == vocabulary->starts[id + 1])
        return error_set(err, STATUS_REFUSED,
                         "grammar: expected a token that stands for text, found %" PRIu32, id);
    struct text_view bytes = { vocabulary->bytes.bytes + vocabulary->starts[id],
                               vocabulary->starts[id + 1] - vocabulary->starts[id] };
    return grammar_matcher_accept_bytes(matcher, bytes, err);
}
