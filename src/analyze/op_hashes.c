/* op_hashes.c - operands of launches, hashed in stream order, compared with the same ones of an
 * earlier equal iteration: the first op whose inputs agree and whose output does not is the one
 * that made the difference.
 *
 * Each digest is compared when it is reported. Inputs are reported before outputs, so that what is
 * known of a launch's inputs is there when its first output comes. */
#include "analyze/analyze_impl.h"

#include <stdlib.h>

static bool make_table(struct op_hashes *hashes)
{
    if (hashes->entries)
        return true;
    hashes->entries = calloc(OP_HASH_LIMIT, sizeof(*hashes->entries));
    hashes->held = calloc(OP_HASH_HELD_LIMIT, sizeof(*hashes->held));
    bool good = hashes->entries && hashes->held && idmap_init(&hashes->map, OP_HASH_LIMIT) &&
                idmap_init(&hashes->nth, OP_HASH_LIMIT);
    if (!good)
        op_hashes_release(hashes);
    return good;
}

void op_hashes_release(struct op_hashes *hashes)
{
    free(hashes->entries);
    free(hashes->held);
    idmap_release(&hashes->map);
    idmap_release(&hashes->nth);
    *hashes = (struct op_hashes){ .finding = -1 };
}

void op_hashes_begin_run(struct op_hashes *hashes, bool warming)
{
    hashes->whole = !warming;
    hashes->launches = 0;
    if (hashes->entries)
        idmap_clear(&hashes->nth);
    hashes->agreed_id = hashes->agreed_before_id = 0;
    hashes->finding = -1;
}

/* The same launch of an equal iteration has the same key: run, step, layer, tensor, op, and which
 * of those it is. 0 without room. */
static uint64_t key_of_launch(struct analyzer *analyzer, struct history_entry *entry)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    if (entry->op_key)
        return entry->op_key;
    uint64_t key = results_key(&analyzer->results, &entry->event);
    for (size_t i = 0; i < sizeof(entry->event.op) && entry->event.op[i]; i++)
        key = results_mix(key, (uint8_t)entry->event.op[i]);
    uint32_t nth = idmap_find(&hashes->nth, key);
    nth = nth == IDMAP_NONE ? 0 : nth + 1;
    if (!idmap_set(&hashes->nth, key, nth))
        return 0;
    entry->op_key = results_mix(key, nth) | 1;
    return entry->op_key;
}

enum op_hash_state { OP_HASH_FIRST, OP_HASH_AGREES, OP_HASH_DIFFERS, OP_HASH_NO_ROOM };

/* *ret_first: of an earlier iteration, where there is one. */
static enum op_hash_state hold_against(struct analyzer *analyzer, struct history_entry *entry,
                                       const struct event *event,
                                       const struct result_entry **ret_first)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    uint64_t launch = key_of_launch(analyzer, entry);
    if (!launch)
        return OP_HASH_NO_ROOM;
    uint64_t key = results_mix(results_mix(launch, event->operand + 1u), event->op_hash.when);
    uint32_t place = idmap_find(&hashes->map, key);
    if (place == IDMAP_NONE) {
        if (hashes->count == OP_HASH_LIMIT || !idmap_set(&hashes->map, key, hashes->count))
            return OP_HASH_NO_ROOM;
        hashes->entries[hashes->count++] = (struct result_entry){ key, event->op_hash.digest,
                                                                  entry->event.id,
                                                                  analyzer->iteration };
        return OP_HASH_FIRST;
    }
    *ret_first = &hashes->entries[place];
    if ((*ret_first)->iteration == analyzer->iteration)
        return OP_HASH_FIRST;
    return (*ret_first)->hash == event->op_hash.digest ? OP_HASH_AGREES : OP_HASH_DIFFERS;
}

/* Bit of each operand whose bytes before the launch decide what its outputs hold. */
static uint16_t inputs_of(const struct event *launch)
{
    uint16_t inputs = 0;
    for (uint32_t i = 0; i < launch->access_count; i++)
        if (launch->accesses[i].mode & EVENT_READ)
            inputs = (uint16_t)(inputs | 1u << launch->accesses[i].operand);
    return inputs;
}

static struct finding draft_of(const struct analyzer *analyzer, const struct event *event,
                               const struct result_entry *first)
{
    struct finding draft = finding_draft(HYPOTHESIS_NON_DETERMINISM, FINDING_DIRECT);
    draft.cause = place_of_remark(analyzer, event);
    draft.expected = first->hash;
    draft.found = event->op_hash.digest;
    return draft;
}

/* Where the first difference of all arose, counted in launches of a run. */
static void note_interval(struct analyzer *analyzer, const struct history_entry *entry,
                          uint64_t agreed_id)
{
    struct analysis *result = &analyzer->result;
    const struct history_entry *agreed = history_find(&analyzer->history, agreed_id);
    if (result->op_differs)
        return;
    result->op_differs = entry->run_launch;
    result->op_agreed = agreed ? agreed->run_launch : 0;
}

/* All its inputs had the same bytes in both runs: nothing before it made the difference. */
static void add_culprit(struct analyzer *analyzer, const struct event *event,
                        const struct result_entry *first)
{
    struct finding draft = draft_of(analyzer, event, first);
    draft.attribution = FINDING_CULPRIT;
    draft.other = draft.cause;
    draft.other.event_id = first->copy_id;
    draft.other.iteration = first->iteration;
    int32_t added = finding_add(analyzer, &draft);
    if (analyzer->op_hashes.finding < 0)
        analyzer->op_hashes.finding = added;
}

/* The first difference of the iteration, at a launch of which not all inputs are known, or of which
 * one differs already: what did it lies between the last launch that agreed and this one. */
static void add_interval(struct analyzer *analyzer, const struct event *event,
                         const struct result_entry *first, uint64_t agreed_id, bool input)
{
    struct finding draft = draft_of(analyzer, event, first);
    if (agreed_id) {
        draft.other = place_of_id(analyzer, agreed_id, 0);
        draft.other.iteration = first->iteration;
    }
    finding_set_reason(&draft, input       ? REASON_INPUT_DIFFERS
                               : agreed_id ? REASON_BETWEEN_HASHES
                                           : REASON_BEFORE_HASHES);
    analyzer->op_hashes.finding = finding_add(analyzer, &draft);
}

void op_hashes_count_launch(struct analyzer *analyzer, const struct event *event)
{
    struct history_entry *entry = history_find(&analyzer->history, event->id);
    if (!entry || event_graph_id(event) || event->outcome != EVENT_DONE)
        return;
    entry->run_launch = ++analyzer->op_hashes.launches;
    if (entry->run_launch > analyzer->result.run_launches && analyzer->op_hashes.whole)
        analyzer->result.run_launches = entry->run_launch;
}

/* ---- Copies out ----------------------------------------------------------------------------- */

/* The last launch before the copy that wrote all it reads; 0: not known. */
static uint64_t writer_of(const struct analyzer *analyzer, const struct event *copy)
{
    const struct history *history = &analyzer->history;
    const struct event_access *read = &copy->accesses[0];
    uint64_t at = history_lower(history, copy->id);
    for (; copy->access_count && at > history_first(history); at--) {
        const struct event *event = &history_at(history, at - 1)->event;
        for (uint32_t i = 0; event_is_work(event->kind) && i < event->access_count; i++) {
            const struct event_access *written = &event->accesses[i];
            bool meets = written->address < read->address + read->bytes &&
                         read->address < written->address + written->bytes;
            if (!(written->mode & EVENT_WRITE) || !meets)
                continue;
            bool covers = written->address <= read->address &&
                          read->address + read->bytes <= written->address + written->bytes;
            return covers && event->kind == EVENT_LAUNCH ? event->id : 0;
        }
    }
    return 0;
}

/* The digests of a copy's source are reported while the host waits for the copy: after the event of
 * the wait, which has an earlier id. What a difference follows from is known when the iteration is
 * over. */
bool op_hashes_hold(struct analyzer *analyzer, const struct finding *draft,
                    const struct event *copy)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    if (!hashes->entries || !hashes->whole || hashes->held_count == OP_HASH_HELD_LIMIT)
        return false;
    uint64_t writer_id = writer_of(analyzer, copy);
    const struct history_entry *writer = history_find(&analyzer->history, writer_id);
    hashes->held[hashes->held_count++] =
        (struct op_hashes_held){ .draft = *draft,
                                 .writer_id = writer_id,
                                 .agrees = writer && writer->outputs_agree,
                                 .differs = writer && writer->outputs_differ };
    return true;
}

/* An output of the launch agrees, or does not. */
static void note_output(struct op_hashes *hashes, struct history_entry *entry, bool agrees)
{
    entry->outputs_agree = entry->outputs_agree || agrees;
    entry->outputs_differ = entry->outputs_differ || !agrees;
    for (uint32_t i = 0; i < hashes->held_count; i++)
        if (hashes->held[i].writer_id == entry->event.id) {
            hashes->held[i].agrees = entry->outputs_agree;
            hashes->held[i].differs = entry->outputs_differ;
        }
}

/* Was the copy made before the first launch that differs? What it brought to the host may be what
 * that launch was given. */
static bool is_before(const struct analyzer *analyzer, const struct finding *copy)
{
    const struct finding *first = &analyzer->result.findings[analyzer->op_hashes.finding];
    return copy->cause.event_id < first->cause.event_id;
}

void op_hashes_flush(struct analyzer *analyzer)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    for (uint32_t i = 0; i < hashes->held_count; i++) {
        struct finding *draft = &hashes->held[i].draft;
        bool follows = hashes->finding >= 0 && !is_before(analyzer, draft);
        draft->consequence_of = follows ? hashes->finding : -1;
        /* It read equal bytes and gave others. */
        if (!follows && hashes->held[i].agrees && !hashes->held[i].differs)
            draft->attribution = FINDING_CULPRIT;
        finding_add(analyzer, draft);
    }
    hashes->held_count = 0;
}

/* ---- Adding --------------------------------------------------------------------------------- */

void op_hashes_add(struct analyzer *analyzer, const struct event *event)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    struct history_entry *entry = history_find(&analyzer->history, event->cause_id);
    const struct result_entry *first = NULL;
    if (!hashes->whole || !entry || event->access_count != 1 ||
        event->operand >= EVENT_ACCESS_LIMIT)
        return;
    if (!make_table(hashes)) {
        analyze_lost(analyzer, 1);
        return;
    }
    bool input = event->accesses[0].mode == EVENT_READ;
    enum op_hash_state state = hold_against(analyzer, entry, event, &first);
    uint16_t bit = (uint16_t)(1u << event->operand);
    if (input && state != OP_HASH_NO_ROOM)
        entry->inputs_hashed |= bit;
    if (state == OP_HASH_FIRST || state == OP_HASH_NO_ROOM)
        return;
    if (!analyzer->warming)
        analyzer->result.ops_compared++;
    if (!input)
        note_output(hashes, entry, state == OP_HASH_AGREES);
    if (state == OP_HASH_AGREES) {
        if (!input && hashes->agreed_id != entry->event.id) {
            hashes->agreed_before_id = hashes->agreed_id;
            hashes->agreed_id = entry->event.id;
        }
        return;
    }
    uint64_t agreed_id = hashes->agreed_id == entry->event.id ? hashes->agreed_before_id
                                                              : hashes->agreed_id;
    if (hashes->finding < 0)
        note_interval(analyzer, entry, agreed_id);
    bool known = (inputs_of(&entry->event) & ~entry->inputs_hashed) == 0;
    if (input) {
        entry->inputs_differ |= bit;
        if (hashes->finding < 0)
            add_interval(analyzer, event, first, agreed_id, true);
    } else if (known && !entry->inputs_differ) {
        add_culprit(analyzer, event, first);
    } else if (hashes->finding < 0) {
        add_interval(analyzer, event, first, agreed_id, false);
    }
}
