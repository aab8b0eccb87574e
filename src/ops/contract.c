/* contract.c - the contract of every op, as one table. It drives the device's checks, the access
 * lists of events, the tests and docs/ops.md. */
#include "ops/contract.h"

#include "ops/params.h"

#include <string.h>

#define BIT(dtype) (UINT64_C(1) << (dtype))
#define F32 BIT(DTYPE_F32)
#define I32 BIT(DTYPE_I32)
#define I8 BIT(DTYPE_I8)
#define CACHE (BIT(DTYPE_F32) | BIT(DTYPE_F16) | BIT(DTYPE_Q8_0))
#define WEIGHTS                                                                                    \
    (BIT(DTYPE_F32) | BIT(DTYPE_F16) | BIT(DTYPE_BF16) | BIT(DTYPE_Q8_0) | BIT(DTYPE_Q4_0) |       \
     BIT(DTYPE_Q4_1) | BIT(DTYPE_Q5_0) | BIT(DTYPE_Q5_1) | BIT(DTYPE_Q2_K) | BIT(DTYPE_Q3_K) |     \
     BIT(DTYPE_Q4_K) | BIT(DTYPE_Q5_K) | BIT(DTYPE_Q6_K) | BIT(DTYPE_IQ4_NL) | BIT(DTYPE_IQ4_XS) | \
     BIT(DTYPE_MXFP4))
/* The types in which GPUs hold some of them. */
#define REPACKED (BIT(DTYPE_Q8_0_X8) | BIT(DTYPE_Q6_K_X8))

#define READ EVENT_READ
#define WRITE EVENT_WRITE
#define UPDATE EVENT_UPDATE
#define SCATTER (EVENT_UPDATE | EVENT_SCATTERED)

/* ---- The table ------------------------------------------------------------------------------ */

/* Operand: name, access, optional, strided rows, types, shape (fastest first). */
/* Kernels read packed rows by their widest loads. */
#define PACKED (I8 | DEVICE_ROWS_ALIGNED)

/* clang-format off */
const struct device_contract ops_contracts[OPS_COUNT] = {
    [OPS_EMBED] = {
        .name = "embed",
        .operands = {
            [EMBED_TABLE] = { "table", READ, false, false, WEIGHTS, "width,vocab" },
            [EMBED_IDS] = { "ids", READ, false, false, I32, "tokens" },
            [EMBED_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
        },
        .operand_count = EMBED_OPERAND_COUNT,
    },
    [OPS_RMS_NORM] = {
        .name = "rms_norm",
        .operands = {
            [RMS_NORM_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
            [RMS_NORM_ADDED] = { "added", READ, true, true, F32, "width,tokens" },
            [RMS_NORM_WEIGHT] = { "weight", READ, false, false, F32, "width" },
            [RMS_NORM_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
            [RMS_NORM_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,tokens" },
        },
        .operand_count = RMS_NORM_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_norm),
        .check = ops_check_rms_norm,
    },
    [OPS_HEAD_NORM] = {
        .name = "head_norm",
        .operands = {
            [HEAD_NORM_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
            [HEAD_NORM_WEIGHT] = { "weight", READ, false, false, F32, "head_dim" },
        },
        .operand_count = HEAD_NORM_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_norm),
        .check = ops_check_head_norm,
    },
    [OPS_LAYER_NORM] = {
        .name = "layer_norm",
        .operands = {
            [LAYER_NORM_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
            [LAYER_NORM_ADDED] = { "added", READ, true, true, F32, "width,tokens" },
            [LAYER_NORM_WEIGHT] = { "weight", READ, false, false, F32, "width" },
            [LAYER_NORM_BIAS] = { "bias", READ, true, false, F32, "width" },
            [LAYER_NORM_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
            [LAYER_NORM_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,tokens" },
        },
        .operand_count = LAYER_NORM_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_layer_norm),
        .check = ops_check_layer_norm,
    },
    [OPS_ACT_PACK] = {
        .name = "act_pack",
        .operands = {
            [ACT_PACK_X] = { "x", READ, false, true, F32, "k,tokens" },
            [ACT_PACK_PACKED] = { "packed", WRITE, false, false, PACKED, "packed_bytes,tokens" },
        },
        .operand_count = ACT_PACK_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_act_pack),
        .check = ops_check_act_pack,
    },
    [OPS_MATMUL] = {
        .name = "matmul",
        .operands = {
            [MATMUL_WEIGHTS] = { "weights", READ, false, false, WEIGHTS | REPACKED, "k,rows" },
            [MATMUL_PACKED] = { "packed", READ, false, false, PACKED, "packed_bytes,tokens" },
            [MATMUL_BIAS] = { "bias", READ, true, false, F32, "rows" },
            [MATMUL_OUT] = { "out", WRITE, false, true, F32, "rows,tokens" },
        },
        .operand_count = MATMUL_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_matmul),
        .check = ops_check_matmul,
    },
    [OPS_MATMUL_GROUP] = {
        .name = "matmul_group",
        .operands = {
            [MATMUL_GROUP_PACKED] = { "packed", READ, false, false, PACKED, "packed_bytes,tokens" },
            [MATMUL_GROUP_WEIGHTS] = { "weights_0", READ, false, false, WEIGHTS | REPACKED,
                "k,rows_0" },
            [MATMUL_GROUP_WEIGHTS + 1] = { "weights_1", READ, true, false, WEIGHTS | REPACKED,
                "k,rows_1" },
            [MATMUL_GROUP_WEIGHTS + 2] = { "weights_2", READ, true, false, WEIGHTS | REPACKED,
                "k,rows_2" },
            [MATMUL_GROUP_BIASES] = { "bias_0", READ, true, false, F32, "rows_0" },
            [MATMUL_GROUP_BIASES + 1] = { "bias_1", READ, true, false, F32, "rows_1" },
            [MATMUL_GROUP_BIASES + 2] = { "bias_2", READ, true, false, F32, "rows_2" },
            [MATMUL_GROUP_OUTS] = { "out_0", WRITE, false, true, F32, "rows_0,tokens" },
            [MATMUL_GROUP_OUTS + 1] = { "out_1", WRITE, true, true, F32, "rows_1,tokens" },
            [MATMUL_GROUP_OUTS + 2] = { "out_2", WRITE, true, true, F32, "rows_2,tokens" },
        },
        .operand_count = MATMUL_GROUP_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_matmul_group),
        .check = ops_check_matmul_group,
    },
    [OPS_ROPE_TABLE] = {
        .name = "rope_table",
        .operands = {
            [ROPE_TABLE_FACTORS] = { "factors", READ, true, false, F32, "pairs" },
            [ROPE_TABLE_TABLE] = { "table", WRITE, false, false, F32, "dimensions,positions" },
        },
        .operand_count = ROPE_TABLE_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_rope_table),
        .check = ops_check_rope_table,
    },
    [OPS_ROPE] = {
        .name = "rope",
        .operands = {
            [ROPE_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
            [ROPE_POSITIONS] = { "positions", READ, false, false, I32, "tokens" },
            [ROPE_TABLE] = { "table", READ, false, false, F32, "dimensions,table_rows" },
            [ROPE_ALSO] = { "also", UPDATE, true, true, F32, "also_width,tokens" },
        },
        .operand_count = ROPE_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_rope),
        .check = ops_check_rope,
    },
    [OPS_KV_APPEND] = {
        .name = "kv_append",
        .operands = {
            [KV_APPEND_K] = { "k", READ, false, true, F32, "kv_dim,tokens" },
            [KV_APPEND_V] = { "v", READ, false, true, F32, "kv_dim,tokens" },
            [KV_APPEND_SLOTS] = { "slots", READ, false, false, I32, "tokens" },
            [KV_APPEND_KEYS] = { "keys", SCATTER, false, false, CACHE, "kv_dim,slot_count" },
            [KV_APPEND_VALUES] = { "values", SCATTER, false, false, CACHE, "kv_dim,slot_count" },
        },
        .operand_count = KV_APPEND_OPERAND_COUNT,
    },
    [OPS_ATTENTION] = {
        .name = "attention",
        .operands = {
            [ATTENTION_Q] = { "q", READ, false, true, F32, "width,tokens" },
            [ATTENTION_KEYS] = { "keys", READ, false, false, CACHE, "kv_dim,slot_count" },
            [ATTENTION_VALUES] = { "values", READ, false, false, CACHE, "kv_dim,slot_count" },
            [ATTENTION_STARTS] = { "starts", READ, false, false, I32, "tokens" },
            [ATTENTION_POSITIONS] = { "positions", READ, false, false, I32, "tokens" },
            [ATTENTION_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
            [ATTENTION_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,tokens" },
            [ATTENTION_SINKS] = { "sinks", READ, true, false, F32, "heads" },
        },
        .operand_count = ATTENTION_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_attention),
        .check = ops_check_attention,
    },
    [OPS_SWIGLU] = {
        .name = "swiglu",
        .operands = {
            [SWIGLU_GATE] = { "gate", READ, false, true, F32, "width,tokens" },
            [SWIGLU_UP] = { "up", READ, false, true, F32, "width,tokens" },
            [SWIGLU_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
            [SWIGLU_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,tokens" },
        },
        .operand_count = SWIGLU_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_swiglu),
        .check = ops_check_swiglu,
    },
    [OPS_GELU] = {
        .name = "gelu",
        .operands = {
            [GELU_X] = { "x", READ, false, true, F32, "width,tokens" },
            [GELU_UP] = { "up", READ, true, true, F32, "width,tokens" },
            [GELU_OUT] = { "out", WRITE, false, true, F32, "width,tokens" },
            [GELU_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,tokens" },
        },
        .operand_count = GELU_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_swiglu),
        .check = ops_check_swiglu,
    },
    [OPS_SCALE] = {
        .name = "scale",
        .operands = {
            [SCALE_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
        },
        .operand_count = SCALE_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_scale),
        .check = ops_check_scale,
    },
    [OPS_ADD] = {
        .name = "add",
        .operands = {
            [ADD_X] = { "x", UPDATE, false, true, F32, "width,tokens" },
            [ADD_ADDED] = { "added", READ, false, true, F32, "width,tokens" },
        },
        .operand_count = ADD_OPERAND_COUNT,
    },
    [OPS_GATHER_ROWS] = {
        .name = "gather_rows",
        .operands = {
            [GATHER_ROWS_X] = { "x", READ, false, true, F32, "width,tokens" },
            [GATHER_ROWS_ROWS] = { "rows", READ, false, false, I32, "count" },
            [GATHER_ROWS_OUT] = { "out", WRITE, false, true, F32, "width,count" },
        },
        .operand_count = GATHER_ROWS_OPERAND_COUNT,
    },
    [OPS_ARGMAX] = {
        .name = "argmax",
        .operands = {
            [ARGMAX_LOGITS] = { "logits", READ, false, true, F32, "vocab,rows" },
            [ARGMAX_IDS] = { "ids", WRITE, false, false, I32, "rows" },
            [ARGMAX_NEXT] = { "next", WRITE, true, false, I32, "rows" },
        },
        .operand_count = ARGMAX_OPERAND_COUNT,
    },
    [OPS_TOP_K] = {
        .name = "top_k",
        .operands = {
            [TOP_K_LOGITS] = { "logits", READ, false, true, F32, "vocab,rows" },
            [TOP_K_VALUES] = { "values", WRITE, false, false, F32, "k,rows" },
            [TOP_K_IDS] = { "ids", WRITE, false, false, I32, "k,rows" },
        },
        .operand_count = TOP_K_OPERAND_COUNT,
        .check = ops_check_top_k,
    },
    [OPS_REPACK] = {
        .name = "repack",
        .operands = {
            [REPACK_SOURCE] = { "source", READ, false, false, BIT(DTYPE_Q8_0) | BIT(DTYPE_Q6_K),
                "k,rows" },
            [REPACK_TARGET] = { "target", WRITE, false, false, REPACKED, "k,rows" },
        },
        .operand_count = REPACK_OPERAND_COUNT,
    },
    [OPS_ROUTE_EXPERTS] = {
        .name = "route_experts",
        .operands = {
            [ROUTE_EXPERTS_LOGITS] = { "logits", READ, false, false, F32, "experts,tokens" },
            [ROUTE_EXPERTS_BIAS] = { "bias", READ, true, false, F32, "experts" },
            [ROUTE_EXPERTS_IDS] = { "ids", WRITE, false, false, I32, "k,tokens" },
            [ROUTE_EXPERTS_WEIGHTS] = { "weights", WRITE, false, false, F32, "k,tokens" },
        },
        .operand_count = ROUTE_EXPERTS_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_route_experts),
        .check = ops_check_route_experts,
    },
    [OPS_MATMUL_EXPERTS] = {
        .name = "matmul_experts",
        .operands = {
            [MATMUL_EXPERTS_PACKED] = { "packed", READ, false, false, PACKED,
                "packed_bytes,inputs" },
            [MATMUL_EXPERTS_WEIGHTS] = { "weights", READ, false, false, WEIGHTS | REPACKED,
                "k,all_rows" },
            [MATMUL_EXPERTS_BIAS] = { "bias", READ, true, false, F32, "rows,experts" },
            [MATMUL_EXPERTS_IDS] = { "ids", READ, false, false, I32, "slots" },
            [MATMUL_EXPERTS_OUT] = { "out", WRITE, false, false, F32, "rows,slots" },
        },
        .operand_count = MATMUL_EXPERTS_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_matmul_experts),
        .check = ops_check_matmul_experts,
    },
    [OPS_GATE_EXPERTS] = {
        .name = "gate_experts",
        .operands = {
            [GATE_EXPERTS_GATE] = { "gate", READ, false, false, F32, "width,slots" },
            [GATE_EXPERTS_UP] = { "up", READ, false, false, F32, "width,slots" },
            [GATE_EXPERTS_WEIGHTS] = { "weights", READ, true, false, F32, "slots" },
            [GATE_EXPERTS_OUT] = { "out", WRITE, false, false, F32, "width,slots" },
            [GATE_EXPERTS_PACKED] = { "packed", WRITE, true, false, PACKED, "packed_bytes,slots" },
        },
        .operand_count = GATE_EXPERTS_OPERAND_COUNT,
        .params_bytes = sizeof(struct params_gate_experts),
        .check = ops_check_gate_experts,
    },
    [OPS_SUM_EXPERTS] = {
        .name = "sum_experts",
        .operands = {
            [SUM_EXPERTS_X] = { "x", READ, false, false, F32, "width,slots" },
            [SUM_EXPERTS_WEIGHTS] = { "weights", READ, true, false, F32, "slots" },
            [SUM_EXPERTS_SHARED] = { "shared", READ, true, false, F32, "width,tokens" },
            [SUM_EXPERTS_SHARED_GATE] = { "shared_gate", READ, true, false, F32, "tokens" },
            [SUM_EXPERTS_OUT] = { "out", WRITE, false, false, F32, "width,tokens" },
        },
        .operand_count = SUM_EXPERTS_OPERAND_COUNT,
        .check = ops_check_sum_experts,
    },
};
/* clang-format on */

const struct device_contract *ops_contract(enum ops_op op)
{
    ASSERT((unsigned)op < OPS_COUNT);
    return &ops_contracts[op];
}

const char *ops_operand_name(const char *op, uint8_t operand)
{
    for (size_t i = 0; i < OPS_COUNT; i++)
        if (strcmp(ops_contracts[i].name, op) == 0)
            return operand < ops_contracts[i].operand_count
                       ? ops_contracts[i].operands[operand].name
                       : NULL;
    return NULL;
}
