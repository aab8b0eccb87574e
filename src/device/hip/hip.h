/* hip.h - AMD GPUs through the HIP runtime, opened at run time. */
#ifndef GRETA_DEVICE_HIP_HIP_H
#define GRETA_DEVICE_HIP_HIP_H

#include "device/device.h"
#include "device/options.h"

/* How many there are; at least 1. STATUS_NOT_FOUND with one line that says why there is none. */
MUST_CHECK enum status hip_device_count(uint32_t *ret_count, struct error *err);

/* Close with device_close. */
MUST_CHECK enum status hip_device_open(uint32_t index, const struct device_options *options,
                                       struct device **ret_device, struct error *err);

#endif
