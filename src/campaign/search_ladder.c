/* search_ladder.c - in which order a search looks, and what follows from what it saw. */
#include "campaign/search.h"

static const struct search_try unequal_tries[] = {
    { "every-op", { .on = true, .hash = { .every = 1 }, .clear = true }, false },
    { "outputs", { .on = true, .hash = { .every = 1, .plain_outputs = true } }, false },
    { "every-8th", { .on = true, .hash = { .every = 8, .plain_outputs = true } }, false },
    { "every-64th", { .on = true, .hash = { .every = 64, .plain_outputs = true } }, false },
    { "results", { .on = true, .as_audited = true }, false },
};

/* A cache of F16 or Q8_0 cannot be scanned: what attention reads is known with one of F32 only. */
static const struct search_try numeric_tries[] = {
    { "scan-every-op", { .on = true }, false },
    { "scan-f32-cache", { .on = true }, true },
};

struct ladder {
    search_runner run;
    void *context;
    struct search_record *record;
};

static enum status take(struct ladder *ladder, const struct search_try *try,
                        struct search_look *ret_look, struct error *err)
{
    struct search_record *record = ladder->record;
    struct search_look look = { 0 };
    TRY(ladder->run(ladder->context, try, &look, err));
    record->steps[record->count++] = (struct report_search_step){
        .what = try->slug,
        .runs = look.runs,
        .compared = look.compared,
        .result = look.culprit   ? REPORT_SEARCH_CULPRIT
                  : look.differs ? REPORT_SEARCH_INTERVAL
                  : look.seen    ? REPORT_SEARCH_SEEN
                                 : REPORT_SEARCH_NOT_SEEN,
    };
    *ret_look = look;
    return STATUS_OK;
}

/* One op is hashed in each run, half way between the two that are known, until they are next to
 * each other or the difference does not come; then both at once, so that one run shows them. */
static enum status narrow(struct ladder *ladder, struct search_look look, struct error *err)
{
    struct search_record *record = ladder->record;
    uint64_t low = look.agreed, high = look.differs, before = high - low, end = look.launches;
    struct search_try one = { "one-op", { .on = true, .hash = { .every = 1 } }, false };
    one.how.hash.plain_outputs = true;
    while (high - low > 1 && record->count + 2 < SEARCH_STEP_LIMIT) {
        uint64_t middle = low + (high - low) / 2;
        /* Launches are counted from 0 there, and `last` 0 means no end: middle is at least 1 here,
         * and the first launch of all is never between two others. */
        one.how.hash.first = one.how.hash.last = (uint32_t)middle - 1;
        if (middle == 1)
            break;
        TRY(take(ladder, &one, &look, err));
        if (!look.seen)
            break;
        if (look.differs)
            high = middle;
        else
            low = middle;
    }
    if (high - low == before || !low || high > end)
        return STATUS_OK;
    struct search_try both = { "two-ops", one.how, false };
    both.how.hash.first = (uint32_t)low - 1;
    both.how.hash.last = (uint32_t)high - 1;
    both.how.hash.every = (uint32_t)(high - low);
    TRY(take(ladder, &both, &look, err));
    if (look.agreed && look.differs) {
        record->best = (int)record->count - 1;
        record->result = REPORT_SEARCH_INTERVAL;
    }
    return STATUS_OK;
}

/* If the results differ and none of the hashed ops does, the difference was made after the last op
 * that was hashed. The results count as an op after all others. */
static bool is_after_last(const struct search_try *try, struct search_look *look)
{
    uint32_t every = try->how.hash.every;
    if (look->differs || every <= 1 || !look->launches)
        return false;
    look->agreed = (look->launches - 1) / every * every + 1;
    look->differs = look->launches + 1;
    return look->agreed < look->launches;
}

static enum status search_unequal(struct ladder *ladder, struct error *err)
{
    struct search_record *record = ladder->record;
    for (size_t i = 0; i < COUNT_OF(unequal_tries); i++) {
        struct search_look look;
        TRY(take(ladder, &unequal_tries[i], &look, err));
        if (!look.seen)
            continue;
        record->best = (int)record->count - 1;
        record->result = look.culprit   ? REPORT_SEARCH_CULPRIT
                         : look.differs ? REPORT_SEARCH_INTERVAL
                                        : REPORT_SEARCH_SEEN;
        if (look.culprit)
            return STATUS_OK;
        if (unequal_tries[i].how.hash.every > 1 &&
            (look.differs || is_after_last(&unequal_tries[i], &look)))
            return narrow(ladder, look, err);
        /* Else the results differ and no op that was hashed does: fewer hashes show no more. */
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status search_numeric(struct ladder *ladder, struct error *err)
{
    struct search_record *record = ladder->record;
    for (size_t i = 0; i < COUNT_OF(numeric_tries); i++) {
        struct search_look look;
        TRY(take(ladder, &numeric_tries[i], &look, err));
        if (!look.seen)
            continue;
        enum report_search_result result = record->steps[record->count - 1].result;
        if (result < record->result) { /* says more */
            record->best = (int)record->count - 1;
            record->result = result;
        }
        if (look.culprit)
            return STATUS_OK;
    }
    return STATUS_OK;
}

enum status search_ladder(enum hypothesis hypothesis, search_runner run, void *context,
                          struct search_record *ret_record, struct error *err)
{
    *ret_record = (struct search_record){ .result = REPORT_SEARCH_NOT_SEEN, .best = -1 };
    struct ladder ladder = { run, context, ret_record };
    return hypothesis == HYPOTHESIS_NUMERIC ? search_numeric(&ladder, err)
                                            : search_unequal(&ladder, err);
}
