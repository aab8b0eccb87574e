/* kernels.h - the host kernels of every op but act_pack and matmul (matmul_tiles.h), and the image
 * that holds them all.
 *
 * A kernel does one tile of a launch whose operands fit the op's contract; ops/params.h has the
 * parameters. Where a tile is TILE_TOKENS token rows, the last tile has what is left. Kernels hold
 * no locks, allocate nothing, keep no state; tiles may run in any order and at the same time. They
 * touch no byte outside the rows of their operands. Indices read from memory are checked: a bad one
 * leaves a trap, and its row is skipped.
 *
 * Bits. What is computed for a token depends on that token's operands only, by a sequence of
 * operations that depends on the path: see the top of each file. The files must be compiled without
 * floating-point contraction. Unless said otherwise, NaN and infinity follow IEEE arithmetic. */
#ifndef GRETA_OPS_HOST_KERNELS_H
#define GRETA_OPS_HOST_KERNELS_H

#include "base/cpu.h"
#include "device/kernel.h"
#include "ops/operands.h"

/* Every kernel for a path. Static. A table can be looked at on any processor; ops_load runs only
 * those of a path it supports. */
const struct device_image *host_kernels_image(enum cpu_path path);

/* ---- Tile: TILE_TOKENS token rows ----------------------------------------------------------- */

void host_embed_tile(const struct device_host_call *call, uint64_t tile);
void host_gather_rows_tile(const struct device_host_call *call, uint64_t tile);
void host_add_tile(const struct device_host_call *call, uint64_t tile);
void host_rope_tile(const struct device_host_call *call, uint64_t tile);

/* The norms have the same bits on every path, and so has kv_append. */
void host_layer_norm_tile(const struct device_host_call *call, uint64_t tile);
void host_rms_norm_tile_portable(const struct device_host_call *call, uint64_t tile);
void host_head_norm_tile_portable(const struct device_host_call *call, uint64_t tile);
void host_kv_append_tile_portable(const struct device_host_call *call, uint64_t tile);

/* ---- Tile: TILE_TOKENS token rows, or so many columns of them as the parameters say ---------- */

void host_swiglu_tile_portable(const struct device_host_call *call, uint64_t tile);
void host_gelu_tile_portable(const struct device_host_call *call, uint64_t tile);
void host_scale_tile_portable(const struct device_host_call *call, uint64_t tile);

/* What surrounds the matmuls of experts has the same bits on every path. gate_experts has rows of
 * slots. */
void host_route_experts_tile(const struct device_host_call *call, uint64_t tile);
void host_gate_experts_tile_portable(const struct device_host_call *call, uint64_t tile);
void host_sum_experts_tile_portable(const struct device_host_call *call, uint64_t tile);

/* ---- Tile: TILE_POSITIONS rows of the table ------------------------------------------------- */

void host_rope_table_tile(const struct device_host_call *call, uint64_t tile);

/* ---- Tile: a token and a kv head, token * kv_heads + kv_head -------------------------------- */

void host_attention_tile_portable(const struct device_host_call *call, uint64_t tile);

/* ---- Tile: a row ---------------------------------------------------------------------------- */

void host_argmax_tile(const struct device_host_call *call, uint64_t tile);
void host_top_k_tile(const struct device_host_call *call, uint64_t tile);

/* ---- Wider instructions --------------------------------------------------------------------- */

#if defined(__x86_64__)
void host_rms_norm_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_head_norm_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_kv_append_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_swiglu_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_gelu_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_scale_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_attention_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_gate_experts_tile_avx2(const struct device_host_call *call, uint64_t tile);
void host_sum_experts_tile_avx2(const struct device_host_call *call, uint64_t tile);

void host_rms_norm_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_head_norm_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_swiglu_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_gelu_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_scale_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_attention_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_gate_experts_tile_avx512(const struct device_host_call *call, uint64_t tile);
void host_sum_experts_tile_avx512(const struct device_host_call *call, uint64_t tile);
#endif

#endif
