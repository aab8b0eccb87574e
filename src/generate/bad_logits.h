/* bad_logits.h - says of logits that are NaN or infinite where the first such value came from. */
#ifndef GRETA_GENERATE_BAD_LOGITS_H
#define GRETA_GENERATE_BAD_LOGITS_H

#include "generate/generate.h"

/* Runs the sequence again, every op looked at. Never returns STATUS_OK. step: of the prompt's
 * tokens; stats: of the logits. */
MUST_CHECK enum status bad_logits_tell(struct engine *engine, uint32_t sequence,
                                       const struct generate_prompt *prompt, uint32_t step,
                                       const struct tap_stats *stats, struct error *err);

#endif
