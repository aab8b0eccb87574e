/* kernel_args.h - what a plan passes to a GPU kernel besides the operands and parameters of the
 * launch: for each family of kernels one struct of arguments and, where the kernels have operands
 * of their own, one enum of operands.
 *
 * The plans and the kernels both include this header, so it is freestanding. kernels.def says which
 * arguments and which operands each kernel takes. The bytes travel in gpu_call.args. */
#ifndef GRETA_OPS_GPU_KERNEL_ARGS_H
#define GRETA_OPS_GPU_KERNEL_ARGS_H

#include "device/abi/abi.h"
#include "ops/operands.h"

#include <stdint.h>

/* ---- Packing -------------------------------------------------------------------------------- */

/* Kernels that write packed rows of halves. Operands: those of act_pack, rms_norm or swiglu. */
struct pack_halves_args {
    uint32_t format; /* PACK_F16, PACK_BF16 or PACK_LANES */
};

/* ---- Attention ------------------------------------------------------------------------------ */

/* Blocks that share the slots of a token (attention_share.h). Operands: those of attention. */
struct attention_share_args {
    uint32_t parts; /* parts of a token's slots, at most */
    uint32_t sets;  /* sets of query heads that share a kv head; a block has one set */
    uint32_t packs; /* 1: the blocks also write the packed rows */
};

/* rope, kv_append and attention of one token as one kernel. */
struct attention_step_args {
    struct attention_share_args share;
    uint32_t adjacent; /* 1: values 2k and 2k + 1 are rotated together; 0: k and k + half */
    uint32_t heads;    /* query heads; the counters of the kv heads come after theirs */
};

/* Those of attention without sinks, then what rope and kv_append have besides. */
enum attention_step_operand {
    ATTENTION_STEP_K = ATTENTION_SINKS, /* which it does not have */
    ATTENTION_STEP_V,
    ATTENTION_STEP_SLOTS,
    ATTENTION_STEP_TABLE, /* of rope */
    ATTENTION_STEP_OPERAND_COUNT
};

/* A block for each token and kv head (attention_apart.c). Operands: those of attention. */
struct attention_apart_args {
    uint32_t packs;  /* 1: the last block of a token packs its row */
    uint32_t format; /* of the packed row */
};

/* Tiles of tokens of one sequence (attention_tiles.c). Operands: those of attention. */
struct attention_tiles_args {
    uint32_t tiles; /* of tokens */
};

/* rope and kv_append of several tokens as one kernel; it takes no arguments. */
enum rope_append_operand {
    ROPE_APPEND_X,
    ROPE_APPEND_POSITIONS,
    ROPE_APPEND_TABLE,
    ROPE_APPEND_ALSO,
    ROPE_APPEND_V,
    ROPE_APPEND_SLOTS,
    ROPE_APPEND_KEYS,
    ROPE_APPEND_VALUES,
    ROPE_APPEND_OPERAND_COUNT
};
_Static_assert((int)ROPE_APPEND_X == (int)ROPE_X &&
                   (int)ROPE_APPEND_POSITIONS == (int)ROPE_POSITIONS &&
                   (int)ROPE_APPEND_TABLE == (int)ROPE_TABLE &&
                   (int)ROPE_APPEND_ALSO == (int)ROPE_ALSO,
               "the first operands are those of rope");

/* ---- Matmuls -------------------------------------------------------------------------------- */

/* Operands of all but matmul_warpgroup and unpack: those of matmul_group. A single matmul is a
 * group of one part. */

/* Weights streamed for up to eight tokens (matmul.c). */
struct matmul_args {
    uint32_t ring_bytes; /* shared memory of a warp's ring */
};

/* The same for blocks without alignment (matmul_ring.c). */
struct matmul_ring_args {
    uint32_t row_bytes; /* of a row in a stage of the ring */
};

/* Weights decoded value by value (matmul_decoded.c). */
struct matmul_decoded_args {
    uint32_t reserved;
    uint32_t part;   /* of the group */
    uint32_t format; /* of the packed rows: PACK_F32, or one of the halves */
};

/* One token (matmul_1tok.c). */
struct matmul_1tok_args {
    uint32_t ring_bytes; /* shared memory of a warp's ring */
    uint32_t members;    /* warps of a row */
    /* Where parts have different types, each has its own blocks: the first of the second and of the
     * third part. */
    uint32_t second_block, third_block;
    uint32_t waited; /* groups of the ring that are there before the activations are waited for */
};

/* Two to eight tokens on matrix units (matmul_small_batch.c). */
struct matmul_small_batch_args {
    uint32_t members;                   /* warps of a row */
    uint32_t blocks;                    /* blocks of 256 columns that a warp owns */
    uint32_t shares;                    /* shares of k, each of its own block of threads */
    uint32_t second_block, third_block; /* as in matmul_1tok_args */
};

/* Weights held in registers (matmul_lanes.c). */
struct matmul_lanes_args {
    uint32_t splits; /* of k over blocks */
    uint32_t each;   /* blocks of 256 values of a share */
    uint32_t shares; /* of a split, within a block */
};

/* Tiles on matrix units (tile_multiply.h). */
struct matmul_tiles_args {
    uint32_t splits;  /* of k over blocks */
    uint32_t split_k; /* values of k of a split */
    /* Halves only: which rows of the weights, where not all (rows 0: all of them). */
    uint32_t first_row, rows;
    uint32_t unpacked; /* 1: these rows are in the workspace, and there is one part alone */
};

/* Halves on the matrix units of sm_90a (matmul_warpgroup.c). */
struct matmul_warpgroup_args {
    uint32_t token_tiles;
    uint32_t first_row, rows; /* of the weights */
    uint32_t unpacked;        /* 1: these rows are in the workspace, not in the operand */
    uint32_t stores_pairs;    /* 1: rows of the output lie at multiples of 8 bytes */
};

enum matmul_warpgroup_operand {
    MATMUL_WARPGROUP_PACKED,
    MATMUL_WARPGROUP_WEIGHTS,
    MATMUL_WARPGROUP_BIAS,
    MATMUL_WARPGROUP_OUT,
    MATMUL_WARPGROUP_OPERAND_COUNT
};

/* Rows of weights unpacked to halves in the workspace (unpack.c). */
struct unpack_args {
    uint32_t reserved;
    uint32_t first_row, rows;
};

enum unpack_operand { UNPACK_WEIGHTS, UNPACK_OPERAND_COUNT };

/* Weights repacked for the GPU (repack.c). Operands: those of repack. */
struct repack_args {
    uint32_t row_step; /* a block does every row_step-th row */
};

/* ---- Experts -------------------------------------------------------------------------------- */

/* matmul_experts.c. Operands: those of matmul_experts. */
struct matmul_experts_args {
    uint32_t blocks;     /* of a slot */
    uint32_t ring_bytes; /* shared memory of a warp's ring; where weights are streamed */
    uint32_t format;     /* of the packed rows, PACK_F32 or PACK_QUANTS; where they are decoded */
};

/* gate_experts and sum_experts: a row of blocks does every row_step-th row. */
struct experts_args {
    uint32_t row_step;
};

/* ---- All of them ---------------------------------------------------------------------------- */

/* Checks that struct NAME_args fits into a call, and defines how kernels read it. */
#define KERNEL_ARGS(name)                                                                          \
    _Static_assert(sizeof(struct name##_args) <= GPU_ARGS_BYTES, #name ": too many arguments");    \
    _Static_assert(_Alignof(struct name##_args) <= GPU_ARGS_ALIGNMENT, #name ": alignment");       \
    static inline const struct name##_args *name##_args_of(const struct gpu_call *call)            \
    {                                                                                              \
        return (const void *)call->args;                                                           \
    }
#include "ops/gpu/kernel_args.def"
#undef KERNEL_ARGS

#endif
