/* stress.h - the settings of an iteration under stress, drawn from the row's seed and the
 * iteration's number alone, so that any iteration can be repeated. */
#ifndef GRETA_CAMPAIGN_STRESS_H
#define GRETA_CAMPAIGN_STRESS_H

#include "campaign/job.h"

struct stress_draw {
    uint32_t streams;        /* noise streams */
    uint32_t chunk;          /* prompt tokens of a batch; 0: as many as fit */
    uint32_t delay_us;       /* longest pause between calls; 0: none */
    uint64_t pressure_bytes; /* taken during the workload */
    uint32_t repeat;         /* times the prompt is written; at least 1 */
};

/* The ranges an audit uses. */
struct job_stress stress_ranges(void);

/* Without stress if the job has none. */
struct stress_draw stress_of(const struct job *job, uint32_t iteration);

/* Ranges and every iteration's draw, for the manifest; the caller's. */
json_t *stress_to_json(const struct job *job);

/* The next random number; the state may begin as any seed. */
uint64_t stress_random(uint64_t *state);

/* Pauses the host for up to draw->delay_us. */
void stress_pause(const struct stress_draw *draw, uint64_t *state);

#endif
