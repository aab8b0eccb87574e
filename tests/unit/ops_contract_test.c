/* ops_contract_test.c - a refusal of parameters gives two numbers that differ: "expected 144, found
 * 144" explains nothing. */
#include "test.h"

#include "device/device_core.h"
#include "ops/ops.h"
#include "ops/params.h"

#include <string.h>

#define EXTENT_LIMIT 3

struct row {
    const char *name;
    enum ops_op op;
    const void *params;
    struct {
        const char *name;
        uint64_t extent;
    } extents[EXTENT_LIMIT];
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

static const struct row rows[] = {
    { "whole tiles", OPS_MATMUL, &whole, { { "packed_bytes", 144 } }, true },
    { "tiles without rows", OPS_MATMUL, &no_rows, { { "packed_bytes", 144 } }, false },
    { "tiles without tokens", OPS_MATMUL, &no_tokens, { { "packed_bytes", 144 } }, false },
    { "other bytes", OPS_MATMUL, &whole, { { "packed_bytes", 72 } }, false },
    { "a group of one", OPS_MATMUL_GROUP, &one, { { "packed_bytes", 144 } }, true },
    { "a group of none", OPS_MATMUL_GROUP, &none, { { "packed_bytes", 144 } }, false },
    { "no tokens later", OPS_MATMUL_GROUP, &second_empty, { { "packed_bytes", 144 } }, false },
    { "other bytes later", OPS_MATMUL_GROUP, &other_rows, { { "packed_bytes", 144 } }, false },
    { "half a pair", OPS_ROPE, &odd_head, { { "dimensions", 7 }, { "width", 7 } }, false },
    { "wide table", OPS_ROPE, &head, { { "dimensions", 10 }, { "width", 8 } }, false },
    { "whole pairs", OPS_ROPE, &head, { { "dimensions", 8 }, { "width", 8 } }, true },
    { "no width", OPS_ROPE, &head, { { "dimensions", 8 }, { "width", 0 } }, false },
    { "no head", OPS_ROPE, &no_head, { { "dimensions", 0 }, { "width", 0 } }, false },
    { "empty table", OPS_ROPE_TABLE, &table, { { "dimensions", 0 } }, false },
    { "odd table", OPS_ROPE_TABLE, &table, { { "dimensions", 7 } }, false },
    { "more than there is", OPS_TOP_K, NULL, { { "vocab", 4 }, { "k", 5 } }, false },
    { "of nothing", OPS_TOP_K, NULL, { { "vocab", 0 }, { "k", 0 } }, false },
    { "none of some", OPS_TOP_K, NULL, { { "vocab", 4 }, { "k", 0 } }, false },
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        const struct device_contract *contract = ops_contract(row->op);
        struct device_contract_call call = { .contract = contract, .params = row->params };
        uint64_t expected = 0, found = 0;
        for (size_t e = 0; e < EXTENT_LIMIT && row->extents[e].name; e++) {
            call.extents[e].name = row->extents[e].name;
            call.extents[e].length = strlen(row->extents[e].name);
            call.extents[e].extent = row->extents[e].extent;
            call.extent_count++;
        }
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
