/* sampler.c - see sampler.h.
 *
 * Candidates are sorted by logit, largest first, equal ones by id. Every filter keeps the first so
 * many of them, so the result does not depend on the sorting algorithm. Probabilities are doubles.
 */
#include "session/sampler.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
    float logit;
    int32_t id;
};

struct sampler {
    struct sampler_settings settings;
    uint32_t vocab_size;
    /* With a temperature: as many as can be candidates, top_k or vocab_size. */
    struct candidate *candidates;
    double *weights;
    /* With penalties: */
    int32_t *recent; /* ring of repeat_last_n ids */
    uint32_t recent_count, recent_next;
    uint32_t *counts; /* how often each id is in recent; vocab_size */
    uint64_t random;  /* state of the generator */
};

enum status sampler_check(const struct sampler_settings *settings, struct error *err)
{
    const struct {
        const char *name;
        float value, least, most;
    } numbers[] = {
        { "temperature", settings->temperature, 0, 1000 },
        { "top-p", settings->top_p, 0, 1 },
        { "min-p", settings->min_p, 0, 1 },
        { "repeat penalty", settings->repeat_penalty, 1e-3f, 1000 },
        { "presence penalty", settings->presence_penalty, -1000, 1000 },
        { "frequency penalty", settings->frequency_penalty, -1000, 1000 },
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        if (!(numbers[i].value >= numbers[i].least && numbers[i].value <= numbers[i].most))
            return error_set(err, STATUS_USAGE, "%s: expected %g to %g, found %g", numbers[i].name,
                             (double)numbers[i].least, (double)numbers[i].most,
                             (double)numbers[i].value);
    return STATUS_OK;
}

static bool has_penalties(const struct sampler_settings *settings)
{
    return settings->repeat_last_n > 0 &&
           (settings->repeat_penalty != 1 || settings->presence_penalty != 0 ||
            settings->frequency_penalty != 0);
}

/* Candidates there can be: those that top-k keeps. */
static uint32_t candidate_limit(const struct sampler_settings *settings, uint32_t vocab_size)
{
    return settings->top_k && settings->top_k < vocab_size ? settings->top_k : vocab_size;
}

enum status sampler_create(const struct sampler_settings *settings, uint32_t vocab_size,
                           struct sampler **ret_sampler, struct error *err)
{
    TRY(sampler_check(settings, err));
    struct sampler *sampler = calloc(1, sizeof(*sampler));
    if (!sampler)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a sampler");
    sampler->settings = *settings;
    sampler->vocab_size = vocab_size;
    sampler->random = settings->seed;
    uint32_t candidates = 0, counted = 0; /* greedy: the logits are enough */
    if (settings->temperature > 0)
        candidates = candidate_limit(settings, vocab_size);
    if (has_penalties(settings))
        counted = vocab_size;
    sampler->candidates = calloc(candidates + 1u, sizeof(*sampler->candidates));
    sampler->weights = calloc(candidates + 1u, sizeof(*sampler->weights));
    sampler->counts = calloc(counted + 1u, sizeof(*sampler->counts));
    sampler->recent = calloc(counted ? settings->repeat_last_n : 1, sizeof(*sampler->recent));
    if (!sampler->candidates || !sampler->weights || !sampler->counts || !sampler->recent) {
        sampler_destroy(sampler);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a sampler of %" PRIu32 " tokens",
                         vocab_size);
    }
    *ret_sampler = sampler;
    return STATUS_OK;
}

void sampler_destroy(struct sampler *sampler)
{
    if (!sampler)
        return;
    free(sampler->candidates);
    free(sampler->weights);
    free(sampler->counts);
    free(sampler->recent);
    free(sampler);
}

bool sampler_is_greedy(const struct sampler *sampler)
{
    return (sampler->settings.temperature <= 0 || sampler->settings.top_k == 1) &&
           !has_penalties(&sampler->settings);
}

/* ---- Penalties ------------------------------------------------------------------------------ */

void sampler_accept(struct sampler *sampler, int32_t id)
{
    uint32_t limit = sampler->settings.repeat_last_n;
    if (!has_penalties(&sampler->settings) || id < 0 || (uint32_t)id >= sampler->vocab_size)
        return;
    if (sampler->recent_count == limit)
        sampler->counts[sampler->recent[sampler->recent_next]]--;
    else
        sampler->recent_count++;
    sampler->recent[sampler->recent_next] = id;
    sampler->counts[id]++;
    sampler->recent_next = (sampler->recent_next + 1) % limit;
}

static void penalise(const struct sampler *sampler, float *logits)
{
    const struct sampler_settings *settings = &sampler->settings;
    if (!has_penalties(settings))
        return;
    for (uint32_t i = 0; i < sampler->vocab_size; i++) {
        if (sampler->counts[i] == 0)
            continue;
        logits[i] = logits[i] > 0 ? logits[i] / settings->repeat_penalty
                                  : logits[i] * settings->repeat_penalty;
        logits[i] -= settings->presence_penalty +
                     settings->frequency_penalty * (float)sampler->counts[i];
    }
}

static int by_logit(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* ---- The likeliest -------------------------------------------------------------------------- */

/* Inserts the candidate at `place` of a heap whose root is the worst, or below that place. */
static void sink(struct candidate *heap, size_t count, size_t place, struct candidate candidate)
{
    for (size_t child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && by_logit(&heap[child + 1], &heap[child]) > 0)
            child++;
        if (by_logit(&candidate, &heap[child]) > 0)
            break;
        heap[place] = heap[child];
    }
    heap[place] = candidate;
}

/* Lists the top_k likeliest tokens (or all) as candidates, sorted; returns how many. Sorting the
 * whole vocabulary would take longer than a small model takes for a token. */
static size_t list_candidates(struct sampler *sampler, const float *logits)
{
    struct candidate *candidates = sampler->candidates;
    uint32_t vocab_size = sampler->vocab_size;
    uint32_t count = candidate_limit(&sampler->settings, vocab_size);
    for (uint32_t i = 0; i < count; i++)
        candidates[i] = (struct candidate){ logits[i], (int32_t)i };
    if (count < vocab_size) {
        for (size_t place = count / 2; place-- > 0;)
            sink(candidates, count, place, candidates[place]);
        /* The first of equal logits stays in: a later one must be larger. */
        for (uint32_t i = count; i < vocab_size; i++)
            if (logits[i] > candidates[0].logit)
                sink(candidates, count, 0, (struct candidate){ logits[i], (int32_t)i });
    }
    qsort(candidates, count, sizeof(*candidates), by_logit);
    return count;
}

/* ---- Filters -------------------------------------------------------------------------------- */

/* Computes the weights of the first `count` candidates relative to the first; returns their sum. */
static double weigh(struct sampler *sampler, size_t count, double temperature)
{
    double largest = (double)sampler->candidates[0].logit, sum = 0;
    for (size_t i = 0; i < count; i++) {
        sampler->weights[i] = exp(((double)sampler->candidates[i].logit - largest) / temperature);
        sum += sampler->weights[i];
    }
    return sum;
}

/* Applies top-p and min-p to `count` sorted candidates; returns how many stay, at least one. */
static size_t filter(struct sampler *sampler, size_t count)
{
    const struct sampler_settings *settings = &sampler->settings;
    double sum = weigh(sampler, count, 1);
    if (settings->top_p < 1) {
        double kept = 0;
        size_t keep = 0;
        while (keep < count && (keep == 0 || kept < (double)settings->top_p * sum))
            kept += sampler->weights[keep++];
        count = keep;
    }
    size_t keep = 1;
    while (keep < count && sampler->weights[keep] >= (double)settings->min_p)
        keep++;
    return keep;
}

/* ---- Choosing ------------------------------------------------------------------------------- */

/* A random number in [0, 1). */
static double draw(struct sampler *sampler)
{
    uint64_t z = (sampler->random += 0x9E3779B97F4A7C15u);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static enum status check_logits(const struct sampler *sampler, const float *logits,
                                struct error *err)
{
    bool any = false;
    for (uint32_t i = 0; i < sampler->vocab_size; i++) {
        if (isnan(logits[i]))
            return error_set(err, STATUS_BAD_FILE,
                             "logits: expected numbers, found NaN for token %" PRIu32
                             "; the model is damaged or the computation went wrong",
                             i);
        any = any || logits[i] > -INFINITY;
    }
    if (!any)
        return error_set(err, STATUS_BAD_FILE, "logits: expected one above -infinity, found none");
    return STATUS_OK;
}

static int32_t likeliest(const struct sampler *sampler, const float *logits)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < sampler->vocab_size; i++)
        if (logits[i] > logits[best])
            best = i;
    return (int32_t)best;
}

enum status sampler_choose(struct sampler *sampler, float *logits, int32_t *ret_id,
                           struct error *err)
{
    penalise(sampler, logits);
    TRY(check_logits(sampler, logits, err));
    if (sampler->settings.temperature <= 0) {
        *ret_id = likeliest(sampler, logits);
        return STATUS_OK;
    }
    size_t count = filter(sampler, list_candidates(sampler, logits));
    double target = draw(sampler) * weigh(sampler, count, (double)sampler->settings.temperature);
    size_t chosen = 0;
    double passed = sampler->weights[0];
    while (chosen + 1 < count && passed <= target)
        passed += sampler->weights[++chosen];
    *ret_id = sampler->candidates[chosen].id;
    return STATUS_OK;
}
