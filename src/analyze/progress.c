/* progress.c - how far the streams had got: what crumbs, completions and waits prove to have ended.
 *
 * Waits are looked at from the newest to the oldest, since each proves something about calls before
 * it: one pass follows marks through any number of streams. */
#include "analyze/analyze_impl.h"

#include <string.h>

/* Marks whose last recording is looked for at a time; of more, less is proved. */
#define WANTED_LIMIT 256u

/* A mark that was passed, whose recording is looked for. */
struct wanted_mark {
    uint16_t device_index;
    uint64_t object;
    uint64_t begin_ns; /* of the wait; a recording that had not ended by then may be a later one */
};

struct search {
    uint64_t *done; /* by place of the stream */
    struct wanted_mark wanted[WANTED_LIMIT];
    uint32_t wanted_count;
};

static void raise(uint64_t *id, uint64_t least)
{
    if (*id < least)
        *id = least;
}

static void want(struct search *search, const struct event *wait)
{
    for (uint32_t i = 0; i < search->wanted_count; i++)
        if (search->wanted[i].object == wait->mark.mark &&
            search->wanted[i].device_index == wait->device_index) {
            if (wait->begin_ns < search->wanted[i].begin_ns)
                search->wanted[i].begin_ns = wait->begin_ns;
            return;
        }
    if (search->wanted_count < WANTED_LIMIT)
        search->wanted[search->wanted_count++] =
            (struct wanted_mark){ wait->device_index, wait->mark.mark, wait->begin_ns };
}

static bool take_wanted(struct search *search, const struct event *recording)
{
    for (uint32_t i = 0; i < search->wanted_count; i++)
        if (search->wanted[i].object == recording->mark.mark &&
            search->wanted[i].device_index == recording->device_index &&
            recording->end_ns <= search->wanted[i].begin_ns) {
            search->wanted[i] = search->wanted[--search->wanted_count];
            return true;
        }
    return false;
}

/* Newest first: what a wait proves is about calls before it. */
static void look_back(const struct analyzer *analyzer, const struct event *event,
                      struct search *search)
{
    uint32_t stream = order_place_of(&analyzer->order, event);
    bool known = stream != NO_STREAM_PLACE;
    if (event->outcome != EVENT_DONE)
        return;
    switch (event->kind) {
    case EVENT_STREAM_SYNC:
    case EVENT_STREAM_DESTROY:
        if (known)
            raise(&search->done[stream], event->id);
        break;
    case EVENT_MARK_SYNC:
        want(search, event);
        break;
    case EVENT_TICKET_REDEEM: {
        const struct history_entry *copy = history_find(&analyzer->history, event->cause_id);
        uint32_t place = copy ? order_place_of(&analyzer->order, &copy->event) : NO_STREAM_PLACE;
        if (event->ticket.waited == 1 && place != NO_STREAM_PLACE)
            raise(&search->done[place], event->cause_id);
        break;
    }
    case EVENT_MARK_WAIT: /* passed, if work that comes after it in its stream has begun */
        if (known && search->done[stream] >= event->id)
            want(search, event);
        break;
    case EVENT_MARK_RECORD:
        if (known && take_wanted(search, event))
            raise(&search->done[stream], event->id);
        break;
    default:
        break;
    }
}

void progress_find(const struct analyzer *analyzer, uint64_t before_id,
                   struct progress *ret_progress)
{
    const struct history *history = &analyzer->history;
    struct search search = { .done = ret_progress->done };
    memset(ret_progress, 0, sizeof(*ret_progress));
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++) {
        const struct stream_state *stream = &analyzer->order.streams[i];
        const struct crumb_page *page = analyze_page(analyzer, analyzer->crumbs,
                                                     stream->device_index);
        uint64_t *done = &ret_progress->done[i];
        if (!stream->known)
            continue;
        raise(done, stream->completed_id);
        if (!page)
            continue;
        const struct crumb_stream *crumbs = &page->streams[stream->stream_index];
        uint64_t entered = crumb_entered(crumbs);
        ret_progress->entered[i] = entered;
        raise(done, crumb_finished(crumbs));
        raise(done, entered ? entered - 1 : 0);
    }
    for (uint64_t at = history_lower(history, before_id); at > history_first(history); at--)
        look_back(analyzer, &history_at(history, at - 1)->event, &search);
}
