/* packing.h - formats of packed activations on a GPU; shared by host code and kernels. */
#ifndef GRETA_OPS_GPU_PACKING_H
#define GRETA_OPS_GPU_PACKING_H

/* For one token and small batches (kernels/pack.h). */
#define PACK_F32 0u
#define PACK_QUANTS 1u
/* For large batches, on matrix units (kernels/pack_rows.c). */
#define PACK_F16 2u
#define PACK_BF16 3u
/* PACK_F16 with every 32 values in the order that lanes multiply them in (kernels/lane_quants.h).
 */
#define PACK_LANES 4u

/* Where value i of such a row is, counted in values: of every four neighbours the first and third
 * stand together, the second and fourth eight further on. */
static inline unsigned lane_order(unsigned i)
{
    return i / 32 * 32 + i / 4 % 2 * 16 + i % 2 * 8 + i % 32 / 8 * 2 + i / 2 % 2;
}

#endif
