/* fail_nth_calls.c - the calls that the linker redirects here, by kind: each asks whether it must
 * fail, and keeps account of what it took. See fail_nth.h. */
#define _GNU_SOURCE /* open64 and the other names for large files */
#include "fail_nth_calls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* The call returns to the code under test: that address is its site. */
#define MUST_FAIL(name, class) fail_nth_must_fail(__builtin_return_address(0), name, class)

/* ---- Memory --------------------------------------------------------------------------------- */

/* The linker's names. */
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
void __real_free(void *pointer);
void __wrap_free(void *pointer);

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

void *__wrap_malloc(size_t bytes)
{
    return MUST_FAIL("malloc", CALL_MEMORY) ? no_memory() : fail_nth_keep(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return MUST_FAIL("calloc", CALL_MEMORY) ? no_memory()
                                            : fail_nth_keep(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (MUST_FAIL("realloc", CALL_MEMORY))
        return no_memory();
    fail_nth_forget(old);
    return fail_nth_keep(__real_realloc(old, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return MUST_FAIL("aligned_alloc", CALL_MEMORY)
               ? no_memory()
               : fail_nth_keep(__real_aligned_alloc(alignment, bytes));
}

char *__wrap_strdup(const char *text)
{
    return MUST_FAIL("strdup", CALL_MEMORY) ? no_memory() : fail_nth_keep(__real_strdup(text));
}

void __wrap_free(void *pointer)
{
    fail_nth_forget(pointer);
    __real_free(pointer);
}

/* ---- Mappings ------------------------------------------------------------------------------- */

void *__real_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __wrap_munmap(void *at, size_t bytes);
int __real_mprotect(void *at, size_t bytes, int protection);
int __wrap_mprotect(void *at, size_t bytes, int protection);

/* In whole pages, as the kernel counts. */
static int64_t in_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (int64_t)((bytes + page - 1) / page * page);
}

void *__wrap_mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    if (MUST_FAIL("mmap", CALL_MEMORY)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *found = __real_mmap64(at, bytes, protection, flags, file, offset);
    if (found != MAP_FAILED)
        fail_nth_count_mapped(in_pages(bytes));
    return found;
}

int __wrap_munmap(void *at, size_t bytes)
{
    int result = __real_munmap(at, bytes);
    if (result == 0)
        fail_nth_count_mapped(-in_pages(bytes));
    return result;
}

int __wrap_mprotect(void *at, size_t bytes, int protection)
{
    if (MUST_FAIL("mprotect", CALL_MEMORY)) {
        errno = ENOMEM;
        return -1;
    }
    return __real_mprotect(at, bytes, protection);
}

/* ---- Threads -------------------------------------------------------------------------------- */

typedef void *(*thread_body)(void *argument);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_body body,
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_body body,
                          void *argument);
int __real_pthread_join(pthread_t thread, void **result);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, thread_body body,
                          void *argument)
{
    if (MUST_FAIL("pthread_create", CALL_THREAD))
        return EAGAIN;
    int code = __real_pthread_create(thread, attributes, body, argument);
    if (code == 0)
        fail_nth_count_threads(1);
    return code;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    int code = __real_pthread_join(thread, result);
    if (code == 0)
        fail_nth_count_threads(-1);
    return code;
}

/* ---- Files ---------------------------------------------------------------------------------- */

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, mode_t mode);
FILE *__real_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode);
int __real_fstat64(int file, struct stat *info);
int __wrap_fstat64(int file, struct stat *info);
ssize_t __real_read(int file, void *bytes, size_t count);
ssize_t __wrap_read(int file, void *bytes, size_t count);
ssize_t __real_write(int file, const void *bytes, size_t count);
ssize_t __wrap_write(int file, const void *bytes, size_t count);
ssize_t __real_pwrite64(int file, const void *bytes, size_t count, off_t offset);
ssize_t __wrap_pwrite64(int file, const void *bytes, size_t count, off_t offset);
int __real_ftruncate64(int file, off_t bytes);
int __wrap_ftruncate64(int file, off_t bytes);
int __real_posix_fallocate64(int file, off_t offset, off_t bytes);
int __wrap_posix_fallocate64(int file, off_t offset, off_t bytes);
int __real_fsync(int file);
int __wrap_fsync(int file);
int __real_link(const char *from, const char *to);
int __wrap_link(const char *from, const char *to);
int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);

static int io_error(void)
{
    errno = EIO;
    return -1;
}

int __wrap_open64(const char *path, int flags, mode_t mode)
{
    return MUST_FAIL("open", CALL_FILE) ? io_error() : __real_open64(path, flags, mode);
}

FILE *__wrap_fopen64(const char *path, const char *mode)
{
    if (MUST_FAIL("fopen", CALL_FILE)) {
        errno = EIO;
        return NULL;
    }
    return __real_fopen64(path, mode);
}

int __wrap_fstat64(int file, struct stat *info)
{
    return MUST_FAIL("fstat", CALL_FILE) ? io_error() : __real_fstat64(file, info);
}

ssize_t __wrap_read(int file, void *bytes, size_t count)
{
    return MUST_FAIL("read", CALL_FILE) ? io_error() : __real_read(file, bytes, count);
}

ssize_t __wrap_write(int file, const void *bytes, size_t count)
{
    return MUST_FAIL("write", CALL_FILE) ? io_error() : __real_write(file, bytes, count);
}

ssize_t __wrap_pwrite64(int file, const void *bytes, size_t count, off_t offset)
{
    return MUST_FAIL("pwrite", CALL_FILE) ? io_error()
                                          : __real_pwrite64(file, bytes, count, offset);
}

int __wrap_ftruncate64(int file, off_t bytes)
{
    return MUST_FAIL("ftruncate", CALL_FILE) ? io_error() : __real_ftruncate64(file, bytes);
}

int __wrap_posix_fallocate64(int file, off_t offset, off_t bytes)
{
    return MUST_FAIL("posix_fallocate", CALL_FILE) ? ENOSPC
                                                   : __real_posix_fallocate64(file, offset, bytes);
}

int __wrap_fsync(int file)
{
    return MUST_FAIL("fsync", CALL_FILE) ? io_error() : __real_fsync(file);
}

int __wrap_link(const char *from, const char *to)
{
    return MUST_FAIL("link", CALL_FILE) ? io_error() : __real_link(from, to);
}

int __wrap_rename(const char *from, const char *to)
{
    return MUST_FAIL("rename", CALL_FILE) ? io_error() : __real_rename(from, to);
}

/* ---- Libraries ------------------------------------------------------------------------------ */

XXH64_state_t *__real_XXH64_createState(void);
XXH64_state_t *__wrap_XXH64_createState(void);
EVP_MD_CTX *__real_EVP_MD_CTX_new(void);
EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void);
int __real_EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine);
int __wrap_EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine);
int __real_EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, size_t count);
int __wrap_EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, size_t count);
int __real_EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *bytes);
int __wrap_EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *bytes);
void *__real_dlopen(const char *name, int flags);
void *__wrap_dlopen(const char *name, int flags);

XXH64_state_t *__wrap_XXH64_createState(void)
{
    return MUST_FAIL("XXH64_createState", CALL_LIBRARY) ? NULL : __real_XXH64_createState();
}

EVP_MD_CTX *__wrap_EVP_MD_CTX_new(void)
{
    return MUST_FAIL("EVP_MD_CTX_new", CALL_LIBRARY) ? NULL : __real_EVP_MD_CTX_new();
}

int __wrap_EVP_DigestInit_ex(EVP_MD_CTX *context, const EVP_MD *type, ENGINE *engine)
{
    return MUST_FAIL("EVP_DigestInit_ex", CALL_LIBRARY)
               ? 0
               : __real_EVP_DigestInit_ex(context, type, engine);
}

int __wrap_EVP_DigestUpdate(EVP_MD_CTX *context, const void *bytes, size_t count)
{
    return MUST_FAIL("EVP_DigestUpdate", CALL_LIBRARY)
               ? 0
               : __real_EVP_DigestUpdate(context, bytes, count);
}

int __wrap_EVP_DigestFinal_ex(EVP_MD_CTX *context, unsigned char *digest, unsigned *bytes)
{
    return MUST_FAIL("EVP_DigestFinal_ex", CALL_LIBRARY)
               ? 0
               : __real_EVP_DigestFinal_ex(context, digest, bytes);
}

void *__wrap_dlopen(const char *name, int flags)
{
    return MUST_FAIL("dlopen", CALL_LIBRARY) ? NULL : __real_dlopen(name, flags);
}
