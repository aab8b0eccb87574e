/* transfer.h - shared by copies in and out. */
#ifndef GRETA_DEVICE_TRANSFER_H
#define GRETA_DEVICE_TRANSFER_H

#include "device/staging.h"

static inline uint64_t transfer_bytes(const struct resolved *resolved)
{
    return resolved->rows.row_bytes * resolved->rows.row_count;
}

/* Refuses a copy because tickets hold all slots. */
MUST_CHECK enum status transfer_refuse_staging(struct call *call, uint32_t in_use,
                                               struct error *err);
/* Refuses a copy whose size is not that of its view. */
MUST_CHECK enum status transfer_refuse_bytes(struct call *call, const char *what, uint64_t expected,
                                             uint64_t found, struct error *err);

#endif
