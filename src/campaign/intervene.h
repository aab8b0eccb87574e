/* intervene.h - reruns with one thing changed, each paired with a run without the change: what
 * makes the fault go away, and come back. */
#ifndef GRETA_CAMPAIGN_INTERVENE_H
#define GRETA_CAMPAIGN_INTERVENE_H

#include "campaign/campaign.h"
#include "campaign/child.h"
#include "report/report.h"

#define INTERVENTION_LIMIT 8u

struct interventions {
    struct report_intervention made[INTERVENTION_LIMIT];
    size_t count;
    struct verdict_flip flips[INTERVENTION_LIMIT];
    size_t flip_count;
    struct report_ablation ablations[DEVICE_D2H_COUNT];
    size_t ablation_count;
};

/* base: the job of the row that went wrong. hypothesis: what was found in it, or HYPOTHESIS_COUNT.
 * Ends after the first change if what went wrong comes again neither with nor without it. */
MUST_CHECK enum status intervene(const struct campaign_options *options,
                                 const struct child_setup *setup, const struct job *base,
                                 enum hypothesis hypothesis, struct interventions *interventions,
                                 struct error *err);

/* The workload in each D2H mode. */
MUST_CHECK enum status ablate_d2h(const struct campaign_options *options,
                                  const struct child_setup *setup, const struct job *base,
                                  struct interventions *interventions, struct error *err);

#endif
