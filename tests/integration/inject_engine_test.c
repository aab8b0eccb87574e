/* inject_engine_test.c - faults planted in a whole model: where the real ones were. What an
 * observer sees names the op, the layer and the step, whatever the engine does around it. */
#include "device_fixture.h"
#include "planted_engine.h"

#include <stdio.h>
#include <stdlib.h>

#define CONTEXT PLANTED_CONTEXT
#define STEPS 5

/* ---- An engine on it ------------------------------------------------------------------------ */

struct scene {
    struct recorder recorder;
    struct planted_engine planted;
    struct error first;
};

static void scene_open(struct scene *scene, const char *spec_text, bool guarded)
{
    memset(scene, 0, sizeof(*scene));
    pthread_mutex_init(&scene->recorder.lock, NULL);
    struct device_options options = { .observer = { recorder_notify, &scene->recorder },
                                      .guards = guarded,
                                      .poison = guarded,
                                      .quarantine_bytes = guarded ? 1 << 24 : 0,
                                      .hash_results = true,
                                      .scan_every = 1,
                                      .thread_count = 2 };
    planted_open(&scene->planted, &options, spec_text);
}

/* Decodes STEPS tokens; stops at the first error. */
static void scene_run(struct scene *scene)
{
    for (int32_t step = 0; step < STEPS && !scene->first.status; step++)
        if (planted_step(&scene->planted, 7 + step))
            scene->first = scene->planted.err;
}

static void scene_close(struct scene *scene)
{
    planted_close(&scene->planted);
    pthread_mutex_destroy(&scene->recorder.lock);
}

static const struct event *first_of(struct recorder *recorder, enum event_kind kind)
{
    for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
        if (recorder->events[i].kind == kind)
            return &recorder->events[i];
    return NULL;
}

/* ---- Indices -------------------------------------------------------------------------------- */

static const struct {
    const char *spec, *op, *operand;
    int32_t layer, step;
    uint64_t index, bound;
} traps[] = {
    { "rope-position@layer=2,step=3", "rope", "positions", 2, 3, 0x7F7F7F7F, CONTEXT },
    { "rope-past-table@layer=0,step=1", "rope", "positions", 0, 1, CONTEXT, CONTEXT },
    { "kv-position@layer=1,step=2", "kv_append", "slots", 1, 2, 0x7F7F7F7F, CONTEXT },
    { "kv-slot-past-cache@layer=2,step=4", "kv_append", "slots", 2, 4, CONTEXT, CONTEXT },
    { "token-past-vocabulary@step=2", "embed", "ids", -1, 2, 320, 320 },
    { "bad-index@op=attention,operand=starts,layer=1,step=1", "attention", "starts", 1, 1,
      0x7F7F7F7F, CONTEXT },
};

static void test_indices(void **state)
{
    (void)state;
    static struct scene scene;
    for (size_t i = 0; i < COUNT_OF(traps); i++) {
        scene_open(&scene, traps[i].spec, false);
        scene_run(&scene);
        const struct inject_record *record = inject_record(scene.planted.inject);
        const struct event *trap = first_of(&scene.recorder, EVENT_TRAP);
        if (!record->planted || !trap)
            fail_msg("%s: planted %d, trap %d", traps[i].spec, record->planted, trap != NULL);
        if (trap->cause_id != record->place.event_id || strcmp(trap->op, traps[i].op) != 0 ||
            trap->scope.layer != traps[i].layer || trap->scope.step != traps[i].step ||
            trap->trap.index != traps[i].index)
            fail_msg("%s: trap of %s, layer %d, step %d, index %llu", traps[i].spec, trap->op,
                     trap->scope.layer, trap->scope.step, (unsigned long long)trap->trap.index);
        assert_string_equal(record->place.operand, traps[i].operand);
        assert_int_equal(trap->operand, record->place.operand_index);
        /* Only that launch: what comes after reads the right ones. */
        for (size_t j = 0, kept = recorder_kept(&scene.recorder); j < kept; j++)
            if (scene.recorder.events[j].kind == EVENT_TRAP)
                assert_int_equal(scene.recorder.events[j].cause_id, record->place.event_id);
        scene_close(&scene);
    }
}

/* ---- The rest ------------------------------------------------------------------------------- */

/* The seeds' case: a kernel at one layer goes wrong, and the copy of the logits says so. */
static void test_seen_at_the_copy(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "wrapped-offset@op=rope,layer=1,step=2", true);
    scene_run(&scene);
    const struct event *fault = first_of(&scene.recorder, EVENT_FAULT);
    assert_non_null(fault);
    assert_string_equal(fault->op, "rope");
    assert_int_equal(fault->scope.layer, 1);
    assert_int_equal(fault->scope.step, 2);
    check_contains("rope", scene.first.text, "an illegal memory access was encountered");
    check_contains("rope", scene.first.text, "first fault: rope, layer 1, step 2");
    scene_close(&scene);
}

static void test_freed_weight(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "early-free@op=matmul_group,operand=weights_0,layer=1,step=1", true);
    scene_run(&scene);
    const struct event *freed = first_of(&scene.recorder, EVENT_BUFFER_DESTROY);
    const struct event *refused = NULL;
    for (size_t i = 0, kept = recorder_kept(&scene.recorder); i < kept && !refused; i++)
        if (scene.recorder.events[i].outcome == EVENT_REFUSED)
            refused = &scene.recorder.events[i];
    assert_true(freed && refused && freed->id < refused->id);
    assert_int_equal(refused->kind, EVENT_LAUNCH);
    assert_int_equal(refused->check, EVENT_CHECK_GENERATION);
    assert_int_equal(refused->scope.layer, 1);
    check_contains("freed", freed->scope.tensor, "blk.1.");
    assert_int_equal(scene.first.status, STATUS_NOT_FOUND);
    scene_close(&scene);
}

static void test_nan(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "nan-output@op=swiglu,layer=1,step=2", false);
    scene_run(&scene);
    const struct event *bad = NULL;
    for (size_t i = 0, kept = recorder_kept(&scene.recorder); i < kept && !bad; i++)
        if (scene.recorder.events[i].kind == EVENT_SCAN && scene.recorder.events[i].scan.bad_count)
            bad = &scene.recorder.events[i];
    assert_non_null(bad);
    assert_string_equal(bad->op, "swiglu");
    assert_int_equal(bad->scope.layer, 1);
    assert_int_equal(bad->scope.step, 2);
    assert_int_equal(bad->cause_id, inject_record(scene.planted.inject)->place.event_id);
    scene_close(&scene);
}

static void run_equally(struct scene *scene, uint64_t *hashes, size_t count)
{
    for (uint64_t run = 0; run < count; run++) {
        device_run_begin(scene->planted.device, run, 1);
        engine_rewind(scene->planted.engine, 0, 0);
        CHECK_OK(planted_step(&scene->planted, 7), &scene->planted.err);
        hashes[run] = recorder_last(&scene->recorder, EVENT_TICKET_REDEEM)->ticket.hash;
    }
}

/* Equal runs give equal hashes, but for the one in which something is planted. */
static void test_unequal_runs(void **state)
{
    (void)state;
    static struct scene scene;
    uint64_t hashes[4] = { 0 };
    scene_open(&scene, "unequal-runs@tensor=logits,run=2", false);
    run_equally(&scene, hashes, COUNT_OF(hashes));
    assert_true(hashes[0] == hashes[1] && hashes[0] == hashes[3] && hashes[0] != hashes[2]);
    assert_string_equal(inject_record(scene.planted.inject)->place.op, "matmul_group");
    scene_close(&scene);
}

/* An op that also packs its output for the next matmul has the fault in both. */
static void test_packed_output(void **state)
{
    (void)state;
    static struct scene scene;
    static const char *const specs[] = {
        "unequal-runs@op=swiglu,layer=1,run=2",   "unequal-runs@op=attention,layer=1,run=2",
        "unequal-runs@op=rms_norm,layer=1,run=2", "wrong-output@op=swiglu,layer=1,run=2",
        "nan-output@op=attention,layer=1,run=2",  "nan-output@op=swiglu,layer=1,run=2"
    };
    for (size_t i = 0; i < COUNT_OF(specs); i++) {
        uint64_t hashes[4] = { 0 };
        scene_open(&scene, specs[i], false);
        run_equally(&scene, hashes, COUNT_OF(hashes));
        assert_true(inject_record(scene.planted.inject)->planted);
        if (hashes[0] == hashes[2])
            fail_msg("%s: expected other logits, found the same", specs[i]);
        assert_true(hashes[0] == hashes[1] && hashes[0] == hashes[3]);
        scene_close(&scene);
    }
}

static void test_clean(void **state)
{
    (void)state;
    static struct scene scene;
    scene_open(&scene, "bad-index@layer=77", true);
    scene_run(&scene);
    assert_int_equal(scene.first.status, STATUS_OK);
    assert_false(inject_record(scene.planted.inject)->planted);
    assert_null(first_of(&scene.recorder, EVENT_TRAP));
    assert_null(first_of(&scene.recorder, EVENT_CANARY));
    for (size_t i = 0, kept = recorder_kept(&scene.recorder); i < kept; i++)
        if (scene.recorder.events[i].kind == EVENT_SCAN)
            assert_int_equal(scene.recorder.events[i].scan.bad_count, 0);
    scene_close(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_indices),      cmocka_unit_test(test_seen_at_the_copy),
        cmocka_unit_test(test_freed_weight), cmocka_unit_test(test_nan),
        cmocka_unit_test(test_unequal_runs), cmocka_unit_test(test_packed_output),
        cmocka_unit_test(test_clean),
    };
    return cmocka_run_group_tests(tests, write_model, remove_model);
}
