/* outfile.c - see outfile.h. */
#include "base/outfile.h"

#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Large enough that the cost of a write is nothing compared with the copy. */
#define BUFFER_BYTES ((size_t)4 << 20)

static enum status refuse_existing(const struct outfile *out, struct error *err)
{
    struct stat info, target;
    if (lstat(out->path, &info) != 0)
        return STATUS_OK;
    /* A dangling link exists too, and is not a regular file. */
    if (S_ISLNK(info.st_mode) && stat(out->path, &target) == 0)
        info = target;
    if (S_ISDIR(info.st_mode))
        return error_set(err, STATUS_EXISTS, "%s: is a directory; name a file", out->path);
    if (!S_ISREG(info.st_mode))
        return error_set(err, STATUS_EXISTS, "%s: exists and is not a regular file", out->path);
    if (!out->replace)
        return error_set(err, STATUS_EXISTS, "%s: exists already; use --force to replace it",
                         out->path);
    return STATUS_OK;
}

static enum status name_files(struct outfile *out, const char *path, struct error *err)
{
    size_t room = strlen(path) + 32;
    out->path = strdup(path);
    out->part_path = malloc(room);
    out->buffer = malloc(BUFFER_BYTES);
    if (!out->path || !out->part_path || !out->buffer)
        return error_set(err, STATUS_NO_MEMORY, "%s: no memory for its write buffer", path);
    snprintf(out->part_path, room, "%s.part-%ld", path, (long)getpid());
    return STATUS_OK;
}

static enum status reserve_space(struct outfile *out, uint64_t expected_bytes, struct error *err)
{
    if (expected_bytes == 0)
        return STATUS_OK;
    int code = posix_fallocate(out->descriptor, 0, (off_t)expected_bytes);
    /* Some file systems cannot reserve space, and a signal may interrupt it; then writing finds a
     * full disk. */
    if (code == 0 || code == EOPNOTSUPP || code == EINVAL || code == EINTR)
        return STATUS_OK;
    char size[TEXT_BYTES_CAPACITY];
    return error_set_os(err, code, "%s: cannot reserve %s", out->path,
                        text_bytes(expected_bytes, size));
}

static enum status open_as(struct outfile *out, const char *path, bool replace, mode_t mode,
                           uint64_t expected_bytes, struct error *err)
{
    *out = (struct outfile){ .descriptor = -1, .replace = replace };
    if (path[0] == '\0')
        return error_set(err, STATUS_USAGE, "expected the name of a file, found an empty one");
    enum status status = name_files(out, path, err);
    if (status)
        goto done;
    status = refuse_existing(out, err);
    if (status)
        goto done;
    out->descriptor = open(out->part_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (out->descriptor < 0) {
        status = error_set_os(err, errno, "%s: cannot create it", path);
        goto done;
    }
    status = reserve_space(out, expected_bytes, err);
done:
    if (status)
        outfile_release(out);
    return status;
}

enum status outfile_open(struct outfile *out, const char *path, bool replace,
                         uint64_t expected_bytes, struct error *err)
{
    return open_as(out, path, replace, 0666, expected_bytes, err);
}

enum status outfile_open_private(struct outfile *out, const char *path, bool replace,
                                 struct error *err)
{
    TRY(open_as(out, path, replace, OUTFILE_PRIVATE_MODE, 0, err));
    /* A file that a killed process left under that name keeps its old mode. */
    if (fchmod(out->descriptor, OUTFILE_PRIVATE_MODE) == 0)
        return STATUS_OK;
    enum status status = error_set_os(err, errno, "%s: cannot make it private", path);
    outfile_release(out);
    return status;
}

static enum status write_all(struct outfile *out, const uint8_t *bytes, size_t count,
                             struct error *err)
{
    while (count > 0) {
        ssize_t done = write(out->descriptor, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return error_set_os(err, errno, "%s: cannot write to it", out->path);
        bytes += done;
        count -= (size_t)done;
    }
    return STATUS_OK;
}

static enum status flush(struct outfile *out, struct error *err)
{
    TRY(write_all(out, out->buffer, out->buffered_bytes, err));
    out->buffered_bytes = 0;
    return STATUS_OK;
}

enum status outfile_write(struct outfile *out, const void *bytes, size_t count, struct error *err)
{
    ASSERT(out->descriptor >= 0);
    out->written_bytes += count;
    if (count > BUFFER_BYTES - out->buffered_bytes)
        TRY(flush(out, err));
    if (count >= BUFFER_BYTES)
        return write_all(out, bytes, count, err);
    if (count)
        memcpy(out->buffer + out->buffered_bytes, bytes, count);
    out->buffered_bytes += count;
    return STATUS_OK;
}

enum status outfile_patch(struct outfile *out, uint64_t offset, const void *bytes, size_t count,
                          struct error *err)
{
    ASSERT(out->descriptor >= 0 && offset <= out->written_bytes &&
           count <= out->written_bytes - offset);
    TRY(flush(out, err));
    const uint8_t *at = bytes;
    while (count > 0) {
        ssize_t done = pwrite(out->descriptor, at, count, (off_t)offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return error_set_os(err, errno, "%s: cannot write to it", out->path);
        at += done;
        offset += (uint64_t)done;
        count -= (size_t)done;
    }
    return STATUS_OK;
}

/* link fails if the name was taken meanwhile; rename would replace the other file. */
static enum status give_name(struct outfile *out, struct error *err)
{
    if (!out->replace) {
        if (link(out->part_path, out->path) == 0) {
            unlink(out->part_path);
            return STATUS_OK;
        }
        if (errno == EEXIST)
            return error_set(err, STATUS_EXISTS, "%s: exists already; use --force to replace it",
                             out->path);
        /* No hard links on this file system: fall through. */
    }
    if (rename(out->part_path, out->path) != 0)
        return error_set_os(err, errno, "%s: cannot rename %s to it", out->path, out->part_path);
    return STATUS_OK;
}

enum status outfile_commit(struct outfile *out, struct error *err)
{
    ASSERT(out->descriptor >= 0);
    enum status status = flush(out, err);
    if (status)
        goto done;
    /* Returns reserved space that was not used. */
    if (ftruncate(out->descriptor, (off_t)out->written_bytes) != 0 || fsync(out->descriptor) != 0) {
        status = error_set_os(err, errno, "%s: cannot complete it", out->path);
        goto done;
    }
    status = give_name(out, err);
    if (status)
        goto done;
    close(out->descriptor);
    out->descriptor = -1;
done:
    outfile_release(out);
    return status;
}

void outfile_release(struct outfile *out)
{
    if (out->descriptor >= 0 && out->part_path) {
        close(out->descriptor);
        unlink(out->part_path);
    }
    free(out->path);
    free(out->part_path);
    free(out->buffer);
    *out = (struct outfile){ .descriptor = -1 };
}
