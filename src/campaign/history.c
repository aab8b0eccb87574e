/* history.c - earlier audits in the artifacts folder: artifacts/DATE/ID/summary.json. */
#include "campaign/compare.h"

#include "base/array.h"
#include "campaign/files.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

/* A report that lists more is not read. The newest are kept. */
#define HISTORY_LIMIT 20u

struct folders {
    struct history *history;
    size_t capacity;
    const char *own_id;
};

static void add_summary(struct folders *folders, const char *path)
{
    struct history *history = folders->history;
    struct report_summary summary;
    struct error unused;
    if (report_summary_read(path, &summary, &unused))
        return; /* damaged, or of a killed audit: no part of the diagnosis */
    struct report_summary *larger = NULL;
    if (strcmp(summary.id, folders->own_id) != 0)
        larger = array_reserve(history->summaries, history->count, &folders->capacity,
                               sizeof(*larger));
    if (!larger) {
        report_summary_release(&summary);
        return;
    }
    history->summaries = larger;
    history->summaries[history->count++] = summary;
}

/* Names that begin with a dot are not ours. */
static void walk(struct folders *folders, const char *folder, int depth)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    struct error unused;
    char path[FILES_PATH_BYTES];
    while (dir && (entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.' || files_join(path, &unused, folder, "%s", entry->d_name))
            continue;
        if (depth > 0)
            walk(folders, path, depth - 1);
        else if (strcmp(entry->d_name, "summary.json") == 0)
            add_summary(folders, path);
    }
    if (dir)
        closedir(dir);
}

static int compare_dates(const void *a, const void *b)
{
    const struct report_summary *one = a, *other = b;
    int order = strcmp(one->date, other->date);
    return order ? order : strcmp(one->id, other->id);
}

void history_open(struct history *history, const char *artifacts, const char *own_id)
{
    struct folders folders = { history, 0, own_id };
    *history = (struct history){ 0 };
    walk(&folders, artifacts, 2);
    if (!history->count)
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
