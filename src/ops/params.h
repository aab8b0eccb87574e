/* params.h - what kernels are given besides their operands. Fixed size, no pointers: the same bytes
 * go to a GPU. */
#ifndef GRETA_OPS_PARAMS_H
#define GRETA_OPS_PARAMS_H

#include <stdint.h>

/* How rows are packed for a matmul, for ops that give packed rows as well as plain ones. */
struct params_act_pack {
    uint32_t format;           /* the backend's number for it */
    uint32_t packed_row_bytes; /* what that format needs for k values */
};

struct params_norm {
    float epsilon;
    struct params_act_pack packing; /* of the packed operand, if there is one */
};

struct params_layer_norm {
    float epsilon;
    struct params_act_pack packing; /* of the packed operand, if there is one */
    uint32_t group;                 /* neighbouring values that are normalised together; 0: all */
};

/* gelu has the same. */
struct params_swiglu {
    struct params_act_pack packing;
    uint32_t tile_columns; /* of a tile, a multiple of TILE_COLUMN_UNIT; 0: all */
};

struct params_scale {
    float factor;
    float cap;             /* c: x becomes c tanh(x / c); 0: none */
    uint32_t tile_columns; /* as in params_swiglu */
};

struct params_matmul {
    uint32_t tile_rows;   /* output rows of a tile */
    uint32_t tile_tokens; /* tokens of a tile */
    uint32_t packed_row_bytes;
};

/* matmul_group: each matmul is cut on its own; its tiles follow those of the one before. */
struct params_matmul_group {
    struct params_matmul parts[3];
};

/* Choices beyond these are refused: a GPU holds a token's scores in a block's shared memory. */
#define ROUTE_EXPERTS_LIMIT 1024u
#define ROUTE_CHOSEN_LIMIT 64u

struct params_route_experts {
    uint32_t sigmoid;   /* 0: softmax over all experts */
    uint32_t normalise; /* divide the weights by their sum */
    float weight_scale;
    uint32_t group_count, groups_used; /* group_count 1: no groups */
};

/* cut: of the rows of one expert. by_expert: a tile does all slots of an expert, else one slot;
 * this does not affect results. */
struct params_matmul_experts {
    struct params_matmul cut;
    uint32_t by_expert;
};

struct params_gate_experts {
    struct params_act_pack packing;
    float limit, alpha; /* limit 0: silu */
};

struct params_rope_table {
    float base, frequency_scale, attention_factor, ext_factor;
    float beta_fast, beta_slow, log_multiplier;
    uint32_t original_context_length;
    uint32_t yarn;
    float temperature_scale; /* of the magnitude by position; 0: none */
    uint32_t temperature_length;
};

struct params_rope {
    uint32_t head_dim;
    uint32_t adjacent;
};

/* Neighbouring tokens of one sequence that share reading and decoding keys and values; does not
 * affect results. */
#define ATTENTION_TILE_TOKENS 8u

struct params_attention {
    uint32_t head_dim;
    float scale;
    struct params_act_pack packing; /* of the packed operand, if there is one */
    uint32_t same_sequence;         /* most neighbours are of one sequence */
    uint32_t window;                /* a token sees so many, itself included; 0: all */
    float cap;                      /* as in params_scale, of scores */
};

/* Tokens of a tile on the host. */
static inline uint64_t attention_tile_tokens(const struct params_attention *params)
{
    return params->same_sequence ? ATTENTION_TILE_TOKENS : 1;
}

/* Rows of work a tile takes where an op works token by token or element by element; does not
 * affect results. */
#define TILE_TOKENS 4u
#define TILE_POSITIONS 64u
/* Where rows are cut: whole groups of every packing. */
#define TILE_COLUMN_UNIT 128u
/* Cache slots whose scores are held at a time; part of the order of attention's sums. */
#define ATTENTION_CHUNK 256u

#endif
