/* crumb_watch.h - whether the crumb page moves: the evidence that a device makes progress.
 *
 * A device that works enters and finishes launches; a wait that lasts while they go on is a long
 * wait, not a hang. One thread at a time. */
#ifndef GRETA_EVENT_CRUMB_WATCH_H
#define GRETA_EVENT_CRUMB_WATCH_H

#include "base/stall.h"
#include "event/crumb.h"

struct crumb_watch {
    struct crumb_stream seen[CRUMB_STREAM_LIMIT]; /* as the look before found them */
    uint64_t traps_seen;
    uint64_t moved_ns;     /* when a crumb was last seen to move; 0: never */
    uint32_t moved_stream; /* its stream */
    struct stall stall;    /* since a crumb, or what the caller saw, moved */
};

/* also_moved: the caller saw progress that leaves no crumb. True if it did, or if a crumb moved
 * since the look before. */
bool crumb_watch_look(struct crumb_watch *watch, const struct crumb_page *page, bool also_moved,
                      uint64_t now_ns);

/* Leaves on the page what was seen, for an analysis after the end of the process. */
void crumb_watch_note(const struct crumb_watch *watch, struct crumb_page *page);

#endif
