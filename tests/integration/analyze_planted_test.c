/* Faults planted in a whole model: each is found, under the right hypothesis, at the right call;
 * live and from the flight file. Without one there is no finding. */
#include "device_fixture.h"
#include "planted_engine.h"

#include "analyze/analyze.h"
#include "base/text.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS 4
#define RUNS 4u

/* ---- A run of it, recorded ------------------------------------------------------------------ */

struct scene {
    struct temp_path path;
    struct flight *flight;
    struct analyze_live *live;
    struct planted_engine planted;
    struct inject_record record;
};

/* A machine may be so busy that nothing moves for a while: only the planted hang is to be one. */
static struct analyze_options options_of(const char *spec_text)
{
    bool hangs = strstr(spec_text, "lost-wakeup") != NULL;
    return (struct analyze_options){ .level = AUDIT_VERIFY,
                                     .hang_limit_ns = hangs ? 200000000u : 60000000000u };
}

static void scene_open(struct scene *scene, const char *spec_text)
{
    struct flight_options flight_options = { .device = "host", .command = "test --audit verify" };
    struct analyze_options options = options_of(spec_text);
    struct error *err = &scene->planted.err;
    memset(scene, 0, sizeof(*scene));
    scene->path = temp_folder_path(&model.folder, "run.flight");
    CHECK_OK(flight_create(scene->path.text, &flight_options, &scene->flight, err), err);
    CHECK_OK(analyze_live_start(scene->flight, scene->path.text, &options, &scene->live, err), err);
    struct device_options device_options = { .observer = flight_observer(scene->flight),
                                             .crumbs = flight_crumbs(scene->flight),
                                             .guards = true,
                                             .poison = true,
                                             .quarantine_bytes = 1 << 24,
                                             .copy_completions = true,
                                             .hash_results = true,
                                             .ask_errors = true,
                                             .verify = true,
                                             .scan_every = 1,
                                             .thread_count = 2 };
    planted_open(&scene->planted, &device_options, spec_text);
}

/* Decodes STEPS tokens, RUNS times; stops at the first error. */
static void scene_run(struct scene *scene)
{
    for (uint64_t run = 1; run <= RUNS; run++) {
        device_run_begin(scene->planted.device, run, 1);
        engine_rewind(scene->planted.engine, 0, 0);
        for (int32_t step = 0; step < STEPS; step++)
            if (planted_step(&scene->planted, 7 + step))
                return;
    }
}

/* The analysis of the thread that ran along, and the one of the file. */
static void scene_close(struct scene *scene, const char *spec_text, struct analyzer **ret_live,
                        struct analyzer **ret_dead)
{
    struct analyze_options options = options_of(spec_text);
    struct error err;
    engine_close(scene->planted.engine);
    if (scene->planted.inject)
        scene->record = *inject_record(scene->planted.inject);
    device_close(scene->planted.device);
    CHECK_OK(analyze_live_stop(scene->live, ret_live, &err), &err);
    flight_close(scene->flight);
    CHECK_OK(analyze_flight(scene->path.text, &options, ret_dead, &err), &err);
    assert_int_equal(analyzer_result(*ret_live)->lost_count, 0);
}

static void show(const char *spec, const struct analysis *analysis)
{
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        text_addf(&text, "  %s%s (%d): ", (int32_t)i == analysis->root ? "ROOT " : "",
                  hypothesis_info(finding->hypothesis)->slug, finding->consequence_of);
        report_finding_describe(finding, REPORT_ENGLISH, &text);
        text_add(&text, "\n");
    }
    print_message("%s\n%s", spec, text_get(&text));
    text_release(&text);
}

/* ---- Tests ---------------------------------------------------------------------------------- */

static const struct {
    const char *spec;
    enum hypothesis hypothesis;
    const char *op; /* of the culprit; "": a copy or a buffer */
    int32_t layer, step;
    const char *seen; /* label of the copy where it surfaced; NULL: not asked, "": anywhere, since
                         after a fault the next call to come says so */
} planted[] = {
    { "dtype-mismatch@op=rope,layer=1,step=2", HYPOTHESIS_CONTRACT_BREACH, "rope", 1, 2, NULL },
    { "wrong-stride@op=rope,layer=2,step=1", HYPOTHESIS_CONTRACT_BREACH, "rope", 2, 1, NULL },
    { "shape-mismatch@op=rope,layer=1,step=2", HYPOTHESIS_CONTRACT_BREACH, "rope", 1, 2, NULL },
    { "grid-limit@op=rope,layer=1,step=2", HYPOTHESIS_CONTRACT_BREACH, "rope", 1, 2, NULL },
    { "misaligned-view@op=rope,layer=1,step=2", HYPOTHESIS_BAD_POINTER, "rope", 1, 2, NULL },
    { "offset-past-end@op=rope,layer=1,step=2", HYPOTHESIS_BAD_POINTER, "rope", 1, 2, NULL },
    { "dead-handle@op=rope,layer=1,step=2", HYPOTHESIS_USE_AFTER_FREE, "rope", 1, 2, NULL },
    { "view-past-end@op=copy-out,step=2", HYPOTHESIS_SIZE_MISMATCH, "", -1, 2, NULL },
    { "size-beyond-view@step=2", HYPOTHESIS_SIZE_MISMATCH, "", -1, 2, NULL },
    { "early-free@op=matmul_group,operand=weights_0,layer=1,step=1", HYPOTHESIS_USE_AFTER_FREE,
      "matmul_group", 1, 1, NULL },
    { "double-free", HYPOTHESIS_USE_AFTER_FREE, "", -1, -1, NULL },
    { "freed-staging@step=2", HYPOTHESIS_STAGING_REUSE, "", -1, 2, NULL },
    { "double-release@step=2", HYPOTHESIS_STAGING_REUSE, "", -1, 2, NULL },
#ifndef RACES_ARE_REPORTED /* ThreadSanitizer finds the planted ones too */
    { "free-while-queued@op=rope,layer=1,step=2", HYPOTHESIS_USE_AFTER_FREE, "rope", 1, 2, NULL },
    { "slot-rewritten@step=2", HYPOTHESIS_STAGING_REUSE, "", -1, 2, NULL },
    { "overlapping-d2h@step=2", HYPOTHESIS_OVERLAPPING_COPIES, "", -1, 2, NULL },
    { "overlapping-copies@step=2", HYPOTHESIS_OVERLAPPING_COPIES, "", -1, 2, NULL },
    { "two-streams@op=rope,layer=1,step=2", HYPOTHESIS_MISSING_SYNC, "rope", 1, 2, NULL },
#endif
    { "uninitialised-read@op=rope,layer=1,step=2,operand=positions", HYPOTHESIS_UNINITIALISED_READ,
      "rope", 1, 2, NULL },
    { "rope-position@layer=0,step=0", HYPOTHESIS_BAD_POINTER, "rope", 0, 0, "logits" },
    { "rope-position@layer=1,step=2", HYPOTHESIS_BAD_POINTER, "rope", 1, 2, "logits" },
    { "rope-position@layer=2,step=3", HYPOTHESIS_BAD_POINTER, "rope", 2, 3, "logits" },
    { "rope-past-table@layer=2,step=1", HYPOTHESIS_BAD_POINTER, "rope", 2, 1, "logits" },
    { "kv-position@layer=1,step=2", HYPOTHESIS_BAD_POINTER, "kv_append", 1, 2, "logits" },
    { "kv-slot-past-cache@layer=1,step=2", HYPOTHESIS_BAD_POINTER, "kv_append", 1, 2, "logits" },
    { "token-past-vocabulary@step=2", HYPOTHESIS_BAD_POINTER, "embed", -1, 2, "logits" },
    { "bad-index@op=attention,layer=1,step=2", HYPOTHESIS_BAD_POINTER, "attention", 1, 2,
      "logits" },
    { "wild-pointer@op=rope,layer=0,step=0", HYPOTHESIS_KERNEL_FAULT, "rope", 0, 0, "" },
    { "wild-pointer@op=rope,layer=2,step=3", HYPOTHESIS_KERNEL_FAULT, "rope", 2, 3, "" },
    { "wrapped-offset@op=rope,layer=1,step=2", HYPOTHESIS_KERNEL_FAULT, "rope", 1, 2, "" },
    { "memory-vanished@op=rope,layer=1,step=2", HYPOTHESIS_KERNEL_FAULT, "rope", 1, 2, "" },
    /* q ends at its guard page: one byte past it faults. The logits have slack before them. */
    { "overrun@op=rope,layer=1,step=2", HYPOTHESIS_KERNEL_FAULT, "rope", 1, 2, "" },
    { "underrun@tensor=logits,step=2", HYPOTHESIS_SILENT_CORRUPTION, "matmul_group", -1, 2, NULL },
    { "nan-output@op=swiglu,layer=1,step=2", HYPOTHESIS_NUMERIC, "swiglu", 1, 2, NULL },
    { "unequal-runs@tensor=logits,run=2", HYPOTHESIS_NON_DETERMINISM, "", -1, 4, NULL },
    { "flipped-bit@step=2", HYPOTHESIS_SILENT_CORRUPTION, "", -1, 2, NULL },
    { "short-copy@step=2", HYPOTHESIS_SILENT_CORRUPTION, "", -1, 2, NULL },
    { "stale-copy@step=2", HYPOTHESIS_SILENT_CORRUPTION, "", -1, 2, NULL },
    { "flipped-bit-in@step=2", HYPOTHESIS_SILENT_CORRUPTION, "", -1, 2, NULL },
    { "stale-copy-in@step=2", HYPOTHESIS_SILENT_CORRUPTION, "", -1, 2, NULL },
    { "lost-wakeup@step=2,ms=1000", HYPOTHESIS_HANG, "", -1, 2, NULL },
};

/* It shows where it surfaces, and not what did it: a root would be a guess. A damaged canary may be
 * the work of any launch since it was last seen whole; the one that writes the buffer ranks first.
 */
static bool is_only_seen(size_t row)
{
    enum hypothesis hypothesis = planted[row].hypothesis;
    return hypothesis == HYPOTHESIS_NON_DETERMINISM || hypothesis == HYPOTHESIS_HANG ||
           strstr(planted[row].spec, "underrun");
}

static size_t check_one(size_t row, const struct analysis *analysis,
                        const struct inject_record *record)
{
    const char *wrong = NULL;
    bool only_seen = is_only_seen(row);
    int32_t index = only_seen ? analysis->defect : analysis->root;
    const struct finding *root = index >= 0 ? &analysis->findings[index] : NULL;
    if (!record->planted)
        wrong = "not planted";
    else if (only_seen && analysis->root >= 0)
        wrong = "a root that nothing proves";
    else if (!root)
        wrong = only_seen ? "not seen" : "no root";
    else if (root->hypothesis != planted[row].hypothesis)
        wrong = "another hypothesis";
    else if (root->cause.kind == EVENT_LAUNCH && strcmp(root->cause.op, planted[row].op) != 0)
        wrong = "another op";
    else if (root->cause.scope.layer != planted[row].layer ||
             root->cause.scope.step != planted[row].step)
        wrong = "another layer or step";
    else if (strstr(planted[row].spec, "early-free") && root->cause.buffer[0] == '\0')
        wrong = "no buffer named";
    else if (planted[row].seen && root->seen.event_id == 0)
        wrong = "seen nowhere";
    else if (planted[row].seen && planted[row].seen[0] &&
             strcmp(root->seen.scope.tensor, planted[row].seen) != 0)
        wrong = "seen elsewhere";
    if (wrong) {
        show(planted[row].spec, analysis);
        print_message("  ^ %s\n", wrong);
    }
    return wrong != NULL;
}

static void planted_faults_are_found(void **state)
{
    (void)state;
    static struct scene scene;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT_OF(planted); i++) {
        struct analyzer *live, *dead;
        scene_open(&scene, planted[i].spec);
        scene_run(&scene);
        scene_close(&scene, planted[i].spec, &live, &dead);
        wrong += check_one(i, analyzer_result(live), &scene.record);
        wrong += check_one(i, analyzer_result(dead), &scene.record);
        if (analyzer_result(live)->finding_count != analyzer_result(dead)->finding_count) {
            print_message("%s: live and dead differ\n", planted[i].spec);
            wrong++;
        }
        analyzer_destroy(live);
        analyzer_destroy(dead);
    }
    assert_int_equal(wrong, 0);
}

/* Nothing planted, nothing found; and what could be looked at was looked at. */
static void clean_model_has_no_finding(void **state)
{
    (void)state;
    static struct scene scene;
    struct analyzer *live, *dead;
    scene_open(&scene, "");
    scene_run(&scene);
    assert_int_equal(scene.planted.err.status, STATUS_OK);
    scene_close(&scene, "", &live, &dead);
    show("clean", analyzer_result(live));
    assert_int_equal(analyzer_result(live)->finding_count, 0);
    assert_int_equal(analyzer_result(dead)->finding_count, 0);
    struct verdict_input input = { 0 };
    const struct analysis *analyses[] = { analyzer_result(dead) };
    input.analyses = analyses;
    input.analysis_count = 1;
    input.recorded_count = RUNS;
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        input.self_test[i] = SELF_TEST_PASSED;
    input.excluded[HYPOTHESIS_LEAK] = true; /* the device gives everything back */
    struct audit_verdict verdict;
    verdict_decide(&input, &verdict);
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_verdict *one = &verdict.hypotheses[i];
        print_message("  %-20s %-12s %s, %ju of %ju\n", hypothesis_info((enum hypothesis)i)->slug,
                      verdict_name(one->verdict),
                      report_missing_words(one->missing, REPORT_ENGLISH), (uintmax_t)one->checked,
                      (uintmax_t)one->total);
        /* Without graphs that path was not taken. */
        const struct hypothesis_info *info = hypothesis_info((enum hypothesis)i);
        assert_int_equal(one->verdict, i == HYPOTHESIS_STALE_GRAPH       ? VERDICT_INCONCLUSIVE
                                       : i == HYPOTHESIS_LEAK            ? VERDICT_EXCLUDED
                                       : info->exact || info->bound_each ? VERDICT_REFUTED
                                                                         : VERDICT_NOT_SEEN);
    }
    analyzer_destroy(live);
    analyzer_destroy(dead);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clean_model_has_no_finding),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
