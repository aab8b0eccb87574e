/* attention.c - attention over the cache, in shares (attention_chunks.h), for any cache and head.
 */
#include "ops/gpu/kernels/attention_chunks.h"

/* head_dim up to 128: four heads at a time, or one; up to 512: one. Short code matters: it is
 * fetched again for every launch. */
KERNEL(attention_4_heads_f16)
{
    ENTER(call);
    attend(&call, 4, 2, ALIGNED_F16, false);
}

KERNEL(attention_1_head_f16)
{
    ENTER(call);
    attend(&call, 1, 2, ALIGNED_F16, false);
}

KERNEL(attention_4_heads)
{
    ENTER(call);
    attend(&call, 4, 2, call.operands[ATTENTION_KEYS].dtype, false);
}

KERNEL(attention_1_head)
{
    ENTER(call);
    attend(&call, 1, 2, call.operands[ATTENTION_KEYS].dtype, false);
}

KERNEL(attention_1_large_head)
{
    ENTER(call);
    attend(&call, 1, 8, call.operands[ATTENTION_KEYS].dtype, false);
}

/* The same with a window, a cap or sinks. head_dim up to 128, 256, 512; one head. The one for 256
 * is shorter than attention_1_large_head and serves heads of its size without these too. */
KERNEL(attention_masked_128_f16)
{
    ENTER(call);
    attend(&call, 1, 2, ALIGNED_F16, true);
}

KERNEL(attention_masked_128)
{
    ENTER(call);
    attend(&call, 1, 2, call.operands[ATTENTION_KEYS].dtype, true);
}

KERNEL(attention_masked_256_f16)
{
    ENTER(call);
    attend(&call, 1, 4, ALIGNED_F16, true);
}

KERNEL(attention_masked_256)
{
    ENTER(call);
    attend(&call, 1, 4, call.operands[ATTENTION_KEYS].dtype, true);
}

KERNEL(attention_masked_512)
{
    ENTER(call);
    attend(&call, 1, 8, call.operands[ATTENTION_KEYS].dtype, true);
}
