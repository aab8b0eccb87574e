/* copier.h - copies of much memory, done by a few threads that stay.
 *
 * One processor copies out of a mapped file at a fifth of the speed of a link or of memory. So a
 * copy is cut into parts that the threads take in order, while whoever gave it goes on; several
 * copies may be under way. Who waits helps. Where there is only one processor, or no thread can be
 * started, who waits does it all. */
#ifndef GRETA_BASE_COPIER_H
#define GRETA_BASE_COPIER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct copier;

/* Memory of the caller's that must stay until copier_wait. Its fields are the copier's. */
struct copier_job {
    uint8_t *target;
    const uint8_t *source;
    size_t bytes;
    size_t finished; /* bytes; atomic */
    bool failed;     /* atomic */
};

/* Threads are started with the first copy: at most thread_limit, and one less than processors. */
MUST_CHECK enum status copier_create(uint32_t thread_limit, struct copier **ret_copier,
                                     struct error *err);
/* Nothing is under way. NULL is fine. */
void copier_destroy(struct copier *copier);

void copier_start(struct copier *copier, struct copier_job *job, void *target, const void *source,
                  size_t bytes);
/* Returns when it is done. False: a part of the source could not be read, as of a mapped file that
 * became shorter; what is in the target then is not to be used. */
bool copier_wait(struct copier *copier, struct copier_job *job);

#endif
