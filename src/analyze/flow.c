/* flow.c - where bytes come from: data flow through the calls that are still remembered, by their
 * declared ranges. Asked only when there is a finding. */
#include "analyze/analyze_impl.h"

#define TAINT_LIMIT 64u

struct taint {
    uint64_t start, end;
    int32_t finding;
};

struct flow {
    const struct analyzer *analyzer;
    struct taint taints[TAINT_LIMIT];
    uint32_t count;
};

static uint64_t end_of(const struct event_access *access)
{
    return access->bytes > UINT64_MAX - access->address ? UINT64_MAX
                                                        : access->address + access->bytes;
}

/* Overlap without wrapping, whichever begins first. */
static bool touches(const struct taint *taint, const struct event_access *access)
{
    return access->address < taint->end && taint->start < end_of(access);
}

/* The finding whose bytes the call reads; -1: none. */
static int32_t find_read(const struct flow *flow, const struct event *event)
{
    int32_t found = -1;
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        for (uint32_t j = 0; access->mode & EVENT_READ && j < flow->count; j++)
            if (touches(&flow->taints[j], access) && (found < 0 || flow->taints[j].finding < found))
                found = flow->taints[j].finding;
    }
    return found;
}

/* What the call writes is tainted now, or clean. */
static void write_ranges(struct flow *flow, const struct event *event, int32_t finding)
{
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        if (!(access->mode & EVENT_WRITE) || access->bytes == 0)
            continue;
        uint32_t kept = 0;
        for (uint32_t j = 0; j < flow->count; j++) {
            const struct taint *taint = &flow->taints[j];
            bool covered = access->address <= taint->start && taint->end <= end_of(access);
            /* An update may leave what it does not change. */
            if (!covered || (access->mode & EVENT_READ && finding < 0))
                flow->taints[kept++] = *taint;
        }
        flow->count = kept;
        if (finding < 0)
            continue;
        if (flow->count == TAINT_LIMIT)
            flow->taints[0] = flow->taints[--flow->count];
        flow->taints[flow->count++] = (struct taint){ access->address, end_of(access), finding };
    }
}

static int32_t cause_of(const struct analyzer *analyzer, uint64_t event_id, uint32_t node)
{
    for (size_t i = 0; i < analyzer->result.finding_count; i++) {
        const struct finding *finding = &analyzer->result.findings[i];
        if (finding->cause.event_id == event_id && finding->cause.node == node)
            return (int32_t)i;
    }
    return -1;
}

static void pass(struct flow *flow, const struct event *event, uint64_t id, uint32_t node)
{
    int32_t finding = find_read(flow, event);
    if (finding < 0)
        finding = cause_of(flow->analyzer, id, node);
    write_ranges(flow, event, finding);
}

/* The launches of a replay, one after another; returns what the last one read, if anything. */
static int32_t pass_replay(struct flow *flow, const struct event *replay)
{
    const struct graph *graph = graphs_find(&flow->analyzer->graphs, replay->cause_id);
    int32_t read = -1;
    for (size_t i = 0; graph && i < graph->count; i++) {
        int32_t found = find_read(flow, &graph->records[i]);
        if (found >= 0 && read < 0)
            read = found;
        pass(flow, &graph->records[i], replay->id, (uint32_t)i + 1);
    }
    return read;
}

int32_t flow_origin(const struct analyzer *analyzer, uint64_t event_id)
{
    const struct analysis *result = &analyzer->result;
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < result->finding_count; i++)
        if (result->findings[i].cause.event_id < first && result->findings[i].cause.event_id)
            first = result->findings[i].cause.event_id;
    if (first >= event_id)
        return -1;
    struct flow flow = { .analyzer = analyzer };
    const struct history *history = &analyzer->history;
    for (uint64_t at = history_lower(history, first); at < history->count; at++) {
        const struct event *event = &history_at(history, at)->event;
        if (event->id > event_id)
            break;
        bool ran = event->outcome == EVENT_DONE || event->outcome == EVENT_PENDING;
        int32_t read = -1;
        if (ran && event->kind == EVENT_GRAPH_REPLAY)
            read = pass_replay(&flow, event);
        else if (ran && event_is_work(event->kind))
            read = find_read(&flow, event);
        if (event->id == event_id)
            return read;
        if (ran && event_is_work(event->kind))
            pass(&flow, event, event->id, 0);
    }
    return -1;
}

/* ---- Backward ------------------------------------------------------------------------------- */

/* The launch that wrote the range last before `position`, where that output of it was not scanned;
 * NULL: it was, or no launch wrote it. */
static const struct history_entry *
unscanned_writer(const struct history *history, uint64_t position, const struct event_access *range)
{
    struct taint wanted = { range->address, end_of(range), 0 };
    for (uint64_t at = position; at > history_first(history); at--) {
        const struct history_entry *entry = history_at(history, at - 1);
        const struct event *event = &entry->event;
        if (!event_is_work(event->kind) || event->outcome == EVENT_REFUSED)
            continue;
        for (uint32_t i = 0; i < event->access_count; i++) {
            const struct event_access *access = &event->accesses[i];
            if (!(access->mode & EVENT_WRITE) || !touches(&wanted, access))
                continue;
            bool scanned = entry->scanned_operands >> access->operand & 1;
            return scanned || event->kind != EVENT_LAUNCH ? NULL : entry;
        }
    }
    return NULL;
}

uint32_t flow_unscanned_writers(const struct analyzer *analyzer, const struct event *event,
                                const struct history_entry **ret_writers, uint32_t capacity)
{
    const struct history *history = &analyzer->history;
    uint64_t position = history_lower(history, event->id);
    uint32_t count = 0;
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct history_entry *writer = event->accesses[i].mode & EVENT_READ
                                                 ? unscanned_writer(history, position,
                                                                    &event->accesses[i])
                                                 : NULL;
        bool known = !writer;
        for (uint32_t j = 0; j < count && j < capacity && !known; j++)
            known = ret_writers[j] == writer;
        if (known)
            continue;
        if (count < capacity)
            ret_writers[count] = writer;
        count++;
    }
    return count;
}
