/* bad_logits.h - explains logits that are NaN or infinite: where the first such value came from. */
#ifndef GRETA_SESSION_BAD_LOGITS_H
#define GRETA_SESSION_BAD_LOGITS_H

#include "engine/engine.h"

/* Runs the sequence again and checks the output of every op; sets the error and returns its status,
 * never STATUS_OK. prompt: the first prompt_count tokens of the sequence; step: number of the token
 * that the logits were for; stats: statistics of these logits. */
MUST_CHECK enum status bad_logits_explain(struct engine *engine, uint32_t sequence,
                                          const uint32_t *prompt, uint32_t prompt_count,
                                          uint32_t step, const struct tap_stats *stats,
                                          struct error *err);

#endif
