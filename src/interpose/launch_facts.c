/* launch_facts.c - what tells a launch from others of its kernel: its shape, its arguments and the
 * number that the driver may have given it, to be compared with a GPU core dump.
 *
 * The driver counts the grids of a context from 1 and does not say the number. Launches are counted
 * here: those that have returned before this one began certainly come before it, and only those
 * that have begun when it returns can. A fill or a copy on the device may be a kernel of the
 * driver's own, which takes a number too, and what graphs take is not known: both widen the range.
 */
#include "interpose/interpose_impl.h"

/* What a graph may add to the count: more than any program launches. */
#define GRAPH_NUMBERS (UINT64_C(1) << 40)

static uint64_t load(const uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_ACQUIRE);
}

static struct grid_count *count_of(struct interpose *interpose, uint64_t context)
{
    for (size_t i = 0; i < interpose->grid_count_count; i++)
        if (interpose->grid_counts[i].context == context)
            return &interpose->grid_counts[i];
    if (!context || interpose->grid_count_count == GRID_COUNT_LIMIT)
        return NULL;
    struct grid_count *added = &interpose->grid_counts[interpose->grid_count_count++];
    added->context = context;
    return added;
}

/* The arguments without the gaps between them; their bytes are hashed as one. */
static void set_arguments(struct flight_launch *facts, const struct interpose_launch *launch)
{
    struct flight_piece pieces[FLIGHT_PIECE_LIMIT];
    size_t end = 0;
    facts->range_count = FLIGHT_RANGES_UNKNOWN;
    if (launch->parameters_unknown || launch->parameter_count > FLIGHT_PIECE_LIMIT)
        return;
    uint32_t ranges = 0;
    for (size_t i = 0; i < launch->parameter_count; i++) {
        const struct interpose_parameter *one = &launch->parameters[i];
        pieces[i] = (struct flight_piece){ one->bytes, one->count };
        bool apart = i == 0 || one->offset != end;
        if (!one->bytes || one->offset < end || one->offset + one->count > UINT16_MAX ||
            (apart && ranges == FLIGHT_RANGE_LIMIT))
            return;
        if (apart)
            facts->ranges[ranges++] = (struct flight_range){ (uint16_t)one->offset, 0 };
        facts->ranges[ranges - 1].bytes += (uint16_t)one->count;
        end = one->offset + one->count;
    }
    facts->range_count = ranges;
    facts->argument_bytes = (uint32_t)end;
    facts->argument_hash = flight_hash_pieces(pieces, launch->parameter_count);
}

void launch_facts_begin(struct interpose *interpose, struct interpose_call *call,
                        const struct interpose_launch *launch)
{
    struct event *event = &call->event;
    struct flight_launch *facts = &call->facts;
    bool in_graph = event->launch.graph_id != 0;
    event->launch.facts_index = flight_launch_place(interpose->flight, call->launch_ordinal,
                                                    in_graph);
    if (!event->launch.facts_index)
        return;
    *facts = (struct flight_launch){ .event_id = event->id, .context = launch->context };
    for (int i = 0; i < 3; i++) {
        facts->grid[i] = launch->grid[i];
        facts->block[i] = launch->block[i];
    }
    set_arguments(facts, launch);
    call->grid_count = NULL;
    if (!in_graph) {
        pthread_mutex_lock(&interpose->lock);
        call->grid_count = count_of(interpose, launch->context);
        pthread_mutex_unlock(&interpose->lock);
    }
    if (call->grid_count) {
        facts->number_least = load(&call->grid_count->returned) + 1;
        facts->number_most = UINT64_MAX;
        __atomic_add_fetch(&call->grid_count->begun, 1, __ATOMIC_ACQ_REL);
    }
    flight_set_launch(interpose->flight, event->launch.facts_index, facts);
}

void launch_facts_end(struct interpose *interpose, struct interpose_call *call)
{
    const struct event *event = &call->event;
    if (event->kind != EVENT_LAUNCH || !event->launch.facts_index || !call->grid_count)
        return;
    call->facts.number_most = load(&call->grid_count->begun) + load(&interpose->other_grids);
    flight_set_launch(interpose->flight, event->launch.facts_index, &call->facts);
    if (event->outcome == EVENT_DONE)
        __atomic_add_fetch(&call->grid_count->returned, 1, __ATOMIC_ACQ_REL);
}

void launch_facts_graph(struct interpose *interpose)
{
    __atomic_add_fetch(&interpose->other_grids, GRAPH_NUMBERS, __ATOMIC_ACQ_REL);
}

void interpose_unseen_launches(struct interpose *interpose)
{
    if (interpose && !interpose->disabled)
        launch_facts_graph(interpose);
}

void launch_facts_other(struct interpose *interpose, const struct event *event)
{
    if (event->kind == EVENT_GRAPH_REPLAY)
        launch_facts_graph(interpose);
    if (event->kind == EVENT_FILL || event->kind == EVENT_COPY_WITHIN)
        __atomic_add_fetch(&interpose->other_grids, 1, __ATOMIC_ACQ_REL);
}
