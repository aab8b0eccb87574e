/* shadow_packed.h - what the packed rows of a device's buffers were packed from: their format is
 * the device's own, so the host computes from the rows as they were. */
#ifndef GRETA_CAMPAIGN_SHADOW_PACKED_H
#define GRETA_CAMPAIGN_SHADOW_PACKED_H

#include "device/kernel.h"
#include "ops/again.h"

/* Buffers that hold packed rows; an engine has one. */
#define SHADOW_PACKED_LIMIT 8u

struct packed_rows {
    uint32_t buffer_index; /* of the device; 0: none */
    struct shape shape;    /* F32 [k, tokens] */
    float *values;         /* owned */
    enum ops_op op;        /* that packed them */
};

/* Zeroed: none. */
struct shadow_packed {
    struct packed_rows rows[SHADOW_PACKED_LIMIT];
};

/* NULL: nothing is known of them. */
const struct packed_rows *shadow_packed_find(const struct shadow_packed *all,
                                             const struct device_view *packed);
/* After a launch: if it packed rows, they were packed from what its plain operand has. */
MUST_CHECK enum status shadow_packed_remember(struct shadow_packed *all, struct device *device,
                                              struct device_stream stream, enum ops_op op,
                                              const struct device_launch *launch,
                                              struct error *err);
void shadow_packed_release(struct shadow_packed *all);

#endif
