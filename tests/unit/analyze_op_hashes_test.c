/* analyze_op_hashes_test.c - equal runs with hashed operands: the first op whose inputs agree and
 * whose output does not is named; where hashes are missing, no more is said than they show. */
#include "analyze_model.h"

/* ---- A run of four ops ---------------------------------------------------------------------- */

/* What differs in a run, by op: its inputs' hashes or its output's. -1: nothing. */
struct run {
    int output, input;
    uint32_t every; /* op that is hashed; 0: none */
    bool no_inputs; /* only outputs are hashed */
    uint64_t result;
};

static const char *const ops[] = { "embed", "norm", "rope", "matmul" };

/* Each op reads what the one before wrote; from the op that differs on, everything does. The last
 * one's output is copied out. ret_ids: of the launches; may be NULL. */
static void run_ops(struct script *script, uint64_t iteration, const struct run *run,
                    uint64_t *ret_ids)
{
    uint32_t from = WEIGHTS, to = X;
    bool differs = false;
    script_run(script, iteration, 7);
    for (int i = 0; i < (int)COUNT_OF(ops); i++) {
        script->layer = i ? LAYER : -1;
        uint64_t id = script_launch(script, MAIN, ops[i], from, to);
        bool hashed = run->every && (uint32_t)i % run->every == 0;
        if (ret_ids)
            ret_ids[i] = id;
        differs = differs || run->input == i;
        if (hashed && !run->no_inputs)
            script_op_hash(script, id, 0, EVENT_READ, 100 + (uint64_t)i + (differs ? 1000 : 0));
        differs = differs || run->output == i;
        if (hashed)
            script_op_hash(script, id, 1, EVENT_WRITE, 200 + (uint64_t)i + (differs ? 1000 : 0));
        from = to;
        to = to == X ? Y : X;
    }
    script->layer = -1;
    script->tensor = "logits";
    uint64_t copy = script_copy(script, EVENT_COPY_OUT, MAIN, from, 0, 1024, 1);
    script_redeem(script, 1, copy, true, run->result);
    script_release(script, 1);
    script->tensor = "";
}

static const struct run equal = { .output = -1, .input = -1, .every = 1, .result = 50 };

/* ---- Tests ---------------------------------------------------------------------------------- */

static void first_op_that_differs_is_the_culprit(void **state)
{
    (void)state;
    for (int odd = 1; odd <= 3; odd++) { /* whichever run is the odd one */
        struct script script;
        struct run differs = equal;
        uint64_t ids[COUNT_OF(ops)] = { 0 };
        differs.output = 1;
        differs.result = 51;
        begin(&script, AUDIT_LOG);
        for (int i = 1; i <= 3; i++)
            run_ops(&script, (uint64_t)i, i == odd ? &differs : &equal, i == 2 ? ids : NULL);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, 2); /* the op, and the copy of what came of it */
        const struct finding *found = &analysis->findings[0];
        check_culprit(found, "norm", LAYER, STEP);
        assert_int_equal(found->cause.operand, 1);
        assert_int_equal(found->certainty, FINDING_DIRECT);
        assert_int_equal(found->attribution, FINDING_CULPRIT);
        assert_int_equal(found->reason, REASON_NONE);
        assert_int_equal(found->cause.iteration, odd == 3 ? 3 : 2);
        assert_int_equal(found->other.iteration, 1);
        assert_int_equal(found->expected, odd == 1 ? 1201 : 201);
        assert_int_equal(found->found, odd == 1 ? 201 : 1201);
        assert_int_equal(analysis->root, 0);
        assert_int_equal(analysis->findings[1].cause.kind, EVENT_COPY_OUT);
        assert_int_equal(analysis->findings[1].consequence_of, 0);
        if (odd != 3)
            assert_int_equal(found->cause.event_id, ids[1]);
        script_close(&script);
    }
}

/* Nothing that was hashed before gave other bytes: the memory was changed by something else, so
 * that the op that reads it is not to blame. */
static void input_that_differs_blames_no_op(void **state)
{
    (void)state;
    struct script script;
    struct run differs = equal;
    differs.input = 2;
    differs.result = 51;
    begin(&script, AUDIT_LOG);
    run_ops(&script, 1, &equal, NULL);
    run_ops(&script, 2, &differs, NULL);
    const struct analysis *analysis = script_finish(&script, NULL);
    const struct finding *found = &analysis->findings[0];
    check_culprit(found, "rope", LAYER, STEP);
    assert_int_equal(found->cause.operand, 0);
    assert_string_equal(found->other.op, "norm");
    assert_int_equal(found->attribution, FINDING_SEEN_AT);
    assert_int_equal(found->reason, REASON_INPUT_DIFFERS);
    assert_int_equal(analysis->root, -1);
    script_close(&script);
}

static void missing_hashes_give_an_interval(void **state)
{
    (void)state;
    static const struct {
        int output;
        uint32_t every;
        const char *agreed, *differs;
    } rows[] = {
        { 1, 1, "embed", "norm" }, /* outputs alone: the input may have changed in between */
        { 1, 2, "embed", "rope" }, /* norm was not hashed */
        { 2, 2, "embed", "rope" },
        { 0, 2, "", "embed" }, /* nothing before it agreed */
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct script script;
        struct run plain = equal;
        plain.every = rows[i].every;
        plain.no_inputs = true;
        struct run differs = plain;
        differs.output = rows[i].output;
        differs.result = 51;
        begin(&script, AUDIT_LOG);
        run_ops(&script, 1, &plain, NULL);
        run_ops(&script, 2, &differs, NULL);
        const struct analysis *analysis = script_finish(&script, NULL);
        const struct finding *found = &analysis->findings[0];
        assert_string_equal(found->cause.op, rows[i].differs);
        assert_string_equal(found->other.op, rows[i].agreed);
        assert_int_not_equal(found->reason, REASON_NONE);
        assert_int_equal(found->attribution, FINDING_SEEN_AT);
        assert_int_equal(analysis->root, -1);
        assert_int_equal(analysis->defect, 0);
        assert_int_equal(analysis->findings[1].consequence_of, 0);
        script_close(&script);
    }
}

/* With hashes the runs agree: they change the timing, and the difference is gone. Without any, the
 * copy that shows it is all that is known. */
static void difference_that_disappears_is_not_found(void **state)
{
    (void)state;
    for (int hashed = 0; hashed < 2; hashed++) {
        struct script script;
        struct run first = equal, second = equal;
        first.every = second.every = (uint32_t)hashed;
        second.result = hashed ? 50 : 51;
        begin(&script, AUDIT_LOG);
        run_ops(&script, 1, &first, NULL);
        run_ops(&script, 2, &second, NULL);
        const struct analysis *analysis = script_finish(&script, NULL);
        assert_int_equal(analysis->finding_count, hashed ? 0 : 1);
        assert_int_equal(analysis->ops_compared, hashed ? 2 * COUNT_OF(ops) : 0);
        if (!hashed) {
            assert_int_equal(analysis->findings[0].cause.kind, EVENT_COPY_OUT);
            assert_int_equal(analysis->findings[0].attribution, FINDING_SEEN_AT);
        }
        script_close(&script);
    }
}

/* Two launches of one op in one layer are told apart by their order. */
static void launches_alike_are_told_apart(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    script.layer = LAYER;
    for (uint64_t run = 1; run <= 2; run++) {
        script_run(&script, run, 7);
        for (uint64_t i = 0; i < 2; i++) {
            uint64_t id = script_launch(&script, MAIN, "head_norm", WEIGHTS, Y);
            script_op_hash(&script, id, 0, EVENT_READ, 10 + i);
            script_op_hash(&script, id, 1, EVENT_WRITE, 20 + i);
        }
    }
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 0);
    assert_int_equal(analysis->ops_compared, 4);
    script_close(&script);
}

/* Runs that need not be equal are not compared. */
static void other_runs_are_not_compared(void **state)
{
    (void)state;
    struct script script;
    begin(&script, AUDIT_LOG);
    for (uint64_t run = 1; run <= 2; run++) {
        script_run(&script, run, run);
        uint64_t id = script_launch(&script, MAIN, "norm", WEIGHTS, Y);
        script_op_hash(&script, id, 1, EVENT_WRITE, run);
    }
    assert_int_equal(script_finish(&script, NULL)->finding_count, 0);
    script_close(&script);
}

/* All ops agree, and yet the host read other bytes: the copy is what differs. */
static void copy_of_equal_bytes_is_the_culprit(void **state)
{
    (void)state;
    struct script script;
    struct run differs = equal;
    differs.result = 51;
    begin(&script, AUDIT_LOG);
    run_ops(&script, 1, &equal, NULL);
    run_ops(&script, 2, &differs, NULL);
    const struct analysis *analysis = script_finish(&script, NULL);
    assert_int_equal(analysis->finding_count, 1);
    assert_int_equal(analysis->findings[0].cause.kind, EVENT_COPY_OUT);
    assert_int_equal(analysis->root, 0);
    script_close(&script);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_op_that_differs_is_the_culprit),
        cmocka_unit_test(input_that_differs_blames_no_op),
        cmocka_unit_test(missing_hashes_give_an_interval),
        cmocka_unit_test(difference_that_disappears_is_not_found),
        cmocka_unit_test(launches_alike_are_told_apart),
        cmocka_unit_test(other_runs_are_not_compared),
        cmocka_unit_test(copy_of_equal_bytes_is_the_culprit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
