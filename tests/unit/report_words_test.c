/* report_words_test.c - every word exists in both languages and takes the same arguments. */
#include "test.h"

#include "report/words.h"

#include <string.h>

static void check_pair(const char *table, size_t index, const char *english, const char *spanish)
{
    if (!english || !spanish || !english[0] || !spanish[0])
        fail_msg("%s: word %zu is missing: '%s', '%s'", table, index, english ? english : "NULL",
                 spanish ? spanish : "NULL");
}

/* Which arguments a word uses, as bits; *ret_ticks: its backticks. */
static unsigned arguments_of(const char *word, size_t *ret_ticks)
{
    unsigned bits = 0;
    *ret_ticks = 0;
    for (; *word; word++) {
        bits |= 1u << words_part(word).index;
        *ret_ticks += *word == '`';
    }
    return bits;
}

static void test_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORD_COUNT; i++)
        check_pair("words", i, words_get(REPORT_ENGLISH, (enum word)i),
                   words_get(REPORT_SPANISH, (enum word)i));
    for (size_t i = 0; i < AUDIT_OUTCOME_COUNT; i++)
        check_pair("outcomes", i, words_outcome(REPORT_ENGLISH, (enum audit_outcome)i),
                   words_outcome(REPORT_SPANISH, (enum audit_outcome)i));
    for (size_t i = 0; i < VERDICT_COUNT; i++)
        check_pair("verdicts", i, words_verdict(REPORT_ENGLISH, (enum verdict)i),
                   words_verdict(REPORT_SPANISH, (enum verdict)i));
    for (size_t i = 0; i < REPORT_SEVERITY_COUNT; i++)
        check_pair("severities", i, words_severity(REPORT_ENGLISH, (enum report_severity)i),
                   words_severity(REPORT_SPANISH, (enum report_severity)i));
    for (size_t i = 0; i < REPORT_ROW_MODE_COUNT; i++)
        check_pair("modes", i, words_mode(REPORT_ENGLISH, (enum report_row_mode)i),
                   words_mode(REPORT_SPANISH, (enum report_row_mode)i));
}

static void test_same_arguments(void **state)
{
    (void)state;
    for (size_t i = 0; i < WORD_COUNT; i++) {
        size_t english_ticks, spanish_ticks;
        unsigned english = arguments_of(words_get(REPORT_ENGLISH, (enum word)i), &english_ticks);
        unsigned spanish = arguments_of(words_get(REPORT_SPANISH, (enum word)i), &spanish_ticks);
        if (english != spanish)
            fail_msg("other arguments: '%s', '%s'", words_get(REPORT_ENGLISH, (enum word)i),
                     words_get(REPORT_SPANISH, (enum word)i));
        if (english_ticks != spanish_ticks || english_ticks % 2 != 0)
            fail_msg("other code: '%s', '%s'", words_get(REPORT_ENGLISH, (enum word)i),
                     words_get(REPORT_SPANISH, (enum word)i));
    }
}

/* A word that was never translated is equal in both; these are equal by right. */
static void test_translated(void **state)
{
    (void)state;
    static const enum word equal[] = { WORD_NO,    WORD_COMMIT,    WORD_STAGE_TENSOR, WORD_BYTES,
                                       WORD_TOTAL, WORD_GIGABYTES, WORD_PLACE_TENSOR };
    for (size_t i = 0; i < WORD_COUNT; i++) {
        bool by_right = false;
        for (size_t j = 0; j < COUNT_OF(equal); j++)
            by_right = by_right || equal[j] == i;
        if (!by_right && strcmp(words_get(REPORT_ENGLISH, (enum word)i),
                                words_get(REPORT_SPANISH, (enum word)i)) == 0)
            fail_msg("not translated: '%s'", words_get(REPORT_ENGLISH, (enum word)i));
    }
    for (size_t i = 0; i < AUDIT_OUTCOME_COUNT; i++)
        assert_string_not_equal(words_outcome(REPORT_ENGLISH, (enum audit_outcome)i),
                                words_outcome(REPORT_SPANISH, (enum audit_outcome)i));
    for (size_t i = 0; i < VERDICT_COUNT; i++)
        assert_string_not_equal(words_verdict(REPORT_ENGLISH, (enum verdict)i),
                                words_verdict(REPORT_SPANISH, (enum verdict)i));
}

static void test_interventions(void **state)
{
    (void)state;
    static const char *const slugs[] = { "serialised",      "one-at-a-time", "hashed-copies",
                                         "single-stream",   "guards",        "pinned",
                                         "pageable",        "sync-copies",   "chunking",
                                         "injected-removed" };
    for (size_t i = 0; i < COUNT_OF(slugs); i++)
        check_pair("interventions", i, words_intervention(REPORT_ENGLISH, slugs[i]),
                   words_intervention(REPORT_SPANISH, slugs[i]));
    assert_null(words_intervention(REPORT_SPANISH, "no such thing"));
}

static void test_fill(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    /* Arguments are not looked at for more arguments. */
    words_fill(&text, "{2} of {1}, {x} {2}", (const char *const[]){ "{2}", "b" }, 2);
    assert_string_equal(text_get(&text), "b of {2}, {x} b");
    text_release(&text);
}

static void test_plurals(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    words_fill(&text, "{1} {1|row|rows}, {2} {2|error|errors}", (const char *const[]){ "1", "0" },
               2);
    assert_string_equal(text_get(&text), "1 row, 0 errors");
    text_clear(&text);
    words_fill(&text, "{1} {1|row|rows}, {2} {2|error|errors}", (const char *const[]){ "11", "1" },
               2);
    assert_string_equal(text_get(&text), "11 rows, 1 error");
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),   cmocka_unit_test(test_same_arguments),
        cmocka_unit_test(test_translated), cmocka_unit_test(test_interventions),
        cmocka_unit_test(test_fill),       cmocka_unit_test(test_plurals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
