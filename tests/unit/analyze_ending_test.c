/* How a run ended: every kind has a name, and signals are told apart. */
#include "test.h"

#include "analyze/analyze.h"

#include <signal.h>
#include <string.h>

static void signals_are_told_apart(void **state)
{
    (void)state;
    static const struct {
        int number;
        enum run_ending_kind kind;
    } rows[] = { { SIGKILL, ENDING_KILLED },
                 { SIGTERM, ENDING_KILLED },
                 { SIGABRT, ENDING_ABORTED },
                 { SIGSEGV, ENDING_ABORTED },
                 { 40, ENDING_KILLED } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct run_ending ending = run_ending_of_signal(rows[i].number);
        assert_int_equal(ending.kind, rows[i].kind);
        assert_int_equal(ending.number, rows[i].number);
    }
}

static void every_ending_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < ENDING_COUNT; i++)
        for (int j = 0; j <= i; j++)
            assert_int_equal(strcmp(run_ending_name((enum run_ending_kind)i),
                                    run_ending_name((enum run_ending_kind)j)) == 0,
                             i == j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signals_are_told_apart),
        cmocka_unit_test(every_ending_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
