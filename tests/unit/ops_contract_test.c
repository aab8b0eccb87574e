/* ops_contract_test.c - a refusal of parameters gives two numbers that differ: "expected 144, found
 * 144" explains nothing. */
#include "test.h"

#include "device/device_core.h"
#include "ops/ops.h"
#include "ops/params.h"

#define PRESENT_LIMIT 2

struct row {
    const char *name;
    enum ops_op op;
    const void *params;
    struct {
        uint8_t operand;
        uint64_t extent; /* of its first dimension */
    } present[PRESENT_LIMIT];
    uint8_t count;
    bool kept; /* the contract is */
};

static const struct params_matmul whole = { 4, 1, 144 }, no_rows = { 0, 1, 144 };
static const struct params_matmul no_tokens = { 4, 0, 144 };
static const struct params_matmul_group one = { { { 4, 1, 144 } } }, none = { { { 0, 1, 144 } } };
static const struct params_matmul_group second_empty = { { { 4, 1, 144 }, { 4, 0, 144 } } };
static const struct params_matmul_group other_rows = { { { 4, 1, 144 }, { 4, 1, 72 } } };
static const struct params_rope odd_head = { .head_dim = 7 }, head = { .head_dim = 8 };
static const struct params_rope no_head = { 0 };
static const struct params_rope_table table = { 0 };

static const struct params_route_experts plain = { 0, 1, 1, 1, 1 }, no_groups = { 0, 1, 1, 0, 1 };
static const struct params_route_experts uneven = { 0, 1, 1, 3, 1 }, few = { 0, 1, 1, 4, 1 };
static const struct params_route_experts unused = { 0, 1, 1, 4, 0 };
static const struct params_matmul_experts experts = { { 4, 1, 144 }, 0 },
                                          no_expert_rows = { { 0, 1, 144 }, 0 };
static const struct params_gate_experts gated = { { 0, 144 }, 0, 0 };

#define ROUTED(experts, k) { { ROUTE_EXPERTS_LOGITS, experts }, { ROUTE_EXPERTS_IDS, k } }, 2

static const struct row rows[] = {
    { "some experts", OPS_ROUTE_EXPERTS, &plain, ROUTED(8, 2), true },
    { "all experts", OPS_ROUTE_EXPERTS, &plain, ROUTED(8, 8), true },
    { "no experts", OPS_ROUTE_EXPERTS, &plain, ROUTED(0, 1), false },
    { "more experts than there are", OPS_ROUTE_EXPERTS, &plain, ROUTED(8, 9), false },
    { "none chosen", OPS_ROUTE_EXPERTS, &plain, ROUTED(8, 0), false },
    { "too many experts", OPS_ROUTE_EXPERTS, &plain, ROUTED(ROUTE_EXPERTS_LIMIT + 1, 1), false },
    { "too many chosen", OPS_ROUTE_EXPERTS, &plain, ROUTED(256, ROUTE_CHOSEN_LIMIT + 1), false },
    { "no groups", OPS_ROUTE_EXPERTS, &no_groups, ROUTED(8, 2), false },
    { "uneven groups", OPS_ROUTE_EXPERTS, &uneven, ROUTED(8, 2), false },
    { "more than the groups have", OPS_ROUTE_EXPERTS, &few, ROUTED(8, 3), false },
    { "as many as the groups have", OPS_ROUTE_EXPERTS, &few, ROUTED(8, 2), true },
    { "no group used", OPS_ROUTE_EXPERTS, &unused, ROUTED(8, 1), false },
    { "expert tiles without rows",
      OPS_MATMUL_EXPERTS,
      &no_expert_rows,
      { { MATMUL_EXPERTS_PACKED, 144 } },
      1,
      false },
    { "other bytes of experts",
      OPS_MATMUL_EXPERTS,
      &experts,
      { { MATMUL_EXPERTS_PACKED, 72 } },
      1,
      false },
    { "experts without rows",
      OPS_MATMUL_EXPERTS,
      &experts,
      { { MATMUL_EXPERTS_PACKED, 144 }, { MATMUL_EXPERTS_OUT, 0 } },
      2,
      false },
    { "gated bytes", OPS_GATE_EXPERTS, &gated, { { GATE_EXPERTS_PACKED, 144 } }, 1, true },
    { "other gated bytes", OPS_GATE_EXPERTS, &gated, { { GATE_EXPERTS_PACKED, 72 } }, 1, false },
    { "a sum of nothing", OPS_SUM_EXPERTS, NULL, { { SUM_EXPERTS_X, 8 } }, 1, false },
    { "whole tiles", OPS_MATMUL, &whole, { { MATMUL_PACKED, 144 } }, 1, true },
    { "tiles without rows", OPS_MATMUL, &no_rows, { { MATMUL_PACKED, 144 } }, 1, false },
    { "tiles without tokens", OPS_MATMUL, &no_tokens, { { MATMUL_PACKED, 144 } }, 1, false },
    { "other bytes", OPS_MATMUL, &whole, { { MATMUL_PACKED, 72 } }, 1, false },
    { "a group of one", OPS_MATMUL_GROUP, &one, { { MATMUL_GROUP_PACKED, 144 } }, 1, true },
    { "a group of none", OPS_MATMUL_GROUP, &none, { { MATMUL_GROUP_PACKED, 144 } }, 1, false },
    { "no tokens later",
      OPS_MATMUL_GROUP,
      &second_empty,
      { { MATMUL_GROUP_PACKED, 144 } },
      1,
      false },
    { "other bytes later",
      OPS_MATMUL_GROUP,
      &other_rows,
      { { MATMUL_GROUP_PACKED, 144 } },
      1,
      false },
    { "half a pair", OPS_ROPE, &odd_head, { { ROPE_TABLE, 7 }, { ROPE_X, 7 } }, 2, false },
    { "wide table", OPS_ROPE, &head, { { ROPE_TABLE, 10 }, { ROPE_X, 8 } }, 2, false },
    { "whole pairs", OPS_ROPE, &head, { { ROPE_TABLE, 8 }, { ROPE_X, 8 } }, 2, true },
    { "no width", OPS_ROPE, &head, { { ROPE_TABLE, 8 }, { ROPE_X, 0 } }, 2, false },
    { "no head", OPS_ROPE, &no_head, { { ROPE_TABLE, 0 }, { ROPE_X, 0 } }, 2, false },
    { "empty table", OPS_ROPE_TABLE, &table, { { ROPE_TABLE_TABLE, 0 } }, 1, false },
    { "odd table", OPS_ROPE_TABLE, &table, { { ROPE_TABLE_TABLE, 7 } }, 1, false },
    { "more than there is",
      OPS_TOP_K,
      NULL,
      { { TOP_K_LOGITS, 4 }, { TOP_K_VALUES, 5 } },
      2,
      false },
    { "of nothing", OPS_TOP_K, NULL, { { TOP_K_LOGITS, 0 }, { TOP_K_VALUES, 0 } }, 2, false },
    { "none of some", OPS_TOP_K, NULL, { { TOP_K_LOGITS, 4 }, { TOP_K_VALUES, 0 } }, 2, false },
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        const struct device_contract *contract = ops_contract(row->op);
        struct device_launch launch = { .contract = contract,
                                        .params = row->params,
                                        .operand_count = contract->operand_count };
        for (size_t n = 0; n < row->count; n++) {
            struct device_view *view = &launch.operands[row->present[n].operand];
            view->buffer.index = 1;
            view->shape.dims[0] = row->present[n].extent;
        }
        struct device_contract_call call = { &launch };
        uint64_t expected = 0, found = 0;
        assert_non_null(contract->check);
        bool kept = contract->check(&call, &expected, &found);
        if (kept != row->kept)
            fail_msg("%s: %s", row->name, kept ? "was kept" : "was refused");
        if (!kept && expected == found)
            fail_msg("%s: expected %d, found %d", row->name, (int)expected, (int)found);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_refusals) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
