/* kernel_fault.c - an illegal access on the device. The launch is the one it was caught in, where
 * the device caught it; else crumbs and waits say which launches may have made it (suspects.c).
 * What is around the address comes from the ledger. */
#include "analyze/analyze_impl.h"

/* ---- Faults --------------------------------------------------------------------------------- */

static int32_t find_first(const struct analyzer *analyzer, uint16_t device_index)
{
    for (size_t i = 0; i < analyzer->result.finding_count; i++)
        if (analyzer->result.findings[i].hypothesis == HYPOTHESIS_KERNEL_FAULT &&
            analyzer->result.findings[i].cause.device_index == device_index)
            return (int32_t)i;
    return -1;
}

/* How far the address is from the operand: 0 in what the launch may touch of it, 1 in the rest of
 * its buffer, and from 2 on outside. What lies past the declared bytes but still in the buffer is
 * not what an illegal access misses, so neighbours are compared by their buffers. */
static uint64_t operand_distance(const struct ledger_entry *entry,
                                 const struct event_access *access, uint64_t address)
{
    if (address - access->address < access->bytes)
        return 0;
    if (!entry)
        return access_distance(access, address) + 2;
    if (address < entry->address)
        return entry->address - address + 1;
    if (address - entry->address < entry->bytes)
        return 1;
    return address - entry->address - entry->bytes + 2;
}

/* The operand that the address lies in or next to, rather one that is written than one that is
 * read; else the one that it misses by the smallest multiple of 2^32. */
static void name_operand(const struct analyzer *analyzer, struct finding *draft)
{
    const struct event *event = analyze_find_call(analyzer, draft->cause.event_id,
                                                  draft->cause.node);
    const struct event_access *nearest = NULL, *wrapped = NULL;
    uint64_t least = UINT64_MAX, address = draft->near.address;
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; event && draft->near.known && i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        const struct ledger_entry *entry = ledger_find_generation(
            &analyzer->ledger, event->device_index, access->buffer_index, access->generation);
        uint64_t apart = operand_distance(entry, access, address);
        uint32_t wraps = access_wraps(analyzer, event->device_index, access, address);
        bool writes = (access->mode & EVENT_WRITE) && nearest && !(nearest->mode & EVENT_WRITE);
        if (apart < least || (apart == least && writes)) {
            least = apart;
            nearest = access;
        }
        if (wraps && wraps < fewest) {
            fewest = wraps;
            wrapped = access;
        }
    }
    const struct event_access *named = nearest && access_is_near(nearest, address) ? nearest
                                                                                   : wrapped;
    if (!named)
        return;
    place_set_access(analyzer, &draft->cause, named);
    const struct ledger_entry *entry = ledger_find_generation(
        &analyzer->ledger, draft->cause.device_index, named->buffer_index, named->generation);
    draft->expected = entry ? entry->address : 0;
    draft->found = entry ? entry->bytes : 0;
}

static void on_fault(struct analyzer *analyzer, const struct event *event,
                     const struct analyze_neighbourhood *near)
{
    struct finding draft = finding_draft(HYPOTHESIS_KERNEL_FAULT, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT; /* unless several are left, or none */
    draft.near = *near;
    if (event->flags & EVENT_CAUGHT)
        draft.cause = place_of_fault(analyzer, event);
    else if (!(event->flags & EVENT_FOREIGN))
        suspects_find(analyzer, event, &draft);
    else if (!suspects_by_hardware(analyzer, event, &draft))
        suspects_in_window(analyzer, event, &draft);
    if (!draft.cause.event_id)
        draft.cause = place_of_event(analyzer, event);
    name_operand(analyzer, &draft);
    hardware_add_pointers(analyzer, &draft);
    draft.cause.address = draft.near.known ? draft.near.address : draft.cause.address;
    draft.seen = analyzer->losses[event->device_index].first_failure;
    draft.order_id = draft.cause.event_id;
    /* On a lost device other streams may fault too: they are not the first. */
    if (analyzer->losses[event->device_index].fault_id != event->id)
        draft.consequence_of = find_first(analyzer, event->device_index);
    finding_add(analyzer, &draft);
}

/* The first call that says the device is lost is where the fault was seen. */
static void on_failure(struct analyzer *analyzer, const struct event *event)
{
    struct analyze_place *first = &analyzer->losses[event->device_index].first_failure;
    if (first->event_id)
        return;
    *first = place_of_wait(analyzer, event);
    for (size_t i = 0; i < analyzer->result.finding_count && !analyzer->warming; i++) {
        struct finding *finding = &analyzer->result.findings[i];
        /* A foreign call that used freed memory need not be what the fault is about. */
        bool faulted = finding->hypothesis == HYPOTHESIS_KERNEL_FAULT ||
                       (finding->hypothesis == HYPOTHESIS_USE_AFTER_FREE &&
                        !finding->cause.foreign);
        if (faulted && finding->seen.event_id == 0 &&
            finding->cause.device_index == event->device_index)
            finding->seen = *first;
    }
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    bool failed_wait = event_is_wait(event->kind) && event->outcome == EVENT_FAILED &&
                       !(event->flags & EVENT_FOREIGN);
    if (failed_wait || event_is_lost(event)) {
        analyzer->result.device_lost = true;
        on_failure(analyzer, event);
    }
    if (event->kind != EVENT_FAULT)
        return;
    struct analyze_neighbourhood near = { 0 };
    struct device_loss *loss = &analyzer->losses[event->device_index];
    if (event->fault.address_known != EVENT_ADDRESS_UNKNOWN)
        ledger_neighbourhood(&analyzer->ledger, event->device_index, event->fault.address, &near);
    if (event->flags & EVENT_CAUGHT) {
        on_fault(analyzer, event, &near);
    } else if (!loss->unplaced_fault.id) {
        loss->unplaced_fault = *event; /* the crumbs are whole at the end */
        loss->unplaced_near = near;
    }
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    if (work->event->kind == EVENT_LAUNCH)
        analyze_count(analyzer, HYPOTHESIS_KERNEL_FAULT, 1, 1);
}

/* ---- The end -------------------------------------------------------------------------------- */

static const struct event *last_pending(const struct analyzer *analyzer, uint16_t device_index)
{
    const struct history *history = &analyzer->history;
    for (uint64_t at = history->count; at > history_first(history); at--) {
        const struct event *event = &history_at(history, at - 1)->event;
        if (event->outcome == EVENT_PENDING && event->device_index == device_index)
            return event;
    }
    return NULL;
}

/* The program ended before a call reported the fault, but the hardware recorded it. */
static void add_unreported(struct analyzer *analyzer)
{
    static const struct analyze_neighbourhood nothing = { .known = false };
    const struct event fault = { .id = analyzer->last_id + 1,
                                 .kind = EVENT_FAULT,
                                 .flags = EVENT_FOREIGN,
                                 .stream_index = EVENT_NO_STREAM,
                                 .scope = { -1, -1, "" } };
    if (analyzer->hardware.grid_count && analyzer->hardware.launch)
        on_fault(analyzer, &fault, &nothing);
}

static void on_finish(struct analyzer *analyzer)
{
    bool reported = false;
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++) {
        const struct device_loss *loss = &analyzer->losses[i];
        if (loss->unplaced_fault.id)
            on_fault(analyzer, &loss->unplaced_fault, &loss->unplaced_near);
        reported = reported || loss->fault_id;
    }
    if (!reported)
        add_unreported(analyzer);
    /* The process may have died after the fault and before a call returned it: it surfaced where
     * the process waited. */
    for (size_t i = 0; i < analyzer->result.finding_count; i++) {
        struct finding *finding = &analyzer->result.findings[i];
        if (finding->hypothesis != HYPOTHESIS_KERNEL_FAULT || finding->seen.event_id != 0)
            continue;
        const struct event *pending = last_pending(analyzer, finding->cause.device_index);
        if (pending && event_is_wait(pending->kind))
            finding->seen = place_of_wait(analyzer, pending);
    }
}

const struct hypothesis_detector detector_kernel_fault = {
    .info = { .slug = "kernel-fault", .level = AUDIT_GUARD, .exact = false },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};
