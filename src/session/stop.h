/* stop.h - finds stop strings in text that arrives in parts. */
#ifndef GRETA_SESSION_STOP_H
#define GRETA_SESSION_STOP_H

#include "base/text.h"

struct stop_scan {
    const char *const *stops; /* borrowed; none empty */
    size_t stop_count;
    struct text held; /* text at the end that may be the beginning of a stop string */
};

void stop_scan_init(struct stop_scan *scan, const char *const *stops, size_t stop_count);
void stop_scan_release(struct stop_scan *scan);

/* Takes the next part; adds to `out` all text that is certainly not part of a stop string. True if
 * one was found: `out` then ends right before it, and the scan is over. */
bool stop_scan_add(struct stop_scan *scan, struct text_view part, struct text *out);
/* The text has ended: adds to `out` what was held back. */
void stop_scan_finish(struct stop_scan *scan, struct text *out);

#endif
