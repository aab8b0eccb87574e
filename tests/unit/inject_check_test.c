/* A plan that names what a run does not have is refused, with what there is. */
#include "test.h"

#include "device/kernel.h"
#include "inject/inject.h"

#include <string.h>

static const struct device_contract rope = {
    .name = "rope", .operand_count = 2, .operands = { { .name = "q" }, { .name = "positions" } }
};
static const struct device_contract add = { .name = "add",
                                            .operand_count = 1,
                                            .operands = { { .name = "x" } } };
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
        const char *plan;
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
        { "bad-index@op=rope,operand=x", "operand: found 'x', expected one of: q, positions" },
        { "bad-index@operand=nothing", "name the op to see which it has" },
        { "nan-output@tensor=logit",
          "tensor: found 'logit', expected one of: logits, rope_qk, streams.best, or a weight" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct inject_plan plan;
        struct error err;
        CHECK_OK(inject_parse(rows[i].plan, &plan, &err), &err);
        enum status status = inject_check(&plan, &stage, &err);
        assert_int_equal(status, rows[i].says ? STATUS_USAGE : STATUS_OK);
        if (rows[i].says && !strstr(err.text, rows[i].says))
            fail_msg("%s: expected '%s', found '%s'", rows[i].plan, rows[i].says, err.text);
    }
}

static void what_is_not_known_is_not_checked(void **state)
{
    (void)state;
    struct inject_stage unknown = stage;
    struct inject_plan plan;
    struct error err;
    unknown.layer_count = unknown.step_limit = unknown.run_count = 0;
    CHECK_OK(inject_parse("rope-position@layer=99,step=1000,run=1000", &plan, &err), &err);
    CHECK_OK(inject_check(&plan, &unknown, &err), &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(what_is_not_known_is_not_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
