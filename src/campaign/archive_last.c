/* archive_last.c - ARTIFACTS/last: a relative link to the newest finished audit, replaced by a
 * rename, so that a reader always finds one audit or another. */
#define _XOPEN_SOURCE 700 /* realpath */
#include "campaign/archive.h"

#include "campaign/files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The audit a link points to if it is one of ours, DATE/ID; "" otherwise. */
static void id_of(const char *target, char ret_id[CAMPAIGN_ID_BYTES])
{
    char day[CAMPAIGN_ID_BYTES];
    const char *slash = strchr(target, '/');
    ret_id[0] = '\0';
    if (!slash || (size_t)(slash - target) >= sizeof(day))
        return;
    snprintf(day, sizeof(day), "%.*s", (int)(slash - target), target);
    if (archive_is_day(day) && archive_is_id(slash + 1))
        snprintf(ret_id, CAMPAIGN_ID_BYTES, "%s", slash + 1);
}

void archive_read_last(int artifacts, char ret_id[CAMPAIGN_ID_BYTES])
{
    char target[64];
    ssize_t length = readlinkat(artifacts, ARCHIVE_LAST_NAME, target, sizeof(target) - 1);
    ret_id[0] = '\0';
    if (length <= 0)
        return;
    target[length] = '\0';
    id_of(target, ret_id);
}

/* Cuts the last name off path and returns it; NULL where there is none. */
static char *cut_name(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path)
        return NULL;
    *slash = '\0';
    return slash + 1;
}

static enum status replace_link(const char *artifacts, const char *target, struct error *err)
{
    char path[FILES_PATH_BYTES], fresh[FILES_PATH_BYTES];
    TRY(files_join(path, err, artifacts, ARCHIVE_LAST_NAME));
    TRY(files_join(fresh, err, artifacts, ".%s-%ld", ARCHIVE_LAST_NAME, (long)getpid()));
    unlink(fresh);
    if (symlink(target, fresh) != 0)
        return error_set_os(err, errno, "%s: cannot make the link to the newest audit", path);
    if (rename(fresh, path) == 0)
        return STATUS_OK;
    enum status status = error_set_os(err, errno, "%s: cannot replace the link", path);
    unlink(fresh);
    return status;
}

enum status archive_point_last(const char *folder, const char *id, bool *ret_done,
                               struct error *err)
{
    char artifacts[PATH_MAX], target[64], path[FILES_PATH_BYTES], before[64];
    char old_id[CAMPAIGN_ID_BYTES] = "";
    struct stat info;
    *ret_done = false;
    if (!realpath(folder, artifacts))
        return error_set_os(err, errno, "%s: cannot be found again", folder);
    const char *name = cut_name(artifacts), *day = name ? cut_name(artifacts) : NULL;
    if (!day || strcmp(name, id) != 0 || !archive_is_day(day) || !archive_is_id(id))
        return STATUS_OK; /* it was moved: it is in no archive */
    snprintf(target, sizeof(target), "%.16s/%.31s", day, id);
    TRY(files_join(path, err, artifacts, ARCHIVE_LAST_NAME));
    if (lstat(path, &info) == 0 && !S_ISLNK(info.st_mode))
        return error_set(err, STATUS_EXISTS,
                         "%s: expected a link to the newest audit or nothing, found a file or "
                         "folder; move it away",
                         path);
    ssize_t length = readlink(path, before, sizeof(before) - 1);
    if (length > 0) {
        before[length] = '\0';
        id_of(before, old_id);
    }
    /* An older audit that is finished later does not take its place. */
    if (old_id[0] && strcmp(old_id, id) > 0 && stat(path, &info) == 0)
        return STATUS_OK;
    TRY(replace_link(artifacts, target, err));
    *ret_done = true;
    return STATUS_OK;
}
