/* worker_lines.h - where a worker's lines come from besides its workloads: the pulse, and the
 * events of the device. For worker.c; workloads use worker.h. */
#ifndef GRETA_CAMPAIGN_WORKER_LINES_H
#define GRETA_CAMPAIGN_WORKER_LINES_H

#include "campaign/worker.h"

/* context: the struct worker. Called by the pulse's thread when something has moved; false: no line
 * is due. */
bool worker_on_pulse(void *context, const struct pulse_watch *watch, bool on_device);
/* context: a struct worker_counts. Counts the ends of calls, since a call's begin and end are one.
 */
void worker_count_event(void *context, const struct event *event);
/* STATUS_LOST or STATUS_OK. A destroy that was refused, which device_check also reports, is a
 * finding and ends nothing. */
MUST_CHECK enum status worker_check_lost(const struct worker *worker, struct error *err);

#endif
