/* session_grammar_test.c - requests with a grammar: every token is the likeliest of those that fit,
 * the text fits, the logits that are handed out are the model's own, and other requests of the
 * session write what they would alone.
 *
 *     session_grammar_test [DEVICE]      the host without */
#include "session_stage.h"

#include <math.h>

static struct session_request request_with(uint32_t prompt, struct grammar *grammar)
{
    struct session_request request = greedy_of(prompt);
    request.grammar = grammar;
    request.ignore_end = false;
    request.token_limit = 20;
    return request;
}

struct grammars {
    struct stage stage;
    struct grammar_vocabulary *vocabulary;
    struct grammar *grammar;
};

static void begin(struct grammars *test, const char *text)
{
    struct error err;
    stage_begin(&test->stage);
    CHECK_OK(grammar_vocabulary_create(test->stage.tokenizer, &test->vocabulary, &err), &err);
    CHECK_OK(
        grammar_create_gbnf(test->vocabulary, text_view_of(text), "test", &test->grammar, &err),
        &err);
}

static void end(struct grammars *test)
{
    grammar_destroy(test->grammar);
    grammar_vocabulary_destroy(test->vocabulary);
    stage_end(&test->stage);
}

/* "yes" if the text is whole, "prefix" if more must follow. */
static const char *verdict(struct grammar *grammar, const struct text *text)
{
    struct grammar_matcher *matcher;
    struct error err;
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    enum status status = grammar_matcher_accept_bytes(
        matcher, (struct text_view){ text_get(text), text->length }, &err);
    const char *word = status ? "no" : grammar_matcher_may_end(matcher) ? "yes" : "prefix";
    grammar_matcher_destroy(matcher);
    return word;
}

static void run(struct grammars *test, const struct session_request *requests, size_t count)
{
    stage_open_session(&test->stage, NULL);
    for (size_t i = 0; i < count; i++)
        stage_add(&test->stage, &requests[i]);
    stage_run(&test->stage);
    if (requests[0].grammar) /* nothing can be queued before the host has chosen */
        assert_int_equal(session_timing(test->stage.session)->ahead_steps, 0);
    stage_close_session(&test->stage);
}

/* ---- The likeliest that fits ---------------------------------------------------------------- */

struct judge {
    struct grammar_matcher *matcher;
    uint32_t best[TOKENS], free[TOKENS], count; /* of those that fit, of all */
};

static uint32_t likeliest(const float *logits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < VOCABULARY; i++)
        best = logits[i] > logits[best] ? i : best;
    return best;
}

/* Does by itself what the session does with the model's logits. */
static enum status judge_logits(void *context, uint64_t request, uint32_t position,
                                const float *logits, struct error *err)
{
    struct judge *judge = context;
    float masked[VOCABULARY];
    (void)request;
    (void)position;
    for (uint32_t i = 0; i < VOCABULARY; i++)
        assert_true(isfinite(logits[i])); /* no mask was applied to them */
    memcpy(masked, logits, sizeof(masked));
    TRY(grammar_matcher_mask(judge->matcher, masked, VOCABULARY, err));
    judge->free[judge->count] = likeliest(logits);
    judge->best[judge->count] = likeliest(masked);
    return grammar_matcher_accept(judge->matcher, judge->best[judge->count++], err);
}

static void test_greedy(void **state)
{
    (void)state;
    struct grammars test;
    struct judge judge = { 0 };
    struct error err;
    uint32_t differing = 0;
    begin(&test, "root ::= \"(\" [a-z ]{4,9} \"; \" (\"yes\" | \"no\") \")\"");
    CHECK_OK(grammar_matcher_create(test.grammar, &judge.matcher, &err), &err);
    struct session_request request = request_with(0, test.grammar);
    request.logits = judge_logits;
    request.logits_context = &judge;
    run(&test, &request, 1);
    const struct written *written = &test.stage.written[0];
    assert_int_equal(written->reason, SESSION_COMPLETE);
    assert_string_equal(verdict(test.grammar, &written->text), "yes");
    assert_int_equal(judge.count, written->count);
    assert_memory_equal(judge.best, written->ids, written->count * sizeof(uint32_t));
    for (uint32_t i = 0; i < judge.count; i++)
        differing += judge.best[i] != judge.free[i];
    assert_true(differing > 0); /* the grammar made a difference */
    grammar_matcher_destroy(judge.matcher);
    /* The same where no one looks at the logits, and the device could have chosen the ids. */
    request = request_with(0, test.grammar);
    run(&test, &request, 1);
    assert_int_equal(written->count, judge.count);
    assert_memory_equal(judge.best, written->ids, written->count * sizeof(uint32_t));
    end(&test);
}

/* ---- Others --------------------------------------------------------------------------------- */

static void test_sampled(void **state)
{
    (void)state;
    struct grammars test;
    begin(&test, "root ::= [0-9]{1,4} (\"+\" [0-9]{1,4})* \"=\" [^\\x00-\\x1f]*");
    for (uint64_t seed = 0; seed < 6; seed++) {
        struct session_request request = request_with(seed % 2, test.grammar);
        request.sampling.temperature = 1.5f;
        request.sampling.top_k = seed % 2 ? 0 : 5;
        request.sampling.repeat_penalty = 1.2f;
        request.sampling.repeat_last_n = 8;
        request.sampling.seed = seed;
        request.ignore_end = seed % 3 == 0; /* an end token that fits is an end all the same */
        run(&test, &request, 1);
        const struct written *written = &test.stage.written[0];
        assert_string_not_equal(verdict(test.grammar, &written->text), "no");
        if (written->reason == SESSION_END_TOKEN)
            assert_string_equal(verdict(test.grammar, &written->text), "yes");
        else
            assert_int_equal(written->reason, SESSION_LENGTH);
    }
    end(&test);
}

/* A request without a grammar, side by side with one that has one, writes what it does alone. */
static void test_side_by_side(void **state)
{
    (void)state;
    struct grammars test;
    uint32_t alone[TOKENS], count;
    begin(&test, "root ::= \"(\" root \")\" | [a-z]+");
    struct session_request requests[2] = { request_with(1, NULL), request_with(0, test.grammar) };
    requests[0].ignore_end = true;
    requests[1].sampling.temperature = 1;
    run(&test, requests, 1);
    count = test.stage.written[0].count;
    memcpy(alone, test.stage.written[0].ids, sizeof(alone));
    run(&test, requests, 2);
    assert_int_equal(test.stage.written[0].count, count);
    assert_memory_equal(test.stage.written[0].ids, alone, count * sizeof(uint32_t));
    assert_string_not_equal(verdict(test.grammar, &test.stage.written[1].text), "no");
    end(&test);
}

/* The grammar may go as soon as its request has ended, though the session remains. */
static void test_cancelled(void **state)
{
    (void)state;
    struct grammars test;
    begin(&test, "root ::= [a-z]+");
    struct session_request request = request_with(0, test.grammar);
    stage_open_session(&test.stage, NULL);
    uint64_t id = stage_add(&test.stage, &request);
    stage_step_until(&test.stage, id, 2);
    assert_true(session_cancel(test.stage.session, id));
    grammar_destroy(test.grammar);
    test.grammar = NULL;
    stage_take_events(&test.stage);
    assert_int_equal(test.stage.written[0].reason, SESSION_CANCELLED);
    stage_close_session(&test.stage);
    end(&test);
}

int main(int argument_count, char **arguments)
{
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_greedy),
        cmocka_unit_test(test_sampled),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
