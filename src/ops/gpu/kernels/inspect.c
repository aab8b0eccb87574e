/* inspect.c - memory looked at for the audit, and bytes stored the way a kernel stores them.
 *
 * A row of blocks for each region (y), which its blocks (x) share. Each leaves what it found in the
 * stream's scratch; the last one to be done puts the parts together and tells the host. Sums,
 * counts and smallest places have no order: the result does not depend on how blocks run. */
#include "ops/gpu/kernels/kernel_call.h"

struct seen {
    uint64_t value, first;
};

INLINE uint64_t warp_swap_long(uint64_t value, uint32_t distance)
{
    uint32_t low = warp_swap((uint32_t)value, distance);
    uint32_t high = warp_swap((uint32_t)(value >> 32), distance);
    return (uint64_t)high << 32 | low;
}

INLINE uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Joins what all threads have seen; thread 0 has the result. Shared: two words for each warp. */
INLINE struct seen block_join(struct seen mine)
{
    SHARED uint64_t *parts = (SHARED uint64_t *)shared_memory();
    for (uint32_t distance = WARP / 2; distance > 0; distance /= 2) {
        mine.value += warp_swap_long(mine.value, distance);
        mine.first = smaller(mine.first, warp_swap_long(mine.first, distance));
    }
    block_sync();
    if (lane_index() == 0) {
        parts[2 * warp_index()] = mine.value;
        parts[2 * warp_index() + 1] = mine.first;
    }
    block_sync();
    for (uint32_t warp = 1; thread_index() == 0 && warp < thread_count() / WARP; warp++) {
        mine.value += parts[2 * warp];
        mine.first = smaller(mine.first, parts[2 * warp + 1]);
    }
    return mine;
}

/* ---- What is looked for --------------------------------------------------------------------- */

INLINE GLOBAL uint8_t *region_row(const struct gpu_region *region, uint64_t row)
{
    return (GLOBAL uint8_t *)(region->address + row * region->row_stride_bytes);
}

/* Word `index` of the rows laid end to end; zeros follow the last byte. */
INLINE uint64_t word_at(const struct gpu_region *region, uint64_t index, uint64_t bytes)
{
    uint64_t at = index * 8;
    if (region->rows == 1 && region->address % 8 == 0 && at + 8 <= bytes)
        return ((const GLOBAL uint64_t *)region->address)[index];
    uint64_t word = 0;
    for (uint32_t i = 0; i < 8 && at + i < bytes; i++) {
        uint64_t row = region->rows == 1 ? 0 : (at + i) / region->width;
        uint64_t column = at + i - row * region->width;
        word |= (uint64_t)region_row(region, row)[column] << 8 * i;
    }
    return word;
}

INLINE struct seen digest_region(const struct gpu_region *region, uint64_t from, uint64_t step)
{
    uint64_t bytes = region->width * region->rows;
    struct seen seen = { 0, UINT64_MAX };
    for (uint64_t i = from; i < (bytes + 7) / 8; i += step)
        seen.value += device_digest_word(word_at(region, i, bytes), i);
    return seen;
}

INLINE bool is_finite(float value)
{
    return (bits_of(value) & 0x7F800000u) != 0x7F800000u;
}

INLINE struct seen scan_region(const struct gpu_region *region, uint64_t from, uint64_t step)
{
    uint64_t columns = region->width / sizeof(float);
    struct seen seen = { 0, UINT64_MAX };
    for (uint64_t row = 0; row < region->rows; row++) {
        const GLOBAL float *values = (const GLOBAL float *)region_row(region, row);
        for (uint64_t i = from; i < columns; i += step) {
            bool bad = !is_finite(values[i]);
            seen.value += bad;
            seen.first = bad ? smaller(seen.first, row * columns + i) : seen.first;
        }
    }
    return seen;
}

INLINE struct seen check_region(const struct gpu_region *region, uint64_t from, uint64_t step)
{
    struct seen seen = { 0, UINT64_MAX };
    for (uint64_t i = from; i < region->width; i += step) {
        GLOBAL uint8_t *byte = region_row(region, 0) + i;
        if (*byte == (uint8_t)region->byte)
            continue;
        seen.value++;
        seen.first = smaller(seen.first, region->address + i);
        *byte = (uint8_t)region->byte; /* so that the next to damage it is seen as well */
    }
    return seen;
}

/* ---- Telling -------------------------------------------------------------------------------- */

INLINE GLOBAL uint64_t *part_of(const struct gpu_call *call, uint32_t part)
{
    uint64_t index = (uint64_t)block_y() * GPU_INSPECT_PARTS + part;
    return (GLOBAL uint64_t *)(call->workspace + GPU_COUNTER_BYTES) + 2 * index;
}

/* True in the block that is done last, for all its threads; it sees what the others stored. */
INLINE bool is_last_part(const struct gpu_call *call)
{
    return block_is_last((GLOBAL uint32_t *)call->workspace + block_y(), block_count_x(),
                         (SHARED uint32_t *)shared_memory());
}

INLINE void tell(const struct gpu_call *call, struct seen seen)
{
    const struct gpu_inspect_params *params = (const void *)call->params;
    uint64_t slot = params->slots + block_y() * sizeof(struct gpu_inspect_slot);
    if (thread_index() != 0)
        return;
    store_crumb(slot, seen.value);
    store_crumb(slot + offsetof(struct gpu_inspect_slot, first), seen.first);
    fence_system();
    store_crumb(slot + offsetof(struct gpu_inspect_slot, done), 1);
}

INLINE struct gpu_region region_of(const struct gpu_call *call)
{
    const struct gpu_inspect_params *params = (const void *)call->params;
    if (params->table == 0)
        return gpu_call_regions(call)[block_y()];
    return ((const GLOBAL struct gpu_region *)params->table)[block_y()];
}

KERNEL(inspect)
{
    ENTER(call);
    const struct gpu_region copy = region_of(&call), *region = &copy;
    uint64_t from = (uint64_t)block_x() * thread_count() + thread_index();
    uint64_t step = (uint64_t)block_count_x() * thread_count();
    struct seen seen = { 0, UINT64_MAX };
    if (region->what == GPU_INSPECT_DIGEST)
        seen = digest_region(region, from, step);
    else if (region->what == GPU_INSPECT_SCAN)
        seen = scan_region(region, from, step);
    else if (region->what == GPU_INSPECT_CANARY)
        seen = check_region(region, from, step);
    seen = block_join(seen);
    if (block_count_x() == 1) {
        tell(&call, seen);
        return;
    }
    if (thread_index() == 0) {
        part_of(&call, block_x())[0] = seen.value;
        part_of(&call, block_x())[1] = seen.first;
    }
    if (!is_last_part(&call))
        return;
    bool mine = thread_index() < block_count_x(); /* at most GPU_INSPECT_PARTS */
    seen.value = mine ? ((volatile GLOBAL uint64_t *)part_of(&call, thread_index()))[0] : 0;
    seen.first = mine ? ((volatile GLOBAL uint64_t *)part_of(&call, thread_index()))[1]
                      : UINT64_MAX;
    tell(&call, block_join(seen));
}

KERNEL(store_bytes)
{
    ENTER_ALONE(call);
    const struct gpu_region *target = gpu_call_regions(&call);
    uint64_t step = (uint64_t)block_count_x() * thread_count();
    uint64_t from = (uint64_t)block_x() * thread_count() + thread_index();
    for (uint64_t row = 0; row < target->rows; row++)
        for (uint64_t i = from; i < target->width; i += step)
            region_row(target, row)[i] = (uint8_t)target->byte;
    fence_device();
}
