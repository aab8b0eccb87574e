/* archive_walk.c - see archive.h: folders and files of audits, opened without following links. */
#define _DEFAULT_SOURCE /* dirfd, d_name */
#include "campaign/archive.h"

#include "campaign/files.h"
#include "report/earlier.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* Entries of one folder that are looked at: a folder filled with strangers must not hold us up. */
#define ENTRY_LIMIT 100000u
/* state.json has a few kilobytes, most of them the prompt. */
#define STATE_LIMIT_BYTES ((uint64_t)4 << 20)

/* ---- Names ---------------------------------------------------------------------------------- */

/* '0' of the pattern stands for a digit, 'x' for a hexadecimal one. */
static bool fits(const char *name, const char *pattern)
{
    size_t i;
    for (i = 0; pattern[i] && name[i]; i++) {
        bool digit = name[i] >= '0' && name[i] <= '9';
        bool hex = digit || (name[i] >= 'a' && name[i] <= 'f');
        if (pattern[i] == '0' ? !digit : pattern[i] == 'x' ? !hex : name[i] != pattern[i])
            return false;
    }
    return !pattern[i] && !name[i];
}

bool archive_is_day(const char *name)
{
    return fits(name, "0000-00-00");
}

bool archive_is_id(const char *name)
{
    return fits(name, "00000000-000000-xxxx");
}

/* ---- Folders -------------------------------------------------------------------------------- */

struct walking {
    struct archive_walk *walk;
    uint32_t visited, limit;
    bool over;
};

/* Takes the descriptor, which may be -1. */
static DIR *list_of(int descriptor)
{
    DIR *list = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (!list && descriptor >= 0)
        close(descriptor);
    return list;
}

static void visit_day(struct walking *walking, int artifacts, const char *day)
{
    DIR *list = list_of(openat(artifacts, day, FOLDER_FLAGS));
    const struct dirent *entry;
    for (uint32_t i = 0; list && !walking->over && (entry = readdir(list)) != NULL; i++) {
        bool is_id = archive_is_id(entry->d_name);
        if (i == ENTRY_LIMIT || (is_id && walking->visited == walking->limit)) {
            walking->walk->cut = walking->over = true;
            break;
        }
        int self = is_id ? openat(dirfd(list), entry->d_name, FOLDER_FLAGS) : -1;
        if (self < 0)
            continue;
        struct archive_folder folder = { dirfd(list), self, day, entry->d_name };
        walking->visited++;
        walking->over = !walking->walk->visit(walking->walk->context, &folder);
        close(self);
    }
    if (list)
        closedir(list);
}

enum status archive_walk(struct archive_walk *walk, const char *artifacts, struct error *err)
{
    struct walking walking = { .walk = walk,
                               .limit = walk->folder_limit ? walk->folder_limit
                                                           : ARCHIVE_FOLDER_LIMIT };
    int descriptor = open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    walk->cut = false;
    if (descriptor < 0 && errno == ENOENT)
        return STATUS_OK;
    DIR *list = list_of(descriptor);
    if (!list)
        return error_set_os(err, errno, "%s: cannot read the folder of audits", artifacts);
    const struct dirent *entry;
    for (uint32_t i = 0; !walking.over && (entry = readdir(list)) != NULL; i++) {
        if (i == ENTRY_LIMIT) {
            walk->cut = true;
            break;
        }
        if (archive_is_day(entry->d_name))
            visit_day(&walking, dirfd(list), entry->d_name);
    }
    closedir(list);
    return STATUS_OK;
}

/* ---- Files ---------------------------------------------------------------------------------- */

static enum status read_whole(int file, uint64_t size, const char *name, struct text *text,
                              struct error *err)
{
    char block[65536];
    while (text->length < size) {
        size_t wanted = size - text->length < sizeof(block) ? (size_t)(size - text->length)
                                                            : sizeof(block);
        ssize_t count = read(file, block, wanted);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return error_set_os(err, errno, "%s: cannot read it", name);
        if (count == 0)
            break; /* it became shorter: what is there is not whole, which its parser says */
        text_add_bytes(text, block, (size_t)count);
    }
    return text->failed ? error_set(err, STATUS_NO_MEMORY, "%s: no memory to read it", name)
                        : STATUS_OK;
}

/* A regular file in the open folder, read rather than mapped: it may become shorter at any time. */
static enum status read_file(int folder, const char *file_name, const char *name, uint64_t limit,
                             struct text *text, struct error *err)
{
    struct stat info;
    int file = openat(folder, file_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return error_set_os(err, errno, "%s/%s: cannot open it%s", name, file_name,
                            errno == ELOOP ? " (it is a link)" : "");
    enum status status = STATUS_OK;
    if (fstat(file, &info) != 0 || !S_ISREG(info.st_mode))
        status = error_set(err, STATUS_BAD_FILE, "%s/%s: expected a regular file", name, file_name);
    else if ((uint64_t)info.st_size > limit)
        status = error_set(err, STATUS_LIMIT, "%s/%s: expected at most %llu bytes, found %llu",
                           name, file_name, (unsigned long long)limit,
                           (unsigned long long)info.st_size);
    if (!status)
        status = read_whole(file, (uint64_t)info.st_size, name, text, err);
    close(file);
    return status;
}

enum status archive_read_summary(int folder, const char *name, uint64_t limit_bytes,
                                 struct report_summary *ret_summary, struct error *err)
{
    struct text text;
    text_init(&text);
    enum status status = read_file(folder, "summary.json", name, limit_bytes, &text, err);
    if (!status)
        status = report_summary_parse(text_get(&text), text.length, "summary.json", ret_summary,
                                      err);
    text_release(&text);
    return status;
}

bool archive_is_complete(int folder)
{
    struct text text;
    struct error err;
    struct stat info;
    if (fstatat(folder, "state.json", &info, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT)
        return true;
    text_init(&text);
    json_t *state = NULL;
    if (!read_file(folder, "state.json", "", STATE_LIMIT_BYTES, &text, &err))
        state = json_loadb(text_get(&text), text.length, JSON_REJECT_DUPLICATES, NULL);
    bool complete = json_is_true(json_object_get(state, "complete"));
    json_decref(state);
    text_release(&text);
    return complete;
}
