/* cli_colour_test.c - words that say how something ended have colours; nothing else changes. */
#include "test.h"

#include "cli/colour.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is written; free it. */
static char *put(void (*how)(FILE *, bool, const char *), bool on, const char *text)
{
    char *bytes = NULL;
    size_t count = 0;
    FILE *out = open_memstream(&bytes, &count);
    assert_non_null(out);
    how(out, on, text);
    fclose(out);
    return bytes;
}

static void check(bool on, const char *text, const char *wanted)
{
    char *found = put(cli_put_coloured, on, text);
    assert_string_equal(found, wanted);
    free(found);
}

static void test_words(void **state)
{
    (void)state;
    check(true, "STATUS=OK\n", "\033[1;32mSTATUS=OK\033[0m\n");
    check(false, "STATUS=OK\n", "STATUS=OK\n");
    check(true, "1 numeric  CONFIRMED  x\n2 hang  REFUTED",
          "1 numeric  \033[1;31mCONFIRMED\033[0m  x\n2 hang  \033[1;32mREFUTED\033[0m");
    check(true, "Outcome: ROOT CAUSE FOUND.", "Outcome: \033[1;31mROOT CAUSE FOUND\033[0m.");
    check(true, "UNCONFIRMED CONFIRMEDLY CLEAN-UP", "UNCONFIRMED CONFIRMEDLY CLEAN-UP");
    check(true, "", "");
    char *table = put(cli_put_table, true, "Rank  Verdict\n1  CLEAN\n");
    assert_string_equal(table, "\033[1mRank  Verdict\033[0m\n1  \033[1;32mCLEAN\033[0m\n");
    free(table);
    table = put(cli_put_table, false, "Rank\n1\n");
    assert_string_equal(table, "Rank\n1\n");
    free(table);
}

static bool is_coloured(const char *word)
{
    char *found = put(cli_put_coloured, true, word);
    bool coloured = found[0] == '\033';
    free(found);
    return coloured;
}

/* Whatever a report calls them. */
static void test_every_verdict_and_outcome(void **state)
{
    (void)state;
    for (int language = 0; language < REPORT_LANGUAGE_COUNT; language++) {
        for (int i = 0; i <= VERDICT_INCONCLUSIVE; i++) {
            const char *word = words_verdict((enum report_language)language, (enum verdict)i);
            if (is_coloured(word) != (i != VERDICT_EXCLUDED))
                fail_msg("%s: expected a colour for every verdict that says something", word);
        }
        for (int i = AUDIT_CLEAN; i <= AUDIT_INCONCLUSIVE; i++) {
            const char *word = words_outcome((enum report_language)language, (enum audit_outcome)i);
            if (!is_coloured(word))
                fail_msg("%s: expected a colour for every outcome", word);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_words),
                                        cmocka_unit_test(test_every_verdict_and_outcome) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
