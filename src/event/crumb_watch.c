/* crumb_watch.c - see crumb_watch.h. */
#include "event/crumb_watch.h"

#include <stddef.h>

static bool changes(uint64_t *seen, const uint64_t *now)
{
    uint64_t value = __atomic_load_n(now, __ATOMIC_ACQUIRE);
    bool changed = value != *seen;
    *seen = value;
    return changed;
}

bool crumb_watch_look(struct crumb_watch *watch, const struct crumb_page *page, bool also_moved,
                      uint64_t now_ns)
{
    bool moved = changes(&watch->traps_seen, &page->trap_count);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++) {
        struct crumb_stream *seen = &watch->seen[i];
        bool entered = changes(&seen->entered, &page->streams[i].entered);
        bool finished = changes(&seen->finished, &page->streams[i].finished);
        bool node = changes(&seen->node, &page->streams[i].node);
        if (!entered && !finished && !node)
            continue;
        moved = true;
        watch->moved_ns = now_ns;
        watch->moved_stream = i;
    }
    stall_look(&watch->stall, moved || also_moved, now_ns);
    return moved || also_moved;
}

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}

void crumb_watch_note(const struct crumb_watch *watch, struct crumb_page *page)
{
    store(&page->watched_ns, watch->stall.looked_ns);
    store(&page->still_ns, watch->stall.still_ns);
    store(&page->moved_ns, watch->moved_ns);
    store(&page->moved_stream, watch->moved_stream);
}
