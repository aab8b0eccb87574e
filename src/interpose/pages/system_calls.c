/* system_calls.c - what hands memory of the program to the system: protection is lifted around it,
 * and what the system read or wrote there counts as an access of the program.
 *
 * The C library's own buffers never lie on a protected page. What is not wrapped here, such as a
 * program's own system call instructions, fails with EFAULT on protected memory; io_uring and the
 * kernel's asynchronous I/O switch the traps off where they are seen. */
/* Not all of GNU: there sockets' addresses have types of their own, and some of these are macros.
 */
#define _DEFAULT_SOURCE
#define _LARGEFILE64_SOURCE
#include "interpose/pages/pages.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#undef fread_unlocked
#undef fwrite_unlocked

#ifndef MREMAP_FIXED
#define MREMAP_FIXED 2
#endif

enum use { READS = 0, WRITES = 1 };

static bool is_idle(void)
{
    return atomic_load_explicit(&pages_active, memory_order_relaxed) == 0;
}

static uint64_t number(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

#define CALLER ((uint64_t)(uintptr_t)__builtin_return_address(0))

/* ---- The C library's own -------------------------------------------------------------------- */

#define ROWS(row) row(munmap) row(mprotect) row(mmap) row(mmap64) row(mremap) row(syscall)

enum {
#define BYTES(type, name, ...) NEXT_##name,
#define ITEMS(name, ...) NEXT_##name,
#define VECTOR(name, ...) NEXT_##name,
#define MESSAGE(name, ...) NEXT_##name,
#define ROW(name) NEXT_##name,
#include "interpose/pages/system_calls.def"
    ROWS(ROW) NEXT_COUNT
#undef BYTES
#undef ITEMS
#undef VECTOR
#undef MESSAGE
#undef ROW
};

static const char *const names[] = {
#define BYTES(type, name, ...) #name,
#define ITEMS(name, ...) #name,
#define VECTOR(name, ...) #name,
#define MESSAGE(name, ...) #name,
#define ROW(name) #name,
#include "interpose/pages/system_calls.def"
    ROWS(ROW)
#undef BYTES
#undef ITEMS
#undef VECTOR
#undef MESSAGE
#undef ROW
};
static _Atomic(void *) known[NEXT_COUNT];

/* The function that a wrapper stands before. */
static void *next_of(unsigned which)
{
    void *function = atomic_load_explicit(&known[which], memory_order_acquire);
    if (!function) {
        function = pages_next(names[which]);
        atomic_store_explicit(&known[which], function, memory_order_release);
    }
    return function;
}

/* At the start, because a signal handler may be the first to call one. */
__attribute__((constructor)) static void find_all(void)
{
    for (unsigned i = 0; i < NEXT_COUNT; i++)
        (void)next_of(i);
}

#define NEXT(type, name)                                                                           \
    type next;                                                                                     \
    *(void **)&next = next_of(NEXT_##name);

/* ---- Parts ---------------------------------------------------------------------------------- */

#define PART_LIMIT 16u

struct parts {
    struct pages_touch list[PART_LIMIT];
    uint64_t bytes[PART_LIMIT];
    size_t count;
};

static void begin_parts(struct parts *parts, const struct iovec *list, size_t count, enum use use)
{
    parts->count = 0;
    for (size_t i = 0; i < count && list; i++) {
        if (parts->count == PART_LIMIT) {
            pages_forget(number(list[i].iov_base), list[i].iov_len);
            continue;
        }
        parts->bytes[parts->count] = list[i].iov_len;
        pages_touch_begin(&parts->list[parts->count++], number(list[i].iov_base), list[i].iov_len,
                          use == WRITES);
    }
}

static void end_parts(const struct parts *parts, ssize_t result, uint64_t caller)
{
    uint64_t left = result > 0 ? (uint64_t)result : 0;
    for (size_t i = 0; i < parts->count; i++) {
        uint64_t used = parts->bytes[i] < left ? parts->bytes[i] : left;
        pages_touch_end(&parts->list[i], used, caller);
        left -= used;
    }
}

/* ---- Wrappers ------------------------------------------------------------------------------- */

#define BYTES(type, name, declared, names, address, count, use)                                    \
    EXPORT type name declared;                                                                     \
    EXPORT type name declared                                                                      \
    {                                                                                              \
        typedef type(*function) declared;                                                          \
        NEXT(function, name)                                                                       \
        if (is_idle())                                                                             \
            return next names;                                                                     \
        struct pages_touch touch;                                                                  \
        pages_touch_begin(&touch, number(address), count, (use) == WRITES);                        \
        type result = next names;                                                                  \
        int kept = errno;                                                                          \
        pages_touch_end(&touch, result > 0 ? (uint64_t)result : 0, CALLER);                        \
        errno = kept;                                                                              \
        return result;                                                                             \
    }
#define ITEMS(name, declared, names, address, size, count, use)                                    \
    EXPORT size_t name declared;                                                                   \
    EXPORT size_t name declared                                                                    \
    {                                                                                              \
        typedef size_t(*function) declared;                                                        \
        NEXT(function, name)                                                                       \
        size_t bytes;                                                                              \
        if (is_idle() || __builtin_mul_overflow(size, count, &bytes))                              \
            return next names;                                                                     \
        struct pages_touch touch;                                                                  \
        pages_touch_begin(&touch, number(address), bytes, (use) == WRITES);                        \
        size_t result = next names;                                                                \
        int kept = errno;                                                                          \
        pages_touch_end(&touch, result *(size), CALLER);                                           \
        errno = kept;                                                                              \
        return result;                                                                             \
    }
#define VECTOR(name, declared, names, list, count, use)                                            \
    EXPORT ssize_t name declared;                                                                  \
    EXPORT ssize_t name declared                                                                   \
    {                                                                                              \
        typedef ssize_t(*function) declared;                                                       \
        NEXT(function, name)                                                                       \
        if (is_idle() || (long)(count) <= 0)                                                       \
            return next names;                                                                     \
        struct parts touched;                                                                      \
        begin_parts(&touched, list, (size_t)(count), use);                                         \
        ssize_t result = next names;                                                               \
        int kept = errno;                                                                          \
        end_parts(&touched, result, CALLER);                                                       \
        errno = kept;                                                                              \
        return result;                                                                             \
    }
#define MESSAGE(name, declared, names, message, use)                                               \
    EXPORT ssize_t name declared;                                                                  \
    EXPORT ssize_t name declared                                                                   \
    {                                                                                              \
        typedef ssize_t(*function) declared;                                                       \
        NEXT(function, name)                                                                       \
        if (is_idle() || !(message))                                                               \
            return next names;                                                                     \
        struct parts touched;                                                                      \
        begin_parts(&touched, (message)->msg_iov, (message)->msg_iovlen, use);                     \
        ssize_t result = next names;                                                               \
        int kept = errno;                                                                          \
        end_parts(&touched, result, CALLER);                                                       \
        errno = kept;                                                                              \
        return result;                                                                             \
    }
#include "interpose/pages/system_calls.def"

/* ---- Mappings ------------------------------------------------------------------------------- */

/* The program changes or drops the mapping: whatever was there is no longer ours to change. */

EXPORT void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...);

EXPORT int munmap(void *address, size_t bytes)
{
    typedef int (*function)(void *, size_t);
    NEXT(function, munmap)
    pages_forget(number(address), bytes);
    return next(address, bytes);
}

EXPORT int mprotect(void *address, size_t bytes, int protection)
{
    typedef int (*function)(void *, size_t, int);
    NEXT(function, mprotect)
    pages_forget(number(address), bytes);
    return next(address, bytes, protection);
}

EXPORT void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t at)
{
    typedef void *(*function)(void *, size_t, int, int, int, off_t);
    NEXT(function, mmap)
    if (flags & MAP_FIXED)
        pages_forget(number(address), bytes);
    return next(address, bytes, protection, flags, file, at);
}

EXPORT void *mmap64(void *address, size_t bytes, int protection, int flags, int file, off64_t at)
{
    typedef void *(*function)(void *, size_t, int, int, int, off64_t);
    NEXT(function, mmap64)
    if (flags & MAP_FIXED)
        pages_forget(number(address), bytes);
    return next(address, bytes, protection, flags, file, at);
}

EXPORT void *mremap(void *address, size_t bytes, size_t new_bytes, int flags, ...)
{
    typedef void *(*function)(void *, size_t, size_t, int, ...);
    NEXT(function, mremap)
    va_list list;
    va_start(list, flags);
    void *wanted = flags & MREMAP_FIXED ? va_arg(list, void *) : NULL;
    va_end(list);
    pages_forget(number(address), bytes);
    if (wanted)
        pages_forget(number(wanted), new_bytes);
    return next(address, bytes, new_bytes, flags, wanted);
}

/* ---- System calls by number ----------------------------------------------------------------- */

/* Whatever an argument points to may be used, and as much of it as there is. */
EXPORT long syscall(long which, ...)
{
    typedef long (*function)(long, ...);
    NEXT(function, syscall)
    long arguments[6];
    va_list list;
    va_start(list, which);
    for (int i = 0; i < 6; i++)
        arguments[i] = va_arg(list, long);
    va_end(list);
    if (which == SYS_io_uring_setup)
        pages_switch_off(EVENT_TRAPS_RING);
    else if (which == SYS_io_setup)
        pages_switch_off(EVENT_TRAPS_ASYNC);
    for (int i = 0; i < 6 && !is_idle(); i++)
        pages_forget((uint64_t)arguments[i], 1);
    return next(which, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}
