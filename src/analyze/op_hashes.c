/* op_hashes.c - operands of launches, hashed in stream order, held against the same ones of an
 * earlier equal iteration: the first op whose inputs agree and whose output does not is the one
 * that made the difference.
 *
 * Each digest is compared when it is told. Inputs are told before outputs, so that what is known of
 * a launch's inputs is there when its first output comes. */
#include "analyze/analyze_impl.h"

#include <stdlib.h>

static bool make_table(struct op_hashes *hashes)
{
    if (hashes->entries)
        return true;
    hashes->entries = calloc(OP_HASH_LIMIT, sizeof(*hashes->entries));
    bool good = hashes->entries && idmap_init(&hashes->map, OP_HASH_LIMIT) &&
                idmap_init(&hashes->nth, OP_HASH_LIMIT);
    if (!good)
        op_hashes_release(hashes);
    return good;
}

void op_hashes_release(struct op_hashes *hashes)
{
    free(hashes->entries);
    idmap_release(&hashes->map);
    idmap_release(&hashes->nth);
    *hashes = (struct op_hashes){ .finding = -1 };
}

void op_hashes_begin_run(struct op_hashes *hashes, bool warming)
{
    hashes->whole = !warming;
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
    uint64_t key = results_key(&analyzer->results, &entry->event.scope);
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
    uint64_t key = results_mix(results_mix(launch, event->operand + 1u), event->accesses[0].mode);
    uint32_t place = idmap_find(&hashes->map, key);
    if (place == IDMAP_NONE) {
        if (hashes->count == OP_HASH_LIMIT || !idmap_set(&hashes->map, key, hashes->count))
            return OP_HASH_NO_ROOM;
        hashes->entries[hashes->count++] = (struct result_entry){ key, event->found,
                                                                  entry->event.id,
                                                                  analyzer->iteration };
        return OP_HASH_FIRST;
    }
    *ret_first = &hashes->entries[place];
    if ((*ret_first)->iteration == analyzer->iteration)
        return OP_HASH_FIRST;
    return (*ret_first)->hash == event->found ? OP_HASH_AGREES : OP_HASH_DIFFERS;
}

/* Bit of each operand that the launch reads. */
static uint16_t inputs_of(const struct event *launch)
{
    uint16_t inputs = 0;
    for (uint32_t i = 0; i < launch->access_count; i++)
        if ((launch->accesses[i].mode & EVENT_READ) &&
            !(launch->accesses[i].mode & EVENT_SCATTERED))
            inputs = (uint16_t)(inputs | 1u << launch->accesses[i].operand);
    return inputs;
}

static struct finding draft_of(const struct analyzer *analyzer, const struct event *event,
                               const struct result_entry *first)
{
    struct finding draft = finding_draft(HYPOTHESIS_NON_DETERMINISM, FINDING_DIRECT);
    draft.cause = place_of_remark(analyzer, event);
    draft.expected = first->hash;
    draft.found = event->found;
    return draft;
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
        draft.candidate_count = 2;
        draft.candidates[0] = draft.cause;
        draft.candidates[1] = draft.other;
    }
    finding_set_reason(&draft, input       ? REASON_INPUT_DIFFERS
                               : agreed_id ? REASON_BETWEEN_HASHES
                                           : REASON_BEFORE_HASHES);
    analyzer->op_hashes.finding = finding_add(analyzer, &draft);
}

bool op_hashes_agree_before(const struct analyzer *analyzer, const struct event *copy)
{
    const struct op_hashes *hashes = &analyzer->op_hashes;
    const struct history_entry *last = history_find(&analyzer->history, hashes->agreed_id);
    if (!hashes->whole || hashes->finding >= 0 || !last || copy->access_count == 0)
        return false;
    const struct event_access *read = &copy->accesses[0];
    for (uint32_t i = 0; i < last->event.access_count; i++) {
        const struct event_access *written = &last->event.accesses[i];
        if ((written->mode & EVENT_WRITE) && !(written->mode & EVENT_SCATTERED) &&
            written->address <= read->address &&
            read->address - written->address < written->bytes &&
            read->bytes <= written->bytes - (read->address - written->address))
            return true;
    }
    return false;
}

void op_hashes_add(struct analyzer *analyzer, const struct event *event)
{
    struct op_hashes *hashes = &analyzer->op_hashes;
    struct history_entry *entry = history_find(&analyzer->history, event->cause_id);
    const struct result_entry *first = NULL;
    if (!hashes->whole || !entry || event->access_count != 1 ||
        event->operand >= EVENT_ACCESS_LIMIT || !make_table(hashes))
        return;
    bool input = event->accesses[0].mode == EVENT_READ;
    enum op_hash_state state = hold_against(analyzer, entry, event, &first);
    uint16_t bit = (uint16_t)(1u << event->operand);
    if (input && state != OP_HASH_NO_ROOM)
        entry->inputs_hashed |= bit;
    if (state == OP_HASH_FIRST || state == OP_HASH_NO_ROOM)
        return;
    if (!analyzer->warming)
        analyzer->result.ops_compared++;
    if (state == OP_HASH_AGREES) {
        if (!input && hashes->agreed_id != entry->event.id) {
            hashes->agreed_before_id = hashes->agreed_id;
            hashes->agreed_id = entry->event.id;
        }
        return;
    }
    uint64_t agreed_id = hashes->agreed_id == entry->event.id ? hashes->agreed_before_id
                                                              : hashes->agreed_id;
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
