/* What the kernel says of processes it killed for want of memory. */
#include "test.h"

#include "campaign/memory_killer.h"

static void events_are_counted(void **state)
{
    (void)state;
    assert_int_equal(memory_killer_parse("low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\n"), 3);
    assert_int_equal(memory_killer_parse("oom_kill 1"), 1);
    assert_int_equal(memory_killer_parse("oom 5\noom_group_kill 4\n"), 0);
    assert_int_equal(memory_killer_parse(""), 0);
}

static void log_names_a_process(void **state)
{
    (void)state;
    static const char line[] = "3,1201,8861,-;Out of memory: Killed process 4711 (greta) "
                               "total-vm:12kB, anon-rss:3kB";
    assert_true(memory_killer_names(line, 4711));
    assert_false(memory_killer_names(line, 471));
    assert_false(memory_killer_names(line, 47110));
    assert_true(memory_killer_names("Memory cgroup out of memory: Killed process 9, UID 0", 9));
    assert_false(memory_killer_names("6,1,2,-;greta[4711]: segfault at 0", 4711));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_are_counted),
        cmocka_unit_test(log_names_a_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
