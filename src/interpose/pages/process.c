/* process.c - what the process looks like: its mappings, its libraries, its stacks; and the ways
 * around what the program wraps itself. */
#define _GNU_SOURCE
#include "interpose/next_dlsym.h"
#include "interpose/pages/pages.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/syscall.h>
#include <unwind.h>

#define DRIVER_LIMIT 64u
/* A range in the middle of a mapping makes three of it. */
#define MAPPINGS_FOR_ONE 2u

/* ---- Ways around ---------------------------------------------------------------------------- */

long pages_system_call(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    (void)number, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
    return -38; /* ENOSYS */
#endif
}

void *pages_next(const char *name)
{
    interpose_dlsym look_up = interpose_next_dlsym();
    return look_up ? look_up(RTLD_NEXT, name) : NULL;
}

/* ---- Mappings ------------------------------------------------------------------------------- */

struct mapping {
    uint64_t start, end;
    bool readable, writable;
    const char *name; /* ended; "" */
};

/* Calls for each mapping of the process until a call returns false; under the lock, which guards
 * the buffer too. */
static void each_mapping(bool (*found)(void *context, const struct mapping *mapping), void *context)
{
    static char buffer[16384];
    size_t used = 0;
    long file = pages_system_call(SYS_openat, AT_FDCWD, (long)"/proc/self/maps",
                                  O_RDONLY | O_CLOEXEC, 0, 0, 0);
    bool goes_on = file >= 0;
    while (goes_on) {
        long count = pages_system_call(SYS_read, file, (long)(buffer + used),
                                       (long)(sizeof(buffer) - 1 - used), 0, 0, 0);
        if (count <= 0)
            break;
        used += (size_t)count;
        buffer[used] = '\0';
        char *line = buffer, *end;
        while (goes_on && (end = memchr(line, '\n', used - (size_t)(line - buffer))) != NULL) {
            struct mapping mapping = { 0, 0, false, false, "" };
            uint64_t *numbers[] = { &mapping.start, &mapping.end };
            *end = '\0';
            const char *at = line;
            for (int i = 0; i < 2; i++, at++)
                for (; (*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'f'); at++)
                    *numbers[i] = *numbers[i] << 4 |
                                  (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
            mapping.readable = at[0] == 'r';
            mapping.writable = at[0] && at[1] == 'w';
            const char *name = strpbrk(at, "/[");
            const char *special = strstr(at, "anon_inode:");
            mapping.name = special ? special : name ? name : "";
            goes_on = found(context, &mapping);
            line = end + 1;
        }
        used -= (size_t)(line - buffer);
        memmove(buffer, line, used);
        if (used == sizeof(buffer) - 1)
            used = 0; /* no line is that long */
    }
    if (file >= 0)
        pages_system_call(SYS_close, file, 0, 0, 0, 0, 0);
}

struct survey {
    size_t count;
    enum event_traps reason;
};

static bool look_at(void *context, const struct mapping *mapping)
{
    struct survey *survey = context;
    survey->count++;
    if (strstr(mapping->name, "[io_uring]"))
        survey->reason = EVENT_TRAPS_RING;
    else if (strstr(mapping->name, "/[aio]"))
        survey->reason = EVENT_TRAPS_ASYNC;
    return true;
}

static size_t mapping_limit(void)
{
    char text[24] = "";
    size_t limit = 0;
    long file = pages_system_call(SYS_openat, AT_FDCWD, (long)"/proc/sys/vm/max_map_count",
                                  O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (file >= 0) {
        pages_system_call(SYS_read, file, (long)text, sizeof(text) - 1, 0, 0, 0);
        pages_system_call(SYS_close, file, 0, 0, 0, 0, 0);
    }
    for (const char *at = text; *at >= '0' && *at <= '9' && limit < SIZE_MAX / 16; at++)
        limit = limit * 10 + (size_t)(*at - '0');
    return limit ? limit : 65530;
}

void pages_survey(size_t *ret_room, enum event_traps *ret_reason)
{
    struct survey survey = { 0, EVENT_TRAPS_ON };
    each_mapping(look_at, &survey);
    size_t limit = mapping_limit();
    /* Most of what is left stays the program's. */
    size_t left = survey.count < limit ? limit - survey.count : 0;
    size_t active = atomic_load(&pages_active);
    *ret_room = active + left / 4 / MAPPINGS_FOR_ONE;
    *ret_reason = survey.reason;
}

struct needed {
    uint64_t at, end;
};

static bool covers(void *context, const struct mapping *mapping)
{
    struct needed *needed = context;
    if (mapping->end <= needed->at)
        return true;
    if (mapping->start > needed->at || !mapping->readable || !mapping->writable)
        return false;
    needed->at = mapping->end;
    return needed->at < needed->end;
}

bool pages_is_writable(uint64_t address, uint64_t bytes)
{
    struct needed needed = { address, address + bytes };
    each_mapping(covers, &needed);
    return needed.at >= needed.end;
}

/* ---- Libraries ------------------------------------------------------------------------------ */

static struct {
    _Atomic(uint64_t) start, end;
} drivers[DRIVER_LIMIT];
static _Atomic(size_t) driver_count;

static bool is_driver_file(const char *path)
{
    static const char *const names[] = { "libcuda.so", "libnvidia-", "libamdhip64.so",
                                         "libhsa-runtime64.so" };
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

static int find_drivers(struct dl_phdr_info *info, size_t size, void *context)
{
    (void)size;
    (void)context;
    if (!info->dlpi_name || !is_driver_file(info->dlpi_name))
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uint64_t start = info->dlpi_addr + header->p_vaddr;
        size_t count = atomic_load(&driver_count);
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X) || pages_is_driver(start) ||
            count == DRIVER_LIMIT)
            continue;
        atomic_store(&drivers[count].start, start);
        atomic_store(&drivers[count].end, start + header->p_memsz);
        atomic_store(&driver_count, count + 1);
    }
    return 0;
}

void pages_find_drivers(void)
{
    dl_iterate_phdr(find_drivers, NULL);
}

bool pages_is_driver(uint64_t address)
{
    size_t count = atomic_load(&driver_count);
    for (size_t i = 0; i < count; i++)
        if (atomic_load(&drivers[i].start) <= address && address < atomic_load(&drivers[i].end))
            return true;
    return false;
}

/* ---- Stacks --------------------------------------------------------------------------------- */

struct walk {
    uint64_t address, *frames;
    size_t count;
};

static _Unwind_Reason_Code walk_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    uint64_t address = (uint64_t)_Unwind_GetIP(context);
    if (walk->count == TRAP_FRAME_LIMIT || address == 0)
        return _URC_END_OF_STACK;
    if (walk->count || address == walk->address)
        walk->frames[walk->count++] = address;
    return _URC_NO_REASON;
}

size_t pages_walk(uint64_t address, bool instruction, uint64_t frames[TRAP_FRAME_LIMIT])
{
    struct walk walk = { address, frames, 0 };
    _Unwind_Backtrace(walk_frame, &walk);
    if (walk.count == 0)
        frames[walk.count++] = address;
    frames[0] += instruction;
    return walk.count;
}
