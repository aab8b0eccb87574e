/* figures.h - the drawings of the HTML report. Each prints nothing where there is nothing to draw.
 */
#ifndef GRETA_REPORT_FIGURES_H
#define GRETA_REPORT_FIGURES_H

#include "report/doc.h"
#include "report/facts.h"

/* From the cause over the other side to where the error was seen. */
void figure_chain(struct doc *doc, const struct report_facts *facts);
/* Streams as tracks around the root cause; from the flight file. */
void figure_timeline(struct doc *doc, const struct report_facts *facts);
/* Latency of every iteration, one plot per row. */
void figure_latency(struct doc *doc, const struct report_facts *facts);
/* Buffers by address, with the address of the fault; from the flight file. */
void figure_memory(struct doc *doc, const struct report_facts *facts);

#endif
