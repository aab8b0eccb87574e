/* cuda.h - NVIDIA GPUs through CUDA's driver library, opened at run time. */
#ifndef GRETA_DEVICE_CUDA_CUDA_H
#define GRETA_DEVICE_CUDA_CUDA_H

#include "device/device.h"
#include "device/options.h"

/* How many there are; at least 1. STATUS_NOT_FOUND with one line that says why there is none. */
MUST_CHECK enum status cuda_device_count(uint32_t *ret_count, struct error *err);

/* Close with device_close. */
MUST_CHECK enum status cuda_device_open(uint32_t index, const struct device_options *options,
                                        struct device **ret_device, struct error *err);

#endif
