/* analyzer.c - one event after another through ledger, order and hypotheses. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HANG_LIMIT_NS UINT64_C(30000000000)
#define FINDINGS_DEFAULT 256u
#define FINDINGS_LIMIT 65536u
/* Nothing is claimed of the allocations of further call stacks. */
#define STACK_LIMIT 8192u

enum status analyzer_create(const struct analyze_options *options, struct analyzer **ret_analyzer,
                            struct error *err)
{
    ASSERT((unsigned)options->level < AUDIT_LEVEL_COUNT);
    struct analyzer *analyzer = calloc(1, sizeof(*analyzer));
    if (!analyzer)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an analysis");
    analyzer->options = *options;
    if (!analyzer->options.hang_limit_ns)
        analyzer->options.hang_limit_ns = HANG_LIMIT_NS;
    if (!analyzer->options.finding_limit)
        analyzer->options.finding_limit = FINDINGS_DEFAULT;
    if (analyzer->options.finding_limit > FINDINGS_LIMIT)
        analyzer->options.finding_limit = FINDINGS_LIMIT;
    analyzer->result.level = options->level;
    analyzer->result.root = analyzer->result.defect = -1;
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++)
        analyzer->losses[i].first_failure =
            finding_draft(HYPOTHESIS_KERNEL_FAULT, FINDING_DIRECT).seen;
    analyzer->crumb_page_count = 1;
    analyzer_set_hardware(analyzer, options->hardware);
    analyzer->history.entries = calloc(HISTORY_LIMIT, sizeof(*analyzer->history.entries));
    bool guarded = options->level >= AUDIT_GUARD;
    if (guarded)
        analyzer->history.clocks = calloc(HISTORY_LIMIT, sizeof(*analyzer->history.clocks));
    analyzer->op_hashes.finding = -1;
    struct results *results = &analyzer->results;
    results->entries = calloc(RESULT_LIMIT, sizeof(*results->entries));
    bool good = ledger_init(&analyzer->ledger) && order_init(&analyzer->order) &&
                idmap_init(&results->map, RESULT_LIMIT) &&
                idmap_init(&results->nth, RESULT_NTH_LIMIT) &&
                idmap_init(&analyzer->made_by_stack, STACK_LIMIT) && analyzer->history.entries &&
                results->entries && (!guarded || analyzer->history.clocks);
    if (!good) {
        analyzer_destroy(analyzer);
        return error_set(err, STATUS_NO_MEMORY, "no memory for an analysis");
    }
    *ret_analyzer = analyzer;
    return STATUS_OK;
}

void analyzer_destroy(struct analyzer *analyzer)
{
    if (!analyzer)
        return;
    ledger_release(&analyzer->ledger);
    order_release(&analyzer->order);
    graphs_release(&analyzer->graphs);
    idmap_release(&analyzer->results.map);
    idmap_release(&analyzer->results.nth);
    idmap_release(&analyzer->made_by_stack);
    op_hashes_release(&analyzer->op_hashes);
    free(analyzer->results.entries);
    free(analyzer->history.entries);
    free(analyzer->history.clocks);
    free(analyzer->result.findings);
    free(analyzer);
}

const struct analysis *analyzer_result(const struct analyzer *analyzer)
{
    return &analyzer->result;
}

void analyze_count(struct analyzer *analyzer, enum hypothesis hypothesis, uint64_t checked,
                   uint64_t total)
{
    if (analyzer->warming)
        return;
    analyzer->result.coverage[hypothesis].checked += checked;
    analyzer->result.coverage[hypothesis].total += total;
}

void analyze_forget(struct analyzer *analyzer)
{
    analyzer->gap_id = analyzer->last_id ? analyzer->last_id : 1;
    order_forget(&analyzer->order);
    analyzer->ledger.losses++;
}

void analyze_gap(struct analyzer *analyzer, uint64_t until)
{
    analyze_forget(analyzer);
    graphs_lost(&analyzer->graphs, until);
    for (uint32_t i = 0; i < VCLOCK_STREAM_LIMIT; i++)
        analyzer->order.streams[i].capture_id = 0;
    /* A copy among them would shift which result is compared with which, until the next run. */
    op_hashes_flush(analyzer);
    analyzer->op_hashes.whole = false;
    analyzer->results.in_run = false;
}

void analyze_lost(struct analyzer *analyzer, uint64_t count)
{
    analyzer->result.lost_count += count;
    analyze_gap(analyzer, analyzer->last_id + 1);
}

uint32_t analyze_note_made(struct analyzer *analyzer, uint32_t stack_index)
{
    uint32_t made = idmap_find(&analyzer->made_by_stack, stack_index);
    made = made == IDMAP_NONE ? 1 : made < INT32_MAX ? made + 1 : made;
    return idmap_set(&analyzer->made_by_stack, stack_index, made) ? made : 0;
}

/* ---- Events --------------------------------------------------------------------------------- */

void analyze_work(struct analyzer *analyzer, const struct work *work)
{
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_detector *detector = hypothesis_detector((enum hypothesis)i);
        if (detector->work)
            detector->work(analyzer, work);
    }
}

void analyze_conflict(struct analyzer *analyzer, const struct conflict *conflict)
{
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_detector *detector = hypothesis_detector((enum hypothesis)i);
        if (detector->conflict)
            detector->conflict(analyzer, conflict);
    }
}

/* Reports about an earlier call, not calls. */
static bool is_remark(uint8_t kind)
{
    return kind == EVENT_COMPLETION || kind == EVENT_TRAP || kind == EVENT_FAULT ||
           kind == EVENT_CANARY || kind == EVENT_TRANSFER_HASH || kind == EVENT_SCAN ||
           kind == EVENT_RUN || kind == EVENT_SOURCE_CHANGED || kind == EVENT_HIDDEN_ORDER ||
           kind == EVENT_OP_HASH || kind == EVENT_HOST_ACCESS || kind == EVENT_HOST_TRAPS;
}

static enum status check_event(const struct analyzer *analyzer, const struct event *event,
                               struct error *err)
{
    if (event->kind >= EVENT_KIND_COUNT || event->access_count > EVENT_ACCESS_LIMIT ||
        event->outcome >= EVENT_OUTCOME_COUNT || event->check >= EVENT_CHECK_COUNT ||
        event->device_index >= EVENT_DEVICE_LIMIT)
        return error_set(err, STATUS_BAD_FILE,
                         "event %" PRIu64 ": expected a known kind, outcome and check, found %u, "
                         "%u and %u with %u ranges",
                         event->id, event->kind, event->outcome, event->check, event->access_count);
    if (event->id <= analyzer->last_id)
        return error_set(err, STATUS_BAD_FILE,
                         "event %" PRIu64 ": expected an id greater than %" PRIu64
                         ": events come in order, each once",
                         event->id, analyzer->last_id);
    return STATUS_OK;
}

/* What every hypothesis needs to know first. */
static void note_event(struct analyzer *analyzer, const struct event *event)
{
    if (!analyzer->last_id)
        analyzer->first_id = event->id;
    analyzer->last_id = event->id;
    uint64_t latest = max_u64(event->end_ns, event->begin_ns);
    if (latest > analyzer->last_ns)
        analyzer->last_ns = latest;
    if (event->kind == EVENT_RUN) {
        analyzer->iteration = event->run.iteration;
        if (!analyzer->warming)
            analyzer->result.iteration_count++;
    }
    if (event->kind == EVENT_HOST_TRAPS && event->host_traps.state < EVENT_TRAPS_COUNT) {
        analyzer->result.host_traps = true;
        /* Off is for good, and says more than a limit. */
        if (event->host_traps.state > (uint64_t)analyzer->result.host_traps_state)
            analyzer->result.host_traps_state = (enum event_traps)event->host_traps.state;
    }
    if (event->kind == EVENT_DEVICE_CLOSE && event->outcome == EVENT_DONE)
        analyzer->device_closed = true;
    order_take_place(&analyzer->order, event->device_index, event->stream_index);
    if (event->kind == EVENT_FAULT && !analyze_is_lost(analyzer, event)) {
        analyzer->losses[event->device_index].fault_id = event->id;
        analyzer->result.device_lost = true;
    }
    if (!analyzer->warming) {
        analyzer->result.event_count++;
        subjects_note(&analyzer->result.subjects, event);
    }
    if (!is_remark(event->kind))
        history_add(&analyzer->history, event, analyzer->iteration);
}

enum status analyzer_add(struct analyzer *analyzer, const struct event *event, struct error *err)
{
    TRY(check_event(analyzer, event, err));
    if (analyzer->last_id && event->id != analyzer->last_id + 1)
        analyze_gap(analyzer, event->id);
    struct event safe = *event;
    safe.op[sizeof(safe.op) - 1] = '\0';
    safe.file[sizeof(safe.file) - 1] = '\0';
    safe.scope.tensor[sizeof(safe.scope.tensor) - 1] = '\0';
    note_event(analyzer, &safe);
    if (analyzer->options.observer.notify && !analyzer->warming)
        analyzer->options.observer.notify(analyzer->options.observer.context, &safe);
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_detector *detector = hypothesis_detector((enum hypothesis)i);
        if (detector->event)
            detector->event(analyzer, &safe);
    }
    order_event(analyzer, &safe);
    if (!is_remark(safe.kind)) {
        uint32_t thread = safe.thread_index < THREAD_LIMIT ? safe.thread_index : THREAD_LIMIT - 1;
        analyzer->order.threads[thread].last_id = safe.id;
    }
    return STATUS_OK;
}

/* ---- The end -------------------------------------------------------------------------------- */

uint64_t analyze_forgotten(const struct analyzer *analyzer)
{
    return analyzer->ledger.forgotten + analyzer->graphs.forgotten;
}

static struct run_ending ending_of(const struct analyzer *analyzer)
{
    const struct analysis *result = &analyzer->result;
    if (result->device_lost)
        return (struct run_ending){ .kind = ENDING_DEVICE_LOST };
    if (result->closed)
        return (struct run_ending){ .kind = ENDING_IN_ORDER };
    for (size_t i = 0; i < result->finding_count; i++)
        if (result->findings[i].hypothesis == HYPOTHESIS_HANG)
            return (struct run_ending){ .kind = ENDING_HUNG };
    return (struct run_ending){ .kind = analyzer->process_dead ? ENDING_UNCLOSED : ENDING_UNKNOWN };
}

/* Streams that left crumbs and of which no event is there any more. */
static void take_crumb_places(struct analyzer *analyzer)
{
    for (uint16_t device = 0; analyzer->crumbs && device < analyzer->crumb_page_count; device++)
        for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++)
            if (crumb_entered(&analyzer->crumbs[device].streams[i]))
                order_take_place(&analyzer->order, device, i);
}

void analyzer_set_hardware(struct analyzer *analyzer, const struct hardware_evidence *evidence)
{
    if (evidence)
        analyzer->hardware = *evidence;
}

enum status analyzer_finish(struct analyzer *analyzer, const struct crumb_page *crumbs,
                            const struct flight_info *info, uint64_t now_ns, struct error *err)
{
    struct analysis *result = &analyzer->result;
    if (analyzer->finished)
        return error_set(err, STATUS_USAGE, "an analysis can be finished once");
    analyzer->finished = true;
    analyzer->crumbs = crumbs;
    if (info && info->device_count)
        analyzer->crumb_page_count = info->device_count;
    take_crumb_places(analyzer);
    analyzer->now_ns = max_u64(now_ns, analyzer->last_ns);
    result->closed = analyzer->device_closed;
    result->lost_count += analyze_forgotten(analyzer);
    if (info) {
        result->closed = info->closed;
        result->lost_count += info->lost_count;
        result->dropped_count += info->dropped_count;
        result->damaged_count += info->damaged_count;
        memcpy(result->device, info->device, sizeof(result->device));
        memcpy(result->command, info->command, sizeof(result->command));
    }
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++) {
        const struct hypothesis_detector *detector = hypothesis_detector((enum hypothesis)i);
        result->coverage[i].ran = result->level >= detector->info.level;
        /* A call's record may be lost while a check that belongs to it is still there. */
        if (result->coverage[i].total < result->coverage[i].checked)
            result->coverage[i].total = result->coverage[i].checked;
        if (detector->finish)
            detector->finish(analyzer);
    }
    /* What was not kept cannot have been looked at. */
    uint64_t forgotten = analyzer->order.forgotten_accesses;
    enum hypothesis exact[] = { HYPOTHESIS_MISSING_SYNC, HYPOTHESIS_OVERLAPPING_COPIES };
    for (size_t i = 0; i < COUNT_OF(exact); i++) {
        struct hypothesis_coverage *coverage = &result->coverage[exact[i]];
        coverage->checked -= min_u64(forgotten, coverage->checked);
    }
    analyzer->crumbs = NULL;
    result->ending = ending_of(analyzer);
    finding_name_operands(analyzer);
    return finding_sort(analyzer, err);
}
