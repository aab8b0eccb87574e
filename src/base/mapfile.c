/* mapfile.c - see mapfile.h. */
#define _DEFAULT_SOURCE /* madvise, pread */
#include "base/mapfile.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status map_descriptor(struct mapfile *map, int descriptor, const char *path,
                                  struct error *err)
{
    struct stat info;
    if (fstat(descriptor, &info) != 0)
        return error_set_os(err, errno, "%s: cannot read its size", path);
    if (S_ISDIR(info.st_mode))
        return error_set(err, STATUS_IO, "%s: expected a file, found a directory", path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, STATUS_IO,
                         "%s: expected a regular file, found a pipe, socket or device; copy it to "
                         "a file first",
                         path);
    map->size = (uint64_t)info.st_size;
    map->device = (uint64_t)info.st_dev;
    map->inode = (uint64_t)info.st_ino;
    if (map->size == 0)
        return STATUS_OK;
    if (map->size > SIZE_MAX)
        return error_set(err, STATUS_LIMIT, "%s: larger than this machine can map", path);
    void *data = mmap(NULL, (size_t)map->size, PROT_READ, MAP_SHARED, descriptor, 0);
    if (data == MAP_FAILED)
        return error_set_os(err, errno, "%s: cannot map it into memory", path);
    map->data = data;
    return STATUS_OK;
}

static enum status open_file(struct mapfile *map, const char *path, bool keep, struct error *err)
{
    *map = (struct mapfile){ 0 };
    /* O_NONBLOCK: opening a pipe without a writer must not hang; files do not mind. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return error_set_os(err, errno, "%s: cannot open it", path);
    enum status status = map_descriptor(map, descriptor, path, err);
    map->open = keep && !status;
    map->descriptor = descriptor;
    if (!map->open)
        close(descriptor);
    if (status)
        *map = (struct mapfile){ 0 };
    return status;
}

enum status mapfile_open(struct mapfile *map, const char *path, struct error *err)
{
    return open_file(map, path, false, err);
}

enum status mapfile_open_kept(struct mapfile *map, const char *path, struct error *err)
{
    return open_file(map, path, true, err);
}

void mapfile_release(struct mapfile *map)
{
    fault_unwatch(map->watched);
    if (map->data)
        munmap((void *)(uintptr_t)map->data, (size_t)map->size);
    if (map->open)
        close(map->descriptor);
    *map = (struct mapfile){ 0 };
}

enum status mapfile_read(const struct mapfile *map, uint64_t offset, void *target, uint64_t bytes,
                         struct error *err)
{
    uint8_t *at = target;
    ASSERT(offset <= map->size && bytes <= map->size - offset);
    if (!map->open && !fault_copy(target, map->data + offset, (size_t)bytes))
        return error_set(err, STATUS_IO, "%" PRIu64 " bytes at %" PRIu64 " are not there any more",
                         bytes, offset);
    while (map->open && bytes) {
        ssize_t got = pread(map->descriptor, at, (size_t)bytes, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_set_os(err, errno, "cannot read %" PRIu64 " bytes at %" PRIu64, bytes,
                                offset);
        if (got == 0)
            return error_set(err, STATUS_IO,
                             "expected %" PRIu64 " more bytes at %" PRIu64 ", found the file's end",
                             bytes, offset);
        at += got;
        offset += (uint64_t)got;
        bytes -= (uint64_t)got;
    }
    return STATUS_OK;
}

void mapfile_ahead(const struct mapfile *map, uint64_t offset, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    if (!map->data || bytes == 0 || bytes > map->size || offset > map->size - bytes)
        return;
    uint64_t first = offset / page * page;
    void *start = (void *)(uintptr_t)(map->data + first);
    unsigned char resident = 0;
    if (mincore(start, 1, &resident) == 0 && !(resident & 1))
        madvise(start, (size_t)(offset + bytes - first), MADV_WILLNEED);
}

void mapfile_drop(const struct mapfile *map, uint64_t offset, uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t first = (offset + page - 1) / page * page;
    uint64_t end = (offset + bytes) / page * page;
    if (map->data && end > first && end <= map->size)
        madvise((void *)(uintptr_t)(map->data + first), (size_t)(end - first), MADV_DONTNEED);
}

void mapfile_watch(struct mapfile *map)
{
    if (map->data && !map->watched)
        map->watched = fault_watch(map->data, (size_t)map->size);
}

enum status mapfile_check(const struct mapfile *map, const char *path, struct error *err)
{
    struct stat info;
    bool same = stat(path, &info) == 0 && (uint64_t)info.st_dev == map->device &&
                (uint64_t)info.st_ino == map->inode;
    /* The rest of the last page reads as zeros without a fault. */
    if (same && (uint64_t)info.st_size < map->size)
        return error_set(err, STATUS_IO,
                         "%s: it became shorter while it was read: expected %" PRIu64
                         " bytes, found %" PRIu64,
                         path, map->size, (uint64_t)info.st_size);
    if (fault_was_seen(map->watched))
        return error_set(err, STATUS_IO, "%s: a part of it could not be read any more", path);
    return STATUS_OK;
}
