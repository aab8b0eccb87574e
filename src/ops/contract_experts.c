/* contract_experts.c - the parameters of the ops of experts compared with the extents of their
 * operands; see contract_checks.c. */
#include "ops/contract.h"
#include "ops/params.h"

/* False, after setting both numbers, unless least <= value <= most. */
static bool is_between(uint64_t value, uint64_t least, uint64_t most, uint64_t *expected,
                       uint64_t *found)
{
    *found = value;
    *expected = value < least ? least : most;
    return value >= least && value <= most;
}

/* False, after setting both numbers, unless count is a multiple of `of`, which is not 0. */
static bool is_multiple(uint64_t count, uint64_t of, uint64_t *expected, uint64_t *found)
{
    *found = count;
    *expected = of ? count / of * of : count + 1; /* no number is a multiple of 0 */
    return *expected == *found;
}

/* Groups are of equal size, and those that are used have enough experts. */
bool ops_check_route_experts(const struct device_contract_call *call, uint64_t *expected,
                             uint64_t *found)
{
    const struct params_route_experts *params = device_contract_params(call);
    uint64_t experts = device_contract_extent(call, ROUTE_EXPERTS_LOGITS, 0);
    uint64_t k = device_contract_extent(call, ROUTE_EXPERTS_IDS, 0);
    if (!is_between(experts, 1, ROUTE_EXPERTS_LIMIT, expected, found) ||
        !is_between(params->group_count, 1, experts, expected, found) ||
        !is_multiple(experts, params->group_count, expected, found) ||
        !is_between(params->groups_used, 1, params->group_count, expected, found))
        return false;
    uint64_t most = experts / params->group_count * params->groups_used;
    most = most < ROUTE_CHOSEN_LIMIT ? most : ROUTE_CHOSEN_LIMIT;
    return is_between(k, 1, most, expected, found);
}

/* All experts have as many rows as the output; each input row serves as many slots. */
bool ops_check_matmul_experts(const struct device_contract_call *call, uint64_t *expected,
                              uint64_t *found)
{
    const struct params_matmul_experts *params = device_contract_params(call);
    uint64_t rows = device_contract_extent(call, MATMUL_EXPERTS_OUT, 0);
    uint64_t all_rows = device_contract_extent(call, MATMUL_EXPERTS_WEIGHTS, 1);
    uint64_t biases = device_contract_extent(call, MATMUL_EXPERTS_BIAS, 1);
    *expected = params->cut.packed_row_bytes;
    *found = device_contract_extent(call, MATMUL_EXPERTS_PACKED, 0);
    if (*expected != *found)
        return false;
    *expected = 1;
    *found = 0;
    if (params->cut.tile_rows == 0 || params->cut.tile_tokens == 0)
        return false;
    if (!is_multiple(all_rows, rows, expected, found) ||
        !is_multiple(device_contract_extent(call, MATMUL_EXPERTS_OUT, 1),
                     device_contract_extent(call, MATMUL_EXPERTS_PACKED, 1), expected, found))
        return false;
    *expected = all_rows / rows;
    *found = biases;
    return biases == 0 || *expected == *found;
}

bool ops_check_gate_experts(const struct device_contract_call *call, uint64_t *expected,
                            uint64_t *found)
{
    const struct params_gate_experts *params = device_contract_params(call);
    *expected = params->packing.packed_row_bytes;
    *found = device_contract_extent(call, GATE_EXPERTS_PACKED, 0);
    return *found == 0 || *expected == *found;
}

bool ops_check_sum_experts(const struct device_contract_call *call, uint64_t *expected,
                           uint64_t *found)
{
    return is_multiple(device_contract_extent(call, SUM_EXPERTS_X, 1),
                       device_contract_extent(call, SUM_EXPERTS_OUT, 1), expected, found);
}
