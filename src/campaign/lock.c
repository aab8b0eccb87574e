/* lock.c - see lock.h. */
#include "campaign/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

/* What the first reports' locked runner set, and the same for the other vendor. */
const char *const lock_environment[] = { "HIP_LAUNCH_BLOCKING=1",  "AMD_SERIALIZE_KERNEL=3",
                                         "AMD_SERIALIZE_COPY=3",   "HSA_ENABLE_SDMA=0",
                                         "CUDA_LAUNCH_BLOCKING=1", NULL };

/* ---- Devices -------------------------------------------------------------------------------- */

/* A short name for the device, the same whatever the binary. */
static enum status lock_path(const char *folder, const struct identity *identity,
                             char ret_path[FILES_PATH_BYTES], struct error *err)
{
    char text[256], hash[FILES_SHA256_TEXT_BYTES];
    int length = snprintf(text, sizeof(text), "%s\n%s", identity->device.kind,
                          identity->device.name);
    TRY(files_sha256_of(text, (size_t)length, hash, err));
    return files_join(ret_path, err, folder, "greta-audit-%s-%.12s.lock", identity->device.kind,
                      hash);
}

static void read_holder(int file, char *holder, size_t holder_bytes)
{
    ssize_t count = pread(file, holder, holder_bytes - 1, 0);
    holder[count > 0 ? count : 0] = '\0';
    holder[strspn(holder, "0123456789")] = '\0';
}

enum status device_lock_take(struct device_lock *lock, const char *folder,
                             const struct identity *identity, struct error *err)
{
    char path[FILES_PATH_BYTES], holder[32];
    lock->file = -1;
    TRY(lock_path(folder, identity, path, err));
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0)
        return error_set_os(err, errno, "cannot open the lock %s", path);
    if (flock(file, LOCK_EX | LOCK_NB) != 0) {
        int code = errno;
        read_holder(file, holder, sizeof(holder));
        close(file);
        if (code != EWOULDBLOCK)
            return error_set_os(err, code, "cannot lock %s", path);
        return error_set(err, STATUS_BUSY,
                         "%s: expected no other audit of this device, found one (process %s); wait "
                         "for it, or leave --locked out",
                         identity->device.name, holder[0] ? holder : "unknown");
    }
    int length = snprintf(holder, sizeof(holder), "%ld\n", (long)getpid());
    /* Only a courtesy for whoever comes second. */
    if (ftruncate(file, 0) != 0 || pwrite(file, holder, (size_t)length, 0) != length)
        errno = 0;
    lock->file = file;
    return STATUS_OK;
}

void device_lock_release(struct device_lock *lock)
{
    if (lock->file >= 0)
        close(lock->file);
    lock->file = -1;
}

/* ---- Folders -------------------------------------------------------------------------------- */

#define FOLDER_LOCK_NAME "lock"

/* The process whose lock keeps this one from being taken; 0: none. Asking takes no lock. */
static uint64_t holder_of(int file)
{
    struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
    bool held = fcntl(file, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    /* If the holder is on another machine that shares the folder, the number is -1. */
    return !held ? 0 : lock.l_pid > 0 ? (uint64_t)lock.l_pid : UINT64_MAX;
}

uint64_t folder_lock_holder(int folder)
{
    int file = openat(folder, FOLDER_LOCK_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return 0;
    uint64_t holder = holder_of(file);
    close(file);
    return holder;
}

enum status folder_lock_take_in(struct folder_lock *lock, int folder, const char *path,
                                struct error *err)
{
    struct flock wanted = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
    *lock = (struct folder_lock){ -1, -1 };
    int own = fcntl(folder, F_DUPFD_CLOEXEC, 0);
    int file = own < 0
                   ? -1
                   : openat(own, FOLDER_LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    int code = file < 0 || fcntl(file, F_SETLK, &wanted) != 0 ? errno : 0;
    if (code == 0) {
        *lock = (struct folder_lock){ own, file };
        return STATUS_OK;
    }
    uint64_t holder = file < 0 ? 0 : holder_of(file);
    if (file >= 0)
        close(file);
    if (own >= 0)
        close(own);
    if (file < 0 || (code != EACCES && code != EAGAIN))
        return error_set_os(err, code, "%s: cannot lock the folder", path);
    return error_set(err, STATUS_BUSY,
                     "%s: expected no other process to work in it, found one (process %llu); wait "
                     "for it",
                     path, (unsigned long long)holder);
}

enum status folder_lock_take(struct folder_lock *lock, const char *path, struct error *err)
{
    *lock = (struct folder_lock){ -1, -1 };
    int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return error_set_os(err, errno, "%s: cannot open the folder", path);
    enum status status = folder_lock_take_in(lock, folder, path, err);
    close(folder);
    return status;
}

void folder_lock_release(struct folder_lock *lock)
{
    if (lock->file < 0)
        return;
    unlinkat(lock->folder, FOLDER_LOCK_NAME, 0);
    close(lock->file);
    close(lock->folder);
    *lock = (struct folder_lock){ -1, -1 };
}

/* ---- Environment ---------------------------------------------------------------------------- */

static bool is_replaced(const char *variable)
{
    for (size_t i = 0; lock_environment[i]; i++) {
        size_t length = strcspn(lock_environment[i], "=") + 1;
        if (strncmp(variable, lock_environment[i], length) == 0)
            return true;
    }
    return false;
}

const char **lock_environment_join(const char *const *environment)
{
    size_t count = 0, kept = 0;
    while (environment[count])
        count++;
    const char **joined = calloc(count + COUNT_OF(lock_environment), sizeof(*joined));
    for (size_t i = 0; joined && i < count; i++)
        if (!is_replaced(environment[i]))
            joined[kept++] = environment[i];
    for (size_t i = 0; joined && lock_environment[i]; i++)
        joined[kept++] = lock_environment[i];
    return joined;
}
