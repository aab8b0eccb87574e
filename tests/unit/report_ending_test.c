/* How a run ended, in words of both languages. */
#include "test.h"

#include "report/finding.h"

#include <signal.h>
#include <string.h>

static void signals_are_named(void **state)
{
    (void)state;
    static const struct {
        int number;
        const char *words;
    } rows[] = {
        { SIGKILL, "killed by signal 9 (SIGKILL)" },
        { SIGTERM, "killed by signal 15 (SIGTERM)" },
        { SIGABRT, "aborted by signal 6 (SIGABRT)" },
        { SIGSEGV, "aborted by signal 11 (SIGSEGV)" },
        { SIGXFSZ, "killed by signal 25 (SIGXFSZ)" },
        { SIGSYS, "aborted by signal 31 (SIGSYS)" },
        { 40, "killed by signal 40" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct run_ending ending = run_ending_of_signal(rows[i].number);
        struct text text;
        text_init(&text);
        report_ending_words(ending, REPORT_ENGLISH, &text);
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
        report_ending_words(ending, REPORT_ENGLISH, &english);
        report_ending_words(ending, REPORT_SPANISH, &spanish);
        assert_true(english.length > 0 && spanish.length > 0);
        assert_string_not_equal(text_get(&english), text_get(&spanish));
        text_release(&english);
        text_release(&spanish);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_named),
        cmocka_unit_test(every_ending_has_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
