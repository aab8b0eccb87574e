/* archive.c - the list of audits, which of them to remove, and removing one. */
#define _DEFAULT_SOURCE /* timegm */
#include "campaign/archive.h"

#include "base/array.h"
#include "base/size.h"
#include "campaign/files.h"
#include "campaign/lock.h"
#include "report/earlier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Summaries have tens of kilobytes. All of them together: what is past that is not read. */
#define SUMMARY_LIMIT_BYTES ((uint64_t)64 << 20)
#define SUMMARIES_LIMIT_BYTES ((uint64_t)1 << 30)
/* What is printed at an audit's end. */
#define VERDICT_LIMIT_BYTES 65536u

const char *campaign_archived_state_name(enum campaign_archived_state state)
{
    static const char *const names[] = {
        [CAMPAIGN_FINISHED] = "finished",
        [CAMPAIGN_UNFINISHED] = "unfinished",
        [CAMPAIGN_RUNNING] = "running",
        [CAMPAIGN_DAMAGED] = "damaged",
    };
    _Static_assert(COUNT_OF(names) == CAMPAIGN_ARCHIVED_STATE_COUNT, "every state has a name");
    ASSERT((unsigned)state < CAMPAIGN_ARCHIVED_STATE_COUNT);
    return names[state];
}

/* ---- Reading -------------------------------------------------------------------------------- */

struct reading {
    struct campaign_archive *archive;
    size_t capacity;
    uint64_t left_bytes; /* of summaries that may still be read */
    bool no_memory;
};

static void copy_text(char *field, size_t field_bytes, const char *text)
{
    event_set_text(field, field_bytes, text ? text : "");
}

/* "20261115-093012-4f2a" says when it was. */
static void set_date(struct campaign_archived *audit)
{
    const char *id = audit->id;
    snprintf(audit->date, sizeof(audit->date), "%.4s-%.2s-%.2s %.2s:%.2s:%.2s", id, id + 4, id + 6,
             id + 9, id + 11, id + 13);
}

static uint64_t summary_bytes(int folder)
{
    struct stat info;
    return fstatat(folder, "summary.json", &info, AT_SYMLINK_NOFOLLOW) == 0 && info.st_size > 0
               ? (uint64_t)info.st_size
               : 0;
}

static void read_summary(struct reading *reading, int folder, struct campaign_archived *audit)
{
    struct report_summary summary = { 0 };
    struct error err;
    uint64_t limit = min_u64(reading->left_bytes, SUMMARY_LIMIT_BYTES);
    uint64_t bytes = summary_bytes(folder);
    enum status status = archive_read_summary(folder, audit->id, limit, &summary, &err);
    reading->left_bytes -= min_u64(bytes, limit);
    if (!status && strcmp(summary.id, audit->id) != 0)
        status = error_set(&err, STATUS_BAD_FILE,
                           "summary.json: id: expected the folder's name, found another");
    if (status) {
        audit->state = CAMPAIGN_DAMAGED;
        copy_text(audit->problem, sizeof(audit->problem), err.text);
    } else {
        audit->state = summary.partial || !archive_is_complete(folder) ? CAMPAIGN_UNFINISHED
                                                                       : CAMPAIGN_FINISHED;
        audit->outcome = summary.outcome;
        copy_text(audit->device, sizeof(audit->device), summary.device);
        copy_text(audit->model, sizeof(audit->model), summary.model);
        copy_text(audit->root_cause, sizeof(audit->root_cause), summary.root_cause);
    }
    report_summary_release(&summary);
}

static bool add_audit(void *context, const struct archive_folder *folder)
{
    struct reading *reading = context;
    struct campaign_archive *archive = reading->archive;
    struct campaign_archived *larger = array_reserve(archive->audits, archive->count,
                                                     &reading->capacity, sizeof(*larger));
    if (!larger) {
        reading->no_memory = true;
        return false;
    }
    archive->audits = larger;
    struct campaign_archived *audit = &archive->audits[archive->count++];
    *audit = (struct campaign_archived){ .state = CAMPAIGN_DAMAGED };
    copy_text(audit->id, sizeof(audit->id), folder->id);
    copy_text(audit->day, sizeof(audit->day), folder->day);
    set_date(audit);
    read_summary(reading, folder->self, audit);
    audit->process = folder_lock_holder(folder->self);
    if (audit->process)
        audit->state = CAMPAIGN_RUNNING;
    audit->bytes = archive_bytes(folder->self);
    return true;
}

static int compare_ids(const void *a, const void *b)
{
    const struct campaign_archived *one = a, *other = b;
    int order = strcmp(one->id, other->id);
    return order ? order : strcmp(one->day, other->day);
}

static void mark_last(struct campaign_archive *archive, const char *artifacts)
{
    char id[CAMPAIGN_ID_BYTES];
    int folder = open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    archive_read_last(folder, id);
    close(folder);
    for (size_t i = 0; i < archive->count; i++)
        archive->audits[i].is_last = id[0] && strcmp(archive->audits[i].id, id) == 0;
}

enum status campaign_archive_open(const char *artifacts, struct campaign_archive *ret,
                                  struct error *err)
{
    struct campaign_archive archive = { 0 };
    struct reading reading = { .archive = &archive, .left_bytes = SUMMARIES_LIMIT_BYTES };
    struct archive_walk walk = { .visit = add_audit, .context = &reading };
    enum status status = archive_walk(&walk, artifacts, err);
    if (!status && reading.no_memory)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for a list of audits");
    if (status) {
        campaign_archive_release(&archive);
        return status;
    }
    if (archive.count)
        qsort(archive.audits, archive.count, sizeof(*archive.audits), compare_ids);
    archive.cut = walk.cut;
    mark_last(&archive, artifacts);
    *ret = archive;
    return STATUS_OK;
}

void campaign_archive_release(struct campaign_archive *archive)
{
    free(archive->audits);
    *archive = (struct campaign_archive){ 0 };
}

/* ---- Finding one ---------------------------------------------------------------------------- */

static const struct campaign_archived *find_latest(const struct campaign_archive *archive)
{
    for (size_t i = archive->count; i > 0; i--)
        if (archive->audits[i - 1].state == CAMPAIGN_FINISHED)
            return &archive->audits[i - 1];
    return NULL;
}

enum status campaign_archive_find(const struct campaign_archive *archive, const char *name,
                                  const struct campaign_archived **ret, struct error *err)
{
    const struct campaign_archived *found = NULL;
    bool latest = strcmp(name, "latest") == 0;
    char shown[64];
    if (latest)
        found = find_latest(archive);
    for (size_t i = 0; !latest && i < archive->count; i++) {
        if (!name[0] || strncmp(archive->audits[i].id, name, strlen(name)) != 0)
            continue;
        if (found)
            return error_set(err, STATUS_USAGE,
                             "%s: expected the beginning of one audit's id, found several (%s, "
                             "%s)",
                             name, found->id, archive->audits[i].id);
        found = &archive->audits[i];
    }
    if (!found)
        return error_set(err, STATUS_NOT_FOUND, "%s: %s; see greta audit list",
                         text_printable(text_view_of(name), shown, sizeof(shown)),
                         latest ? "no audit is finished" : "there is no such audit");
    *ret = found;
    return STATUS_OK;
}

/* The folder DAY/ID, open and never reached through a link; -1. *ret_day: DAY, to be closed. */
static int open_folder(const char *artifacts, const struct campaign_archived *audit, int *ret_day)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int root = open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int day = root < 0 ? -1 : openat(root, audit->day, flags);
    int self = day < 0 ? -1 : openat(day, audit->id, flags);
    int code = errno;
    if (root >= 0)
        close(root);
    if (self < 0 && day >= 0)
        close(day);
    *ret_day = self < 0 ? -1 : day;
    errno = code;
    return self;
}

void campaign_archive_verdict(const char *artifacts, const struct campaign_archived *audit,
                              struct text *text)
{
    int day;
    int folder = open_folder(artifacts, audit, &day);
    if (folder < 0)
        return;
    int file = openat(folder, FILES_VERDICT_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (file >= 0 && fstat(file, &info) == 0 && S_ISREG(info.st_mode)) {
        char block[4096];
        ssize_t count;
        while (text->length < VERDICT_LIMIT_BYTES && (count = read(file, block, sizeof(block))) > 0)
            text_add_bytes(text, block, (size_t)count);
    }
    if (file >= 0)
        close(file);
    close(folder);
    close(day);
}

/* ---- Removing ------------------------------------------------------------------------------- */

static int number_of(const char *digits, size_t count)
{
    int number = 0;
    for (size_t i = 0; i < count; i++)
        number = 10 * number + (digits[i] - '0');
    return number;
}

/* When it was begun, in seconds since 1970, by its id. */
static int64_t begun(const struct campaign_archived *audit)
{
    const char *id = audit->id;
    if (!archive_is_id(id))
        return INT64_MAX; /* never old */
    struct tm utc = { .tm_year = number_of(id, 4) - 1900,
                      .tm_mon = number_of(id + 4, 2) - 1,
                      .tm_mday = number_of(id + 6, 2),
                      .tm_hour = number_of(id + 9, 2),
                      .tm_min = number_of(id + 11, 2),
                      .tm_sec = number_of(id + 13, 2) };
    return (int64_t)timegm(&utc);
}

bool campaign_prune_wants(const struct campaign_prune *prune,
                          const struct campaign_archive *archive, size_t index, int64_t now)
{
    const struct campaign_archived *audit = &archive->audits[index];
    int64_t limit = now - (int64_t)prune->older_days * 86400;
    if (prune->older_days && begun(audit) >= limit)
        return false;
    if (audit->state == CAMPAIGN_UNFINISHED)
        return prune->unfinished;
    if (audit->state != CAMPAIGN_FINISHED || (audit->is_last && prune->keep != 0))
        return false;
    uint32_t newer = 0;
    for (size_t i = index + 1; i < archive->count; i++)
        newer += archive->audits[i].state == CAMPAIGN_FINISHED;
    return prune->keep == CAMPAIGN_KEEP_ALL ? prune->older_days != 0 : newer >= prune->keep;
}

/* A link to what was removed is of no use. */
static void remove_last(const char *artifacts, const char *id)
{
    char target[CAMPAIGN_ID_BYTES];
    int folder = open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return;
    archive_read_last(folder, target);
    if (strcmp(target, id) == 0)
        unlinkat(folder, ARCHIVE_LAST_NAME, 0);
    close(folder);
}

enum status campaign_archive_remove(const char *artifacts, const struct campaign_archived *audit,
                                    struct error *err)
{
    int day;
    int folder = open_folder(artifacts, audit, &day);
    struct folder_lock lock;
    if (folder < 0)
        return error_set_os(err, errno, "%s: cannot open its folder", audit->id);
    enum status status = folder_lock_take_in(&lock, folder, audit->id, err);
    /* It may have been resumed since it was listed. */
    if (!status && audit->state == CAMPAIGN_FINISHED && !archive_is_complete(folder))
        status = error_set(err, STATUS_BUSY, "%s: expected it to be finished, found that it is not",
                           audit->id);
    if (!status)
        status = archive_empty(folder, audit->id, err);
    if (!status && unlinkat(day, audit->id, AT_REMOVEDIR) != 0)
        status = error_set_os(err, errno, "%s: cannot remove its folder", audit->id);
    folder_lock_release(&lock);
    close(folder);
    close(day);
    if (status)
        return status;
    if (audit->is_last)
        remove_last(artifacts, audit->id);
    /* Refused where other audits of that day are left, which is right. */
    char path[FILES_PATH_BYTES];
    struct error unused;
    if (!files_join(path, &unused, artifacts, "%s", audit->day))
        rmdir(path);
    return STATUS_OK;
}
