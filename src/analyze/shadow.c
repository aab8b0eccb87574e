/* shadow.c - for every byte of every buffer, who touched it last: as intervals, so that what is
 * touched together costs one entry however large it is.
 *
 * An access is compared with the last write of each interval and, if it writes, against the last
 * read of each stream since: if those are ordered, so are all before them. What is covered by the
 * floor (order.c) can collide with nothing that is still to come: its touches are dropped, which
 * lets neighbours melt together again. Where there is no room the touches of an interval are
 * dropped early, and counted. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* Maximum for one buffer: searching and moving that many is still cheap. */
#define INTERVAL_LIMIT 4096u

static const struct touch untouched = { .stream = TOUCH_NONE };

bool shadow_init(struct shadow *shadow, uint64_t bytes, bool written)
{
    *shadow = (struct shadow){ 0 };
    if (bytes == 0)
        return false;
    shadow->intervals = malloc(sizeof(*shadow->intervals));
    if (!shadow->intervals)
        return false;
    shadow->capacity = shadow->count = 1;
    shadow->intervals[0] =
        (struct shadow_interval){ .end = bytes, .write = untouched, .written = written };
    return true;
}

void shadow_release(struct shadow *shadow)
{
    free(shadow->intervals);
    *shadow = (struct shadow){ 0 };
}

void shadow_forget(struct order *order, struct shadow *shadow)
{
    uint32_t gone = shadow->count - 1;
    uint64_t end = shadow->intervals[gone].end;
    shadow->intervals[0] =
        (struct shadow_interval){ .end = end, .write = untouched, .written = true };
    shadow->count = 1;
    order->interval_count -= min_u64(gone, order->interval_count);
}

void shadow_fill(struct shadow *shadow)
{
    for (uint32_t i = 0; i < shadow->count; i++)
        shadow->intervals[i].written = true;
}

/* ---- Cutting and melting -------------------------------------------------------------------- */

/* The interval that holds offset, which is inside the buffer. */
static uint32_t find_interval(const struct shadow *shadow, uint64_t offset)
{
    uint32_t low = 0, high = shadow->count - 1;
    while (low < high) {
        uint32_t middle = low + (high - low + 1) / 2;
        if (shadow->intervals[middle].start <= offset)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Makes an interval begin at offset, if there is room; returns the one that holds it. */
static uint32_t cut_at(struct order *order, struct shadow *shadow, uint64_t offset)
{
    uint32_t place = find_interval(shadow, offset);
    if (shadow->intervals[place].start == offset)
        return place;
    if (shadow->count >= INTERVAL_LIMIT || order->interval_count >= order->interval_limit)
        return place;
    if (shadow->count == shadow->capacity) {
        uint32_t capacity = shadow->capacity * 2;
        struct shadow_interval *larger = realloc(shadow->intervals, capacity * sizeof(*larger));
        if (!larger)
            return place;
        shadow->intervals = larger;
        shadow->capacity = capacity;
    }
    struct shadow_interval *interval = &shadow->intervals[place];
    memmove(interval + 1, interval, (shadow->count - place) * sizeof(*interval));
    shadow->count++;
    order->interval_count++;
    interval[0].end = offset;
    interval[1].start = offset;
    return place + 1;
}

static bool same_touch(const struct touch *a, const struct touch *b)
{
    return a->stream == b->stream && a->tick == b->tick && a->operand == b->operand;
}

static bool same_state(const struct shadow_interval *a, const struct shadow_interval *b)
{
    if (a->written != b->written || a->read_count != b->read_count ||
        !same_touch(&a->write, &b->write))
        return false;
    for (uint32_t i = 0; i < a->read_count; i++)
        if (!same_touch(&a->reads[i], &b->reads[i]))
            return false;
    return true;
}

/* Drops what can collide with nothing any more. */
static void settle(const struct order *order, struct shadow_interval *interval)
{
    if (interval->write.stream != TOUCH_NONE &&
        vclock_covers(&order->floor, interval->write.stream, interval->write.tick))
        interval->write = untouched;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < interval->read_count; i++)
        if (!vclock_covers(&order->floor, interval->reads[i].stream, interval->reads[i].tick))
            interval->reads[kept++] = interval->reads[i];
    interval->read_count = (uint8_t)kept;
}

/* Merges equal neighbours among [first - 1, last + 1]. */
static void melt(struct order *order, struct shadow *shadow, uint32_t first, uint32_t last)
{
    if (first > 0)
        first--;
    if (last + 1 < shadow->count)
        last++;
    for (uint32_t i = first; i <= last; i++)
        settle(order, &shadow->intervals[i]);
    uint32_t kept = first;
    for (uint32_t i = first + 1; i <= last; i++) {
        if (same_state(&shadow->intervals[kept], &shadow->intervals[i]))
            shadow->intervals[kept].end = shadow->intervals[i].end;
        else if (++kept != i)
            shadow->intervals[kept] = shadow->intervals[i];
    }
    uint32_t gone = last - kept;
    if (gone == 0)
        return;
    memmove(&shadow->intervals[kept + 1], &shadow->intervals[last + 1],
            (shadow->count - last - 1) * sizeof(*shadow->intervals));
    shadow->count -= gone;
    order->interval_count -= min_u64(gone, order->interval_count);
}

/* ---- Accesses ------------------------------------------------------------------------------- */

struct probe {
    struct analyzer *analyzer;
    const struct work *work;
    const struct event_access *access;
    const struct ledger_entry *entry;
    bool reported[CONFLICT_ABANDONED]
                 [2]; /* one of a kind is enough, a certain and a possible one */
};

static void tell(struct probe *probe, enum conflict_kind kind, const struct touch *earlier,
                 uint64_t start, uint64_t end)
{
    bool maybe = earlier && ((earlier->mode | probe->access->mode) & EVENT_MAYBE);
    if (probe->reported[kind][maybe])
        return;
    probe->reported[kind][maybe] = true;
    struct conflict conflict = { .kind = kind,
                                 .work = probe->work,
                                 .event = probe->work->event,
                                 .earlier = earlier ? *earlier : untouched,
                                 .access = probe->access,
                                 .entry = probe->entry,
                                 .start = probe->entry->address + start,
                                 .bytes = end - start };
    analyze_conflict(probe->analyzer, &conflict);
}

static bool unordered(const struct work *work, const struct touch *earlier)
{
    return earlier->stream != TOUCH_NONE && earlier->stream != work->stream &&
           !vclock_covers(work->clock, earlier->stream, earlier->tick);
}

static void note_read(struct order *order, struct shadow_interval *interval,
                      const struct touch *touch)
{
    for (uint32_t i = 0; i < interval->read_count; i++)
        if (interval->reads[i].stream == touch->stream) {
            interval->reads[i] = *touch;
            return;
        }
    if (interval->read_count == SHADOW_READER_LIMIT) {
        order->forgotten_accesses++;
        memmove(&interval->reads[0], &interval->reads[1],
                (SHADOW_READER_LIMIT - 1) * sizeof(*touch));
        interval->read_count--;
    }
    interval->reads[interval->read_count++] = *touch;
}

/* In a foreign program only copies say what they read. A copy within the device, or of rows with
 * gaps between them, is reported only if nothing at all was written there: programs move a buffer
 * that is filled in part. */
static void tell_unwritten(struct probe *probe, uint64_t start, uint64_t end, uint32_t first,
                           uint32_t last)
{
    const struct shadow *shadow = &probe->entry->shadow;
    uint64_t bytes = 0, from = end;
    for (uint32_t i = first; i < last; i++) {
        const struct shadow_interval *interval = &shadow->intervals[i];
        if (interval->written)
            continue;
        bytes += interval->end - interval->start;
        from = min_u64(from, interval->start);
    }
    bool whole = bytes == end - start;
    bool out = probe->work->event->kind == EVENT_COPY_OUT;
    if (bytes && (whole || (out && !(probe->access->mode & EVENT_MAYBE))))
        tell(probe, CONFLICT_UNWRITTEN, NULL, from, from + bytes);
}

void shadow_access(struct analyzer *analyzer, const struct work *work,
                   const struct event_access *access, struct ledger_entry *entry, bool writes)
{
    struct order *order = &analyzer->order;
    struct shadow *shadow = &entry->shadow;
    uint64_t start = access->address - entry->address;
    if (access->address < entry->address || start >= entry->bytes || access->bytes == 0 ||
        !shadow->count)
        return;
    uint64_t left = entry->bytes - start;
    uint64_t end = start + min_u64(access->bytes, left);
    struct touch touch = { .event_id = work->replay ? work->replay->id : work->event->id,
                           .tick = work->tick,
                           .node = work->node,
                           .stream = (uint8_t)work->stream,
                           .kind = work->event->kind,
                           .operand = access->operand,
                           .mode = access->mode };
    struct probe probe = { .analyzer = analyzer, .work = work, .access = access, .entry = entry };
    /* What a kernel may have done leaves what is certain in place: it is kept like a read. */
    bool maybe = (access->mode & EVENT_MAYBE) != 0;
    uint32_t first = cut_at(order, shadow, start);
    uint32_t last = end < entry->bytes ? cut_at(order, shadow, end) : shadow->count;
    if (last == first || (last < shadow->count && shadow->intervals[last].start < end))
        last++; /* no room to cut: the whole interval counts as touched */
    bool exact = shadow->intervals[first].start == start && shadow->intervals[last - 1].end == end;
    if (!exact)
        order->forgotten_accesses++;
    bool foreign = (work->event->flags & EVENT_FOREIGN) != 0;
    if (exact && foreign && !writes && event_is_copy(work->event->kind))
        tell_unwritten(&probe, start, end, first, last);
    for (uint32_t i = first; i < last; i++) {
        struct shadow_interval *interval = &shadow->intervals[i];
        uint64_t from = max_u64(interval->start, start);
        uint64_t to = min_u64(interval->end, end);
        /* An uncut interval also stands for bytes this access does not touch: no claims. */
        if (exact && unordered(work, &interval->write))
            tell(&probe, CONFLICT_UNORDERED, &interval->write, from, to);
        for (uint32_t j = 0; exact && j < interval->read_count; j++)
            if ((writes || (interval->reads[j].mode & EVENT_WRITE)) &&
                unordered(work, &interval->reads[j]))
                tell(&probe, CONFLICT_UNORDERED, &interval->reads[j], from, to);
        /* What is updated in place is read first; of the other ways to write, nothing is. */
        if (exact && !foreign && !interval->written &&
            (!writes || maybe || access->mode == EVENT_UPDATE))
            tell(&probe, CONFLICT_UNWRITTEN, NULL, from, to);
        if (!writes || maybe) {
            note_read(order, interval, &touch);
            interval->written = interval->written || (foreign && writes);
            continue;
        }
        interval->write = exact ? touch : untouched;
        interval->read_count = 0;
        interval->written = true;
    }
    melt(order, shadow, first, last - 1);
}

void shadow_destroy_check(struct analyzer *analyzer, const struct event *event,
                          const struct vclock *clock, const struct ledger_entry *entry)
{
    struct conflict conflict = { .kind = CONFLICT_FREED,
                                 .event = event,
                                 .earlier = untouched,
                                 .access = event->access_count ? &event->accesses[0] : NULL,
                                 .entry = entry };
    /* Report the call that was given last: a wait for it would have covered most of the others. */
    for (uint32_t i = 0; i < entry->shadow.count; i++) {
        const struct shadow_interval *interval = &entry->shadow.intervals[i];
        for (uint32_t j = 0; j <= interval->read_count; j++) {
            const struct touch *touch = j ? &interval->reads[j - 1] : &interval->write;
            if (touch->stream == TOUCH_NONE || vclock_covers(clock, touch->stream, touch->tick))
                continue;
            if (conflict.earlier.stream != TOUCH_NONE &&
                touch->event_id <= conflict.earlier.event_id)
                continue;
            conflict.earlier = *touch;
            conflict.start = entry->address + interval->start;
            conflict.bytes = interval->end - interval->start;
        }
    }
    if (conflict.earlier.stream != TOUCH_NONE)
        analyze_conflict(analyzer, &conflict);
}
