/* kernel_fault.c - an illegal access on the device. The launch is named by the fault itself where
 * the backend knows it, else by the breadcrumbs: every stream that entered a launch and did not
 * finish it is a candidate, the likeliest being the one whose declared memory lies nearest to the
 * address. What is around the address comes from the ledger. */
#include "analyze/analyze_impl.h"

/* ---- Candidates ----------------------------------------------------------------------------- */

/* Launch of the stream that was begun and not finished; false if there is none. */
static bool unfinished(const struct analyzer *analyzer, uint32_t stream,
                       struct analyze_place *ret_place)
{
    const struct crumb_stream *crumbs = &analyzer->crumbs->streams[stream];
    uint64_t entered = crumb_entered(crumbs);
    if (entered == 0 || entered == crumb_finished(crumbs))
        return false;
    *ret_place = place_of_crumb(analyzer, crumbs);
    if (ret_place->stream_index == EVENT_NO_STREAM)
        ret_place->stream_index = stream;
    return true;
}

/* From the address to the nearest range the call declared. */
static uint64_t distance_of(const struct analyzer *analyzer, const struct analyze_place *place,
                            uint64_t address)
{
    const struct event *event = analyze_find_call(analyzer, place->event_id, place->node);
    uint64_t nearest = UINT64_MAX;
    for (uint32_t i = 0; event && i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        uint64_t apart = 0;
        if (address < access->address)
            apart = access->address - address;
        else if (address - access->address >= access->bytes)
            apart = address - access->address - access->bytes;
        if (apart < nearest)
            nearest = apart;
    }
    return nearest;
}

static void add_candidates(const struct analyzer *analyzer, struct finding *draft)
{
    uint64_t nearest = UINT64_MAX;
    for (uint32_t i = 0; analyzer->crumbs && i < CRUMB_STREAM_LIMIT; i++) {
        struct analyze_place place;
        if (!unfinished(analyzer, i, &place))
            continue;
        uint64_t apart = draft->near.known ? distance_of(analyzer, &place, draft->near.address)
                                           : UINT64_MAX;
        if (draft->candidate_count == 0 || apart < nearest) {
            draft->cause = place;
            nearest = apart;
        }
        if (draft->candidate_count < FINDING_CANDIDATE_LIMIT)
            draft->candidates[draft->candidate_count] = place;
        draft->candidate_count++;
    }
    if (draft->candidate_count > FINDING_CANDIDATE_LIMIT)
        draft->candidate_count = FINDING_CANDIDATE_LIMIT;
}

/* Of a foreign program: launches that nobody waited for before the fault. All but the last of many
 * are counted, not kept. */
static void add_window(const struct analyzer *analyzer, const struct event *fault,
                       struct finding *draft)
{
    const struct history *history = &analyzer->history;
    uint64_t last = history_lower(history, fault->id);
    for (uint64_t at = history_first(history); at < last; at++) {
        const struct event *event = &history_at(history, at)->event;
        const struct stream_state *stream = order_stream(&analyzer->order, event->stream_index);
        bool launch = (event->kind == EVENT_LAUNCH && !event_is_recorded(event)) ||
                      event->kind == EVENT_GRAPH_REPLAY;
        if (!launch || event->outcome != EVENT_DONE || (stream && event->id <= stream->waited_id))
            continue;
        uint32_t place = draft->candidate_count < FINDING_CANDIDATE_LIMIT
                             ? draft->candidate_count++
                             : FINDING_CANDIDATE_LIMIT - 1;
        draft->candidates[place] = place_of_event(analyzer, event);
    }
    if (draft->candidate_count)
        draft->cause = draft->candidates[0];
}

/* ---- Faults --------------------------------------------------------------------------------- */

static int32_t find_first(const struct analyzer *analyzer)
{
    for (size_t i = 0; i < analyzer->result.finding_count; i++)
        if (analyzer->result.findings[i].hypothesis == HYPOTHESIS_KERNEL_FAULT)
            return (int32_t)i;
    return -1;
}

/* Further away than this an address says nothing of an operand. */
#define NEAR_LIMIT (UINT64_C(1) << 20)

/* How many times 2^32 the address is off from a byte of the operand's buffer; 0: it is not, or by
 * more than an index that wrapped explains. */
static uint32_t wraps_of(const struct analyzer *analyzer, const struct event_access *access,
                         uint64_t address)
{
    const struct ledger_entry *entry = ledger_find_generation(
        &analyzer->ledger, access->buffer_index, access->generation);
    if (!entry)
        return 0;
    for (uint32_t wraps = 1; wraps <= FINDING_WRAP_LIMIT; wraps++) {
        uint64_t apart = (uint64_t)wraps << 32;
        if (address + apart - entry->address < entry->bytes ||
            address - apart - entry->address < entry->bytes)
            return wraps;
    }
    return 0;
}

/* The operand in which, or beside which, the address lies; else the one it misses by a multiple of
 * 2^32, the fewest times. */
static void name_operand(const struct analyzer *analyzer, struct finding *draft)
{
    const struct event *event = analyze_find_call(analyzer, draft->cause.event_id,
                                                  draft->cause.node);
    const struct event_access *nearest = NULL, *wrapped = NULL;
    uint64_t least = UINT64_MAX;
    uint32_t fewest = UINT32_MAX;
    for (uint32_t i = 0; event && draft->near.known && i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        uint64_t address = draft->near.address, apart = 0;
        uint32_t wraps = wraps_of(analyzer, access, address);
        if (address < access->address)
            apart = access->address - address;
        else if (address - access->address >= access->bytes)
            apart = address - access->address - access->bytes;
        if (apart < least) {
            least = apart;
            nearest = access;
        }
        if (wraps && wraps < fewest) {
            fewest = wraps;
            wrapped = access;
        }
    }
    const struct event_access *named = nearest && least <= NEAR_LIMIT ? nearest : wrapped;
    if (!named)
        return;
    place_set_access(analyzer, &draft->cause, named);
    const struct ledger_entry *entry = ledger_find_generation(
        &analyzer->ledger, named->buffer_index, named->generation);
    draft->expected = entry ? entry->address : 0;
    draft->found = entry ? entry->bytes : 0;
}

static void on_fault(struct analyzer *analyzer, const struct event *event)
{
    struct finding draft = finding_draft(HYPOTHESIS_KERNEL_FAULT, FINDING_DIRECT);
    if (event->found == 1)
        ledger_neighbourhood(&analyzer->ledger, event->host_address, &draft.near);
    if (event->cause_id) {
        draft.cause = place_of_fault(analyzer, event);
    } else {
        bool foreign = (event->flags & EVENT_FOREIGN) != 0;
        if (foreign)
            add_window(analyzer, event, &draft);
        else
            add_candidates(analyzer, &draft);
        if (draft.candidate_count == 0)
            draft.cause = place_of_event(analyzer, event);
        if (draft.candidate_count != 1) {
            draft.certainty = FINDING_POSSIBLE;
            finding_set_reason(&draft, draft.candidate_count == 0 ? REASON_NO_LAUNCH_KNOWN
                                       : foreign                  ? REASON_WINDOW
                                                                  : REASON_SEVERAL_STREAMS);
        }
    }
    name_operand(analyzer, &draft);
    draft.cause.address = draft.near.known ? draft.near.address : draft.cause.address;
    draft.seen = analyzer->first_failure;
    draft.order_id = draft.cause.event_id;
    /* On a lost device other streams may fault too: they are not the first. */
    if (analyzer->first_fault_id != event->id)
        draft.consequence_of = find_first(analyzer);
    finding_add(analyzer, &draft);
}

/* The first call that says the device is lost is where the fault was seen. */
static void on_failure(struct analyzer *analyzer, const struct event *event)
{
    if (analyzer->first_failure.event_id)
        return;
    analyzer->first_failure = place_of_wait(analyzer, event);
    for (size_t i = 0; i < analyzer->result.finding_count && !analyzer->warming; i++) {
        struct finding *finding = &analyzer->result.findings[i];
        /* A foreign call that used freed memory need not be what the fault is about. */
        bool faulted = finding->hypothesis == HYPOTHESIS_KERNEL_FAULT ||
                       (finding->hypothesis == HYPOTHESIS_USE_AFTER_FREE &&
                        !finding->cause.foreign);
        if (faulted && finding->seen.event_id == 0)
            finding->seen = analyzer->first_failure;
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
    if (event->cause_id)
        on_fault(analyzer, event);
    else if (!analyzer->unplaced_fault.id)
        analyzer->unplaced_fault = *event; /* the crumbs say more at the end */
}

static void on_work(struct analyzer *analyzer, const struct work *work)
{
    if (work->event->kind == EVENT_LAUNCH)
        analyze_count(analyzer, HYPOTHESIS_KERNEL_FAULT, 1, 1);
}

/* ---- The end -------------------------------------------------------------------------------- */

static const struct event *last_pending(const struct analyzer *analyzer)
{
    const struct history *history = &analyzer->history;
    for (uint64_t at = history->count; at > history_first(history); at--) {
        const struct event *event = &history_at(history, at - 1)->event;
        if (event->outcome == EVENT_PENDING)
            return event;
    }
    return NULL;
}

static bool is_explained(const struct analyzer *analyzer)
{
    for (size_t i = 0; i < analyzer->result.finding_count; i++)
        if (analyzer->result.findings[i].hypothesis == HYPOTHESIS_HANG)
            return true;
    return analyzer->first_fault_id != 0;
}

/* The process is gone, without a fault that was told: where was it? */
static void on_death(struct analyzer *analyzer)
{
    struct finding draft = finding_draft(HYPOTHESIS_KERNEL_FAULT, FINDING_POSSIBLE);
    const struct event *pending = last_pending(analyzer);
    add_candidates(analyzer, &draft);
    if (draft.candidate_count == 0 && !pending)
        return;
    if (draft.candidate_count == 0)
        draft.cause = place_of_event(analyzer, pending);
    if (pending)
        draft.seen = place_of_wait(analyzer, pending);
    finding_set_reason(&draft, draft.candidate_count == 0   ? REASON_DIED_IN_CALL
                               : draft.candidate_count == 1 ? REASON_DIED_INSIDE
                                                            : REASON_SEVERAL_STREAMS);
    finding_add(analyzer, &draft);
}

static void on_finish(struct analyzer *analyzer)
{
    if (analyzer->unplaced_fault.id)
        on_fault(analyzer, &analyzer->unplaced_fault);
    if (analyzer->process_dead && !is_explained(analyzer))
        on_death(analyzer);
    /* Died after the fault and before anybody was told: where the process waited. */
    const struct event *pending = last_pending(analyzer);
    for (size_t i = 0; i < analyzer->result.finding_count && pending; i++) {
        struct finding *finding = &analyzer->result.findings[i];
        if (finding->hypothesis == HYPOTHESIS_KERNEL_FAULT && finding->seen.event_id == 0 &&
            event_is_wait(pending->kind))
            finding->seen = place_of_wait(analyzer, pending);
    }
}

const struct hypothesis_detector detector_kernel_fault = {
    .info = { .slug = "kernel-fault",
              .level = AUDIT_GUARD,
              .exact = false,
              .title = { "Kernel fault", "Fallo de un kernel" },
              .detector = { "Breadcrumbs of every launch, the fault's address and the ledger of "
                            "memory; guard pages make small overruns fault.",
                            "Rastro de cada lanzamiento, la dirección del fallo y el registro de "
                            "memoria; las páginas de guarda hacen fallar los desbordes pequeños." },
              .unit = { "launches", "lanzamientos" },
              .advice = { "Look at the launch named as the cause, not at the call that reported "
                          "the error.",
                          "Mire el lanzamiento nombrado como causa, no la llamada que informó del "
                          "error." } },
    .event = on_event,
    .work = on_work,
    .finish = on_finish,
};
