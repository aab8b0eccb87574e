/* host.h - the CPU as a device: streams that are threads, copies that are really asynchronous,
 * memory of its own with guard pages, faults that make it lost. */
#ifndef GRETA_DEVICE_HOST_HOST_H
#define GRETA_DEVICE_HOST_HOST_H

#include "device/device.h"
#include "device/options.h"

/* Close with device_close. */
MUST_CHECK enum status host_device_open(const struct device_options *options,
                                        struct device **ret_device, struct error *err);

#endif
