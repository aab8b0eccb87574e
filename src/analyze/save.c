/* save.c - the analyzer's counters and findings as bytes; restore.c reads them back. Clocks and
 * ranges are not in it: they are rebuilt from what the ring still holds. Results of equal runs fill
 * what room is left, so that a later run can be compared with them. */
#include "analyze/save.h"

#include "analyze/analyze_impl.h"
#include "base/size.h"

#include <string.h>

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
    put_number(&out, result->subjects.seen, 4);
    put_number(&out, result->subjects.missed, 4);
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
    size_t result_count = min_u64(analyzer->results.count, room);
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
