/* analyze_foreign_leak_test.c - leaks of foreign programs: memory that is taken at one place again
 * and again, and is neither used nor freed. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"

/* What a program does with memory that it takes at one place. */
enum leak_use { LEAK_UNUSED, LEAK_ONCE, LEAK_AT_THE_END };

/* What it gives back, each right after its use; of the parts, the rest. */
enum leak_return { RETURNS_NONE, RETURNS_FIRST, RETURNS_HALF, RETURNS_OLD, RETURNS_NEW };

static bool is_returned(enum leak_return returns, uint32_t number, uint32_t made)
{
    switch (returns) {
    case RETURNS_NONE:
        return false;
    case RETURNS_FIRST:
        return number == 1;
    case RETURNS_HALF:
        return number % 2 == 0;
    case RETURNS_OLD: /* all but the newest ten: a cache */
        return number + 10 <= made;
    default: /* all but the oldest ten: a reserve */
        return number > 10;
    }
}

struct leak_row {
    const char *name;
    unsigned made;
    enum leak_return returns;
    bool launches; /* between the allocations */
    enum leak_use use;
    bool closed; /* the process ended in order */
    bool found;
};

static size_t leaks(const struct leak_row *row)
{
    struct script script;
    struct flight_info info = { .closed = row->closed };
    unsigned left = 0;
    script_open(&script, AUDIT_LOG);
    for (uint32_t i = 1; i <= row->made; i++) {
        struct event event = script_event(&script, EVENT_BUFFER_CREATE);
        event.flags = EVENT_FOREIGN;
        event.buffer.bytes = 100;
        event.stack_index = 4;
        event.access_count = 1;
        event.accesses[0] = script_access(i, 0, 100, 0, 0);
        script_add(&script, &event);
        if (row->launches)
            kernel(&script, A, row->use == LEAK_ONCE ? i : 0);
        if (is_returned(row->returns, i, row->made))
            release(&script, i, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
        else
            left++;
    }
    for (uint32_t i = 1; row->use == LEAK_AT_THE_END && i <= row->made; i++)
        if (!is_returned(row->returns, i, row->made))
            kernel(&script, A, i);
    CHECK_OK(analyzer_finish(script.analyzer, NULL, &info, script.ns, &script.err), &script.err);
    const struct analysis *analysis = analyzer_result(script.analyzer);
    size_t count = analysis->finding_count;
    if (count) {
        assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_LEAK);
        assert_int_equal(analysis->findings[0].certainty, FINDING_POSSIBLE);
        assert_int_equal(analysis->findings[0].expected, left);
        assert_int_equal(analysis->findings[0].found, 100 * left);
    }
    script_close(&script);
    return count;
}

/* Never more than possible: a pointer that is not seen may still lead there. */
static void a_leak_grows(void **state)
{
    (void)state;
    static const struct leak_row rows[] = {
        { "scratch of every round", 8, RETURNS_NONE, true, LEAK_ONCE, true, true },
        { "taken and forgotten", 8, RETURNS_NONE, true, LEAK_UNUSED, true, true },
        { "too few", 7, RETURNS_NONE, true, LEAK_ONCE, true, false },
        { "one is given back", 20, RETURNS_FIRST, true, LEAK_ONCE, true, true },
        { "every second is given back", 40, RETURNS_HALF, true, LEAK_ONCE, true, true },
        { "too few are left", 14, RETURNS_HALF, true, LEAK_ONCE, true, false },
        { "the last are kept", 40, RETURNS_OLD, true, LEAK_ONCE, true, false },
        { "the first are kept", 40, RETURNS_NEW, true, LEAK_ONCE, true, false },
        { "every second is used later", 40, RETURNS_HALF, true, LEAK_AT_THE_END, true, false },
        { "died", 20, RETURNS_NONE, true, LEAK_ONCE, false, false },
        { "weights, made before the work", 20, RETURNS_NONE, false, LEAK_AT_THE_END, true, false },
        { "weights, used in ways not seen", 20, RETURNS_NONE, false, LEAK_UNUSED, true, false },
        { "weights, converted one by one", 20, RETURNS_NONE, true, LEAK_AT_THE_END, true, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (leaks(&rows[i]) != rows[i].found)
            fail_msg("%s", rows[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_leak_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
