/* again.h - for code that checks ops: watches every launch, and runs it once more on another
 * device. */
#ifndef GRETA_OPS_AGAIN_H
#define GRETA_OPS_AGAIN_H

#include "ops/ops.h"

/* Called for every launch, right before and right after it is given to the device, with the
 * caller's stream: work that was queued before is done once that stream is waited for. A status
 * that either function returns is the op's status. Several threads may call them while weights are
 * loaded. */
struct ops_watch {
    enum status (*before)(void *context, const struct ops_target *target, enum ops_op op,
                          const struct device_launch *launch, struct error *err);
    enum status (*after)(void *context, const struct ops_target *target, enum ops_op op,
                         const struct device_launch *launch, struct error *err);
    void *context;
};

/* False for ops whose result is meaningless on another device: they pack or repack for their own.
 */
bool ops_can_run_again(enum ops_op op);
/* For an op that gives packed rows: the operand with the same rows in F32, and the packed one. */
bool ops_packing_operands(enum ops_op op, uint8_t *ret_plain, uint8_t *ret_packed);
/* For an op that reads packed rows: which operand that is. */
bool ops_packed_input(enum ops_op op, uint8_t *ret_packed);

/* Launches the op of a launch that a watch received, with its params. operands: in the contract's
 * order, on target's device. Packed rows are not written. plain: F32 [k, tokens], the rows that the
 * packed operand of a matmul was packed from; that operand is scratch then, and must have room for
 * such rows of any format. */
MUST_CHECK enum status ops_run_again(const struct ops_target *target, enum ops_op op,
                                     const void *params, const struct device_view *operands,
                                     const struct device_view *plain, struct error *err);

/* How far an output may differ between two devices, relative to the largest value of its row; 0:
 * not at all. dtype: the type of the weights of a matmul, or of the cache of kv_append. */
double ops_tolerance(enum ops_op op, enum dtype dtype);

#endif
