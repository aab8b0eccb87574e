/* act.c - add, scale, swiglu, gelu and packing: one value at a time. A block does a part of a row:
 * x counts the parts, y the rows. */
#include "ops/gpu/kernels/kernel_call.h"
#include "ops/gpu/kernels/pack.h"
#include "ops/params.h"

KERNEL(add)
{
    ENTER(call);
    const struct gpu_operand *x = &call.operands[ADD_X]; /* both [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i < x->width)
        row_f32(x, block_y())[i] += row_f32(&call.operands[ADD_ADDED], block_y())[i];
}

KERNEL(swiglu)
{
    ENTER(call);
    const struct params_swiglu *params = (const void *)call.params;
    uint64_t width = call.operands[SWIGLU_OUT].width; /* all [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    float value = 0;
    if (i < width) {
        value = silu(row_f32(&call.operands[SWIGLU_GATE], block_y())[i]) *
                row_f32(&call.operands[SWIGLU_UP], block_y())[i];
        row_f32(&call.operands[SWIGLU_OUT], block_y())[i] = value;
    }
    if (call.operands[SWIGLU_PACKED].address)
        pack_value(params->packing.format, row_at(&call.operands[SWIGLU_PACKED], block_y()), width,
                   i, value);
}

KERNEL(gelu)
{
    ENTER(call);
    const struct params_swiglu *params = (const void *)call.params;
    uint64_t width = call.operands[GELU_OUT].width; /* all [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    float value = 0;
    if (i < width) {
        value = gelu_value(row_f32(&call.operands[GELU_X], block_y())[i]);
        if (call.operands[GELU_UP].address)
            value *= row_f32(&call.operands[GELU_UP], block_y())[i];
        row_f32(&call.operands[GELU_OUT], block_y())[i] = value;
    }
    if (call.operands[GELU_PACKED].address)
        pack_value(params->packing.format, row_at(&call.operands[GELU_PACKED], block_y()), width, i,
                   value);
}

KERNEL(scale)
{
    ENTER(call);
    const struct params_scale *params = (const void *)call.params;
    const struct gpu_operand *x = &call.operands[SCALE_X]; /* [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    if (i >= x->width)
        return;
    float value = row_f32(x, block_y())[i] * params->factor;
    if (params->cap != 0)
        value = params->cap * tanh_value(value / params->cap);
    row_f32(x, block_y())[i] = value;
}

KERNEL(act_pack)
{
    ENTER(call);
    const struct params_act_pack *params = (const void *)call.params;
    const struct gpu_operand *x = &call.operands[ACT_PACK_X]; /* [k, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    float value = i < x->width ? row_f32(x, block_y())[i] : 0;
    pack_value(params->format, row_at(&call.operands[ACT_PACK_PACKED], block_y()), x->width, i,
               value);
}

/* Packs attention's rows in a kernel after it: they are whole only when all its blocks are done. */
KERNEL(attention_pack)
{
    ENTER(call);
    const struct params_attention *params = (const void *)call.params;
    const struct gpu_operand *x = &call.operands[ACT_PACK_X]; /* [width, tokens] */
    uint32_t i = block_x() * thread_count() + thread_index();
    float value = i < x->width ? row_f32(x, block_y())[i] : 0;
    pack_value(params->packing.format, row_at(&call.operands[ACT_PACK_PACKED], block_y()), x->width,
               i, value);
}
