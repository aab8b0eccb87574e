/* hardware.c - which recorded launch a GPU core dump is about: see hardware.h.
 *
 * Only launches that may have run when the fault was made are compared (window.c). A launch is the
 * culprit only if it alone agrees in name, shape, arguments and number. Several that agree are
 * candidates, and which replay of a graph it was follows from nothing in the dump. */
#include "analyze/analyze_impl.h"

#include "base/size.h"

#include <string.h>

/* ---- One launch ----------------------------------------------------------------------------- */

/* 1: they agree, 0: they do not, -1: not known. */
static int same_arguments(const struct hardware_grid *grid, const struct flight_launch *launch)
{
    struct flight_piece pieces[FLIGHT_RANGE_LIMIT];
    if (launch->range_count > FLIGHT_RANGE_LIMIT)
        return -1;
    if (launch->range_count && !grid->arguments)
        return -1;
    for (uint32_t i = 0; i < launch->range_count; i++) {
        const struct flight_range *range = &launch->ranges[i];
        if (!size_range_inside(range->offset, range->bytes, grid->argument_bytes))
            return 0;
        pieces[i] = (struct flight_piece){ grid->arguments + range->offset, range->bytes };
    }
    return flight_hash_pieces(pieces, launch->range_count) == launch->argument_hash;
}

static bool same_shape(const struct hardware_grid *grid, const struct flight_launch *launch)
{
    return memcmp(grid->grid, launch->grid, sizeof(grid->grid)) == 0 &&
           memcmp(grid->block, launch->block, sizeof(grid->block)) == 0;
}

enum hardware_match hardware_compare(const struct hardware_grid *grid,
                                     const struct flight_launch *launch, const char *name,
                                     bool in_graph)
{
    bool names_known = grid->kernel[0] && name[0];
    bool number_known = !in_graph && grid->number && launch->number_most;
    int arguments = same_arguments(grid, launch);
    if (grid->by_device || arguments == 0 || !same_shape(grid, launch) ||
        (names_known && strcmp(grid->kernel, name) != 0) ||
        (number_known &&
         (grid->number < launch->number_least || grid->number > launch->number_most)))
        return HARDWARE_DIFFERS;
    if (!names_known || arguments < 0 || (!in_graph && !number_known))
        return HARDWARE_PARTLY;
    return number_known && launch->number_least == launch->number_most ? HARDWARE_SAME
                                                                       : HARDWARE_AGREES;
}

/* ---- All that may have run ------------------------------------------------------------------ */

struct search {
    const struct analyzer *analyzer;
    const struct hardware_evidence *evidence;
    const struct hardware_grid *grid;
    struct finding *draft;
    /* What is known of the grid's candidates. */
    bool partly;               /* one agrees only in part */
    uint64_t context;          /* of the first */
    bool several_contexts;     /* each has the same numbers */
    struct analyze_place same; /* that can have no other number than the grid's */
    size_t same_count;
};

struct compared {
    enum hardware_match match;
    uint64_t context;
};

static struct compared compare(const struct search *search, const struct event *event,
                               bool in_graph)
{
    struct flight_launch launch;
    char name[FLIGHT_NAME_BYTES];
    if (!search->evidence->launch(search->evidence->context, event, &launch, name))
        return (struct compared){ HARDWARE_PARTLY, 0 };
    return (struct compared){ hardware_compare(search->grid, &launch, name, in_graph),
                              launch.context };
}

static void keep(struct search *search, const struct analyze_place *place, struct compared compared)
{
    struct finding *draft = search->draft;
    if (compared.match == HARDWARE_DIFFERS)
        return;
    if (compared.match == HARDWARE_SAME) {
        search->same = *place;
        search->same_count++;
    }
    search->partly = search->partly || compared.match == HARDWARE_PARTLY;
    search->several_contexts = search->several_contexts ||
                               (search->context && compared.context != search->context);
    search->context = compared.context;
    if (draft->candidate_count == FINDING_CANDIDATE_LIMIT)
        draft->candidates_left_out++;
    else
        draft->candidates[draft->candidate_count++] = *place;
}

/* The nodes of a graph that agree, as the replay that ran them. */
static void search_replay(struct search *search, const struct event *replay)
{
    const struct graph *graph = graphs_find(&search->analyzer->graphs, replay->cause_id);
    struct analyze_place place = place_of_event(search->analyzer, replay);
    if (!graph_is_whole(graph)) {
        /* What it launched is not known. */
        keep(search, &place, (struct compared){ HARDWARE_PARTLY, 0 });
        return;
    }
    for (uint32_t i = 0; i < graph->count; i++) {
        const struct event *record = &graph->records[i];
        if (record->kind != EVENT_LAUNCH)
            continue;
        place = place_of_id(search->analyzer, replay->id, i + 1);
        keep(search, &place, compare(search, record, true));
    }
}

static void search_window(struct search *search, const struct event *fault)
{
    const struct history *history = &search->analyzer->history;
    uint64_t end = history_lower(history, fault->id);
    for (uint64_t at = history_first(history); at < end; at++) {
        const struct event *event = &history_at(history, at)->event;
        if (event->device_index != fault->device_index ||
            !window_holds(search->analyzer, event, fault->id))
            continue;
        if (event->kind == EVENT_GRAPH_REPLAY)
            search_replay(search, event);
        if (event->kind != EVENT_LAUNCH)
            continue;
        struct analyze_place place = place_of_event(search->analyzer, event);
        keep(search, &place, compare(search, event, false));
    }
}

/* The candidates of one grid; true if it is one launch for sure: because it alone agrees, or
 * because no other of its context can have the number. */
static bool search_grid(struct search *all, const struct event *fault,
                        const struct hardware_grid *grid)
{
    struct search search = {
        .analyzer = all->analyzer, .evidence = all->evidence, .grid = grid, .draft = all->draft
    };
    struct finding *draft = all->draft;
    uint32_t before = draft->candidate_count;
    uint64_t left_out = draft->candidates_left_out;
    search_window(&search, fault);
    if (!draft->hardware && draft->candidate_count > before)
        draft->hardware = grid;
    all->partly = all->partly || search.partly;
    if (search.same_count != 1 || search.partly || search.several_contexts)
        return false;
    draft->candidates_left_out = left_out;
    draft->candidate_count = before;
    if (before < FINDING_CANDIDATE_LIMIT)
        draft->candidates[draft->candidate_count++] = search.same;
    else
        draft->candidates_left_out++;
    return true;
}

/* ---- The finding ---------------------------------------------------------------------------- */

static void weigh(const struct search *search, bool exact, struct finding *draft)
{
    const struct hardware_evidence *evidence = search->evidence;
    bool several_grids = evidence->grid_count > 1 || evidence->more_grids;
    if (search->partly || (!exact && window_has_gaps(search->analyzer))) {
        draft->certainty = FINDING_POSSIBLE;
        finding_set_reason(draft, search->partly ? REASON_DUMP_PARTLY : REASON_GAPS);
    } else if (draft->candidate_count > 1 || evidence->more_grids) {
        draft->attribution = FINDING_SEEN_AT;
        finding_set_reason(draft, several_grids ? REASON_DUMP_GRIDS : REASON_DUMP_SEVERAL);
    }
}

bool suspects_by_hardware(const struct analyzer *analyzer, const struct event *fault,
                          struct finding *draft)
{
    const struct hardware_evidence *evidence = &analyzer->hardware;
    struct search search = { .analyzer = analyzer, .evidence = evidence, .draft = draft };
    bool exact = true;
    if (evidence->grid_count == 0)
        return false;
    for (size_t i = 0; i < evidence->grid_count; i++)
        exact = search_grid(&search, fault, &evidence->grids[i]) && exact;
    if (draft->candidate_count) {
        draft->cause = draft->candidates[0];
        weigh(&search, exact, draft);
        return true;
    }
    suspects_in_window(analyzer, fault, draft);
    draft->certainty = FINDING_POSSIBLE;
    draft->hardware = &evidence->grids[0];
    finding_set_reason(draft, REASON_DUMP_DIFFERS);
    return true;
}

/* ---- Launches of greta's own ---------------------------------------------------------------- */

bool hardware_names_own(const struct analyzer *analyzer)
{
    for (size_t i = 0; i < analyzer->hardware.grid_count; i++)
        if (analyzer->hardware.grids[i].launches[0])
            return true;
    return false;
}

const struct hardware_grid *hardware_find_own(const struct analyzer *analyzer, uint64_t event_id,
                                              uint32_t node)
{
    const struct event *call = analyze_find_call(analyzer, event_id, node);
    uint64_t id = call ? call->id : event_id; /* of a node: the recorded launch */
    for (size_t i = 0; i < analyzer->hardware.grid_count; i++) {
        const struct hardware_grid *grid = &analyzer->hardware.grids[i];
        for (size_t j = 0; j < COUNT_OF(grid->launches); j++)
            if (grid->launches[j] && grid->launches[j] == id)
                return grid;
    }
    return NULL;
}

/* ---- Pointers ------------------------------------------------------------------------------- */

/* The memory that the launch's pointers lead to, and the calls that made it. */
void hardware_add_pointers(const struct analyzer *analyzer, struct finding *finding)
{
    const struct event *event = analyze_find_call(analyzer, finding->cause.event_id,
                                                  finding->cause.node);
    if (!finding->hardware || !finding->cause.foreign || finding->certainty != FINDING_DIRECT ||
        !event || event->kind != EVENT_LAUNCH)
        return;
    for (uint32_t i = 0; i < event->access_count; i++) {
        const struct event_access *access = &event->accesses[i];
        const struct ledger_entry *entry = ledger_find_generation(
            &analyzer->ledger, event->device_index, access->buffer_index, access->generation);
        struct finding_pointer *pointer = &finding->pointers[finding->pointer_count++];
        *pointer = (struct finding_pointer){ .operand = access->operand,
                                             .address = access->address };
        if (!entry)
            continue;
        pointer->buffer_address = entry->address;
        pointer->buffer_bytes = entry->bytes;
        pointer->created_id = entry->created_id;
        pointer->destroyed_id = entry->destroyed_id;
        pointer->stack_index = entry->stack_index;
        memcpy(pointer->buffer, entry->name, sizeof(pointer->buffer));
    }
}
