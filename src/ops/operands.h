/* operands.h - where each operand of an op stands: one enum for each op.
 *
 * An op's contract, its launch function, its host kernel, its plan for a GPU and its GPU kernel
 * all use the same names, so no number is written twice. GPU kernels include this header too, so it
 * is freestanding. contract.c says which type, shape and access each operand has. */
#ifndef GRETA_OPS_OPERANDS_H
#define GRETA_OPS_OPERANDS_H

enum embed_operand { EMBED_TABLE, EMBED_IDS, EMBED_OUT, EMBED_OPERAND_COUNT };

enum rms_norm_operand {
    RMS_NORM_X,
    RMS_NORM_ADDED,
    RMS_NORM_WEIGHT,
    RMS_NORM_OUT,
    RMS_NORM_PACKED,
    RMS_NORM_OPERAND_COUNT
};

enum layer_norm_operand {
    LAYER_NORM_X,
    LAYER_NORM_ADDED,
    LAYER_NORM_WEIGHT,
    LAYER_NORM_BIAS,
    LAYER_NORM_OUT,
    LAYER_NORM_PACKED,
    LAYER_NORM_OPERAND_COUNT
};

enum head_norm_operand { HEAD_NORM_X, HEAD_NORM_WEIGHT, HEAD_NORM_OPERAND_COUNT };

enum act_pack_operand { ACT_PACK_X, ACT_PACK_PACKED, ACT_PACK_OPERAND_COUNT };

enum matmul_operand {
    MATMUL_WEIGHTS,
    MATMUL_PACKED,
    MATMUL_BIAS,
    MATMUL_OUT,
    MATMUL_OPERAND_COUNT
};

/* The matmuls of a group are its parts: part i has its weights at MATMUL_GROUP_WEIGHTS + i, and so
 * its bias and its output. */
#define MATMUL_GROUP_PARTS 3
enum matmul_group_operand {
    MATMUL_GROUP_PACKED,
    MATMUL_GROUP_WEIGHTS,
    MATMUL_GROUP_BIASES = MATMUL_GROUP_WEIGHTS + MATMUL_GROUP_PARTS,
    MATMUL_GROUP_OUTS = MATMUL_GROUP_BIASES + MATMUL_GROUP_PARTS,
    MATMUL_GROUP_OPERAND_COUNT = MATMUL_GROUP_OUTS + MATMUL_GROUP_PARTS
};

enum rope_table_operand { ROPE_TABLE_FACTORS, ROPE_TABLE_TABLE, ROPE_TABLE_OPERAND_COUNT };

enum rope_operand { ROPE_X, ROPE_POSITIONS, ROPE_TABLE, ROPE_ALSO, ROPE_OPERAND_COUNT };

enum kv_append_operand {
    KV_APPEND_K,
    KV_APPEND_V,
    KV_APPEND_SLOTS,
    KV_APPEND_KEYS,
    KV_APPEND_VALUES,
    KV_APPEND_OPERAND_COUNT
};

enum attention_operand {
    ATTENTION_Q,
    ATTENTION_KEYS,
    ATTENTION_VALUES,
    ATTENTION_STARTS,
    ATTENTION_POSITIONS,
    ATTENTION_OUT,
    ATTENTION_PACKED,
    ATTENTION_SINKS,
    ATTENTION_OPERAND_COUNT
};

enum swiglu_operand { SWIGLU_GATE, SWIGLU_UP, SWIGLU_OUT, SWIGLU_PACKED, SWIGLU_OPERAND_COUNT };

enum gelu_operand { GELU_X, GELU_UP, GELU_OUT, GELU_PACKED, GELU_OPERAND_COUNT };

enum scale_operand { SCALE_X, SCALE_OPERAND_COUNT };

enum add_operand { ADD_X, ADD_ADDED, ADD_OPERAND_COUNT };

enum gather_rows_operand {
    GATHER_ROWS_X,
    GATHER_ROWS_ROWS,
    GATHER_ROWS_OUT,
    GATHER_ROWS_OPERAND_COUNT
};

enum argmax_operand { ARGMAX_LOGITS, ARGMAX_IDS, ARGMAX_NEXT, ARGMAX_OPERAND_COUNT };

enum top_k_operand { TOP_K_LOGITS, TOP_K_VALUES, TOP_K_IDS, TOP_K_OPERAND_COUNT };

enum repack_operand { REPACK_SOURCE, REPACK_TARGET, REPACK_OPERAND_COUNT };

enum route_experts_operand {
    ROUTE_EXPERTS_LOGITS,
    ROUTE_EXPERTS_BIAS,
    ROUTE_EXPERTS_IDS,
    ROUTE_EXPERTS_WEIGHTS,
    ROUTE_EXPERTS_OPERAND_COUNT
};

enum matmul_experts_operand {
    MATMUL_EXPERTS_PACKED,
    MATMUL_EXPERTS_WEIGHTS,
    MATMUL_EXPERTS_BIAS,
    MATMUL_EXPERTS_IDS,
    MATMUL_EXPERTS_OUT,
    MATMUL_EXPERTS_OPERAND_COUNT
};

enum gate_experts_operand {
    GATE_EXPERTS_GATE,
    GATE_EXPERTS_UP,
    GATE_EXPERTS_WEIGHTS,
    GATE_EXPERTS_OUT,
    GATE_EXPERTS_PACKED,
    GATE_EXPERTS_OPERAND_COUNT
};

enum sum_experts_operand {
    SUM_EXPERTS_X,
    SUM_EXPERTS_WEIGHTS,
    SUM_EXPERTS_SHARED,
    SUM_EXPERTS_SHARED_GATE,
    SUM_EXPERTS_OUT,
    SUM_EXPERTS_OPERAND_COUNT
};

#endif
