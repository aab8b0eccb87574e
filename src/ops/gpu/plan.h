/* plan.h - the code of all kernels, as the build embeds it (cmake/kernels.cmake). */
#ifndef GRETA_OPS_GPU_PLAN_H
#define GRETA_OPS_GPU_PLAN_H

#include "device/kernel.h"

/* Ends with a row without a vendor. */
extern const struct device_gpu_code gpu_codes[];

#endif
