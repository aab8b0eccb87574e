/* all.h - every kind of device this build knows: which are available, why others are not, and
 * opening one by name. The one place that names backends. */
#ifndef GRETA_DEVICE_ALL_ALL_H
#define GRETA_DEVICE_ALL_ALL_H

#include "device/device.h"
#include "device/options.h"

#define ALL_DEVICE_LIMIT 32
#define ALL_NAME_BYTES 32 /* of a device's name, "cuda:0" */

/* A device that was found, or a backend that is not available. */
struct all_entry {
    char name[16]; /* as given to --device: "host", "cuda:0" */
    bool available;
    struct device_info info; /* if available */
    char reason[192];        /* if not: what was tried and why it is absent */
};

/* Looks at every backend; returns how many entries were filled, at most ALL_DEVICE_LIMIT. image: as
 * in device_options; a GPU whose chip it has no code for is not available. */
size_t all_list(const struct device_gpu_image *image, struct all_entry *ret_entries);

/* "host", "cuda:N", "hip:N", or "auto": the first GPU that opens, else the host. STATUS_USAGE for
 * another name, STATUS_NOT_FOUND or STATUS_UNSUPPORTED with the reason for one that does not open.
 */
MUST_CHECK enum status all_open(const char *name, const struct device_options *options,
                                struct device **ret_device, struct error *err);

/* The name of the device that "auto" opens here, "cuda:0" or "host"; any other name is copied. To
 * find out, GPUs are opened, so use it for records, not for every run. image: as for all_list. */
void all_resolve(const char *name, const struct device_gpu_image *image,
                 char ret_name[ALL_NAME_BYTES]);

#endif
