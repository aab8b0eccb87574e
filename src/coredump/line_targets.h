/* line_targets.h - the source lines of places in an image, from its line table (.debug_line).
 *
 * One pass over the table answers for all places. NVIDIA's compiler also writes which row is
 * inlined into which: row N of a sequence names the row of the call, which comes before it. */
#ifndef GRETA_COREDUMP_LINE_TARGETS_H
#define GRETA_COREDUMP_LINE_TARGETS_H

#include "coredump/image.h"

struct line_target {
    const struct function *function; /* of the image */
    struct coredump_place *place;    /* lines and frames are set */
};

/* Most places for one call. */
#define LINE_TARGET_LIMIT 64

/* Fails only without memory. */
MUST_CHECK enum status line_targets_find(const struct image *image, struct work *work,
                                         const struct line_target *targets, size_t count,
                                         struct error *err);

#endif
