/* save.c - the analyzer's counters and findings as bytes, and back. Clocks and ranges are not in
 * it: they are rebuilt from what the ring still holds. Results of equal runs fill what room is
 * left, so that a later run can be held against them.
 *
 * A checkpoint is read from a file that may come from anybody: restoring checks everything. */
#include "analyze/analyze_impl.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define SAVE_MAGIC UINT32_C(0x37415247) /* "GRA7" */
/* Before recordings could have several devices. */
#define SAVE_MAGIC_ONE_DEVICE UINT32_C(0x36415247) /* "GRA6" */
/* A reason is saved by its name. Older checkpoints have a sentence there, which names none. */
#define SAVED_REASON_BYTES 160

/* ---- Writing -------------------------------------------------------------------------------- */

struct pack {
    uint8_t *bytes;
    size_t at, capacity;
    bool full;
};

static void put(struct pack *out, const void *bytes, size_t count)
{
    if (out->full || count > out->capacity - out->at) {
        out->full = true;
        return;
    }
    memcpy(out->bytes + out->at, bytes, count);
    out->at += count;
}

static void put_number(struct pack *out, uint64_t value, size_t count)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    put(out, bytes, count);
}

static void put_text(struct pack *out, const char *text)
{
    size_t length = strlen(text);
    put_number(out, length, 1);
    put(out, text, length);
}

static void put_place(struct pack *out, const struct analyze_place *place)
{
    bool somebody = place->event_id || place->op[0];
    put_number(out, somebody, 1);
    if (!somebody)
        return;
    put_number(out, place->event_id, 8);
    put_number(out, place->time_ns, 8);
    put_number(out, place->kind, 1);
    put_text(out, place->op);
    put_number(out, (uint32_t)place->scope.step, 4);
    put_number(out, (uint32_t)place->scope.layer, 4);
    put_text(out, place->scope.tensor);
    put_text(out, place->file);
    put_number(out, place->line, 4);
    put_number(out, place->stream_index, 4);
    put_number(out, place->device_index, 2);
    put_number(out, place->thread_index, 4);
    put_number(out, place->epoch, 2);
    put_number(out, place->node, 4);
    put_number(out, place->iteration, 8);
    put_number(out, place->operand, 1);
    put_number(out, place->mode, 1);
    put_number(out, place->address, 8);
    put_number(out, place->bytes, 8);
    put_number(out, place->buffer_index, 4);
    put_number(out, place->generation, 2);
    put_text(out, place->buffer);
    put_number(out, place->foreign, 1);
    put_number(out, place->stack_index, 4);
    put_number(out, place->name_index, 4);
    put_number(out, place->ordinal, 8);
}

static void put_neighbour(struct pack *out, const struct analyze_neighbour *neighbour)
{
    put_number(out, neighbour->bytes != 0, 1);
    if (neighbour->bytes == 0)
        return;
    put_number(out, neighbour->address, 8);
    put_number(out, neighbour->bytes, 8);
    put_number(out, neighbour->created_id, 8);
    put_number(out, neighbour->destroyed_id, 8);
    put_number(out, (uint64_t)neighbour->distance, 8);
    put_text(out, neighbour->name);
}

static void put_finding(struct pack *out, const struct finding *finding)
{
    put_number(out, finding->hypothesis, 1);
    put_number(out, finding->certainty, 1);
    put_number(out, finding->attribution, 1);
    put_place(out, &finding->cause);
    put_place(out, &finding->other);
    put_place(out, &finding->seen);
    put_place(out, &finding->moved);
    put_number(out, finding->moved_ago_ns, 8);
    put_number(out, finding->check, 1);
    put_number(out, finding->expected, 8);
    put_number(out, finding->found, 8);
    put_number(out, finding->near.known, 1);
    put_number(out, finding->near.address, 8);
    put_neighbour(out, &finding->near.live);
    put_neighbour(out, &finding->near.before);
    put_neighbour(out, &finding->near.after);
    put_neighbour(out, &finding->near.freed);
    put_number(out, finding->candidate_count, 1);
    for (uint32_t i = 0; i < finding->candidate_count; i++)
        put_place(out, &finding->candidates[i]);
    put_number(out, finding->candidates_left_out, 8);
    put_number(out, finding->order_id, 8);
    put_number(out, finding->count, 8);
    put_number(out, (uint32_t)finding->consequence_of, 4);
    put_text(out, finding_reason_name(finding->reason));
}

static void put_losses(struct pack *out, const struct analyzer *analyzer)
{
    uint32_t count = EVENT_DEVICE_LIMIT;
    while (count && !analyzer->losses[count - 1].fault_id &&
           !analyzer->losses[count - 1].first_failure.event_id)
        count--;
    put_number(out, count, 1);
    for (uint32_t i = 0; i < count; i++) {
        put_number(out, analyzer->losses[i].fault_id, 8);
        put_place(out, &analyzer->losses[i].first_failure);
    }
}

size_t analyzer_save(const struct analyzer *analyzer, void *bytes, size_t capacity)
{
    const struct analysis *result = &analyzer->result;
    struct pack out = { .bytes = bytes, .capacity = capacity };
    put_number(&out, SAVE_MAGIC, 4);
    put_number(&out, result->event_count, 8);
    put_number(&out, result->iteration_count, 8);
    put_number(&out, result->compared_count, 8);
    put_number(&out, result->ops_compared, 8);
    put_number(&out, result->op_agreed, 8);
    put_number(&out, result->op_differs, 8);
    put_number(&out, result->run_launches, 8);
    put_number(&out, result->lost_count + analyze_forgotten(analyzer), 8);
    put_number(&out, result->device_lost, 1);
    put_number(&out, analyzer->iteration, 8);
    put_number(&out, analyzer->order.forgotten_accesses, 8);
    put_number(&out, analyzer->results.run_key, 8);
    put_number(&out, analyzer->results.in_run, 1);
    put_number(&out, analyzer->results.compared, 1);
    put_number(&out, (uint32_t)analyzer->results.first_step, 4);
    for (size_t i = 0; i < HYPOTHESIS_COUNT; i++) {
        put_number(&out, result->coverage[i].checked, 8);
        put_number(&out, result->coverage[i].total, 8);
    }
    put_losses(&out, analyzer);
    size_t count_at = out.at;
    put_number(&out, 0, 4); /* findings kept */
    put_number(&out, 0, 8); /* and dropped: what does not fit is counted */
    if (out.full)
        return 0;
    size_t kept = 0;
    for (; kept < result->finding_count && !out.full; kept++) {
        size_t before = out.at;
        put_finding(&out, &result->findings[kept]);
        put_number(&out, 0, 4); /* room for the count of results */
        if (out.full) {
            out.at = before;
            break;
        }
        out.at -= 4;
    }
    out.full = false;
    struct pack head = { .bytes = bytes, .at = count_at, .capacity = capacity };
    put_number(&head, kept, 4);
    put_number(&head, result->findings_dropped + result->finding_count - kept, 8);
    size_t results_at = out.at;
    put_number(&out, 0, 4);
    size_t room = (capacity - out.at) / 32;
    size_t result_count = analyzer->results.count < room ? analyzer->results.count : room;
    for (size_t i = 0; i < result_count; i++) {
        const struct result_entry *entry = &analyzer->results.entries[i];
        put_number(&out, entry->key, 8);
        put_number(&out, entry->hash, 8);
        put_number(&out, entry->copy_id, 8);
        put_number(&out, entry->iteration, 8);
    }
    head = (struct pack){ .bytes = bytes, .at = results_at, .capacity = capacity };
    put_number(&head, result_count, 4);
    return out.at;
}

/* ---- Reading -------------------------------------------------------------------------------- */

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
    if (magic != SAVE_MAGIC && !in.one_device)
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
