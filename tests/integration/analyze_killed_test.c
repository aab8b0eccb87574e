/* A healthy run that is killed in the middle of anything is not a kernel fault: whatever its
 * recording shows, nothing is found, and the ending is said. */
#include "device_fixture.h"
#include "planted_engine.h"

#include "analyze/analyze.h"
#include "event/fan.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS 4
#define MOMENTS 20u
#define SEED 1u

/* Ends the process at a notification, by its number: no clock decides where. */
struct killer {
    uint64_t count, at; /* at 0: never */
};

static void on_notify(void *context, const struct event *event)
{
    struct killer *killer = context;
    (void)event;
    if (__atomic_add_fetch(&killer->count, 1, __ATOMIC_RELAXED) == killer->at)
        kill(getpid(), SIGKILL);
}

static uint64_t run(const char *path, uint64_t kill_at)
{
    struct flight_options flight_options = { .device = "host", .command = "test --audit guard" };
    static struct planted_engine planted;
    static struct event_fan fan;
    struct killer killer = { .at = kill_at };
    struct flight *flight;
    struct error err;
    memset(&fan, 0, sizeof(fan));
    CHECK_OK(flight_create(path, &flight_options, &flight, &err), &err);
    event_fan_add(&fan, flight_observer(flight));
    event_fan_add(&fan, (struct event_observer){ on_notify, &killer });
    struct device_options options = { .observer = event_fan_observer(&fan),
                                      .crumbs = flight_crumbs(flight),
                                      .guards = true,
                                      .poison = true,
                                      .copy_completions = true,
                                      .hash_results = true,
                                      .thread_count = 2 };
    planted_open(&planted, &options, "");
    for (int32_t step = 0; step < STEPS; step++)
        CHECK_OK(planted_step(&planted, 7 + step), &planted.err);
    planted_close(&planted);
    flight_close(flight);
    return killer.count;
}

static void check(const char *path, uint64_t moment)
{
    struct analyze_options options = { .level = AUDIT_GUARD };
    struct analyzer *analyzer;
    struct error err;
    CHECK_OK(analyze_flight(path, &options, &analyzer, &err), &err);
    const struct analysis *analysis = analyzer_result(analyzer);
    for (size_t i = 0; i < analysis->finding_count; i++)
        fail_msg("killed at notification %ju: found %s", (uintmax_t)moment,
                 hypothesis_info(analysis->findings[i].hypothesis)->slug);
    assert_int_equal(analysis->ending.kind, ENDING_UNCLOSED);
    assert_false(analysis->closed);
    assert_false(analysis->device_lost);
    analyzer_destroy(analyzer);
}

static void killed_runs_are_no_kernel_faults(void **state)
{
    (void)state;
    struct temp_path path = temp_folder_path(&model.folder, "killed.flight");
    uint64_t total = run(path.text, 0), random = SEED;
    assert_true(total > MOMENTS);
    for (unsigned i = 0; i < MOMENTS; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        /* The last notifications are of closing the device; one at least is left. */
        uint64_t moment = 1 + (random >> 33) % (total - 1);
        unlink(path.text);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            run(path.text, moment);
            _exit(0);
        }
        /* It is looked at before it is waited for: gone is gone. */
        siginfo_t ended;
        int status;
        assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
        check(path.text, moment);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        check(path.text, moment);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(killed_runs_are_no_kernel_faults) };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
