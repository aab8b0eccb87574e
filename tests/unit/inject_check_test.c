/* A spec that names what a run does not have is refused, with what there is. */
#include "test.h"

#include "device/kernel.h"
#include "inject/inject.h"

#include <string.h>

static const struct device_contract rope = {
    .name = "rope",
    .operand_count = 2,
    .operands = { { .name = "q", .mode = EVENT_READ, .dtype_bits = UINT64_C(1) << DTYPE_F32 },
                  { .name = "positions",
                    .mode = EVENT_READ,
                    .dtype_bits = UINT64_C(1) << DTYPE_I32 } }
};
static const struct device_contract add = {
    .name = "add",
    .operand_count = 1,
    .operands = { { .name = "x", .mode = EVENT_WRITE, .dtype_bits = UINT64_C(1) << DTYPE_F32 } }
};
static const struct device_contract *const contracts[] = { &rope, &add };
static const char *const labels[] = { "logits", "rope_qk" };
static const char *const more[] = { "streams.best" };

static bool is_weight(void *context, const char *name)
{
    (void)context;
    return strcmp(name, "blk.0.attn_q.weight") == 0;
}

static const struct inject_stage stage = { .contracts = contracts,
                                           .contract_count = 2,
                                           .labels = labels,
                                           .label_count = 2,
                                           .more_labels = more,
                                           .more_label_count = 1,
                                           .is_weight = is_weight,
                                           .layer_count = 4,
                                           .step_limit = 10,
                                           .run_count = 8 };

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        const char *says; /* NULL: fine */
    } rows[] = {
        { "bad-index", NULL },
        { "bad-index@op=rope,layer=3,step=9,run=8,operand=positions,tensor=rope_qk", NULL },
        { "view-past-end@op=copy-out", NULL },
        { "flipped-bit@tensor=streams.best", NULL },
        { "flipped-bit-in@tensor=blk.0.attn_q.weight", NULL },
        { "double-free@tensor=some.buffer", NULL },
        { "wild-pointer@op=foo", "op: found 'foo', expected one of: rope, add, or a call" },
        { "rope-position@layer=99", "layer: found 99, expected 0 to 3: there are 4" },
        { "rope-position@layer=4", "layer: found 4, expected 0 to 3" },
        { "rope-position@step=10", "step: found 10, expected 0 to 9" },
        { "unequal-runs@run=9", "run: found 9, expected 1 to 8" },
        { "unequal-runs@run=0", "run: found 0, expected 1 to 8" },
        { "bad-index@op=rope,operand=x", "operand: found 'x', expected one of: positions" },
        { "bad-index@op=rope,operand=q", "operand: found 'q', expected one of: positions" },
        { "bad-index@operand=nothing", "name the op to see which it has" },
        /* What no call has. */
        { "flipped-bit@op=rope",
          "flipped-bit cannot be in rope; expected op to be one of: copy-out" },
        { "flipped-bit@op=copy-in", "flipped-bit cannot be in copy-in; expected op to be one of" },
        { "nan-output@op=copy-out",
          "nan-output cannot be in copy-out; expected op to be one of: add" },
        { "nan-output@op=rope", "nan-output cannot be in rope; expected op to be one of: add" },
        { "bad-index@op=add", "bad-index cannot be in add; expected op to be one of: rope" },
        { "rope-position@op=add",
          "rope-position cannot be in add; expected op to be one of: rope" },
        { "wild-pointer@op=launch", "op: found 'launch', expected one of: rope, add" },
        { "double-free@op=add", "expected op to be one of: buffer-destroy" },
        { "skipped-wait@op=copy-out", "expected op to be one of: mark-wait" },
        { "flipped-bit@operand=q", "operand: found 'q', expected none" },
        { "memory-vanished@op=copy-out,operand=q", "operand: found 'q', expected none" },
        { "rope-position@operand=x", "operand: found 'x', expected one of: positions" },
        /* What the launch only reads is not its output, and the other way round. */
        { "nan-output@op=rope,operand=q",
          "nan-output cannot be in rope; expected op to be one of: add" },
        { "nan-output@operand=positions", "expected an operand that nan-output can be in" },
        { "uninitialised-read@operand=x", "expected an operand that uninitialised-read can be in" },
        { "uninitialised-read@op=add,operand=x",
          "uninitialised-read cannot be in add; expected op to be one of: rope" },
        { "uninitialised-read@op=rope,operand=q", NULL },
        { "bad-index@ms=5", "ms: expected with lost-wakeup, found with bad-index" },
        { "double-free@layer=1", "double-free: expected no layer" },
        { "memory-vanished@op=copy-out", NULL },
        { "lost-wakeup@op=mark-record,ms=5", NULL },
        { "double-free@op=buffer-destroy", NULL },
        { "view-past-end@op=fill", NULL },
        { "nan-output@op=add,operand=x", NULL },
        { "nan-output@tensor=logit",
          "tensor: found 'logit', expected one of: logits, rope_qk, streams.best, or a weight" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct inject_spec spec;
        struct error err;
        CHECK_OK(inject_parse(rows[i].spec, &spec, &err), &err);
        enum status status = inject_check(&spec, &stage, &err);
        assert_int_equal(status, rows[i].says ? STATUS_USAGE : STATUS_OK);
        if (rows[i].says && !strstr(err.text, rows[i].says))
            fail_msg("%s: expected '%s', found '%s'", rows[i].spec, rows[i].says, err.text);
    }
}

static void what_is_not_known_is_not_checked(void **state)
{
    (void)state;
    struct inject_stage unknown = stage;
    struct inject_spec spec;
    struct error err;
    unknown.layer_count = unknown.step_limit = unknown.run_count = 0;
    CHECK_OK(inject_parse("rope-position@layer=99,step=1000,run=1000", &spec, &err), &err);
    CHECK_OK(inject_check(&spec, &unknown, &err), &err);
}

/* Every fault by itself is a spec, in a stage with an op for each. */
static void every_fault_alone_is_fine(void **state)
{
    (void)state;
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++) {
        struct inject_spec spec;
        struct error err;
        CHECK_OK(inject_parse(inject_fault_name((enum inject_fault)fault), &spec, &err), &err);
        CHECK_OK(inject_check(&spec, &stage, &err), &err);
    }
}

static void iterations_have_numbers_only_in_audits(void **state)
{
    (void)state;
    struct inject_stage alone = stage;
    struct inject_spec spec;
    struct error err;
    alone.no_runs = true;
    CHECK_OK(inject_parse("rope-position@run=1", &spec, &err), &err);
    CHECK_FAILS(inject_check(&spec, &alone, &err), STATUS_USAGE, &err);
    assert_non_null(strstr(err.text, "run: found 1, expected none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(what_is_not_known_is_not_checked),
        cmocka_unit_test(every_fault_alone_is_fine),
        cmocka_unit_test(iterations_have_numbers_only_in_audits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
