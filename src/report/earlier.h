/* earlier.h - an earlier summary.json read back, for --baseline, the list of audits and the
 * evolution of a diagnosis. */
#ifndef GRETA_REPORT_EARLIER_H
#define GRETA_REPORT_EARLIER_H

#include "analyze/analyze.h"
#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* What --baseline, the list of audits and the evolution need of an earlier summary.json; hostile
 * bytes give a clear error. Owned; release with report_summary_release. */
struct report_summary {
    char *id, *date;
    char *device, *model;  /* NULL: not there */
    char *workload_sha256; /* NULL: not there */
    bool partial;
    enum audit_outcome outcome;
    char *root_cause;    /* NULL */
    char *root_cause_es; /* NULL */
    struct report_summary_finding {
        char *slug; /* hypothesis */
        char *key;  /* op, operand, layer, step, tensor, check: what makes two findings the same */
        char *text; /* one sentence */
        char *text_es; /* NULL: not there */
    } * findings;
    size_t finding_count;
    struct report_summary_timing {
        char *what;
        double value;
    } * timings;
    size_t timing_count;
};
MUST_CHECK enum status report_summary_read(const char *path, struct report_summary *ret_summary,
                                           struct error *err);
/* For tests and fuzzing; bytes are borrowed for the call, name is for errors. */
MUST_CHECK enum status report_summary_parse(const void *bytes, size_t count, const char *name,
                                            struct report_summary *ret_summary, struct error *err);
void report_summary_release(struct report_summary *summary); /* an empty one is fine */

#endif
