/* archive_remove.c - what an audit's folder takes on the disk, and taking it away. Links are
 * removed and never followed. */
#define _DEFAULT_SOURCE /* dirfd, d_name */
#include "campaign/archive.h"

#include "campaign/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* An audit has run/ and a trace rerun/; what is deeper is not ours. */
#define DEPTH_LIMIT 4
#define ENTRY_LIMIT 100000u

/* A second view of the open folder, which readdir may move in. */
static DIR *list_of(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = again < 0 ? NULL : fdopendir(again);
    if (!list && again >= 0)
        close(again);
    return list;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* ---- Size ----------------------------------------------------------------------------------- */

static uint64_t bytes_below(int folder, int depth, uint32_t *left)
{
    uint64_t bytes = 0;
    DIR *list = list_of(folder);
    const struct dirent *entry;
    while (list && *left && (entry = readdir(list)) != NULL) {
        struct stat info;
        if (is_dots(entry->d_name) ||
            fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        (*left)--;
        bytes += (uint64_t)info.st_blocks * 512;
        int inner = S_ISDIR(info.st_mode) && depth > 0
                        ? openat(folder, entry->d_name,
                                 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
                        : -1;
        if (inner < 0)
            continue;
        bytes += bytes_below(inner, depth - 1, left);
        close(inner);
    }
    if (list)
        closedir(list);
    return bytes;
}

uint64_t archive_bytes(int folder)
{
    uint32_t left = ENTRY_LIMIT;
    return bytes_below(folder, DEPTH_LIMIT, &left);
}

/* ---- Removing ------------------------------------------------------------------------------- */

/* What makes a folder an audit goes last: a removal that was cut short can be done again. */
static bool makes_an_audit(const char *name)
{
    return strcmp(name, "summary.json") == 0 || strcmp(name, "state.json") == 0;
}

static enum status empty(int folder, const char *name, int depth, struct error *err);

static enum status remove_inner(int folder, const char *entry, const char *name, int depth,
                                struct error *err)
{
    struct stat outside, inside;
    int inner = openat(folder, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return error_set_os(err, errno, "%s/%s: cannot open the folder", name, entry);
    enum status status;
    if (fstat(folder, &outside) != 0 || fstat(inner, &inside) != 0 ||
        outside.st_dev != inside.st_dev)
        status = error_set(err, STATUS_REFUSED,
                           "%s/%s: expected a folder of the same file system, found another", name,
                           entry);
    else
        status = empty(inner, name, depth - 1, err);
    close(inner);
    if (!status && unlinkat(folder, entry, AT_REMOVEDIR) != 0)
        status = error_set_os(err, errno, "%s/%s: cannot remove the folder", name, entry);
    return status;
}

static enum status empty(int folder, const char *name, int depth, struct error *err)
{
    DIR *list = list_of(folder);
    const struct dirent *entry;
    enum status status = STATUS_OK;
    if (!list)
        return error_set_os(err, errno, "%s: cannot read the folder", name);
    while (!status && (entry = readdir(list)) != NULL) {
        struct stat info;
        if (is_dots(entry->d_name) || (depth == DEPTH_LIMIT && makes_an_audit(entry->d_name)))
            continue;
        if (fstatat(folder, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            status = error_set_os(err, errno, "%s/%s: cannot look at it", name, entry->d_name);
        else if (S_ISDIR(info.st_mode) && depth == 0)
            status = error_set(err, STATUS_REFUSED,
                               "%s: expected folders at most %d deep, found more; remove it by "
                               "hand if it is not needed",
                               name, DEPTH_LIMIT);
        else if (S_ISDIR(info.st_mode))
            status = remove_inner(folder, entry->d_name, name, depth, err);
        else if (unlinkat(folder, entry->d_name, 0) != 0)
            status = error_set_os(err, errno, "%s/%s: cannot remove it", name, entry->d_name);
    }
    closedir(list);
    return status;
}

enum status archive_empty(int folder, const char *name, struct error *err)
{
    static const char *const last[] = { "state.json", "summary.json" };
    TRY(empty(folder, name, DEPTH_LIMIT, err));
    for (size_t i = 0; i < COUNT_OF(last); i++)
        if (unlinkat(folder, last[i], 0) != 0 && errno != ENOENT)
            return error_set_os(err, errno, "%s/%s: cannot remove it", name, last[i]);
    return STATUS_OK;
}
