/* program.h - of a foreign program (greta trace): how it ended, and why not everything it did could
 * be looked at. What is printed and what is in summary.json come from here. */
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
    /* Why not at all of it: adds the reason with that number, from 0; false past the last. */
    bool (*add_reason)(const void *context, size_t index, enum report_language language,
                       struct text *text);
    const void *context;
};

#endif
