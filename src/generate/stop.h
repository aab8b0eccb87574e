/* stop.h - finds stop strings in text that comes in pieces. */
#ifndef GRETA_GENERATE_STOP_H
#define GRETA_GENERATE_STOP_H

#include "base/text.h"

struct stop_scan {
    const char *const *stops; /* borrowed; none empty */
    size_t stop_count;
    struct text held; /* what may be the beginning of a stop string */
};

void stop_scan_init(struct stop_scan *scan, const char *const *stops, size_t stop_count);
void stop_scan_release(struct stop_scan *scan);

/* Takes a piece; adds to `out` what is certainly before any stop string. True if one was found:
 * `out` then ends right before it, and the scan is over. */
bool stop_scan_add(struct stop_scan *scan, struct text_view piece, struct text *out);
/* Nothing more comes: what was held back is plain text. */
void stop_scan_finish(struct stop_scan *scan, struct text *out);

#endif
