/* copier.h - large copies of memory, done by a few threads that stay alive.
 *
 * One processor copies out of a mapped file at a fifth of the speed of a link or of memory. So a
 * copy is cut into parts that several threads take in order, while the caller goes on. Several
 * copies may be under way. A caller that waits helps. On a machine with one processor, or if no
 * thread can be started, the waiting caller copies everything. */
#ifndef GRETA_BASE_COPIER_H
#define GRETA_BASE_COPIER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct copier;

/* The caller's memory; it must stay valid until copier_wait. The copier owns the fields. */
struct copier_job {
    uint8_t *target;
    const uint8_t *source;
    size_t bytes;
    size_t finished; /* bytes; atomic */
    bool failed;     /* atomic */
};

/* Threads are started with the first copy: at most thread_limit, and one fewer than there are
 * processors. */
MUST_CHECK enum status copier_create(uint32_t thread_limit, struct copier **ret_copier,
                                     struct error *err);
/* No copy may be under way. NULL is fine. */
void copier_destroy(struct copier *copier);

void copier_start(struct copier *copier, struct copier_job *job, void *target, const void *source,
                  size_t bytes);
/* Returns when the copy is done. False means that a part of the source could not be read, for
 * instance because a mapped file became shorter; the target must not be used then. */
bool copier_wait(struct copier *copier, struct copier_job *job);

#endif
