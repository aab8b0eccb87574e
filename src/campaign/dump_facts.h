/* dump_facts.h - a GPU core dump as facts for the analysis (analyze/hardware.h). */
#ifndef GRETA_CAMPAIGN_DUMP_FACTS_H
#define GRETA_CAMPAIGN_DUMP_FACTS_H

#include "analyze/analyze.h"
#include "coredump/coredump.h"

struct dump_facts {
    struct coredump *dump; /* grids borrow their arguments from it */
    struct hardware_evidence evidence;
};

/* Reads a dump. own: the kernels are greta's, and their arguments name the launches. Fails if no
 * warp in it has an exception. */
MUST_CHECK enum status dump_facts_open(const char *path, bool own, struct dump_facts *facts,
                                       struct error *err);
void dump_facts_close(struct dump_facts *facts); /* of zeros is fine */

/* True if there is one next to the recording. */
bool dump_facts_is_there(const char *flight);
/* Removes the dump next to a recording that is about to be made. */
void dump_facts_forget(const char *flight);
/* Analyses a recording of greta's own; if a GPU core dump lies next to it (FLIGHT.core), with that,
 * which is removed. As analyze_flight. */
#define DUMP_FACTS_SUFFIX ".core"
MUST_CHECK enum status dump_facts_analyze(const char *flight, const struct analyze_options *options,
                                          struct analyzer **ret_analyzer, struct error *err);

#endif
