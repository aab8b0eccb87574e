/* finding.c - findings: drafted, kept once and counted, and put in order. */
#include "analyze/analyze_impl.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

struct finding finding_draft(enum hypothesis hypothesis, enum finding_certainty certainty)
{
    static const struct analyze_place nowhere = { .scope = { -1, -1, "" },
                                                  .stream_index = EVENT_NO_STREAM,
                                                  .operand = EVENT_NO_OPERAND };
    struct finding draft = { .hypothesis = hypothesis,
                             .certainty = certainty,
                             .cause = nowhere,
                             .other = nowhere,
                             .seen = nowhere,
                             .moved = nowhere,
                             .consequence_of = -1 };
    return draft;
}

bool finding_is_culprit(const struct finding *finding)
{
    return finding->certainty == FINDING_DIRECT && finding->attribution == FINDING_CULPRIT &&
           finding->candidate_count <= 1;
}

/* The call itself breaks a rule that was checked before it ran. */
struct finding finding_of_refusal(const struct analyzer *analyzer, enum hypothesis hypothesis,
                                  const struct event *event)
{
    struct finding draft = finding_draft(hypothesis, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_event(analyzer, event);
    draft.cause.operand = event->operand;
    const struct event_access *access = event_operand(event, event->operand);
    if (access)
        place_set_access(analyzer, &draft.cause, access);
    draft.check = event->check;
    draft.expected = event->expected;
    draft.found = event->found;
    return draft;
}

void finding_add_refusal(struct analyzer *analyzer, enum hypothesis hypothesis,
                         const struct event *event)
{
    struct finding draft = finding_of_refusal(analyzer, hypothesis, event);
    finding_add(analyzer, &draft);
}

void finding_add_conflict(struct analyzer *analyzer, enum hypothesis hypothesis,
                          const struct conflict *conflict)
{
    /* On a lost device nothing runs any more. */
    if (analyze_is_lost(analyzer, conflict->event))
        return;
    /* Both sides are known, and that nothing orders them: the pair is the violation. */
    struct finding draft = finding_draft(hypothesis, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_work(analyzer, conflict->work);
    place_set_access(analyzer, &draft.cause, conflict->access);
    draft.cause.address = conflict->start;
    draft.cause.bytes = conflict->bytes;
    draft.other = place_of_touch(analyzer, &conflict->earlier, conflict->entry, conflict->start,
                                 conflict->bytes);
    finding_weigh(analyzer, conflict, &draft);
    finding_add(analyzer, &draft);
}

static bool is_hidden(const struct analyzer *analyzer, uint32_t place)
{
    const struct stream_state *stream = order_stream_at(&analyzer->order, place);
    return stream && stream->hidden;
}

/* Both are work, and the host may hold one of them back until it knows of the other's end. */
static bool is_held_back(const struct analyzer *analyzer, const struct conflict *conflict)
{
    const struct order *order = &analyzer->order;
    const struct work *work = conflict->work;
    if (conflict->kind != CONFLICT_UNORDERED || !work)
        return false;
    const struct event *call = work->replay ? work->replay : work->event;
    uint32_t thread = call->thread_index < THREAD_LIMIT ? call->thread_index : THREAD_LIMIT - 1;
    const struct vclock *clock = &order->threads[thread].clock;
    return order_held_back(order, work->stream, work->tick, clock) ||
           order_held_back(order, conflict->earlier.stream, conflict->earlier.tick, clock);
}

/* The kernel of the two, and its code shows that it writes nothing there. */
static bool only_reads(const struct conflict *conflict)
{
    bool later = conflict->event->kind == EVENT_LAUNCH && conflict->access;
    uint8_t mode = later ? conflict->access->mode : conflict->earlier.mode;
    if (later && conflict->earlier.kind == EVENT_LAUNCH)
        mode |= conflict->earlier.mode; /* one of two kernels writes */
    return !(mode & EVENT_WRITE);
}

void finding_weigh(const struct analyzer *analyzer, const struct conflict *conflict,
                   struct finding *finding)
{
    const struct event *event = conflict->event;
    if (!(event->flags & EVENT_FOREIGN))
        return;
    bool maybe = (conflict->earlier.mode & EVENT_MAYBE) ||
                 (conflict->access && (conflict->access->mode & EVENT_MAYBE));
    bool kernel = conflict->earlier.kind == EVENT_LAUNCH || event->kind == EVENT_LAUNCH;
    uint32_t stream = conflict->work ? conflict->work->stream
                                     : order_place_of(&analyzer->order, event);
    const struct touch *earlier = &conflict->earlier;
    enum finding_reason reason = REASON_NONE;
    if (is_hidden(analyzer, stream) || is_hidden(analyzer, earlier->stream))
        reason = REASON_HIDDEN_ORDER;
    else if (maybe && kernel)
        reason = only_reads(conflict) ? REASON_KERNEL_READS : REASON_KERNEL_ACCESS;
    else if (maybe)
        reason = REASON_ROW_GAPS;
    else if (conflict->kind == CONFLICT_FREED && (event->flags & EVENT_MAY_WAIT))
        reason = REASON_MAY_WAIT;
    else if (vclock_covers(&analyzer->order.maybe_known, earlier->stream, earlier->tick))
        reason = REASON_UNSEEN_ORDER;
    else if (is_held_back(analyzer, conflict))
        reason = REASON_HELD_BACK;
    if (reason == REASON_NONE)
        return;
    finding->certainty = FINDING_POSSIBLE;
    finding_set_reason(finding, reason);
}

/* ---- Accesses of the host ------------------------------------------------------------------- */

bool finding_is_reuse(const struct event *event)
{
    return event->check == EVENT_CHECK_TICKET ||
           (event->access_count > 0 && event->accesses[0].operand == 1);
}

struct finding finding_of_host_access(const struct analyzer *analyzer, enum hypothesis hypothesis,
                                      const struct event *event)
{
    /* The instruction was caught in the act, before any wait: nothing is left to be explained. */
    struct finding draft = finding_draft(hypothesis, FINDING_DIRECT);
    draft.attribution = FINDING_CULPRIT;
    draft.cause = place_of_event(analyzer, event);
    draft.other = place_of_id(analyzer, event->cause_id, 0);
    draft.check = event->check;
    draft.expected = event->host_access.address - event->host_access.copy_address;
    draft.found = event->host_access.copy_bytes;
    if (event->flags & EVENT_MAY_TELL) {
        draft.certainty = FINDING_POSSIBLE;
        finding_set_reason(&draft, REASON_FLAG);
    }
    return draft;
}

/* ---- Adding --------------------------------------------------------------------------------- */

static bool is_alike(const struct finding *a, const struct finding *b)
{
    return a->hypothesis == b->hypothesis && a->check == b->check &&
           a->cause.kind == b->cause.kind && a->cause.operand == b->cause.operand &&
           a->cause.scope.layer == b->cause.scope.layer &&
           a->cause.device_index == b->cause.device_index &&
           a->cause.stack_index == b->cause.stack_index && strcmp(a->cause.op, b->cause.op) == 0 &&
           (a->cause.op[0] || strcmp(a->cause.scope.tensor, b->cause.scope.tensor) == 0);
}

/* If two findings are alike, the one that says more is kept. */
static int weight_of(const struct finding *finding)
{
    return finding_is_culprit(finding) ? 2 : finding->certainty == FINDING_DIRECT;
}

int32_t finding_add(struct analyzer *analyzer, const struct finding *draft)
{
    struct analysis *result = &analyzer->result;
    if (analyzer->warming)
        return -1;
    for (size_t i = 0; i < result->finding_count; i++) {
        struct finding *known = &result->findings[i];
        if (!is_alike(known, draft))
            continue;
        known->count++;
        if (weight_of(draft) > weight_of(known)) {
            uint64_t count = known->count;
            int32_t from = known->consequence_of;
            *known = *draft;
            if (!finding_is_culprit(known))
                known->attribution = FINDING_SEEN_AT;
            known->count = count;
            known->consequence_of = from;
            if (!known->order_id)
                known->order_id = known->cause.event_id;
        }
        return (int32_t)i;
    }
    if (result->finding_count >= analyzer->options.finding_limit) {
        result->findings_dropped++;
        return -1;
    }
    struct finding *findings = array_reserve(result->findings, result->finding_count,
                                             &analyzer->finding_capacity, sizeof(*findings));
    if (!findings) {
        result->findings_dropped++;
        return -1;
    }
    result->findings = findings;
    size_t added = result->finding_count++;
    struct finding *finding = &findings[added];
    *finding = *draft;
    if (!finding_is_culprit(finding))
        finding->attribution = FINDING_SEEN_AT;
    finding->count = 1;
    if (!finding->order_id)
        finding->order_id = finding->cause.event_id;
    if (finding->consequence_of < 0)
        finding->consequence_of = finding_origin(analyzer, finding);
    if (finding_leads_to(result, finding->consequence_of, added))
        finding->consequence_of = -1;
    finding_relink(analyzer, added);
    return (int32_t)added;
}

/* ---- Names of operands ---------------------------------------------------------------------- */

static void name_operand(const struct analyze_options *options, struct analyze_place *place)
{
    const char *name = NULL;
    if (place->kind == EVENT_LAUNCH && !place->foreign && place->operand != EVENT_NO_OPERAND)
        name = options->operand_name(place->op, place->operand);
    event_set_text(place->operand_name, sizeof(place->operand_name), name ? name : "");
}

void finding_name_operands(struct analyzer *analyzer)
{
    const struct analyze_options *options = &analyzer->options;
    for (size_t i = 0; options->operand_name && i < analyzer->result.finding_count; i++) {
        struct finding *finding = &analyzer->result.findings[i];
        name_operand(options, &finding->cause);
        name_operand(options, &finding->other);
        name_operand(options, &finding->seen);
        for (uint32_t j = 0; j < finding->candidate_count && j < FINDING_CANDIDATE_LIMIT; j++)
            name_operand(options, &finding->candidates[j]);
    }
}

/* ---- In order ------------------------------------------------------------------------------- */

struct place_of_finding {
    uint64_t order_id;
    uint32_t index;
};

static int compare_order(const void *a, const void *b)
{
    const struct place_of_finding *left = a, *right = b;
    if (left->order_id != right->order_id)
        return left->order_id < right->order_id ? -1 : 1;
    return left->index < right->index ? -1 : 1;
}

/* The first candidate of a fault of which several launches may be the cause; UINT64_MAX: none. A
 * call that was refused after it did not run, and is not what came first. */
static uint64_t first_open_fault(const struct analysis *result)
{
    uint64_t first = UINT64_MAX;
    for (size_t i = 0; i < result->finding_count; i++) {
        const struct finding *finding = &result->findings[i];
        if (finding->hypothesis == HYPOTHESIS_KERNEL_FAULT && finding->candidate_count > 1 &&
            !finding->cause.foreign && finding->order_id < first)
            first = finding->order_id;
    }
    return first;
}

enum status finding_sort(struct analyzer *analyzer, struct error *err)
{
    struct analysis *result = &analyzer->result;
    size_t count = result->finding_count;
    /* A checkpoint from elsewhere may hold circles. */
    for (size_t i = 0; i < count; i++)
        if (finding_leads_to(result, result->findings[i].consequence_of, i))
            result->findings[i].consequence_of = -1;
    result->root = result->defect = -1;
    struct place_of_finding *order = calloc(count + 1, sizeof(*order));
    struct finding *sorted = calloc(count + 1, sizeof(*sorted));
    int32_t *moved = calloc(count + 1, sizeof(*moved));
    bool good = order && sorted && moved;
    if (good) {
        for (size_t i = 0; i < count; i++)
            order[i] = (struct place_of_finding){ result->findings[i].order_id, (uint32_t)i };
        qsort(order, count, sizeof(*order), compare_order);
        for (size_t i = 0; i < count; i++) {
            sorted[i] = result->findings[order[i].index];
            moved[order[i].index] = (int32_t)i;
        }
        for (size_t i = 0; i < count; i++) {
            result->findings[i] = sorted[i];
            int32_t from = sorted[i].consequence_of;
            result->findings[i].consequence_of = from >= 0 ? moved[from] : -1;
        }
    }
    free(order);
    free(sorted);
    free(moved);
    if (!good)
        return error_set(err, STATUS_NO_MEMORY, "no memory to put %zu findings in order", count);
    uint64_t fault_id = first_open_fault(result);
    for (size_t i = 0; i < count && result->root < 0; i++) {
        const struct finding *finding = &result->findings[i];
        if (finding->consequence_of >= 0 || finding->certainty != FINDING_DIRECT)
            continue;
        if (result->defect < 0)
            result->defect = (int32_t)i;
        if (finding_is_culprit(finding) && !(finding->check && finding->order_id > fault_id))
            result->root = (int32_t)i;
    }
    return STATUS_OK;
}
