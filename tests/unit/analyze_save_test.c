/* A checkpoint gives back what was found and counted; damaged ones are refused, never believed. */
#include "analyze_fixture.h"

#include "analyze/analyze_impl.h"
#include <stdlib.h>

/* An analysis with findings of several kinds, a race, a fault with neighbours, results. */
static void fill(struct script *script)
{
    script_open(script, AUDIT_GUARD);
    script_buffer(script, 1, "weights", true);
    script_buffer(script, 2, "x", false);
    script_buffer(script, 3, "y", false);
    script_run(script, 1, 7);
    script->layer = 17;
    script->step = 3;
    script_launch(script, 1, "norm", 1, 2);
    script_launch(script, 2, "rope", 2, 3);
    script->tensor = "logits";
    uint64_t copy = script_copy(script, EVENT_COPY_OUT, 2, 3, 0, 512, 4);
    script_redeem(script, 4, copy, true, 0xABCD);
    script->tensor = "";
    script_refuse(script, script_launch_event(script, 1, "matmul"), EVENT_CHECK_DTYPE, 2, 1, 6);
    uint64_t launch = script_launch(script, 1, "poke", 1, 0);
    script_remark(script, EVENT_FAULT, launch, EVENT_NO_OPERAND, 0, 1,
                  BUFFER_ADDRESS(2) + BUFFER_BYTES);
}

static struct analyzer *fresh(void)
{
    struct analyze_options options = { .level = AUDIT_GUARD };
    struct analyzer *analyzer;
    struct error err;
    CHECK_OK(analyzer_create(&options, &analyzer, &err), &err);
    return analyzer;
}

static void saved_state_comes_back(void **state)
{
    (void)state;
    struct script script;
    static uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
    fill(&script);
    size_t count = analyzer_save(script.analyzer, bytes, sizeof(bytes));
    assert_true(count > 0);
    struct analyzer *again = fresh();
    assert_true(analyzer_restore(again, bytes, count));
    const struct analysis *a = analyzer_result(script.analyzer), *b = analyzer_result(again);
    assert_int_equal(a->finding_count, 3);
    assert_int_equal(b->finding_count, 3);
    for (size_t i = 0; i < a->finding_count; i++) {
        const struct finding *one = &a->findings[i], *other = &b->findings[i];
        assert_int_equal(one->hypothesis, other->hypothesis);
        assert_int_equal(one->reason, other->reason);
        assert_int_equal(one->cause.event_id, other->cause.event_id);
        assert_string_equal(one->cause.op, other->cause.op);
        assert_int_equal(one->expected, other->expected);
        assert_int_equal(one->found, other->found);
        assert_int_equal(one->count, other->count);
    }
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        assert_int_equal(a->coverage[i].checked, b->coverage[i].checked);
        assert_int_equal(a->coverage[i].total, b->coverage[i].total);
    }
    assert_int_equal(a->event_count, b->event_count);
    assert_int_equal(a->iteration_count, b->iteration_count);
    assert_true(b->device_lost);
    assert_int_equal(again->results.count, 1);
    assert_int_equal(again->results.entries[0].hash, 0xABCD);
    /* Saved again it is the same, field by field: nothing was lost on the way. */
    static uint8_t twice[FLIGHT_CHECKPOINT_BYTES];
    assert_int_equal(analyzer_save(again, twice, sizeof(twice)), count);
    assert_memory_equal(bytes, twice, count);
    analyzer_destroy(again);
    script_close(&script);
}

/* A result of the run before the checkpoint is compared with one after it. */
static void results_survive(void **state)
{
    (void)state;
    struct script script;
    static uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
    fill(&script);
    size_t count = analyzer_save(script.analyzer, bytes, sizeof(bytes));
    script_close(&script);
    script.analyzer = fresh();
    assert_true(analyzer_restore(script.analyzer, bytes, count));
    script_run(&script, 2, 7);
    script.tensor = "logits";
    uint64_t copy = script_copy(&script, EVENT_COPY_OUT, 2, 3, 0, 512, 4);
    script_redeem(&script, 4, copy, true, 0xABCE);
    const struct analysis *analysis = script_finish(&script, NULL);
    CHECK_FINDING(analysis, HYPOTHESIS_NON_DETERMINISM, copy);
    assert_int_equal(find_finding(analysis, HYPOTHESIS_NON_DETERMINISM)->expected, 0xABCD);
    script_close(&script);
}

static void what_does_not_fit_is_counted(void **state)
{
    (void)state;
    struct script script;
    script_open(&script, AUDIT_LOG);
    for (script.layer = 0; script.layer < 200; script.layer++)
        script_refuse(&script, script_launch_event(&script, 1, "matmul"), EVENT_CHECK_DTYPE, 2, 1,
                      6);
    uint8_t small[4096];
    size_t count = analyzer_save(script.analyzer, small, sizeof(small));
    assert_true(count > 0 && count <= sizeof(small));
    struct analyzer *again = fresh();
    assert_true(analyzer_restore(again, small, count));
    const struct analysis *result = analyzer_result(again);
    assert_true(result->finding_count > 10 && result->finding_count < 200);
    assert_int_equal(result->finding_count + result->findings_dropped, 200);
    analyzer_destroy(again);
    uint8_t tiny[16];
    assert_int_equal(analyzer_save(script.analyzer, tiny, sizeof(tiny)), 0);
    script_close(&script);
}

/* Every cut is refused; a changed byte gives something in range, or is refused. */
static void damage_is_never_believed(void **state)
{
    (void)state;
    struct script script;
    static uint8_t bytes[FLIGHT_CHECKPOINT_BYTES];
    fill(&script);
    size_t count = analyzer_save(script.analyzer, bytes, sizeof(bytes));
    script_close(&script);
    struct analyzer *again = fresh();
    size_t results_bytes = 4 + 32; /* at the end; may be missing without harm */
    for (size_t cut = 0; cut + results_bytes < count; cut += 3) {
        uint8_t *exact = malloc(cut + 1); /* so that a sanitizer sees a read past the end */
        memcpy(exact, bytes, cut);
        assert_false(analyzer_restore(again, exact, cut));
        free(exact);
    }
    for (size_t at = 0; at < count; at++) {
        uint8_t before = bytes[at];
        bytes[at] = 0xFF;
        if (analyzer_restore(again, bytes, count)) {
            const struct analysis *result = analyzer_result(again);
            for (size_t i = 0; i < result->finding_count; i++) {
                const struct finding *finding = &result->findings[i];
                assert_true(finding->hypothesis < HYPOTHESIS_COUNT);
                assert_true(finding->cause.kind < EVENT_KIND_COUNT);
                assert_true(finding->check < EVENT_CHECK_COUNT);
                assert_true(finding->consequence_of < (int32_t)result->finding_count);
            }
        }
        bytes[at] = before;
    }
    analyzer_destroy(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_state_comes_back),
        cmocka_unit_test(results_survive),
        cmocka_unit_test(what_does_not_fit_is_counted),
        cmocka_unit_test(damage_is_never_believed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
