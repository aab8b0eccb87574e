/* program.h - how a traced program ended, and why part of it could not be looked at; for the
 * printed text and for summary.json. */
#ifndef GRETA_REPORT_PROGRAM_H
#define GRETA_REPORT_PROGRAM_H

#include "report/finding.h"

enum report_looked_at {
    REPORT_LOOKED_AT_ALL,
    REPORT_LOOKED_AT_PART,
    REPORT_LOOKED_AT_NOTHING,
    REPORT_LOOKED_AT_COUNT
};
const char *report_looked_at_name(enum report_looked_at looked_at); /* "nothing" */

struct report_program {
    struct run_ending ending;
    int exit_code, signal; /* signal 0: it ended by itself */
    enum report_looked_at looked_at;
    /* Adds the n-th reason why not everything was looked at, from 0; false past the last. */
    bool (*add_reason)(const void *context, size_t index, enum report_language language,
                       struct text *text);
    const void *context;
};

/* After a verdict: ": copies, order, lifetimes. Not inside kernels; not host reads". Nothing where
 * there is nothing to say (greta's own runs). */
void report_subjects_words(const struct analyze_subjects *of, enum report_language language,
                           struct text *text);

#endif
