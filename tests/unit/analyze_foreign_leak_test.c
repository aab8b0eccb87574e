/* analyze_foreign_leak_test.c - leaks of foreign programs: memory that is taken at one place again
 * and again, and is neither used nor freed. */
#include "analyze_foreign.h"

#include "analyze/analyze_impl.h"

/* What a program does with memory that it takes at one place. */
enum leak_use { LEAK_UNUSED, LEAK_ONCE, LEAK_AT_THE_END };

struct leak_row {
    const char *name;
    unsigned made, freed;
    bool launches; /* between the allocations */
    enum leak_use use;
    bool closed; /* the process ended in order */
    bool found;
};

static size_t leaks(const struct leak_row *row)
{
    struct script script;
    struct flight_info info = { .closed = row->closed };
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
        if (i <= row->freed)
            release(&script, i, EVENT_NO_STREAM, EVENT_SYNCHRONOUS);
    }
    for (uint32_t i = 1; row->use == LEAK_AT_THE_END && i <= row->made; i++)
        kernel(&script, A, i);
    CHECK_OK(analyzer_finish(script.analyzer, NULL, &info, script.ns, &script.err), &script.err);
    const struct analysis *analysis = analyzer_result(script.analyzer);
    size_t count = analysis->finding_count;
    if (count) {
        assert_int_equal(analysis->findings[0].hypothesis, HYPOTHESIS_LEAK);
        assert_int_equal(analysis->findings[0].certainty, FINDING_POSSIBLE);
        assert_int_equal(analysis->findings[0].expected, row->made);
        assert_int_equal(analysis->findings[0].found, 100 * row->made);
    }
    script_close(&script);
    return count;
}

/* Never more than possible: a pointer that is not seen may still lead there. */
static void a_leak_grows(void **state)
{
    (void)state;
    static const struct leak_row rows[] = {
        { "scratch of every round", 8, 0, true, LEAK_ONCE, true, true },
        { "taken and forgotten", 8, 0, true, LEAK_UNUSED, true, true },
        { "too few", 7, 0, true, LEAK_ONCE, true, false },
        { "gives back: it may keep some", 20, 1, true, LEAK_ONCE, true, false },
        { "died", 20, 0, true, LEAK_ONCE, false, false },
        { "weights, made before the work", 20, 0, false, LEAK_AT_THE_END, true, false },
        { "weights, used in ways not seen", 20, 0, false, LEAK_UNUSED, true, false },
        { "weights, converted one by one", 20, 0, true, LEAK_AT_THE_END, true, false },
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
