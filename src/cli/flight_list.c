/* flight_list.c - see flight_list.h. */
#include "cli/flight_list.h"

#include "analyze/analyze.h"
#include "event/flight.h"
#include "ops/ops.h"
#include "report/report.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Names of recordings while they are written, and as audits keep them. */
static const char *const suffixes[] = { ".flight", ".flight" FLIGHT_PACKED_SUFFIX };
#define RECORDING_LIMIT 10000u
#define PATH_BYTES 4096

struct recording {
    char *name;             /* owned */
    uint64_t start_wall_ns; /* 0: it cannot be read */
    uint64_t bytes;
};

struct recordings {
    struct recording *items; /* owned */
    size_t count, room;
};

static void release(struct recordings *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].name);
    free(all->items);
}

/* ---- Finding them --------------------------------------------------------------------------- */

static bool has_suffix(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        size_t end = strlen(suffixes[i]);
        if (length > end && strcmp(name + length - end, suffixes[i]) == 0)
            return true;
    }
    return false;
}

static enum status add(struct recordings *all, const char *name, uint64_t bytes, struct error *err)
{
    if (all->count == RECORDING_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "expected at most %u recordings in a folder, found more", RECORDING_LIMIT);
    if (all->count == all->room) {
        size_t room = all->room ? 2 * all->room : 64;
        struct recording *items = realloc(all->items, room * sizeof(*items));
        if (!items)
            return error_set(err, STATUS_NO_MEMORY, "no memory for the list");
        all->items = items;
        all->room = room;
    }
    char *copy = strdup(name);
    if (!copy)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the list");
    all->items[all->count++] = (struct recording){ .name = copy, .bytes = bytes };
    return STATUS_OK;
}

static bool join(char path[PATH_BYTES], const char *folder, const char *name)
{
    return snprintf(path, PATH_BYTES, "%s/%s", folder, name) < PATH_BYTES;
}

static enum status find(struct recordings *all, const char *folder, struct error *err)
{
    char path[PATH_BYTES];
    struct stat info;
    DIR *open_folder = opendir(folder);
    if (!open_folder)
        return error_set_os(err, errno, "%s: cannot list recordings", folder);
    enum status status = STATUS_OK;
    for (struct dirent *entry; !status && (entry = readdir(open_folder)) != NULL;)
        if (has_suffix(entry->d_name) && join(path, folder, entry->d_name) &&
            stat(path, &info) == 0 && S_ISREG(info.st_mode))
            status = add(all, entry->d_name, (uint64_t)info.st_size, err);
    closedir(open_folder);
    return status;
}

static void read_start(struct recording *recording, const char *path)
{
    struct flight_reader *reader;
    struct error unused;
    if (flight_open(path, &reader, &unused))
        return;
    recording->start_wall_ns = flight_info(reader)->start_wall_ns;
    flight_reader_close(reader);
}

static int compare(const void *a, const void *b)
{
    const struct recording *left = a, *right = b;
    if (left->start_wall_ns != right->start_wall_ns)
        return left->start_wall_ns < right->start_wall_ns ? -1 : 1;
    return strcmp(left->name, right->name);
}

/* ---- Rows ----------------------------------------------------------------------------------- */

static void emit_start(struct emit *emit, uint64_t wall_ns)
{
    char when[32] = "unknown";
    time_t seconds = (time_t)(wall_ns / 1000000000u);
    struct tm parts;
    if (wall_ns && gmtime_r(&seconds, &parts))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &parts);
    emit_text(emit, "started", when);
}

static void emit_row(struct emit *emit, const struct recording *recording, const char *path)
{
    const struct analyze_options options = { .level = AUDIT_LEVEL_COUNT,
                                             .operand_name = ops_operand_name };
    struct analyzer *analyzer = NULL;
    struct error err;
    enum status status = analyze_flight(path, &options, &analyzer, &err);
    const struct analysis *analysis = status ? NULL : analyzer_result(analyzer);
    emit_object_begin(emit, NULL);
    emit_view(emit, "file", text_view_of(recording->name));
    emit_start(emit, recording->start_wall_ns);
    emit_view(emit, "device", text_view_of(analysis ? analysis->device : "-"));
    struct text ended;
    text_init(&ended);
    if (analysis)
        report_ending_words(analysis->ending, REPORT_ENGLISH, &ended);
    emit_text(emit, "ended", analysis ? text_get(&ended) : "unreadable");
    text_release(&ended);
    emit_index(emit, "findings",
               analysis ? (int64_t)(analysis->finding_count + analysis->findings_dropped) : -1);
    emit_bytes(emit, "size", recording->bytes);
    emit_view(emit, "command", text_view_of(analysis ? analysis->command : err.text));
    emit_object_end(emit);
    analyzer_destroy(analyzer);
}

enum status flight_list(struct emit *emit, const struct cli_invocation *invocation,
                        const char *folder, struct error *err)
{
    struct recordings all = { 0 };
    struct cli_progress progress;
    char path[PATH_BYTES];
    enum status status = find(&all, folder, err);
    for (size_t i = 0; i < all.count && !status; i++)
        if (join(path, folder, all.items[i].name))
            read_start(&all.items[i], path);
    if (all.count)
        qsort(all.items, all.count, sizeof(*all.items), compare);
    cli_progress_begin(&progress, invocation, "looking through recordings", "");
    if (!status) {
        emit_count(emit, "recordings_found", all.count);
        if (all.count || emit_is_json(emit))
            emit_list_begin(emit, "recordings");
    }
    for (size_t i = 0; i < all.count && !status; i++) {
        status = progress_step(&progress.progress, i, all.count, err);
        if (!status && join(path, folder, all.items[i].name))
            emit_row(emit, &all.items[i], path);
    }
    cli_progress_end(&progress);
    if (!status && (all.count || emit_is_json(emit)))
        emit_list_end(emit);
    release(&all);
    return status;
}
