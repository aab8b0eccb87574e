/* non_determinism.c - iterations that must give equal results do not: the hash of the bytes
 * redeemed for the same step, tensor and turn differs. Which op made the difference is known where
 * operands are hashed (op_hashes.c). */
#include "analyze/analyze_impl.h"

#include <string.h>

uint64_t results_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9E3779B97F4A7C15);
    return hash ^ (hash >> 29);
}

/* Steps are counted from the first of the iteration. */
uint64_t results_key(struct results *results, const struct event *call)
{
    const struct event_scope *scope = &call->scope;
    if (results->first_step < 0)
        results->first_step = scope->step;
    uint64_t step = (uint64_t)scope->step - (uint64_t)results->first_step;
    /* The first device's keys are those of recordings with one. */
    uint64_t hash = results_mix(results_mix(call->device_index + 1u, results->run_key), step);
    hash = results_mix(hash, (uint32_t)scope->layer);
    for (size_t i = 0; i < sizeof(scope->tensor) && scope->tensor[i]; i++)
        hash = results_mix(hash, (uint8_t)scope->tensor[i]);
    return hash;
}

static void on_run(struct analyzer *analyzer, const struct event *event)
{
    struct results *results = &analyzer->results;
    op_hashes_flush(analyzer);
    results->in_run = true;
    results->run_key = event->run.key;
    results->compared = false;
    results->first_step = -1;
    idmap_clear(&results->nth);
    op_hashes_begin_run(&analyzer->op_hashes, analyzer->warming);
}

/* Keeps the first result of its kind; later ones are compared with it. */
static void compare(struct analyzer *analyzer, uint64_t key, const struct event *event,
                    uint64_t copy_id)
{
    struct results *results = &analyzer->results;
    uint32_t place = idmap_find(&results->map, key);
    if (place == IDMAP_NONE) {
        if (results->count == RESULT_LIMIT || !idmap_set(&results->map, key, results->count)) {
            analyze_count(analyzer, HYPOTHESIS_NON_DETERMINISM, 0, 1); /* no room to remember */
            return;
        }
        results->entries[results->count++] = (struct result_entry){ key, event->ticket.hash,
                                                                    copy_id, analyzer->iteration };
        return;
    }
    const struct result_entry *first = &results->entries[place];
    if (first->iteration == analyzer->iteration)
        return;
    analyze_count(analyzer, HYPOTHESIS_NON_DETERMINISM, 1, 1);
    if (!results->compared && !analyzer->warming)
        analyzer->result.compared_count++;
    results->compared = true;
    if (first->hash == event->ticket.hash)
        return;
    struct finding draft = finding_draft(HYPOTHESIS_NON_DETERMINISM, FINDING_DIRECT);
    const struct history_entry *copy = history_find(&analyzer->history, copy_id);
    draft.cause = place_of_id(analyzer, copy_id, 0);
    draft.other = place_of_id(analyzer, first->copy_id, 0);
    draft.other.iteration = first->iteration;
    draft.expected = first->hash;
    draft.found = event->ticket.hash;
    if (!copy || !op_hashes_hold(analyzer, &draft, &copy->event))
        finding_add(analyzer, &draft);
}

static void on_event(struct analyzer *analyzer, const struct event *event)
{
    if (event->kind == EVENT_RUN)
        on_run(analyzer, event);
    if (event->kind == EVENT_LAUNCH)
        op_hashes_count_launch(analyzer, event);
    if (event->kind == EVENT_OP_HASH)
        op_hashes_add(analyzer, event);
    struct results *results = &analyzer->results;
    if (event->kind != EVENT_TICKET_REDEEM || event->outcome != EVENT_DONE || !results->in_run)
        return;
    const struct ticket_state *ticket = order_ticket(&analyzer->order, event->device_index,
                                                     event->ticket.ticket);
    uint64_t copy_id = ticket ? ticket->copy_id : event->cause_id;
    const struct history_entry *copy = history_find(&analyzer->history, copy_id);
    if (event->ticket.hash == 0 || !copy) {
        analyze_count(analyzer, HYPOTHESIS_NON_DETERMINISM, 0, event->ticket.hash != 0);
        return;
    }
    uint64_t key = results_key(results, &copy->event);
    uint32_t nth = idmap_find(&results->nth, key);
    nth = nth == IDMAP_NONE ? 0 : nth + 1;
    if (!idmap_set(&results->nth, key, nth)) {
        analyze_count(analyzer, HYPOTHESIS_NON_DETERMINISM, 0, 1);
        return;
    }
    compare(analyzer, results_mix(key, nth), event, copy_id);
}

static void on_finish(struct analyzer *analyzer)
{
    op_hashes_flush(analyzer);
    struct hypothesis_coverage *coverage = &analyzer->result.coverage[HYPOTHESIS_NON_DETERMINISM];
    if (!coverage->checked && !analyzer->results.count)
        coverage->ran = false; /* hashes of results were not asked for, or there were no results */
}

const struct hypothesis_detector detector_non_determinism = {
    .info = { .slug = "non-determinism", .level = AUDIT_LOG, .exact = false, .bound_equal = true },
    .event = on_event,
    .finish = on_finish,
};
