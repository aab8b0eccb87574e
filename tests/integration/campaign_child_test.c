/* campaign_child_test.c - a run of an audit in a process of its own: whoever watches can end it at
 * any moment. Its own program is the worker, one that does nothing and never ends. */
#include "test.h"

#include "campaign/child.h"
#include "campaign/self_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct watched {
    uint32_t asked;
    uint64_t done, total;
    char stage[32];
};

/* Goes on until the child has been waited for a few times. */
static bool stop_at_third(void *context, const char *stage, uint64_t done, uint64_t total)
{
    struct watched *watched = context;
    snprintf(watched->stage, sizeof(watched->stage), "%s", stage);
    watched->done = done;
    watched->total = total;
    return ++watched->asked < 3;
}

static void a_run_ends_when_its_watcher_says_so(void **state)
{
    (void)state;
    char folder[] = "/tmp/campaign-child-test-XXXXXX", run[64];
    assert_non_null(mkdtemp(folder));
    snprintf(run, sizeof(run), "%s/run", folder);
    assert_int_equal(mkdir(run, 0700), 0);
    struct child_setup setup = { "/proc/self/exe", (const char *const *)environ, folder, false };
    struct watched watched = { 0 };
    struct campaign_watcher watcher = { .step = stop_at_third, .context = &watched };
    struct child_step step = { &watcher, "reruns", 4, 9 };
    struct job job = self_test_job("host", NULL, "row");
    struct child_outcome outcome;
    struct error err;
    job.hang_limit_ns = UINT64_C(3600) * 1000000000; /* no other end than the watcher's */
    assert_int_equal(child_run_again(&setup, &job, &step, &outcome, &err), STATUS_INTERRUPTED);
    assert_int_equal(watched.asked, 3);
    assert_string_equal(watched.stage, "reruns");
    assert_int_equal(watched.done, 4);
    assert_int_equal(watched.total, 9);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
    char log[96];
    snprintf(log, sizeof(log), "%s/row.log", run);
    unlink(log);
    assert_int_equal(rmdir(run), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(int argument_count, char **arguments)
{
    if (argument_count > 1 && strcmp(arguments[1], "audit-worker") == 0)
        for (;;)
            pause();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_ends_when_its_watcher_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
