/* memory_limit.c - see memory_limit.h. */
#include "memory_limit.h"

#include "base/status.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

bool memory_limit_works(void)
{
#ifdef SANITIZED
    return false;
#else
    return true;
#endif
}

static uint64_t address_space_bytes(void)
{
    FILE *in = fopen("/proc/self/statm", "r");
    ASSERT(in != NULL);
    unsigned long long pages = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel's own number */
    ASSERT(fscanf(in, "%llu", &pages) == 1);
    fclose(in);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns the limit there was. */
static uint64_t set_limit(uint64_t bytes)
{
    struct rlimit limit;
    ASSERT(getrlimit(RLIMIT_AS, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    ASSERT(setrlimit(RLIMIT_AS, &limit) == 0);
    return before;
}

uint64_t memory_limit_begin(uint64_t growth_bytes)
{
    if (!memory_limit_works())
        return 0;
    /* Memory freed earlier must not be given out again unseen: large blocks are mapped, never kept,
     * and what the heap holds in reserve goes back. */
    mallopt(M_MMAP_THRESHOLD, 64 * 1024);
    malloc_trim(0);
    return set_limit(address_space_bytes() + growth_bytes);
}

void memory_limit_end(uint64_t limit_before)
{
    if (memory_limit_works())
        set_limit(limit_before);
}
