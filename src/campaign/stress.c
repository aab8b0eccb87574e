/* stress.c - see stress.h. */
#include "campaign/stress.h"

#include <time.h>

/* splitmix64: every state gives a good stream, neighbours included. */
uint64_t stress_random(uint64_t *state)
{
    uint64_t value = (*state += UINT64_C(0x9E3779B97F4A7C15));
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

static uint64_t draw(uint64_t *state, const struct job_range *range)
{
    uint64_t number = stress_random(state);
    if (range->most <= range->least)
        return range->least;
    return range->least + number % (range->most - range->least + 1);
}

struct job_stress stress_ranges(void)
{
    return (struct job_stress){ .on = true,
                                .streams = { 0, 3 },
                                .chunk = { 0, 4 },
                                .delay_us = { 0, 200 },
                                .pressure_bytes = { 0, (uint64_t)16 << 20 },
                                .repeat = { 1, 3 } };
}

struct stress_draw stress_of(const struct job *job, uint32_t iteration)
{
    /* Few chunk sizes, so that equal configurations come again and can be compared. */
    static const uint32_t chunks[] = { 0, 1, 3, 16, 61 };
    if (!job->stress.on)
        return (struct stress_draw){ .chunk = job->chunk, .repeat = 1 };
    uint64_t state = job->seed ^ ((uint64_t)iteration << 32);
    const struct job_stress *ranges = &job->stress;
    struct stress_draw result = {
        .streams = (uint32_t)draw(&state, &ranges->streams),
        .chunk = chunks[draw(&state, &ranges->chunk) % COUNT_OF(chunks)],
        .delay_us = (uint32_t)draw(&state, &ranges->delay_us),
        .pressure_bytes = draw(&state, &ranges->pressure_bytes),
        .repeat = (uint32_t)draw(&state, &ranges->repeat),
    };
    if (!result.repeat)
        result.repeat = 1;
    return result;
}

json_t *stress_to_json(const struct job *job)
{
    json_t *draws = json_array();
    for (uint32_t i = 0; i < job->iterations; i++) {
        struct stress_draw d = stress_of(job, i);
        json_array_append_new(draws, json_pack("[I, I, I, I, I]", (json_int_t)d.streams,
                                               (json_int_t)d.chunk, (json_int_t)d.delay_us,
                                               (json_int_t)d.pressure_bytes, (json_int_t)d.repeat));
    }
    return json_pack("{s:I, s:[s, s, s, s, s], s:o}", "seed", (json_int_t)job->seed, "columns",
                     "noise_streams", "prompt_chunk_tokens", "longest_delay_us", "pressure_bytes",
                     "prompt_repeats", "iterations", draws);
}

void stress_pause(const struct stress_draw *d, uint64_t *state)
{
    if (!d->delay_us)
        return;
    uint64_t us = stress_random(state) % (d->delay_us + 1);
    struct timespec pause = { 0, (long)us * 1000 };
    nanosleep(&pause, NULL);
}
