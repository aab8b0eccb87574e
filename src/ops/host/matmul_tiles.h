/* matmul_tiles.h - act_pack and matmul as tile functions, for each path. */
#ifndef GRETA_OPS_HOST_MATMUL_TILES_H
#define GRETA_OPS_HOST_MATMUL_TILES_H

#include "device/kernel.h"
#include "ops/operands.h"
#include "ops/params.h"

/* Packing gives the same bytes on every path; one function picks the fastest. */
void host_act_pack_tile(const struct device_host_call *call, uint64_t tile);

/* The same for one row of another op's tile, if it has a packed operand. */
void host_pack_row(const struct params_act_pack *packing, const struct device_host_operand *rows,
                   const struct device_host_operand *packed, uint64_t row);
/* Values first .. first + count - 1 of it: see host_act_pack_part. */
void host_pack_part(const struct params_act_pack *packing, const struct device_host_operand *rows,
                    const struct device_host_operand *packed, uint64_t row, uint64_t first,
                    uint64_t count);

/* These take runs. */
void host_matmul_run_portable(const struct device_host_call *call, uint64_t tile);
void host_matmul_run_avx2(const struct device_host_call *call, uint64_t tile);
void host_matmul_run_avx512(const struct device_host_call *call, uint64_t tile);

void host_matmul_group_run_portable(const struct device_host_call *call, uint64_t tile);
void host_matmul_group_run_avx2(const struct device_host_call *call, uint64_t tile);
void host_matmul_group_run_avx512(const struct device_host_call *call, uint64_t tile);

void host_matmul_experts_run_portable(const struct device_host_call *call, uint64_t tile);
void host_matmul_experts_run_avx2(const struct device_host_call *call, uint64_t tile);
void host_matmul_experts_run_avx512(const struct device_host_call *call, uint64_t tile);

/* Where a tile's weights begin. */
const void *host_matmul_reads(const struct device_host_call *call, uint64_t tile,
                              uint64_t *ret_bytes);
const void *host_matmul_group_reads(const struct device_host_call *call, uint64_t tile,
                                    uint64_t *ret_bytes);

#endif
