/* gpu_narrow_test.c - several launches may have made a fault: a rerun with a wait after each says
 * which (campaign/narrow.c); where the fault does not come again, or comes elsewhere, nothing is
 * claimed.
 *
 *     gpu_narrow_test DEVICE
 *
 * Its own program is the worker: a faulted context cannot be used again in its process. */
#include "test.h"

#include "campaign/identity.h"
#include "campaign/narrow.h"
#include "campaign/self_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

static const char *device;

struct scene {
    char folder[64];
    struct child_setup setup;
    struct campaign_options options;
    struct job job;
    struct analyzer *analyzer; /* of the first run */
    const struct finding *several;
    struct narrowing narrowing;
    struct report_intervention made;
    struct error err;
};

/* A fault in the first of four streams that are all at work. */
static void open_scene(struct scene *scene)
{
    *scene = (struct scene){ .folder = "/tmp/gpu-narrow-test-XXXXXX" };
    char run[80], flight[96];
    assert_non_null(mkdtemp(scene->folder));
    snprintf(run, sizeof(run), "%s/run", scene->folder);
    assert_int_equal(mkdir(run, 0700), 0);
    scene->setup = (struct child_setup){ "/proc/self/exe", (const char *const *)environ,
                                         scene->folder, false };
    scene->job = self_test_job(device, NULL, "row");
    scene->job.work = JOB_BUSY;
    scene->job.busy_streams = 4;
    scene->job.inject = "wild-pointer@op=swiglu,step=1,tensor=busy.0";
    snprintf(flight, sizeof(flight), "%s/row.flight", run);
    scene->job.flight = flight;
    struct child_outcome outcome;
    CHECK_OK(child_run(&scene->setup, &scene->job, NULL, &outcome, &scene->err), &scene->err);
    assert_true(outcome.planted.planted);
    child_outcome_release(&outcome);
    struct analyze_options options = { .level = scene->job.level };
    CHECK_OK(analyze_flight(flight, &options, &scene->analyzer, &scene->err), &scene->err);
    scene->job.flight = NULL;
    scene->several = narrow_find(analyzer_result(scene->analyzer));
    assert_non_null(scene->several);
    assert_int_equal(analyzer_result(scene->analyzer)->root, -1);
    assert_true(scene->several->candidate_count > 1);
}

static void close_scene(struct scene *scene)
{
    narrowing_release(&scene->narrowing);
    analyzer_destroy(scene->analyzer);
    temporary_close(scene->folder);
    assert_int_equal(access(scene->folder, F_OK), -1);
}

static void narrow_with(struct scene *scene, const char *inject)
{
    struct job job = scene->job;
    job.inject = inject;
    CHECK_OK(narrow_down(&scene->options, &scene->setup, &job, scene->several, &scene->narrowing,
                         &scene->made, &scene->err),
             &scene->err);
    assert_int_equal(scene->made.runs, 1);
}

static void one_launch_is_singled_out(void **state)
{
    (void)state;
    struct scene scene;
    char path[160];
    open_scene(&scene);
    narrow_with(&scene, scene.job.inject);
    assert_non_null(scene.narrowing.analyzer);
    const struct analysis *analysis = analyzer_result(scene.narrowing.analyzer);
    assert_int_equal(analysis->root, 0);
    const struct finding *root = &analysis->findings[0];
    assert_int_equal(root->hypothesis, HYPOTHESIS_KERNEL_FAULT);
    assert_int_equal(root->certainty, FINDING_DIRECT);
    assert_int_equal(root->candidate_count, 1);
    assert_string_equal(root->cause.op, "swiglu");
    assert_string_equal(root->cause.scope.tensor, "busy.0");
    assert_int_equal(root->cause.scope.step, 1);
    assert_int_equal(scene.made.faults, 1);
    check_contains("what it proves", scene.made.proves[REPORT_ENGLISH], "made it");
    snprintf(path, sizeof(path), "%s/%s", scene.folder, scene.narrowing.flight);
    assert_int_equal(access(path, R_OK), 0);
    close_scene(&scene);
}

static void a_fault_that_does_not_come_again_proves_nothing(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    narrow_with(&scene, NULL);
    assert_null(scene.narrowing.analyzer);
    assert_int_equal(scene.made.faults, 0);
    check_contains("what it proves", scene.made.proves[REPORT_ENGLISH], "did not occur");
    check_contains("what it proves", scene.made.proves[REPORT_SPANISH], "no apareció");
    close_scene(&scene);
}

static void another_fault_proves_nothing_about_the_candidates(void **state)
{
    (void)state;
    struct scene scene;
    open_scene(&scene);
    narrow_with(&scene, "wild-pointer@op=swiglu,step=0,tensor=busy.3");
    assert_null(scene.narrowing.analyzer);
    assert_int_equal(scene.made.faults, 1);
    check_contains("what it proves", scene.made.proves[REPORT_ENGLISH], "something else");
    close_scene(&scene);
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 3 && strcmp(arguments[1], "audit-worker") == 0) {
        struct error err;
        bool dumped, failed;
        return campaign_worker(arguments[2], &failed, &dumped, &err) ? 3 : failed;
    }
    if (argument_count < 2) {
        printf("skipped: no device was named\n");
        return 77;
    }
    device = arguments[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_launch_is_singled_out),
        cmocka_unit_test(a_fault_that_does_not_come_again_proves_nothing),
        cmocka_unit_test(another_fault_proves_nothing_about_the_candidates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
