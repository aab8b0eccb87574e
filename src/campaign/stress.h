/* stress.h - what an iteration under stress is like: drawn from the row's seed and its number
 * alone, so that any iteration can be repeated. */
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

/* A calm one where the job is not under stress. */
struct stress_draw stress_of(const struct job *job, uint32_t iteration);

/* Ranges and every iteration's draw, for the manifest; the caller's. */
json_t *stress_to_json(const struct job *job);

/* A stream of numbers; the state is any seed. */
uint64_t stress_random(uint64_t *state);

/* Pauses the host for up to draw->delay_us. */
void stress_pause(const struct stress_draw *draw, uint64_t *state);

#endif
