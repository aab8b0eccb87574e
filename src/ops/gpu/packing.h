/* packing.h - formats of packed activations on a GPU; shared by host code and kernels. */
#ifndef GRETA_OPS_GPU_PACKING_H
#define GRETA_OPS_GPU_PACKING_H

/* Of a few tokens (kernels/pack.h). */
#define PACK_F32 0u
#define PACK_LEVELS 1u
/* Of many, for matrix units (kernels/pack_rows.c). */
#define PACK_F16 2u
#define PACK_BF16 3u

#endif
