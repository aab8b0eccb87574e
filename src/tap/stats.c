/* stats.c - statistics of values, and places as text. */
#include "tap/tap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct tap_stats tap_stats_of(const float *values, uint64_t count)
{
    struct tap_stats stats = { .count = count, .first_bad = count };
    double sum = 0;
    uint64_t finite = 0;
    for (uint64_t i = 0; i < count; i++) {
        float value = values[i];
        if (isfinite(value)) {
            stats.least = finite == 0 || value < stats.least ? value : stats.least;
            stats.most = finite == 0 || value > stats.most ? value : stats.most;
            sum += (double)value;
            finite++;
            continue;
        }
        if (stats.first_bad == count)
            stats.first_bad = i;
        if (isnan(value))
            stats.nan_count++;
        else
            stats.infinite_count++;
    }
    stats.mean = finite ? sum / (double)finite : 0;
    return stats;
}

const char *tap_place_text(const struct tap_place *place, char *text)
{
    int used = 0;
    if (place->layer >= 0)
        used += snprintf(text, TAP_PLACE_TEXT_BYTES, "layer %" PRId32 ", ", place->layer);
    used += snprintf(text + used, TAP_PLACE_TEXT_BYTES - (size_t)used, "step %" PRId32,
                     place->step);
    if (place->sequence >= 0)
        used += snprintf(text + used, TAP_PLACE_TEXT_BYTES - (size_t)used, ", sequence %" PRId32,
                         place->sequence);
    if (place->head >= 0)
        used += snprintf(text + used, TAP_PLACE_TEXT_BYTES - (size_t)used, ", head %" PRId32,
                         place->head);
    snprintf(text + used, TAP_PLACE_TEXT_BYTES - (size_t)used, ", %s", place->tensor);
    return text;
}

enum status tap_check_finite(const struct tap_record *record, struct error *err)
{
    const struct tap_stats *stats = &record->stats;
    if (stats->first_bad == stats->count)
        return STATUS_OK;
    char place[TAP_PLACE_TEXT_BYTES];
    uint64_t width = record->shape.dims[0] ? record->shape.dims[0] : 1;
    return error_set(err, STATUS_BAD_FILE,
                     "%s: expected finite numbers, found %" PRIu64 " NaN and %" PRIu64
                     " infinite of %" PRIu64 ", the first at row %" PRIu64 ", column %" PRIu64,
                     tap_place_text(&record->place, place), stats->nan_count, stats->infinite_count,
                     stats->count, stats->first_bad / width, stats->first_bad % width);
}
