/* compare.c - see compare.h. */
#include "campaign/compare.h"

#include "base/text.h"
#include "campaign/files.h"
#include "report/earlier.h"

#include <stdlib.h>
#include <string.h>

enum status comparison_open(struct comparison *comparison, const char *folder, struct error *err)
{
    char path[FILES_PATH_BYTES];
    *comparison = (struct comparison){ 0 };
    TRY(files_join(path, err, folder, "summary.json"));
    TRY(report_summary_read(path, &comparison->summary, err));
    comparison->open = true;
    return STATUS_OK;
}

void comparison_release(struct comparison *comparison)
{
    if (comparison->open)
        report_summary_release(&comparison->summary);
    for (size_t i = 0; i < comparison->text_count; i++)
        text_release(&comparison->texts[i]);
    free(comparison->texts);
    free(comparison->differences);
    free(comparison->timings);
    *comparison = (struct comparison){ 0 };
}

/* ---- Findings ------------------------------------------------------------------------------- */

/* The three texts of one of our findings. */
enum { TEXT_KEY, TEXT_ENGLISH, TEXT_SPANISH, TEXTS_EACH };

static size_t count_findings(const struct report_facts *facts)
{
    size_t count = 0;
    for (size_t i = 0; i < facts->analysis_count; i++)
        count += facts->analyses[i]->finding_count;
    return count;
}

/* A finding of an earlier audit that has not been matched yet: with the same key, or of the same
 * hypothesis where any_key. */
static struct report_summary_finding *find_old(struct comparison *comparison, bool *matched,
                                               const char *slug, const char *key, bool any_key)
{
    for (size_t i = 0; i < comparison->summary.finding_count; i++) {
        struct report_summary_finding *old = &comparison->summary.findings[i];
        if (!matched[i] && strcmp(old->slug, slug) == 0 &&
            (any_key || strcmp(old->key, key) == 0)) {
            matched[i] = true;
            return old;
        }
    }
    return NULL;
}

static void add_difference(struct comparison *comparison, enum report_change change,
                           const char *slug, const char *what, const char *what_es)
{
    comparison->differences[comparison->difference_count++] =
        (struct report_difference){ change, slug, what, what_es };
}

static void write_texts(struct comparison *comparison, const struct finding *finding)
{
    struct text *texts = &comparison->texts[comparison->text_count];
    for (int i = 0; i < TEXTS_EACH; i++)
        text_init(&texts[i]);
    report_finding_key(finding, &texts[TEXT_KEY]);
    report_finding_describe(finding, REPORT_ENGLISH, &texts[TEXT_ENGLISH]);
    report_finding_describe(finding, REPORT_SPANISH, &texts[TEXT_SPANISH]);
    comparison->text_count += TEXTS_EACH;
}

/* True if one of the same hypothesis and key came before among ours. */
static bool is_repeated(const struct comparison *comparison, const struct report_facts *facts,
                        size_t analysis, size_t finding)
{
    size_t place = 0;
    const char *key = text_get(&comparison->texts[comparison->text_count - TEXTS_EACH + TEXT_KEY]);
    for (size_t a = 0; a <= analysis; a++) {
        size_t end = a == analysis ? finding : facts->analyses[a]->finding_count;
        for (size_t f = 0; f < end; f++, place++)
            if (facts->analyses[a]->findings[f].hypothesis ==
                    facts->analyses[analysis]->findings[finding].hypothesis &&
                strcmp(text_get(&comparison->texts[place * TEXTS_EACH + TEXT_KEY]), key) == 0)
                return true;
    }
    return false;
}

static void compare_findings(struct comparison *comparison, const struct report_facts *facts,
                             bool *matched)
{
    for (size_t a = 0; a < facts->analysis_count; a++) {
        for (size_t f = 0; f < facts->analyses[a]->finding_count; f++) {
            const struct finding *finding = &facts->analyses[a]->findings[f];
            const char *slug = hypothesis_info(finding->hypothesis)->slug;
            write_texts(comparison, finding);
            if (is_repeated(comparison, facts, a, f))
                continue;
            const struct text *texts = &comparison->texts[comparison->text_count - TEXTS_EACH];
            const char *key = text_get(&texts[TEXT_KEY]);
            enum report_change change = REPORT_NEW;
            if (find_old(comparison, matched, slug, key, false))
                change = REPORT_SAME;
            else if (find_old(comparison, matched, slug, key, true))
                change = REPORT_CHANGED;
            add_difference(comparison, change, slug, text_get(&texts[TEXT_ENGLISH]),
                           text_get(&texts[TEXT_SPANISH]));
        }
    }
    for (size_t i = 0; i < comparison->summary.finding_count; i++) {
        const struct report_summary_finding *old = &comparison->summary.findings[i];
        if (!matched[i])
            add_difference(comparison, REPORT_GONE, old->slug, old->text, old->text_es);
    }
}

/* ---- Figures -------------------------------------------------------------------------------- */

static void compare_figures(struct comparison *comparison, const struct report_figure *figures,
                            size_t count)
{
    for (size_t i = 0; i < comparison->summary.timing_count; i++) {
        const struct report_summary_timing *old = &comparison->summary.timings[i];
        for (size_t j = 0; j < count; j++)
            if (strcmp(old->what, figures[j].what) == 0) {
                comparison->timings[comparison->timing_count++] =
                    (struct report_timing){ old->what, old->value, figures[j].value };
                break;
            }
    }
}

enum status comparison_make(struct comparison *comparison, struct report_facts *facts,
                            struct error *err)
{
    size_t old_count = comparison->summary.finding_count, own_count = count_findings(facts);
    size_t figure_count = report_figures(facts->rows, facts->row_count, NULL, 0);
    struct report_figure *figures = calloc(figure_count + 1, sizeof(*figures));
    bool *matched = calloc(old_count + 1, sizeof(*matched));
    comparison->differences = calloc(old_count + own_count + 1, sizeof(*comparison->differences));
    comparison->timings = calloc(comparison->summary.timing_count + 1,
                                 sizeof(*comparison->timings));
    comparison->texts = calloc(own_count * TEXTS_EACH + 1, sizeof(*comparison->texts));
    enum status status = STATUS_OK;
    if (!figures || !matched || !comparison->differences || !comparison->timings ||
        !comparison->texts) {
        status = error_set(err, STATUS_NO_MEMORY, "no memory to compare with the baseline");
        goto done;
    }
    compare_findings(comparison, facts, matched);
    figure_count = report_figures(facts->rows, facts->row_count, figures, figure_count);
    compare_figures(comparison, figures, figure_count);
    facts->baseline = comparison->summary.id;
    facts->differences = comparison->differences;
    facts->difference_count = comparison->difference_count;
    facts->timings = comparison->timings;
    facts->timing_count = comparison->timing_count;
done:
    free(figures);
    free(matched);
    return status;
}
