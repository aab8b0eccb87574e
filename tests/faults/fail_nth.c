/* fail_nth.c - the sweep: which call fails, and what a run left. See fail_nth.h. */
#include "fail_nth.h"

#include "fail_nth_calls.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- Sites ---------------------------------------------------------------------------------- */

static struct site *find_site(const char *address, struct call call)
{
    for (size_t i = 0; i < state.site_count; i++)
        if (state.sites[i].address == address)
            return &state.sites[i];
    ASSERT(state.site_count < SITE_LIMIT);
    state.sites[state.site_count] = (struct site){ .address = address, .call = call };
    return &state.sites[state.site_count++];
}

bool fail_nth_must_fail(const char *address, const char *name, enum call_class class)
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

bool fail_nth_is_failing(const void *address, const char *name)
{
    return fail_nth_must_fail(address, name, CALL_DRIVER);
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

/* ---- Account of a run ------------------------------------------------------------------------ */

static size_t live_place(const void *pointer)
{
    /* Fibonacci hashing, to LIVE_LIMIT places. */
    size_t place = (size_t)(((uintptr_t)pointer >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 48);
    while (state.live[place % LIVE_LIMIT] && state.live[place % LIVE_LIMIT] != pointer)
        place++;
    return place % LIVE_LIMIT;
}

void *fail_nth_keep(void *pointer)
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
bool fail_nth_forget(void *pointer)
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

void fail_nth_count_mapped(int64_t bytes)
{
    pthread_mutex_lock(&state.lock);
    state.mapped_bytes += bytes;
    pthread_mutex_unlock(&state.lock);
}

void fail_nth_count_threads(int64_t count)
{
    pthread_mutex_lock(&state.lock);
    state.thread_count += count;
    pthread_mutex_unlock(&state.lock);
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
        fail_msg("%s, %s (%s): left %zu blocks of memory, %lld bytes mapped, %lld threads, %lld "
                 "descriptors",
                 name, words, status ? err.text : "done", state.live_count,
                 (long long)state.mapped_bytes, (long long)state.thread_count,
                 (long long)descriptor_count() - (long long)descriptors);
    return status;
}

/* The statuses that a single failure may come out as, unless the scenario recovers. */
static bool may_come_out_as(enum call_class class, enum status status)
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
            !may_come_out_as(state.sites[site].call.class, status))
            fail_msg("%s, %s: reported as %s", name, failing_words(words, sizeof(words)),
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
