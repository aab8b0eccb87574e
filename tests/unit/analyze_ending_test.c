/* How a run ended: every kind has a name and words in both languages, and signals are told apart.
 */
#include "test.h"

#include "analyze/analyze.h"
#include "base/text.h"

#include <signal.h>
#include <string.h>

static void signals_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        int number;
        enum run_ending_kind kind;
        const char *words;
    } rows[] = {
        { SIGKILL, ENDING_KILLED, "killed by signal 9 (SIGKILL)" },
        { SIGTERM, ENDING_KILLED, "killed by signal 15 (SIGTERM)" },
        { SIGABRT, ENDING_ABORTED, "aborted by signal 6 (SIGABRT)" },
        { SIGSEGV, ENDING_ABORTED, "aborted by signal 11 (SIGSEGV)" },
        { 40, ENDING_KILLED, "killed by signal 40" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct run_ending ending = run_ending_of_signal(rows[i].number);
        struct text text;
        text_init(&text);
        run_ending_words(ending, ANALYZE_ENGLISH, &text);
        assert_int_equal(ending.kind, rows[i].kind);
        assert_string_equal(text_get(&text), rows[i].words);
        text_release(&text);
    }
}

static void every_ending_has_words(void **state)
{
    (void)state;
    for (int i = 0; i < ENDING_COUNT; i++) {
        struct run_ending ending = { (enum run_ending_kind)i, 3 };
        struct text english, spanish;
        text_init(&english);
        text_init(&spanish);
        run_ending_words(ending, ANALYZE_ENGLISH, &english);
        run_ending_words(ending, ANALYZE_SPANISH, &spanish);
        assert_true(run_ending_name((enum run_ending_kind)i)[0]);
        assert_true(english.length > 0 && spanish.length > 0);
        assert_string_not_equal(text_get(&english), text_get(&spanish));
        text_release(&english);
        text_release(&spanish);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_told_apart),
        cmocka_unit_test(every_ending_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
