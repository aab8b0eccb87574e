/* kv.c - kv_append: rows of keys and values, converted, into the slots of the cache; the bytes are
 * those of ops/host/kv.c. A block does a part of both rows of a token: x counts the parts, y the
 * tokens. A token with a bad slot stores neither row. */
#include "ops/gpu/kernels/kernel_call.h"
#include "tensor/dtype.h"

/* All lanes of a warp, with 32 neighbouring values. */
INLINE void store_q8_0(GLOBAL uint8_t *row, uint32_t i, float value)
{
    GLOBAL uint8_t *block = row + i / 32 * 34;
    uint32_t largest = warp_max_bits(magnitude_bits(value), WARP);
    bool finite = largest < 0x7F800000u;
    float scale = float_of(largest) / 127.0f;
    scale = scale < 65520.0f ? scale : 65504.0f; /* an f16 would be infinity */
    float inverse = 1.0f / scale;
    if (!(inverse < F32_INFINITY))
        inverse = 0; /* the scale is 0 in f16 */
    float quant = value * inverse;
    quant = quant > -127.0f ? quant : -127.0f;
    quant = quant < 127.0f ? quant : 127.0f;
    /* To nearest, half away from zero. */
    float whole = __builtin_truncf(quant), rest = quant - whole;
    whole += rest >= 0.5f ? 1.0f : rest <= -0.5f ? -1.0f : 0.0f;
    block[2 + i % 32] = finite ? (uint8_t)(int8_t)whole : 0;
    if (i % 32 == 0)
        *(GLOBAL uint16_t *)block = finite ? f16_bits(scale) : 0x7E00u;
}

INLINE void store_value(const struct gpu_operand *cache, uint64_t slot, uint32_t i, float value)
{
    GLOBAL uint8_t *row = row_at(cache, slot);
    if (cache->dtype == DTYPE_F16)
        ((GLOBAL uint16_t *)row)[i] = f16_bits(value);
    else if (cache->dtype == DTYPE_Q8_0)
        store_q8_0(row, i, value);
    else
        ((GLOBAL float *)row)[i] = value;
}

KERNEL(kv_append)
{
    ENTER(call);
    const struct gpu_operand *k = &call.operands[KV_APPEND_K],
                             *keys = &call.operands[KV_APPEND_KEYS];
    uint64_t slot = list_index(&call.operands[KV_APPEND_SLOTS], block_y());
    if (slot >= keys->rows) {
        if (thread_index() == 0 && block_x() == 0)
            index_ok(&call, KV_APPEND_SLOTS, slot, keys->rows);
        return;
    }
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i >= k->width)
        return; /* whole warps where it matters: Q8_0 rows are multiples of 32 */
    store_value(keys, slot, i, row_f32(k, block_y())[i]);
    store_value(&call.operands[KV_APPEND_VALUES], slot, i,
                row_f32(&call.operands[KV_APPEND_V], block_y())[i]);
}
