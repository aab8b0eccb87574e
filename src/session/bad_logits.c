/* bad_logits.c - see bad_logits.h. */
#include "session/bad_logits.h"

#include <inttypes.h>
#include <stdio.h>

#define ORIGIN_BYTES 320

static void describe(char *text, const struct tap_record *record, uint32_t position,
                     const uint32_t *prompt, uint32_t prompt_count)
{
    char layer[32] = "", token[32] = "written before";
    if (record->place.layer >= 0)
        snprintf(layer, sizeof(layer), "layer %" PRId32 " ", record->place.layer);
    if (position < prompt_count)
        snprintf(token, sizeof(token), "token %" PRIu32, prompt[position]);
    snprintf(text, ORIGIN_BYTES,
             "first seen in: %s%s, position %" PRIu32 " (%s), %" PRIu64 " of %" PRIu64 " values",
             layer, record->place.tensor, position, token,
             record->stats.nan_count + record->stats.infinite_count, record->stats.count);
}

enum status bad_logits_explain(struct engine *engine, uint32_t sequence, const uint32_t *prompt,
                               uint32_t prompt_count, uint32_t step, const struct tap_stats *stats,
                               struct error *err)
{
    struct tap_record record;
    struct error second;
    bool found = false;
    uint32_t position = 0;
    char origin[ORIGIN_BYTES];
    if (engine_find_bad(engine, sequence, &found, &record, &position, &second))
        snprintf(origin, sizeof(origin), "it could not be run again: %.250s", second.text);
    else if (found)
        describe(origin, &record, position, prompt, prompt_count);
    else
        snprintf(origin, sizeof(origin),
                 "the same tokens gave finite values when run again: the fault was transient, so "
                 "that no op can be named now; greta audit with this model, device and options "
                 "scans every op while it happens and names the first");
    return error_set(
        err, STATUS_BAD_FILE,
        "logits of token %" PRIu32 ": expected finite numbers, found %" PRIu64 " NaN and %" PRIu64
        " infinite of %" PRIu64 ", the first at %" PRIu64 "; %s (--allow-nan goes on all the same)",
        step, stats->nan_count, stats->infinite_count, stats->count, stats->first_bad, origin);
}
