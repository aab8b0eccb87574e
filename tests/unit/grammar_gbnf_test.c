/* grammar_gbnf_test.c - grammars in GBNF: what they accept, what is wrong with those that are
 * refused and where, and masks that are exactly what the automaton can read. */
#include "grammar_fixture.h"

#include "memory_limit.h"

/* ---- Texts ---------------------------------------------------------------------------------- */

static const struct {
    const char *grammar, *text, *verdict;
} rows[] = {
    { "root ::= \"yes\" | \"no\"", "yes", "yes" },
    { "root ::= \"yes\" | \"no\"", "ye", "prefix" },
    { "root ::= \"yes\" | \"no\"", "yesno", "no" },
    { "root ::= \"a\"* ", "", "yes" },
    { "root ::= \"a\"*", "aaaa", "yes" },
    { "root ::= \"a\"+", "", "prefix" },
    { "root ::= \"ab\"?", "ab", "yes" },
    { "root ::= \"ab\"?", "abab", "no" },
    { "root ::= [a-c]{3}", "abc", "yes" },
    { "root ::= [a-c]{3}", "ab", "prefix" },
    { "root ::= [a-c]{3}", "abca", "no" },
    { "root ::= (\"a\" \"b\"){2,3}", "abab", "yes" },
    { "root ::= (\"a\" \"b\"){2,3}", "ababab", "yes" },
    { "root ::= (\"a\" \"b\"){2,3}", "abababa", "no" },
    { "root ::= (\"a\" \"b\"){,2}", "", "yes" },
    { "root ::= (\"a\" \"b\"){,2}", "ababa", "no" },
    { "root ::= (\"ab\"){2,}", "ab", "prefix" },
    { "root ::= (\"ab\"){2,}", "abababab", "yes" },
    { "root ::= (\"ab\"){0}", "a", "no" },
    { "root ::= (\"a\"?){3}", "aaa", "yes" },
    { "root ::= (\"a\"?){3}", "aaaa", "no" },
    { "root ::= (\"a\"*)* \"b\"", "aaab", "yes" },
    { "root ::= ((\"a\"|\"bc\"){2} \",\"){2}", "abc,aa,", "yes" },
    { "root ::= ((\"a\"|\"bc\"){2} \",\"){2}", "abc,a,", "no" },
    { "root ::= [^a]", "b", "yes" },
    { "root ::= [^a]", "a", "no" },
    { "root ::= [^a]", "\n", "yes" },
    { "root ::= [^a]", "é", "yes" },
    { "root ::= [^é]", "é", "no" },
    { "root ::= [^é]", "è", "yes" },
    { "root ::= [^é]", "\xC3", "prefix" },
    { "root ::= [à-ý]+", "éü", "yes" },
    { "root ::= [à-ý]+", "a", "no" },
    { "root ::= [ࠀ-\\U0010FFFF]", "\xE0\xA0\x80", "yes" },
    { "root ::= [ࠀ-\\U0010FFFF]", "\xF4\x8F\xBF\xBF", "yes" },
    { "root ::= .", "\xED\x9F\xBF", "yes" },
    { "root ::= .", "\xED\xA0\x80", "no" },     /* a surrogate */
    { "root ::= .", "\xC0\x80", "no" },         /* too long */
    { "root ::= .", "\xF4\x90\x80\x80", "no" }, /* past the last one */
    { "root ::= .", "\xF0\x90\x80\x80", "yes" },
    { "root ::= .", "\xE0\x80\x80", "no" },
    { "root ::= [\\x41-\\x43\\u00e9\\]\\-]+", "ABCé]-", "yes" },
    { "root ::= [a-]+", "a-a", "yes" },
    { "root ::= [-a]+", "-a-", "yes" },
    { "root ::= \"\\n\\t\\\\\\\"\"", "\n\t\\\"", "yes" },
    { "root ::= \"é\"", "é", "yes" },
    { "# a comment\n\nroot ::= # and\n  \"a\" |\n  \"b\" # more\n", "b", "yes" },
    { "root ::= (\n\"a\"\n|\"b\"\n)\n", "b", "yes" },
    { "root ::= a b\na ::= \"a\"\nb ::= \"b\" | a\n", "aa", "yes" },
    { "root ::= \"(\" root \")\" | \"x\"", "((x))", "yes" },
    { "root ::= \"(\" root \")\" | \"x\"", "((x)", "prefix" },
    { "root ::= \"(\" root \")\" | \"x\"", "(x))", "no" },
    { "root ::= \"a\" root | \"\"", "aaaaa", "yes" },
    /* One beginning, several ways on. */
    { "root ::= a | b\na ::= \"x\"{3} \"a\"\nb ::= \"x\"+ \"b\"", "xxxb", "yes" },
    { "root ::= a | b\na ::= \"x\"{3} \"a\"\nb ::= \"x\"+ \"b\"", "xxxa", "yes" },
    { "root ::= a | b\na ::= \"x\"{3} \"a\"\nb ::= \"x\"+ \"b\"", "xxxxa", "no" },
    /* A rule that no text fits is left out. */
    { "root ::= \"a\" | \"b\" never\nnever ::= \"n\" never", "b", "no" },
    { "root ::= \"a\" | \"b\" never\nnever ::= \"n\" never", "a", "yes" },
    { "root-2_x ::= \"a\"\nroot ::= root-2_x", "a", "yes" },
    { "root ::=\r\n \"a\"\r\n", "a", "yes" },
};

static void test_texts(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct grammar *grammar;
        struct error err;
        CHECK_OK(grammar_create_gbnf(fixture.vocabulary, text_view_of(rows[i].grammar), "row",
                                     &grammar, &err),
                 &err);
        const char *verdict = grammar_verdict(grammar, text_view_of(rows[i].text));
        if (strcmp(verdict, rows[i].verdict) != 0)
            fail_msg("%s: '%s': expected %s, found %s", rows[i].grammar, rows[i].text,
                     rows[i].verdict, verdict);
        grammar_destroy(grammar);
    }
    grammar_fixture_close(&fixture);
}

/* ---- Errors --------------------------------------------------------------------------------- */

static const struct {
    const char *grammar;
    enum status status;
    const char *text;
} wrong[] = {
    { "", STATUS_USAGE, "g:1:1: expected a rule 'root'" },
    { "a ::= \"x\"", STATUS_USAGE, "expected a rule 'root'" },
    { "root ::= a", STATUS_USAGE, "g:1:10: expected a rule 'a'" },
    { "root = \"x\"", STATUS_USAGE, "g:1:6: expected ::=, found '='" },
    { "root ::= \"x", STATUS_USAGE, "g:1:12: expected \" at the end of a text, found the end" },
    { "root ::= \"x\n\"", STATUS_USAGE, "g:1:12: " },
    { "root ::= [a", STATUS_USAGE, "g:1:12: expected ] at the end of a set" },
    { "root ::= []", STATUS_USAGE, "expected a set with characters" },
    { "root ::= [b-a]", STATUS_USAGE, "g:1:11: expected a range that goes up" },
    { "root ::= (\"a\"", STATUS_USAGE, "expected ) or another part, found the end" },
    { "root ::= \"a\")", STATUS_USAGE, "g:1:13: expected text, a set, a rule or (, found ')'" },
    { "\nroot ::= \"a\" %", STATUS_USAGE, "g:2:14: " },
    { "root ::= \"\\q\"", STATUS_USAGE, "g:1:12: expected an escape" },
    { "root ::= \"\\x4\"", STATUS_USAGE, "expected 2 hexadecimal digits" },
    { "root ::= \"\\ud800\"", STATUS_USAGE, "expected a character of Unicode" },
    { "root ::= \"\\U00110000\"", STATUS_USAGE, "expected a character of Unicode" },
    { "root ::= \"a\"{", STATUS_USAGE, "expected a number, found the end" },
    { "root ::= \"a\"{3,2}", STATUS_USAGE, "g:1:13: expected {LEAST,MOST}" },
    { "root ::= \"a\"{9999999}", STATUS_USAGE, "expected a number up to 1000000" },
    { "root ::= \"a\"\nroot ::= \"b\"", STATUS_USAGE, "g:2:1: expected one rule 'root'" },
    { "root ::= <think>", STATUS_USAGE, "tokens cannot be named" },
    { "root ::= \"\xFF\"", STATUS_USAGE, "g:1:11: expected UTF-8, found '\\xFF'" },
    { "root ::= root \"a\" | \"b\"", STATUS_UNSUPPORTED, "g:1:1: " },
    { "root ::= x\nx ::= y? x \"a\" | \"b\"\ny ::= \"c\"", STATUS_UNSUPPORTED, "g:2:1: " },
    { "root ::= x*\nx ::= (root \"a\")+", STATUS_UNSUPPORTED, "begins with itself" },
    { "root ::= \"a\" root", STATUS_USAGE, "expected a grammar that some text fits" },
    { "root ::= (\"a\"?){65}", STATUS_LIMIT, "64 repetitions of a part that may be empty" },
};

static void test_errors(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct grammar *grammar = NULL;
        struct error err;
        CHECK_FAILS(grammar_create_gbnf(fixture.vocabulary, text_view_of(wrong[i].grammar), "g",
                                        &grammar, &err),
                    wrong[i].status, &err);
        check_contains(wrong[i].grammar, err.text, wrong[i].text);
        assert_null(grammar);
    }
    grammar_fixture_close(&fixture);
}

static void add_many(struct text *text, const char *part, size_t count)
{
    for (size_t i = 0; i < count; i++)
        text_add(text, part);
}

/* What is too large or too deep is refused before it takes time or memory. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *after;
        size_t count;
        enum status status;
    } large[] = {
        { "root ::= ", "(", "\"a\"", 100000, STATUS_USAGE },
        { "root ::= \"", "aaaaaaaaaa", "\"", 100000, STATUS_LIMIT },
        { "root ::= \"a\"", "{2,900}", "", 60, STATUS_OK },
        { "root ::= (\"a\"?)", "{0,64}", "", 20, STATUS_LIMIT },
        { "root ::= \"a\" ", "| \"a\" ", "", 50000, STATUS_OK },
        { "root ::= \"a\" ", "\n#", "", 3000000, STATUS_LIMIT },
    };
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        struct grammar *grammar = NULL;
        struct error err;
        struct text text;
        text_init(&text);
        text_add(&text, large[i].before);
        add_many(&text, large[i].part, large[i].count);
        text_add(&text, large[i].after);
        enum status status = grammar_create_gbnf(fixture.vocabulary,
                                                 (struct text_view){ text_get(&text), text.length },
                                                 "g", &grammar, &err);
        if (status != large[i].status)
            fail_msg("%s%s...: expected status %d, found %d", large[i].before, large[i].part,
                     large[i].status, status);
        grammar_destroy(grammar);
        text_release(&text);
    }
    grammar_fixture_close(&fixture);
}

/* ---- Masks ---------------------------------------------------------------------------------- */

#define JSON                                                                                       \
    "root ::= object\n"                                                                            \
    "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"          \
    "object ::= \"{\" ws (string \":\" ws value (\",\" ws string \":\" ws value)*)? \"}\" ws\n"    \
    "array ::= \"[\" ws (value (\",\" ws value)*)? \"]\" ws\n"                                     \
    "string ::= \"\\\"\" ([^\"\\\\\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" "                 \
    "[0-9a-fA-F]{4}))* \"\\\"\" ws\n"                                                              \
    "number ::= \"-\"? ([0-9] | [1-9] [0-9]{0,15}) (\".\" [0-9]+)? ws\n"                           \
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n"

static const char *const masked[] = {
    JSON,
    "root ::= \"yes\" | \"yesno\" | \"no\" \"yes\"?",
    "root ::= ([a-z]{2,300} \",\"){2,4} [0-9]{12}",
    "root ::= ([a-z] | \"é\"){20,40} | \"{\\\"\" [^\"]{0,9} \"\\\"}\"",
    /* Ends of strings in rules of their own: everything passes the hole. */
    "root ::= \"\\\"\" inside \"\\\"}\"\ninside ::= [^\"]*",
    "root ::= a | b\na ::= \"(\" a \")\" | [a-c]{1,5}\nb ::= \"(\" b \"]\" | [a-c]{3,9}",
    "root ::= (\"a\" | \"aa\" | \"aaa\"){3,30} \"!\"",
    /* Stacks that part far below their tops. */
    "root ::= (x{2,5} | \"(\" root \")\"){1,3}\nx ::= (\"a\"{2,9} | \"Za\"){1,4}",
};

static void test_masks(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    struct text text;
    uint64_t random = 5;
    size_t ended = 0;
    text_init(&text);
    for (size_t i = 0; i < COUNT_OF(masked); i++) {
        struct grammar *grammar;
        struct error err;
        CHECK_OK(grammar_create_gbnf(fixture.vocabulary, text_view_of(masked[i]), "masked",
                                     &grammar, &err),
                 &err);
        for (int round = 0; round < 20; round++) {
            if (!grammar_write(grammar, &random, 200, &text))
                continue;
            ended++;
            struct text_view view = { text_get(&text), text.length };
            if (strcmp(grammar_verdict(grammar, view), "yes") != 0)
                fail_msg("%s: '%s' was written and does not fit", masked[i], view.bytes);
        }
        grammar_destroy(grammar);
    }
    assert_true(ended > 5 * COUNT_OF(masked));
    text_release(&text);
    grammar_fixture_close(&fixture);
}

/* End tokens where the text may end, and nowhere else; control tokens never. */
static void test_end(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    struct grammar *grammar;
    struct grammar_matcher *matcher;
    struct error err;
    float logits[GRAMMAR_TOKENS + 2] = { 0 };
    CHECK_OK(grammar_create_gbnf(fixture.vocabulary, text_view_of("root ::= \"ab\" \"c\"*"), "g",
                                 &grammar, &err),
             &err);
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    CHECK_OK(grammar_matcher_mask(matcher, logits, GRAMMAR_TOKENS + 2, &err), &err);
    assert_true(isinf(logits[fixture.end]) && isinf(logits[GRAMMAR_TOKENS]));
    CHECK_FAILS(grammar_matcher_accept(matcher, fixture.end, &err), STATUS_REFUSED, &err);
    CHECK_FAILS(grammar_matcher_accept(matcher, fixture.end + 1, &err), STATUS_REFUSED, &err);
    CHECK_FAILS(grammar_matcher_accept(matcher, GRAMMAR_TOKENS, &err), STATUS_REFUSED, &err);
    CHECK_FAILS(grammar_matcher_accept(matcher, 'c', &err), STATUS_REFUSED, &err);
    CHECK_OK(grammar_matcher_accept_bytes(matcher, text_view_of("abc"), &err), &err);
    assert_true(grammar_matcher_may_end(matcher));
    assert_false(grammar_matcher_must_end(matcher));
    memset(logits, 0, sizeof(logits));
    CHECK_OK(grammar_matcher_mask(matcher, logits, GRAMMAR_TOKENS + 2, &err), &err);
    assert_true(logits[fixture.end] == 0 && logits['c'] == 0 && isinf(logits['a']));
    assert_true(isinf(logits[fixture.end + 1]));
    CHECK_OK(grammar_matcher_accept(matcher, fixture.end, &err), &err);
    assert_true(grammar_matcher_must_end(matcher));
    CHECK_FAILS(grammar_matcher_mask(matcher, logits, GRAMMAR_TOKENS, &err), STATUS_REFUSED, &err);
    CHECK_FAILS(grammar_matcher_accept(matcher, 'c', &err), STATUS_REFUSED, &err);
    grammar_matcher_destroy(matcher);
    grammar_destroy(grammar);
    grammar_fixture_close(&fixture);
}

/* A vocabulary without the bytes of what must come next. */
static void test_no_token(void **state)
{
    (void)state;
    static struct vocab vocab;
    struct grammar_vocabulary *vocabulary;
    struct grammar *grammar;
    struct grammar_matcher *matcher;
    struct error err;
    float logits[VOCAB_LIMIT] = { 0 };
    vocab = (struct vocab){ .model = "gpt2", .pre = "gpt-2" };
    vocab_add(&vocab, "a", 0, 0);
    vocab_add(&vocab, "b", 0, 0);
    struct vocab_file file = vocab_file_open(&vocab);
    CHECK_OK(grammar_vocabulary_create(file.tokenizer, &vocabulary, &err), &err);
    CHECK_OK(
        grammar_create_gbnf(vocabulary, text_view_of("root ::= \"a\" [cd]"), "g", &grammar, &err),
        &err);
    CHECK_OK(grammar_matcher_create(grammar, &matcher, &err), &err);
    CHECK_OK(grammar_matcher_mask(matcher, logits, 2, &err), &err);
    CHECK_OK(grammar_matcher_accept(matcher, 0, &err), &err);
    CHECK_FAILS(grammar_matcher_mask(matcher, logits, 2, &err), STATUS_REFUSED, &err);
    check_contains("no token", err.text, "found none in the vocabulary");
    grammar_matcher_destroy(matcher);
    grammar_destroy(grammar);
    grammar_vocabulary_destroy(vocabulary);
    vocab_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_masks),
        cmocka_unit_test(test_end),    cmocka_unit_test(test_no_token),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
