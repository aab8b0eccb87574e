/* choose.c - argmax, some blocks for each row, and top_k, a block for each. -0 equals +0; equals
 * come in the order of their ids. argmax refuses a row that is not all finite; for top_k a NaN is
 * smaller than every number and equal to every NaN. */
#include "ops/gpu/kernels/kernel_call.h"

/* Larger keys come first: the value's order, then the smaller id. NaN has the smallest order. */
INLINE uint64_t key_of(float value, uint32_t id)
{
    uint32_t bits = bits_of(value == 0.0f ? 0.0f : value);
    uint32_t order = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    if (value != value)
        order = 0;
    return (uint64_t)order << 32 | (uint32_t)~id;
}

INLINE uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

INLINE uint64_t warp_largest(uint64_t key)
{
    for (uint32_t distance = WARP / 2; distance > 0; distance /= 2) {
        uint32_t low = warp_swap((uint32_t)key, distance);
        uint32_t high = warp_swap((uint32_t)(key >> 32), distance);
        key = larger(key, (uint64_t)high << 32 | low);
    }
    return key;
}

/* The largest of what the warps have; every thread has it. */
INLINE uint64_t largest_of_warps(uint64_t key)
{
    SHARED uint64_t *best = (SHARED uint64_t *)shared_memory();
    if (lane_index() == 0)
        best[warp_index()] = key;
    block_sync();
    return warp_largest(lane_index() < thread_count() / WARP ? best[lane_index()] : 0);
}

#define AT_ONCE 16

/* The largest key below `bound` in the row; every thread has it. */
INLINE uint64_t largest_below(const GLOBAL float *row, uint32_t count, uint64_t bound)
{
    uint64_t key = 0;
    for (uint32_t first = thread_index(); first < count; first += AT_ONCE * thread_count()) {
        float values[AT_ONCE]; /* asked for together */
        UNROLL
        for (uint32_t n = 0; n < AT_ONCE; n++) {
            uint32_t i = first + n * thread_count();
            values[n] = i < count ? row[i] : 0;
        }
        UNROLL
        for (uint32_t n = 0; n < AT_ONCE; n++) {
            uint32_t i = first + n * thread_count();
            uint64_t candidate = i < count ? key_of(values[n], i) : 0;
            key = candidate < bound ? larger(key, candidate) : key;
        }
    }
    key = warp_largest(key);
    block_sync(); /* the keys of the round before were read */
    return largest_of_warps(key);
}

/* The blocks of a row (x counts them, y rows) meet in the workspace; the last one has the result,
 * which does not depend on who that is. */
INLINE void argmax_join(const struct gpu_call *call, uint64_t key)
{
    SHARED uint32_t *last = (SHARED uint32_t *)shared_memory();
    GLOBAL uint32_t *counter = (GLOBAL uint32_t *)call->workspace + block_y();
    GLOBAL uint64_t *keys = (GLOBAL uint64_t *)(call->workspace + GPU_COUNTER_BYTES) +
                            (uint64_t)block_y() * block_count_x();
    block_sync(); /* what was in shared memory was read */
    if (thread_index() == 0) {
        keys[block_x()] = key;
        fence_device();
        *last = __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED) == block_count_x() - 1;
        if (*last)
            *counter = 0;
        fence_device();
    }
    block_sync();
    if (!*last || warp_index() != 0)
        return;
    key = 0;
    for (uint32_t i = lane_index(); i < block_count_x(); i += WARP)
        key = larger(key, ((volatile GLOBAL uint64_t *)keys)[i]);
    key = warp_largest(key);
    if (thread_index() != 0)
        return;
    uint32_t id = ~(uint32_t)key;
    ((GLOBAL uint32_t *)call->operands[ARGMAX_IDS].address)[block_y()] = id;
    if (call->operands[ARGMAX_NEXT].address) /* a row to look up next: there is none of -1 */
        ((GLOBAL uint32_t *)call->operands[ARGMAX_NEXT].address)[block_y()] = id == UINT32_MAX ? 0
                                                                                               : id;
}

KERNEL(argmax)
{
    ENTER(call);
    /* [vocab, rows], of which the block has [begin, count) */
    uint32_t width = (uint32_t)call.operands[ARGMAX_LOGITS].width;
    uint32_t begin = (uint32_t)((uint64_t)width * block_x() / block_count_x());
    uint32_t count = (uint32_t)((uint64_t)width * (block_x() + 1) / block_count_x());
    const GLOBAL float *row = row_f32(&call.operands[ARGMAX_LOGITS], block_y());
    /* A thread's ids increase, so the first of equals stays. */
    float best = float_of(0xFF800000u); /* minus infinity */
    uint32_t mine = begin + thread_index(), id = mine;
    bool finite = true;
    for (uint32_t first = mine; first < count; first += AT_ONCE * thread_count()) {
        float values[AT_ONCE]; /* asked for together */
        UNROLL
        for (uint32_t n = 0; n < AT_ONCE; n++) {
            uint32_t i = first + n * thread_count();
            values[n] = row[i < count ? i : first];
        }
        UNROLL
        for (uint32_t n = 0; n < AT_ONCE; n++) {
            uint32_t i = first + n * thread_count();
            finite = finite && (bits_of(values[n]) & 0x7F800000u) != 0x7F800000u;
            if (i < count && values[n] > best) {
                best = values[n];
                id = i;
            }
        }
    }
    uint64_t key = mine < count ? key_of(best, id) : 0;
    /* Before every number, and its id is -1. */
    key = warp_largest(finite ? key : (uint64_t)0xFFFFFFFFu << 32);
    argmax_join(&call, largest_of_warps(key));
}

/* One round for each of the k; k is small where this is used. */
KERNEL(top_k)
{
    ENTER(call);
    const GLOBAL float *row = row_f32(&call.operands[TOP_K_LOGITS], block_x());
    uint32_t count = (uint32_t)call.operands[TOP_K_LOGITS].width,
             k = (uint32_t)call.operands[TOP_K_VALUES].width;
    GLOBAL float *values = row_f32(&call.operands[TOP_K_VALUES], block_x()); /* [k, rows] */
    GLOBAL uint32_t *ids = (GLOBAL uint32_t *)row_at(&call.operands[TOP_K_IDS],
                                                     block_x()); /* the same */
    uint64_t bound = UINT64_MAX;
    for (uint32_t n = 0; n < k; n++) {
        bound = largest_below(row, count, bound);
        uint32_t id = ~(uint32_t)bound;
        if (thread_index() == 0) {
            ids[n] = id;
            values[n] = row[id];
        }
    }
}
