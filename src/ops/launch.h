/* launch.h - what the files with launch functions share. */
#ifndef GRETA_OPS_LAUNCH_H
#define GRETA_OPS_LAUNCH_H

#include "ops/ops.h"
#include "ops/params.h"

/* Operands in the contract's order, all of them; NULL for an absent one. */
MUST_CHECK enum status ops_launch(const struct ops_target *target, enum ops_op op,
                                  const void *params, const struct device_view *const *operands,
                                  uint64_t tile_count, struct error *err);

/* The packing of rows x, [k, tokens], for weights of a type. */
struct params_act_pack ops_packing_params(const struct ops *ops, enum dtype weight_dtype,
                                          const struct device_view *x);

static inline uint64_t ops_tiles(uint64_t count, uint64_t per_tile)
{
    return count / per_tile + (count % per_tile != 0);
}

#endif
