/* gpu.h - the ops on GPUs: the image of all kernels, and how activations are packed for them. */
#ifndef GRETA_OPS_GPU_GPU_H
#define GRETA_OPS_GPU_GPU_H

#include "device/kernel.h"

/* Static. In a build without a compiler for GPUs it has no code. */
const struct device_gpu_image *gpu_kernels_image(void);

/* See ops_weight_dtype. */
enum dtype gpu_weight_dtype(enum dtype dtype, uint64_t k);

/* True if there is a kernel for weights of the type. */
bool gpu_can_multiply(enum dtype weight_dtype);

/* One of packing.h. features: of the chip, DEVICE_GPU_ bits. */
uint32_t gpu_pack_format(uint32_t features, enum dtype weight_dtype, uint64_t k, uint64_t tokens);
uint64_t gpu_packed_row_bytes(uint32_t format, uint64_t k);

#endif
