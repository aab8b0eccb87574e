/* matmul_panel.h - many rows of quantized weights, on AVX2 and AVX-512: 16 weight rows are unpacked
 * once, then multiplied with every activation row.
 *
 * A panel has the blocks of 16 rows in the order in which they are visited: class 0 (blocks 0, 4,
 * 8, ...), class 1, ... In every vector, lane = row; a vector of quants has 4 consecutive k of each
 * row, the same for all rows, so that one instruction multiplies them with 4 activations. On AVX2 a
 * vector is one half of that: rows 0-7 or 8-15. */
#ifndef GRETA_OPS_HOST_MATMUL_PANEL_H
#define GRETA_OPS_HOST_MATMUL_PANEL_H

#include "ops/host/matmul_impl.h"

#define PANEL_ROWS 16

/* 32 k of 16 rows. */
struct panel_block {
    uint8_t levels[8][64];
    float scales[PANEL_ROWS]; /* Q6_K: of the first 16 k */
    float extras[PANEL_ROWS]; /* Q4_K, Q5_K: dmin * min; Q6_K: scales of the second 16 k */
};

typedef void (*panel_unpack_function)(const uint8_t *const rows[PANEL_ROWS], size_t k,
                                      struct panel_block *panel);

#define PANEL_SCRATCH_BYTES_PER_K (sizeof(struct panel_block) / ACT_BLOCK)

/* Blocks of a class of block_count blocks. */
static inline size_t panel_class_blocks(size_t class, size_t block_count)
{
    return (block_count + ACT_GROUP_BLOCKS - 1 - class) / ACT_GROUP_BLOCKS;
}

/* The place of block b of block_count in the panel. */
static inline size_t panel_position(size_t b, size_t block_count)
{
    size_t class = b % ACT_GROUP_BLOCKS;
    size_t whole = block_count / ACT_GROUP_BLOCKS;
    size_t rest = block_count % ACT_GROUP_BLOCKS;
    return class * whole + smaller(class, rest) + b / ACT_GROUP_BLOCKS;
}

/* Rows of the next panel, prefetched while this one is used: bytes_per_step at every step. */
struct weight_prefetch {
    uintptr_t next;
    uintptr_t due; /* everything before this address should be prefetched by now */
    uintptr_t end;
    size_t bytes_per_step;
};

/* Spreads the bytes of the panel's rows, from first_row on, over a number of steps. */
static inline struct weight_prefetch weight_prefetch_begin(const struct host_matmul_task *task,
                                                           size_t first_row, size_t step_count)
{
    uintptr_t next = (uintptr_t)weight_row(task, smaller(first_row, task->weight_rows));
    uintptr_t end = (uintptr_t)weight_row(task, smaller(first_row + PANEL_ROWS, task->weight_rows));
    return (struct weight_prefetch){
        .next = next,
        .due = next,
        .end = end,
        .bytes_per_step = (end - next) / step_count + 1,
    };
}

/* To the second cache. */
static inline __attribute__((always_inline)) void
weight_prefetch_step(struct weight_prefetch *prefetch)
{
    prefetch->due += prefetch->bytes_per_step;
    while (prefetch->next < prefetch->due && prefetch->next < prefetch->end) {
        __builtin_prefetch((const void *)prefetch->next, 0, 2);
        prefetch->next += 64;
    }
}

#endif
