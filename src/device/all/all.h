/* all.h - every kind of device this build knows: what is here, what is not and why, and opening one
 * by name. The one place that names backends. */
#ifndef GRETA_DEVICE_ALL_ALL_H
#define GRETA_DEVICE_ALL_ALL_H

#include "device/device.h"

#define ALL_DEVICE_LIMIT 32
#define ALL_NAME_BYTES 32 /* of a device's name, "cuda:0" */

/* A device that was found, or a backend that was tried in vain. */
struct all_entry {
    char name[16]; /* as given to --device: "host", "cuda:0" */
    bool available;
    struct device_info info; /* if available */
    char reason[192];        /* if not: what was tried and why it is absent */
};

/* Looks at every backend; returns how many entries were filled, at most ALL_DEVICE_LIMIT. */
size_t all_list(struct all_entry *ret_entries);

/* "host", "cuda:N", "hip:N", or "auto": the best there is. STATUS_USAGE for another name,
 * STATUS_NOT_FOUND with the reason for one that is not here. */
MUST_CHECK enum status all_open(const char *name, const struct device_options *options,
                                struct device **ret_device, struct error *err);

/* The name of the device that "auto" opens here, "cuda:0" or "host"; any other name is copied. GPUs
 * are opened for it, so this is for records, not for every run. */
void all_resolve(const char *name, char ret_name[ALL_NAME_BYTES]);

#endif
