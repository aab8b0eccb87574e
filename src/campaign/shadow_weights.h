/* shadow_weights.h - the weights of an engine as the file has them, on the host: what a launch
 * there reads in place of what the device holds, which may be repacked, or wrong. */
#ifndef GRETA_CAMPAIGN_SHADOW_WEIGHTS_H
#define GRETA_CAMPAIGN_SHADOW_WEIGHTS_H

#include "device/device.h"
#include "gguf/gguf.h"

#include <stdbool.h>
#include <stddef.h>

/* Where the device has it, and the file's own bytes as a buffer of the host. */
struct shadow_weight {
    struct device_view device, host;
};

struct shadow_weights {
    struct device *host; /* which destroys the buffers when it is closed */
    const struct gguf_file *file;
    struct shadow_weight *entries; /* owned */
    size_t count, capacity;
};

/* For engine_weights_visit; context: struct shadow_weights. */
MUST_CHECK enum status shadow_weights_add(void *context, const char *name,
                                          const struct device_view *view, struct error *err);

/* The weight that the view shows, or the rows of it where one tensor has those of several matrices;
 * false if it shows none. */
bool shadow_weights_find(const struct shadow_weights *weights, const struct device_view *view,
                         struct device_view *ret_host);

void shadow_weights_release(struct shadow_weights *weights);

#endif
