/* progress.h - long work reports how far it is, and asks whether to go on.
 *
 * Workers call progress_step between parts of the work, from one thread at a time. */
#ifndef GRETA_BASE_PROGRESS_H
#define GRETA_BASE_PROGRESS_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
    /* Returns false to stop the work. NULL: no callback. */
    bool (*step)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* STATUS_INTERRUPTED if the watcher wants to stop. progress may be NULL. */
MUST_CHECK static inline enum status progress_step(const struct progress *progress, uint64_t done,
                                                   uint64_t total, struct error *err)
{
    if (progress && progress->step && !progress->step(progress->context, done, total))
        return error_set(err, STATUS_INTERRUPTED, "interrupted");
    return STATUS_OK;
}

#endif
