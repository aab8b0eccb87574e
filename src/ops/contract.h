/* contract.h - the table of contracts and its checks, for the images of kernels: they name the
 * contract of the op that each kernel computes. Others ask ops_contract (ops.h). */
#ifndef GRETA_OPS_CONTRACT_H
#define GRETA_OPS_CONTRACT_H

#include "device/kernel.h"
#include "ops/ops.h"

extern const struct device_contract ops_contracts[OPS_COUNT];

/* contract_checks.c: the checks of parameters that the table names. */
bool ops_check_head_norm(const struct device_contract_call *call, uint64_t *expected,
                         uint64_t *found);
bool ops_check_act_pack(const struct device_contract_call *call, uint64_t *expected,
                        uint64_t *found);
bool ops_check_rms_norm(const struct device_contract_call *call, uint64_t *expected,
                        uint64_t *found);
bool ops_check_layer_norm(const struct device_contract_call *call, uint64_t *expected,
                          uint64_t *found);
bool ops_check_swiglu(const struct device_contract_call *call, uint64_t *expected, uint64_t *found);
bool ops_check_scale(const struct device_contract_call *call, uint64_t *expected, uint64_t *found);
bool ops_check_matmul(const struct device_contract_call *call, uint64_t *expected, uint64_t *found);
bool ops_check_matmul_group(const struct device_contract_call *call, uint64_t *expected,
                            uint64_t *found);
bool ops_check_rope(const struct device_contract_call *call, uint64_t *expected, uint64_t *found);
bool ops_check_rope_table(const struct device_contract_call *call, uint64_t *expected,
                          uint64_t *found);
bool ops_check_attention(const struct device_contract_call *call, uint64_t *expected,
                         uint64_t *found);
bool ops_check_top_k(const struct device_contract_call *call, uint64_t *expected, uint64_t *found);

/* contract_experts.c */
bool ops_check_route_experts(const struct device_contract_call *call, uint64_t *expected,
                             uint64_t *found);
bool ops_check_matmul_experts(const struct device_contract_call *call, uint64_t *expected,
                              uint64_t *found);
bool ops_check_gate_experts(const struct device_contract_call *call, uint64_t *expected,
                            uint64_t *found);
bool ops_check_sum_experts(const struct device_contract_call *call, uint64_t *expected,
                           uint64_t *found);

#endif
