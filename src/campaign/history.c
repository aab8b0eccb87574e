/* history.c - earlier audits of the same workload in the artifacts folder. */
#include "campaign/compare.h"

#include "base/array.h"
#include "campaign/archive.h"
#include "report/earlier.h"

#include <stdlib.h>
#include <string.h>

/* A report that lists more is not read. The newest are kept. */
#define HISTORY_LIMIT 20u
/* Bytes of one summary and number of summaries that are read; the rest is left out. */
#define SUMMARY_LIMIT_BYTES ((uint64_t)64 << 20)
#define SUMMARIES_LIMIT 1000u

struct gathering {
    struct history *history;
    size_t capacity;
    uint32_t read;
    const char *own_id, *workload;
};

/* False if the audit is no part of this diagnosis: it has another model, workload or device, is
 * not finished or is damaged. */
static bool belongs(const struct gathering *gathering, const struct archive_folder *folder,
                    const struct report_summary *summary)
{
    return summary->workload_sha256 && strcmp(summary->workload_sha256, gathering->workload) == 0 &&
           strcmp(summary->id, folder->id) == 0 && !summary->partial &&
           archive_is_complete(folder->self);
}

static bool add_summary(void *context, const struct archive_folder *folder)
{
    struct gathering *gathering = context;
    struct history *history = gathering->history;
    struct report_summary summary, *larger = NULL;
    struct error unused;
    if (strcmp(folder->id, gathering->own_id) == 0 ||
        archive_read_summary(folder->self, folder->id, SUMMARY_LIMIT_BYTES, &summary, &unused))
        return true;
    if (belongs(gathering, folder, &summary))
        larger = array_reserve(history->summaries, history->count, &gathering->capacity,
                               sizeof(*larger));
    if (larger) {
        history->summaries = larger;
        history->summaries[history->count++] = summary;
    } else {
        report_summary_release(&summary);
    }
    return ++gathering->read < SUMMARIES_LIMIT;
}

static int compare_dates(const void *a, const void *b)
{
    const struct report_summary *one = a, *other = b;
    int order = strcmp(one->date, other->date);
    return order ? order : strcmp(one->id, other->id);
}

void history_open(struct history *history, const char *artifacts, const char *own_id,
                  const char *workload)
{
    struct gathering gathering = { .history = history, .own_id = own_id, .workload = workload };
    struct archive_walk walk = { .visit = add_summary, .context = &gathering };
    struct error unused;
    *history = (struct history){ 0 };
    if (archive_walk(&walk, artifacts, &unused) || !history->count)
        return;
    qsort(history->summaries, history->count, sizeof(*history->summaries), compare_dates);
    size_t dropped = history->count > HISTORY_LIMIT ? history->count - HISTORY_LIMIT : 0;
    for (size_t i = 0; i < dropped; i++)
        report_summary_release(&history->summaries[i]);
    memmove(history->summaries, history->summaries + dropped,
            (history->count - dropped) * sizeof(*history->summaries));
    history->count -= dropped;
    history->earlier = calloc(history->count, sizeof(*history->earlier));
    for (size_t i = 0; history->earlier && i < history->count; i++) {
        const struct report_summary *summary = &history->summaries[i];
        history->earlier[i] = (struct report_earlier){ summary->id, summary->date, summary->outcome,
                                                       summary->root_cause,
                                                       summary->root_cause_es };
    }
}

void history_release(struct history *history)
{
    for (size_t i = 0; i < history->count; i++)
        report_summary_release(&history->summaries[i]);
    free(history->summaries);
    free(history->earlier);
    *history = (struct history){ 0 };
}
