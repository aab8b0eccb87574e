/* fail_nth.c - see fail_nth.h. */
#define _GNU_SOURCE /* the names with 64 that large files have */
#include "fail_nth.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* What a failure must be told as. */
enum call_class { CALL_MEMORY, CALL_FILE, CALL_THREAD, CALL_LIBRARY, CALL_DRIVER };

struct call {
    const char *name;
    enum call_class class;
};

#define SITE_LIMIT 1024u
#define LIVE_LIMIT (1u << 16)

struct site {
    const char *address; /* the call returns to here */
    struct call call;
    uint32_t reached; /* in the run at hand */
    uint32_t most;    /* in any run */
    uint32_t failed;  /* occurrences that were made to fail already */
};

/* The lock guards all of it but `failing`, which is fixed while a run is on. */
static struct {
    pthread_mutex_t lock;
    bool counting; /* a run is on and not paused */
    struct site sites[SITE_LIMIT];
    size_t site_count;
    size_t failing;      /* index of the site; SITE_LIMIT: none */
    uint32_t occurrence; /* of it, from 1 */
    bool from_then_on;
    bool has_failed;
    /* What the run holds. */
    void *live[LIVE_LIMIT];
    size_t live_count;
    int64_t mapped_bytes;
    int64_t thread_count;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER, .failing = SITE_LIMIT };

/* ---- Who calls ------------------------------------------------------------------------------ */

static struct site *find_site(const char *address, struct call call)
{
    for (size_t i = 0; i < state.site_count; i++)
        if (state.sites[i].address == address)
            return &state.sites[i];
    ASSERT(state.site_count < SITE_LIMIT);
    state.sites[state.site_count] = (struct site){ .address = address, .call = call };
    return &state.sites[state.site_count++];
}

static bool must_fail(const char *address, const char *name, enum call_class class)
{
    bool fails = false;
    pthread_mutex_lock(&state.lock);
    if (state.counting) {
        struct site *site = find_site(address, (struct call){ name, class });
        site->reached++;
        if (site->reached > site->most)
            site->most = site->reached;
        if (state.failing < SITE_LIMIT) {
            bool chosen = site == &state.sites[state.failing] && site->reached == state.occurrence;
            fails = chosen || (state.has_failed && state.from_then_on);
            state.has_failed |= chosen;
        }
    }
    pthread_mutex_unlock(&state.lock);
    return fails;
}

#define MUST_FAIL(name, class) must_fail(__builtin_return_address(0), name, class)

bool fail_nth_is_failing(const void *address, const char *name)
{
    return must_fail(address, name, CALL_DRIVER);
}

void fail_nth_pause(void)
{
    pthread_mutex_lock(&state.lock);
    state.counting = false;
    pthread_mutex_unlock(&state.lock);
}

void fail_nth_resume(void)
{
    pthread_mutex_lock(&state.lock);
    state.counting = true;
    pthread_mutex_unlock(&state.lock);
}

/* ---- What is held --------------------------------------------------------------------------- */

static size_t live_place(const void *pointer)
{
    /* Fibonacci hashing, to LIVE_LIMIT places. */
    size_t place = (size_t)(((uintptr_t)pointer >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    while (state.live[place % LIVE_LIMIT] && state.live[place % LIVE_LIMIT] != pointer)
        place++;
    return place % LIVE_LIMIT;
}

static void *keep(void *pointer)
{
    pthread_mutex_lock(&state.lock);
    if (pointer && state.counting) {
        ASSERT(state.live_count < LIVE_LIMIT / 2);
        state.live[live_place(pointer)] = pointer;
        state.live_count++;
    }
    pthread_mutex_unlock(&state.lock);
    return pointer;
}

/* Closes the gap it leaves. Memory of others is not known here. */
static bool forget(void *pointer)
{
    pthread_mutex_lock(&state.lock);
    size_t place = live_place(pointer);
    bool known = pointer && state.live[place] == pointer;
    if (known) {
        state.live[place] = NULL;
        state.live_count--;
        for (size_t next = (place + 1) % LIVE_LIMIT; state.live[next];
             next = (next + 1) % LIVE_LIMIT) {
            void *moved = state.live[next];
            state.live[next] = NULL;
            state.live[live_place(moved)] = moved;
        }
    }
    pthread_mutex_unlock(&state.lock);
    return known;
}

static void count_mapped(int64_t bytes)
{
    pthread_mutex_lock(&state.lock);
    state.mapped_bytes += bytes;
    pthread_mutex_unlock(&state.lock);
}

static void count_threads(int64_t count)
{
    pthread_mutex_lock(&state.lock);
    state.thread_count += count;
    pthread_mutex_unlock(&state.lock);
}

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
    return MUST_FAIL("malloc", CALL_MEMORY) ? no_memory() : keep(__real_malloc(bytes));
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return MUST_FAIL("calloc", CALL_MEMORY) ? no_memory() : keep(__real_calloc(count, bytes));
}

void *__wrap_realloc(void *old, size_t bytes)
{
    if (MUST_FAIL("realloc", CALL_MEMORY))
        return no_memory();
    forget(old);
    return keep(__real_realloc(old, bytes));
}

void *__wrap_aligned_alloc(size_t alignment, size_t bytes)
{
    return MUST_FAIL("aligned_alloc", CALL_MEMORY) ? no_memory()
                                                   : keep(__real_aligned_alloc(alignment, bytes));
}

char *__wrap_strdup(const char *text)
{
    return MUST_FAIL("strdup", CALL_MEMORY) ? no_memory() : keep(__real_strdup(text));
}

void __wrap_free(void *pointer)
{
    forget(pointer);
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
        count_mapped(in_pages(bytes));
    return found;
}

int __wrap_munmap(void *at, size_t bytes)
{
    int result = __real_munmap(at, bytes);
    if (result == 0)
        count_mapped(-in_pages(bytes));
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
        count_threads(1);
    return code;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    int code = __real_pthread_join(thread, result);
    if (code == 0)
        count_threads(-1);
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

/* ---- Sweeping ------------------------------------------------------------------------------- */

static size_t descriptor_count(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    ASSERT(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Which call was failing, for messages. */
static const char *failing_words(char *buffer, size_t buffer_bytes)
{
    extern const char __executable_start;
    if (state.failing == SITE_LIMIT) {
        snprintf(buffer, buffer_bytes, "no call failing");
    } else {
        const struct site *site = &state.sites[state.failing];
        snprintf(buffer, buffer_bytes, "%s number %u at offset 0x%zx%s", site->call.name,
                 state.occurrence, (size_t)(site->address - &__executable_start),
                 state.from_then_on ? " and all after it" : "");
    }
    return buffer;
}

static enum status run(const char *name, fail_nth_scenario scenario, void *context)
{
    char words[160];
    struct error err = { .status = STATUS_OK };
    size_t descriptors = descriptor_count();
    for (size_t i = 0; i < state.site_count; i++)
        state.sites[i].reached = 0;
    state.has_failed = false;
    state.mapped_bytes = state.thread_count = 0;
    if (getenv("FAIL_NTH_TRACE"))
        fprintf(stderr, "%s: %s\n", name, failing_words(words, sizeof(words)));
    fail_nth_resume();
    enum status status = scenario(context, &err);
    fail_nth_pause();
    failing_words(words, sizeof(words));
    if (status && (err.status != status || err.text[0] == '\0'))
        fail_msg("%s, %s: returned %s, its error says %s: '%s'", name, words, status_name(status),
                 status_name(err.status), err.text);
    if (state.live_count || state.mapped_bytes || state.thread_count ||
        descriptor_count() != descriptors)
        fail_msg("%s, %s (%s): left %zu pieces of memory, %lld bytes mapped, %lld threads, %lld "
                 "descriptors",
                 name, words, status ? err.text : "done", state.live_count,
                 (long long)state.mapped_bytes, (long long)state.thread_count,
                 (long long)descriptor_count() - (long long)descriptors);
    return status;
}

/* What a single failure may come out as, if it is not got over. */
static bool is_told_as(enum call_class class, enum status status)
{
    switch (class) {
    case CALL_MEMORY:
        return status == STATUS_NO_MEMORY;
    case CALL_LIBRARY:
        return status == STATUS_NO_MEMORY || status == STATUS_NOT_FOUND ||
               status == STATUS_UNSUPPORTED;
    case CALL_DRIVER: /* its errors are many, and so are what they mean */
        return true;
    case CALL_FILE:
    case CALL_THREAD:
        /* What cannot be read is not known to be ours, and is not replaced. */
        return status == STATUS_IO || status == STATUS_NO_MEMORY || status == STATUS_EXISTS;
    }
    return false;
}

static void fail_one(const char *name, fail_nth_scenario scenario, void *context, size_t site,
                     uint32_t occurrence)
{
    char words[160];
    state.failing = site;
    state.occurrence = occurrence;
    for (int after = 0; after < 2; after++) {
        state.from_then_on = after;
        enum status status = run(name, scenario, context);
        /* Threads may take turns otherwise: then this call came too late, and others did. */
        if (!after && state.has_failed && status &&
            !is_told_as(state.sites[site].call.class, status))
            fail_msg("%s, %s: told as %s", name, failing_words(words, sizeof(words)),
                     status_name(status));
        state.sites[site].failed += state.has_failed && !after;
    }
}

void fail_nth_sweep(const char *name, uint32_t most, fail_nth_scenario scenario, void *context)
{
    /* Whatever a sweep that failed has left. */
    memset(state.live, 0, sizeof(state.live));
    state.live_count = 0;
    state.failing = SITE_LIMIT;
    for (size_t i = 0; i < state.site_count; i++)
        state.sites[i].most = 0;
    enum status status = run(name, scenario, context);
    if (status)
        fail_msg("%s: failed with no call failing: %s", name, status_name(status));
    /* Grows on the way. */
    for (size_t i = 0; i < state.site_count; i++)
        for (uint32_t n = 1; n <= state.sites[i].most && n <= most; n++)
            fail_one(name, scenario, context, i, n);
    state.failing = SITE_LIMIT;
}

void fail_nth_write_sites(void)
{
    extern const char __executable_start;
    const char *path = getenv("FAIL_NTH_SITES");
    FILE *out = path ? fopen(path, "w") : NULL;
    if (!out)
        return;
    for (size_t i = 0; i < state.site_count; i++)
        if (state.sites[i].failed)
            fprintf(out, "%zx %s\n", (size_t)(state.sites[i].address - &__executable_start),
                    state.sites[i].call.name);
    fclose(out);
}
