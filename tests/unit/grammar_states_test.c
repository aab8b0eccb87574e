/* grammar_states_test.c - texts that need very many states of the automaton: it is renewed, and the
 * work on an ambiguous one ends. */
#include "grammar_fixture.h"

/* States are dropped when they are too many; the matchers go on as if they had not been. */
static void test_renewed(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    struct grammar *grammar;
    struct grammar_matcher *one, *other;
    struct error err;
    float logits[GRAMMAR_TOKENS] = { 0 };
    size_t most = 0;
    CHECK_OK(grammar_create_gbnf(fixture.vocabulary,
                                 text_view_of("root ::= ([a-z]{1,1000000} \",\"){3} | \"(\" root "
                                              "\")\""),
                                 "g", &grammar, &err),
             &err);
    CHECK_OK(grammar_matcher_create(grammar, &other, &err), &err);
    CHECK_OK(grammar_matcher_accept_bytes(other, text_view_of("((abc,d"), &err), &err);
    CHECK_OK(grammar_matcher_create(grammar, &one, &err), &err);
    for (int i = 0; i < 900000; i++) {
        CHECK_OK(grammar_matcher_accept_bytes(one, text_view_of("a"), &err), &err);
        size_t bytes = automaton_bytes(&grammar->automaton);
        most = bytes > most ? bytes : most;
    }
    assert_true(automaton_bytes(&grammar->automaton) < most); /* it was replaced */
    assert_true(most < (size_t)100 << 20);
    grammar_check_mask(other, logits);
    CHECK_OK(grammar_matcher_accept_bytes(other, text_view_of("e,f,))"), &err), &err);
    assert_true(grammar_matcher_must_end(other));
    CHECK_OK(grammar_matcher_accept_bytes(one, text_view_of(",b,c,"), &err), &err);
    assert_true(grammar_matcher_must_end(one));
    grammar_matcher_destroy(other);
    grammar_matcher_destroy(one);
    grammar_destroy(grammar);
    grammar_fixture_close(&fixture);
}

/* So ambiguous that nothing can be computed from it: an end, not a hang. */
static void test_ambiguous(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    struct grammar *grammar;
    struct grammar_matcher *matcher;
    struct error err;
    enum status status = STATUS_OK;
    CHECK_OK(grammar_create_gbnf(fixture.vocabulary,
                                 text_view_of("root ::= (x{1,900} | y){1,900}\n"
                                              "x ::= (\"a\"{1,900} | \"aa\"){1,900}\n"
                                              "y ::= \"a\" root \"a\" | x root x"),
                                 "g", &grammar, &err),
             &err);
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    for (int i = 0; i < 100000 && !status; i++)
        status = grammar_matcher_accept_bytes(matcher, text_view_of("a"), &err);
    assert_int_equal(status, STATUS_LIMIT);
    check_contains("ambiguous", err.text, "expected fewer ways");
    grammar_matcher_destroy(matcher);
    grammar_destroy(grammar);
    grammar_fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_renewed),
        cmocka_unit_test(test_ambiguous),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
