/* stack.c - who called: the return addresses of the calling thread, as a number in the flight file.
 *
 * Unwinding costs microseconds, and programs make the same calls from the same places again and
 * again. So a stack that was unwound once is remembered with the places on the stack where its
 * return addresses stand; when a call comes at the same depth, and every one of those places still
 * holds the same address, it is the same stack. That costs a few dozen loads.
 *
 * A memory of each thread, never freed: threads end in ways that are not ours to see. */
#define _GNU_SOURCE /* dl_iterate_phdr, realpath */
#include "interpose/interpose_impl.h"

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unwind.h>

#define REMEMBERED 512u
#define MODULE_LIMIT 1024u
#define THREAD_MEMORY_LIMIT 256u
/* One table for all threads: equal stacks of two threads have one number. */
#define STACKS_KNOWN 16384u

struct remembered {
    const struct flight *flight;
    uint64_t epoch;
    uint64_t site, depth; /* the call, and how deep the stack was */
    uint32_t number, count;
    const uint64_t *places[FLIGHT_STACK_FRAMES];
    uint64_t frames[FLIGHT_STACK_FRAMES];
};

/* ---- Modules -------------------------------------------------------------------------------- */

/* Under stacks.lock. */
static struct {
    pthread_mutex_t lock;
    struct {
        uint64_t start, end;
        struct flight *flight;
    } modules[MODULE_LIMIT];
    size_t module_count;
    uint64_t epoch; /* what threads remembered before is void */
    struct {
        uint64_t hash;
        struct flight *flight;
        uint32_t number;
    } known[STACKS_KNOWN];
} stacks = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool module_known(const struct flight *flight, uint64_t address)
{
    for (size_t i = 0; i < stacks.module_count; i++)
        if (address - stacks.modules[i].start < stacks.modules[i].end - stacks.modules[i].start &&
            stacks.modules[i].flight == flight)
            return true;
    return false;
}

static int add_modules(struct dl_phdr_info *info, size_t size, void *context)
{
    struct flight *flight = context;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
            continue;
        struct flight_module module = { .start = info->dlpi_addr + header->p_vaddr,
                                        .bias = info->dlpi_addr };
        module.end = module.start + header->p_memsz;
        if (module_known(flight, module.start) || stacks.module_count == MODULE_LIMIT)
            continue;
        const char *path = info->dlpi_name && info->dlpi_name[0] ? info->dlpi_name
                                                                 : "/proc/self/exe";
        char real[4096];
        if (strcmp(path, "/proc/self/exe") == 0 && realpath(path, real))
            path = real;
        event_set_text(module.path, sizeof(module.path), path);
        flight_add_module(flight, &module);
        stacks.modules[stacks.module_count].start = module.start;
        stacks.modules[stacks.module_count].end = module.end;
        stacks.modules[stacks.module_count++].flight = flight;
    }
    return 0;
}

/* ---- Unwinding ------------------------------------------------------------------------------ */

struct walk {
    struct remembered *stack;
    bool exact; /* every return address was found on the stack */
};

static _Unwind_Reason_Code walk_frame(struct _Unwind_Context *context, void *argument)
{
    struct walk *walk = argument;
    struct remembered *stack = walk->stack;
    uint64_t address = (uint64_t)_Unwind_GetIP(context);
    if (stack->count == FLIGHT_STACK_FRAMES || address == 0)
        return _URC_END_OF_STACK;
#if defined(__x86_64__)
    const uint64_t *place = (const uint64_t *)(uintptr_t)(_Unwind_GetCFA(context) -
                                                          sizeof(uint64_t));
    /* The first frame is this file's own: its address is not on the stack. */
    if (stack->count && *place != address)
        walk->exact = false;
#else
    const uint64_t *place = NULL;
    walk->exact = false;
#endif
    stack->places[stack->count] = place;
    stack->frames[stack->count++] = address;
    return _URC_NO_REASON;
}

static uint64_t hash_of(const uint64_t *frames, size_t count)
{
    uint64_t hash = UINT64_C(0x9E3779B97F4A7C15);
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ frames[i]) * UINT64_C(0xff51afd7ed558ccd) + (hash >> 29);
    return hash ? hash : 1;
}

/* The stack's number; a new one if the stack is new. */
static uint32_t number_of(struct flight *flight, const uint64_t *frames, size_t count)
{
    uint64_t hash = hash_of(frames, count);
    pthread_mutex_lock(&stacks.lock);
    size_t place = (size_t)(hash % STACKS_KNOWN);
    uint32_t number = 0;
    for (size_t tries = 0; tries < 64; tries++, place = (place + 1) % STACKS_KNOWN) {
        if (stacks.known[place].number == 0)
            break;
        if (stacks.known[place].hash == hash && stacks.known[place].flight == flight) {
            number = stacks.known[place].number;
            break;
        }
    }
    if (number == 0) {
        for (size_t i = 0; i < count; i++)
            if (!module_known(flight, frames[i])) {
                dl_iterate_phdr(add_modules, flight);
                break;
            }
        number = flight_add_stack(flight, frames, count);
        if (number && stacks.known[place].number == 0) {
            stacks.known[place].hash = hash;
            stacks.known[place].flight = flight;
            stacks.known[place].number = number;
        }
    }
    pthread_mutex_unlock(&stacks.lock);
    return number;
}

/* ---- Remembering ---------------------------------------------------------------------------- */

static bool still_holds(const struct remembered *stack)
{
    for (uint32_t i = 1; i < stack->count; i++)
        if (*stack->places[i] != stack->frames[i])
            return false;
    return true;
}

static struct remembered *memory_of_thread(void)
{
    static uint32_t thread_count;
    static _Thread_local struct remembered *memory;
    static _Thread_local bool asked;
    if (!asked) {
        asked = true;
        if (__atomic_add_fetch(&thread_count, 1, __ATOMIC_RELAXED) <= THREAD_MEMORY_LIMIT)
            memory = calloc(REMEMBERED, sizeof(*memory));
    }
    return memory;
}

void stack_forget(const struct flight *flight)
{
    pthread_mutex_lock(&stacks.lock);
    for (size_t i = 0; i < STACKS_KNOWN; i++)
        if (stacks.known[i].flight == flight)
            stacks.known[i].flight = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < stacks.module_count; i++)
        if (stacks.modules[i].flight != flight)
            stacks.modules[kept++] = stacks.modules[i];
    stacks.module_count = kept;
    stacks.epoch++;
    pthread_mutex_unlock(&stacks.lock);
}

uint32_t stack_capture(struct interpose *interpose, uint64_t site)
{
    struct remembered *memory = memory_of_thread();
    uint64_t depth = (uint64_t)(uintptr_t)__builtin_frame_address(0);
    uint64_t key = (site ^ depth) * UINT64_C(0x9E3779B97F4A7C15);
    struct remembered *stack = memory ? &memory[key >> 32 & (REMEMBERED - 1)] : NULL;
    uint64_t epoch = __atomic_load_n(&stacks.epoch, __ATOMIC_RELAXED);
    if (stack && stack->number && stack->site == site && stack->depth == depth &&
        stack->flight == interpose->flight && stack->epoch == epoch && still_holds(stack))
        return stack->number;
    struct remembered fresh = {
        .flight = interpose->flight, .epoch = epoch, .site = site, .depth = depth
    };
    struct walk walk = { &fresh, true };
    _Unwind_Backtrace(walk_frame, &walk);
    if (fresh.count == 0)
        return 0;
    uint32_t own = fresh.count > 1 ? 1 : 0; /* a frame of this library */
    fresh.number = number_of(interpose->flight, fresh.frames + own, fresh.count - own);
    if (stack && walk.exact)
        *stack = fresh;
    return fresh.number;
}

uint32_t stack_number(struct interpose *interpose, const uint64_t *frames, size_t count)
{
    if (count > FLIGHT_STACK_FRAMES)
        count = FLIGHT_STACK_FRAMES;
    return count ? number_of(interpose->flight, frames, count) : 0;
}
