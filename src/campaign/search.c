/* search.c - see search.h: each try is a child of its own, and its recording says what it showed.
 */
#include "campaign/search.h"

#include "base/size.h"

#include "campaign/files.h"
#include "ops/ops.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Iterations of a try: at least so many; twice as many as it took to see the defect; at most what
 * the row had. */
#define ITERATIONS_LEAST 4u
#define ITERATIONS_MOST 200u

static bool is_searched(enum hypothesis hypothesis)
{
    return hypothesis == HYPOTHESIS_NON_DETERMINISM || hypothesis == HYPOTHESIS_NUMERIC;
}

/* The first finding of the hypothesis that follows from no other; NULL: none. */
static const struct finding *find_defect(const struct analysis *analysis,
                                         enum hypothesis hypothesis)
{
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        if (finding->hypothesis == hypothesis && finding->consequence_of < 0)
            return finding;
    }
    return NULL;
}

bool search_is_wanted(const struct analysis *analysis, enum hypothesis *ret_hypothesis,
                      uint64_t *ret_iteration)
{
    if (analysis->root >= 0)
        return false;
    for (size_t i = 0; i < analysis->finding_count; i++) {
        const struct finding *finding = &analysis->findings[i];
        if (!is_searched(finding->hypothesis) || finding->consequence_of >= 0)
            continue;
        *ret_hypothesis = finding->hypothesis;
        *ret_iteration = finding->cause.iteration;
        return true;
    }
    return false;
}

/* ---- A try ---------------------------------------------------------------------------------- */

struct bench {
    const struct campaign_options *options;
    const struct child_setup *setup;
    struct job base;
    enum hypothesis hypothesis;
    struct analyzer *analyzers[SEARCH_STEP_LIMIT]; /* by step */
    size_t count;
};

static void judge(const struct bench *bench, const struct analysis *analysis,
                  struct search_look *look)
{
    const struct finding *defect = find_defect(analysis, bench->hypothesis);
    look->compared = bench->hypothesis == HYPOTHESIS_NUMERIC
                         ? analysis->coverage[HYPOTHESIS_NUMERIC].checked
                         : analysis->ops_compared;
    look->seen = defect != NULL;
    look->culprit = analysis->root >= 0;
    look->agreed = analysis->op_agreed;
    look->differs = analysis->op_differs;
    if (bench->hypothesis == HYPOTHESIS_NUMERIC) /* one of two, next to each other */
        look->differs = defect && defect->candidate_count > 1;
    look->launches = analysis->run_launches;
}

static enum status run_try(void *context, const struct search_try *try,
                           struct search_look *ret_look, struct error *err)
{
    struct bench *bench = context;
    const struct child_step step = { &bench->options->watcher, "search", bench->count, 0 };
    struct job job = bench->base;
    struct analyze_options options = { .level = job.level,
                                       .hang_limit_ns = job.hang_limit_ns,
                                       .operand_name = ops_operand_name };
    struct child_outcome outcome;
    char label[64], flight[FILES_PATH_BYTES];
    struct error unused;
    snprintf(label, sizeof(label), "search-%02zu-%s", bench->count + 1, try->slug);
    job.label = label;
    job.search = try->how;
    if (try->kv_f32)
        job.kv_type = "f32";
    TRY(child_path(bench->setup->folder, label, "flight", flight, err));
    job.flight = flight;
    TRY(child_run_again(bench->setup, &job, &step, &outcome, err));
    struct analyzer **analyzer = &bench->analyzers[bench->count++];
    if (analyze_flight(flight, &options, analyzer, &unused))
        *analyzer = NULL; /* nothing to judge by: as if nothing had been seen */
    else
        judge(bench, analyzer_result(*analyzer), ret_look);
    ret_look->runs = outcome.done;
    unlink(flight); /* large, and what it showed is in the findings */
    child_outcome_release(&outcome);
    return STATUS_OK;
}

/* ---- The search ----------------------------------------------------------------------------- */

static uint32_t iterations_of(uint32_t planned, uint64_t iteration)
{
    uint64_t wanted = 2 * iteration;
    uint64_t most = min_u64(planned, ITERATIONS_MOST);
    if (wanted > most)
        wanted = most;
    return wanted < ITERATIONS_LEAST ? ITERATIONS_LEAST : (uint32_t)wanted;
}

enum status search_run(const struct campaign_options *options, const struct child_setup *setup,
                       const struct job *base, enum hypothesis hypothesis, uint64_t iteration,
                       struct search *ret_search, struct error *err)
{
    struct bench bench = {
        .options = options, .setup = setup, .base = *base, .hypothesis = hypothesis
    };
    struct search search = { .made = true, .hypothesis = hypothesis };
    bench.base.work = JOB_INFER;
    bench.base.iterations = iterations_of(base->iterations, iteration);
    enum status status = search_ladder(hypothesis, run_try, &bench, &search.record, err);
    for (size_t i = 0; i < bench.count; i++) {
        if (!status && (int)i == search.record.best)
            search.analyzer = bench.analyzers[i];
        else
            analyzer_destroy(bench.analyzers[i]);
    }
    if (!status)
        *ret_search = search;
    return status;
}

void search_release(struct search *search)
{
    analyzer_destroy(search->analyzer);
    *search = (struct search){ 0 };
}
