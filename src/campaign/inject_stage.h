/* inject_stage.h - which calls a planted fault can be in, checked before anything is run. */
#ifndef GRETA_CAMPAIGN_INJECT_STAGE_H
#define GRETA_CAMPAIGN_INJECT_STAGE_H

#include "campaign/campaign.h"
#include "campaign/job.h"

/* campaign_check_inject with the model in a file. One that cannot be read is not refused here. */
MUST_CHECK enum status inject_stage_check(const char *inject, const char *model_path,
                                          const struct campaign_extent *extent, struct error *err);

/* The most steps that an iteration of the job's model can take. */
uint64_t inject_stage_steps(const struct job *job);

#endif
