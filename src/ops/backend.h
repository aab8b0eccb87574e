/* backend.h - what launches ask about the device they are for: how weights are stored, how rows are
 * packed and how a matmul is cut into tiles. The host and GPUs have one table each. */
#ifndef GRETA_OPS_BACKEND_H
#define GRETA_OPS_BACKEND_H

#include "ops/ops.h"
#include "ops/params.h"

struct ops_backend {
    /* See ops_weight_dtype. */
    enum dtype (*weight_dtype)(enum dtype dtype, uint64_t k);
    /* The backend's number for how rows are packed for weights of a type. */
    uint32_t (*pack_format)(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                            uint64_t tokens);
    uint64_t (*packed_row_bytes)(uint32_t format, uint64_t k);
    /* packed_row_bytes is 0 if there is no kernel; the contract refuses that. */
    struct params_matmul (*cut_matmul)(const struct ops *ops, enum dtype weight_dtype, uint64_t k,
                                       uint64_t tokens);
    /* Whether attention packs its own output. group_width: values of the query heads that share a
     * kv head. */
    bool (*attention_packs)(uint32_t format, uint64_t group_width);
};

extern const struct ops_backend ops_host_backend, ops_gpu_backend;

#endif
