/* kernel_call.h - what kernels do with the call they are given: crumbs and traps, blocks that share
 * an output, operands. */
#ifndef GRETA_OPS_GPU_KERNELS_KERNEL_CALL_H
#define GRETA_OPS_GPU_KERNELS_KERNEL_CALL_H

#include "ops/gpu/kernels/portable.h"

/* ---- Crumbs and traps ----------------------------------------------------------------------- */

INLINE void store_crumb(uint64_t address, uint64_t value)
{
    *(volatile GLOBAL uint64_t *)address = value;
}

/* First in every kernel, before anything that another kernel may have written is read. */
#define ENTER(call)                                                                                \
    do {                                                                                           \
        early_allow();                                                                             \
        early_wait();                                                                              \
        leave_crumbs(&(call));                                                                     \
    } while (0)

/* The same for a kernel that may write weights. Later kernels prefetch weights before they wait, so
 * none may begin until this one has ended, and its stores must be fenced. */
#define ENTER_ALONE(call)                                                                          \
    do {                                                                                           \
        early_wait();                                                                              \
        leave_crumbs(&(call));                                                                     \
    } while (0)

INLINE void leave_crumbs(const struct gpu_call *call)
{
    if ((block_x() | block_y() | thread_index()) != 0 || call->crumbs == 0)
        return;
    if (call->entered) {
        store_crumb(call->crumbs + GPU_CRUMB_FINISHED, call->finished);
        store_crumb(call->crumbs + GPU_CRUMB_ENTERED, call->entered);
    }
    store_crumb(call->crumbs + GPU_CRUMB_NODE, call->node);
}

/* True if index < bound; else the calling thread leaves a trap that names `launch`. */
INLINE bool index_of_ok(const struct gpu_call *call, uint64_t launch, uint32_t operand,
                        uint64_t index, uint64_t bound)
{
    if (index < bound)
        return true;
    uint64_t place = __atomic_fetch_add((GLOBAL uint64_t *)call->trap_counter, 1, __ATOMIC_RELAXED);
    if (place >= GPU_CRUMB_TRAP_LIMIT)
        return false;
    uint64_t trap = call->page + GPU_CRUMB_TRAPS + place * GPU_CRUMB_TRAP_BYTES;
    store_crumb(trap, launch);
    store_crumb(trap + 8, index);
    store_crumb(trap + 16, bound);
    *(volatile GLOBAL uint32_t *)(trap + 24) = operand;
    fence_system();
    *(volatile GLOBAL uint32_t *)(trap + 28) = 1;
    return false;
}
INLINE bool index_ok(const struct gpu_call *call, uint32_t operand, uint64_t index, uint64_t bound)
{
    return index_of_ok(call, call->trap_id, operand, index, bound);
}

/* ---- Blocks that share an output ------------------------------------------------------------ */

/* True in the last of `count` blocks to come here, for all its threads; it sees what the others
 * stored before. Leaves the counter 0, for the next launch. */
INLINE bool block_is_last(GLOBAL uint32_t *counter, uint32_t count, SHARED uint32_t *flag)
{
    fence_device();
    block_sync();
    if (thread_index() == 0) {
        *flag = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == count - 1;
        if (*flag)
            *counter = 0;
    }
    block_sync();
    fence_device();
    return *flag != 0;
}

/* ---- Operands ------------------------------------------------------------------------------- */

INLINE GLOBAL uint8_t *row_at(const struct gpu_operand *operand, uint64_t row)
{
    return (GLOBAL uint8_t *)(operand->address + row * operand->row_stride_bytes);
}
INLINE GLOBAL float *row_f32(const struct gpu_operand *operand, uint64_t row)
{
    return (GLOBAL float *)row_at(operand, row);
}
/* A dot product, with the row's bias where there is one. */
INLINE void store_product(const struct gpu_operand *bias, const struct gpu_operand *out,
                          uint64_t token, uint32_t row, float sum)
{
    if (bias->address)
        sum += row_f32(bias, 0)[row];
    row_f32(out, token)[row] = sum;
}
/* An index from memory; a negative one becomes huge. */
INLINE uint64_t list_index(const struct gpu_operand *list, uint64_t place)
{
    return (uint64_t)(int64_t)((const GLOBAL int32_t *)list->address)[place];
}

#endif
