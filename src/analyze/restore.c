/* restore.c - reads the bytes that save.c wrote into an analyzer.
 *
 * A checkpoint is read from a file that may come from anyone: restoring checks everything. */
#include "analyze/analyze_impl.h"
#include "analyze/save.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Reads on past the first error, which is asked at the end. */
struct unpack {
    struct bytes in;
    struct error err;
    bool one_device; /* it does not say which */
    bool bad;
};

static uint64_t get_number(struct unpack *in, size_t count)
{
    const uint8_t *bytes;
    uint64_t value = 0;
    if (in->bad || bytes_take(&in->in, "number", count, &bytes, &in->err)) {
        in->bad = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++)
        value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

static uint64_t get_below(struct unpack *in, size_t count, uint64_t limit)
{
    uint64_t value = get_number(in, count);
    if (value >= limit)
        in->bad = true;
    return in->bad ? 0 : value;
}

static void get_text(struct unpack *in, char *field, size_t field_bytes)
{
    const uint8_t *bytes;
    uint64_t length = get_below(in, 1, field_bytes);
    field[0] = '\0';
    if (in->bad || bytes_take(&in->in, "text", length, &bytes, &in->err)) {
        in->bad = true;
        return;
    }
    memcpy(field, bytes, (size_t)length);
    field[length] = '\0';
}

static void get_place(struct unpack *in, struct analyze_place *place)
{
    if (!get_below(in, 1, 2))
        return;
    place->event_id = get_number(in, 8);
    place->time_ns = get_number(in, 8);
    place->kind = (uint8_t)get_below(in, 1, EVENT_KIND_COUNT);
    get_text(in, place->op, sizeof(place->op));
    place->scope.step = (int32_t)(uint32_t)get_number(in, 4);
    place->scope.layer = (int32_t)(uint32_t)get_number(in, 4);
    get_text(in, place->scope.tensor, sizeof(place->scope.tensor));
    get_text(in, place->file, sizeof(place->file));
    place->line = (uint32_t)get_number(in, 4);
    place->stream_index = (uint32_t)get_number(in, 4);
    place->device_index = in->one_device ? 0 : (uint16_t)get_below(in, 2, EVENT_DEVICE_LIMIT);
    place->thread_index = (uint32_t)get_number(in, 4);
    place->epoch = (uint16_t)get_number(in, 2);
    place->node = (uint32_t)get_number(in, 4);
    place->iteration = get_number(in, 8);
    place->operand = (uint8_t)get_number(in, 1);
    place->mode = (uint8_t)get_number(in, 1);
    place->address = get_number(in, 8);
    place->bytes = get_number(in, 8);
    place->buffer_index = (uint32_t)get_number(in, 4);
    place->generation = (uint16_t)get_number(in, 2);
    get_text(in, place->buffer, sizeof(place->buffer));
    place->foreign = get_below(in, 1, 2) != 0;
    place->stack_index = (uint32_t)get_number(in, 4);
    place->name_index = (uint32_t)get_number(in, 4);
    place->ordinal = get_number(in, 8);
}

static void get_neighbour(struct unpack *in, struct analyze_neighbour *neighbour)
{
    if (!get_below(in, 1, 2))
        return;
    neighbour->address = get_number(in, 8);
    neighbour->bytes = get_number(in, 8);
    neighbour->created_id = get_number(in, 8);
    neighbour->destroyed_id = get_number(in, 8);
    neighbour->distance = (int64_t)get_number(in, 8);
    get_text(in, neighbour->name, sizeof(neighbour->name));
}

static void get_finding(struct unpack *in, size_t count, struct finding *ret)
{
    *ret = finding_draft(HYPOTHESIS_SIZE_MISMATCH, FINDING_POSSIBLE);
    ret->hypothesis = (enum hypothesis)get_below(in, 1, HYPOTHESIS_COUNT);
    ret->certainty = (enum finding_certainty)get_below(in, 1, FINDING_POSSIBLE + 1);
    ret->attribution = (enum finding_attribution)get_below(in, 1, FINDING_ATTRIBUTION_COUNT);
    get_place(in, &ret->cause);
    get_place(in, &ret->other);
    get_place(in, &ret->seen);
    get_place(in, &ret->moved);
    ret->moved_ago_ns = get_number(in, 8);
    ret->check = (uint8_t)get_below(in, 1, EVENT_CHECK_COUNT);
    ret->expected = get_number(in, 8);
    ret->found = get_number(in, 8);
    ret->near.known = get_below(in, 1, 2) != 0;
    ret->near.address = get_number(in, 8);
    get_neighbour(in, &ret->near.live);
    get_neighbour(in, &ret->near.before);
    get_neighbour(in, &ret->near.after);
    get_neighbour(in, &ret->near.freed);
    ret->candidate_count = (uint32_t)get_below(in, 1, FINDING_CANDIDATE_LIMIT + 1);
    for (uint32_t i = 0; i < ret->candidate_count; i++)
        get_place(in, &ret->candidates[i]);
    ret->candidates_left_out = get_number(in, 8);
    ret->order_id = get_number(in, 8);
    ret->count = get_number(in, 8);
    uint32_t from = (uint32_t)get_number(in, 4);
    ret->consequence_of = from == UINT32_MAX ? -1 : (int32_t)from;
    if (from != UINT32_MAX && from >= count)
        ret->consequence_of = -1; /* it did not fit the checkpoint */
    char reason[SAVED_REASON_BYTES];
    get_text(in, reason, sizeof(reason));
    ret->reason = finding_reason_from_name(reason);
}

static void get_results(struct unpack *in, struct results *results)
{
    uint64_t count = get_below(in, 4, RESULT_LIMIT + 1);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        struct result_entry entry = { .key = get_number(in, 8) };
        entry.hash = get_number(in, 8);
        entry.copy_id = get_number(in, 8);
        entry.iteration = get_number(in, 8);
        if (!in->bad && idmap_set(&results->map, entry.key, results->count))
            results->entries[results->count++] = entry;
    }
}

/* How a device was lost, as far as a checkpoint says. */
struct loss {
    uint64_t fault_id;
    struct analyze_place failure;
};

static void get_losses(struct unpack *in, struct loss losses[EVENT_DEVICE_LIMIT])
{
    if (in->one_device) {
        get_place(in, &losses[0].failure);
        return;
    }
    uint64_t count = get_below(in, 1, EVENT_DEVICE_LIMIT + 1);
    for (uint64_t i = 0; i < count && !in->bad; i++) {
        losses[i].fault_id = get_number(in, 8);
        get_place(in, &losses[i].failure);
    }
}

bool analyzer_restore(struct analyzer *analyzer, const void *bytes, size_t count)
{
    struct analysis result = { .level = analyzer->result.level, .root = -1, .defect = -1 };
    struct unpack in = { 0 };
    struct loss losses[EVENT_DEVICE_LIMIT];
    bytes_init(&in.in, bytes, count, "checkpoint");
    uint64_t magic = get_number(&in, 4);
    in.one_device = magic == SAVE_MAGIC_ONE_DEVICE;
    if (magic != SAVE_MAGIC && magic != SAVE_MAGIC_NO_SUBJECTS && !in.one_device)
        return false;
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++)
        losses[i] = (struct loss){ 0, analyzer->losses[i].first_failure };
    result.event_count = get_number(&in, 8);
    result.iteration_count = get_number(&in, 8);
    result.compared_count = get_number(&in, 8);
    result.ops_compared = get_number(&in, 8);
    result.op_agreed = get_number(&in, 8);
    result.op_differs = get_number(&in, 8);
    result.run_launches = get_number(&in, 8);
    result.lost_count = get_number(&in, 8);
    result.device_lost = get_below(&in, 1, 2) != 0;
    uint64_t iteration = get_number(&in, 8);
    if (in.one_device)
        losses[0].fault_id = get_number(&in, 8);
    uint64_t forgotten = get_number(&in, 8);
    uint64_t run_key = get_number(&in, 8);
    bool in_run = get_below(&in, 1, 2) != 0;
    bool compared = get_below(&in, 1, 2) != 0;
    int32_t first_step = (int32_t)(uint32_t)get_number(&in, 4);
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        result.coverage[i].checked = get_number(&in, 8);
        result.coverage[i].total = get_number(&in, 8);
    }
    if (magic == SAVE_MAGIC) {
        result.subjects.seen = (uint32_t)get_number(&in, 4);
        result.subjects.missed = (uint32_t)get_number(&in, 4);
    }
    get_losses(&in, losses);
    size_t finding_count = (size_t)get_below(&in, 4, FLIGHT_CHECKPOINT_BYTES);
    result.findings_dropped = get_number(&in, 8);
    if (in.bad || finding_count > analyzer->options.finding_limit)
        return false;
    struct finding *findings = calloc(finding_count + 1, sizeof(*findings));
    if (!findings)
        return false;
    for (size_t i = 0; i < finding_count && !in.bad; i++)
        get_finding(&in, finding_count, &findings[i]);
    if (in.bad) {
        free(findings);
        return false;
    }
    get_results(&in, &analyzer->results); /* those that can be read are good */
    free(analyzer->result.findings);
    result.findings = findings;
    result.finding_count = finding_count;
    analyzer->result = result;
    analyzer->finding_capacity = finding_count + 1;
    analyzer->iteration = iteration;
    analyzer->order.forgotten_accesses = forgotten;
    analyzer->results.run_key = run_key;
    analyzer->results.in_run = in_run;
    analyzer->results.compared = compared;
    analyzer->results.first_step = first_step;
    for (uint32_t i = 0; i < EVENT_DEVICE_LIMIT; i++) {
        analyzer->losses[i].fault_id = losses[i].fault_id;
        analyzer->losses[i].first_failure = losses[i].failure;
    }
    return true;
}
