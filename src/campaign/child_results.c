/* child_results.c - the lines a worker wrote, as an outcome. The worker may have died within any
 * line. */
#include "campaign/child.h"

#include "base/array.h"
#include "base/mapfile.h"

#include <string.h>

static void keep(char *field, size_t field_bytes, const json_t *line, const char *key)
{
    const char *text = json_string_value(json_object_get(line, key));
    if (text && !field[0])
        event_set_text(field, field_bytes, text);
}

static uint64_t number(const json_t *line, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(line, key));
}

static double real(const json_t *line, const char *key)
{
    return json_number_value(json_object_get(line, key));
}

static void add_latency(struct child_outcome *outcome, double ms)
{
    double *larger = array_reserve(outcome->latencies_ms, outcome->latency_count,
                                   &outcome->latency_capacity, sizeof(*larger));
    if (!larger)
        return;
    outcome->latencies_ms = larger;
    outcome->latencies_ms[outcome->latency_count++] = ms;
}

static void add_error(struct child_outcome *outcome, const json_t *line)
{
    json_t *error = json_object_get(line, "error");
    if (!json_is_string(error))
        return;
    if (!outcome->errors_seen)
        outcome->errors_seen = json_array();
    for (size_t i = 0; i < json_array_size(outcome->errors_seen); i++)
        if (json_equal(json_array_get(outcome->errors_seen, i), error))
            return;
    if (json_array_size(outcome->errors_seen) < CHILD_ERROR_LIMIT)
        json_array_append(outcome->errors_seen, error);
}

/* An iteration fails once, whichever of its workloads does, and both. Without a main workload every
 * round is one. */
static void add_failure(struct child_outcome *outcome)
{
    if (outcome->done && outcome->failed_last == outcome->done)
        return;
    outcome->errors++;
    outcome->failed_last = outcome->done;
}

static void add_run(struct child_outcome *outcome, const json_t *line)
{
    const char *work = json_string_value(json_object_get(line, "work"));
    bool failed = json_is_string(json_object_get(line, "status"));
    keep(outcome->error, sizeof(outcome->error), line, "error");
    add_error(outcome, line);
    outcome->launches = number(line, "launches");
    outcome->copies_out = number(line, "copies_out");
    outcome->copy_out_bytes = number(line, "copy_out_bytes");
    if (work && strcmp(work, "streams") == 0) {
        outcome->streams_done++;
        if (failed)
            add_failure(outcome);
        return;
    }
    outcome->done++;
    if (failed)
        add_failure(outcome);
    add_latency(outcome, real(line, "ms"));
    outcome->tokens += number(line, "tokens");
    outcome->prompt_tokens += number(line, "prompt_tokens");
    outcome->prompt_ms += real(line, "prompt_ms");
    outcome->decode_ms += real(line, "decode_ms");
}

static void add_planted(struct child_planted *planted, const json_t *line)
{
    planted->reported = true;
    planted->planted = json_is_true(json_object_get(line, "planted"));
    planted->event_id = number(line, "event_id");
    planted->scope.layer = (int32_t)json_integer_value(json_object_get(line, "layer"));
    planted->scope.step = (int32_t)json_integer_value(json_object_get(line, "step"));
    keep(planted->scope.tensor, sizeof(planted->scope.tensor), line, "tensor");
    keep(planted->op, sizeof(planted->op), line, "op");
    keep(planted->operand, sizeof(planted->operand), line, "operand");
}

static void add_line(struct child_outcome *outcome, json_t *line)
{
    const char *kind = json_string_value(json_object_get(line, "kind"));
    if (!kind)
        return;
    if (strcmp(kind, "beat") == 0) {
        if (number(line, "launch")) {
            outcome->beat_launch = number(line, "launch");
            outcome->beat_stream = (uint32_t)number(line, "stream");
        }
    } else if (strcmp(kind, "run") == 0) {
        add_run(outcome, line);
    } else if (strcmp(kind, "start") == 0) {
        outcome->started = true;
        keep(outcome->device_kind, sizeof(outcome->device_kind), line, "device_kind");
        keep(outcome->device_name, sizeof(outcome->device_name), line, "device_name");
        keep(outcome->device_driver, sizeof(outcome->device_driver), line, "device_driver");
        outcome->device_memory_bytes = number(line, "device_memory");
    } else if (strcmp(kind, "ready") == 0) {
        outcome->ready = true;
    } else if (strcmp(kind, "missing") == 0) {
        keep(outcome->missing, sizeof(outcome->missing), line, "text");
    } else if (strcmp(kind, "failed") == 0) {
        keep(outcome->failed, sizeof(outcome->failed), line, "text");
    } else if (strcmp(kind, "planted") == 0) {
        add_planted(&outcome->planted, line);
    } else if (strcmp(kind, "live") == 0) {
        outcome->live_ended = true;
        keep(outcome->live_root, sizeof(outcome->live_root), line, "root");
        keep(outcome->live_hypothesis, sizeof(outcome->live_hypothesis), line, "hypothesis");
    } else if (strcmp(kind, "transfer") == 0) {
        if (!outcome->transfers)
            outcome->transfers = json_array();
        json_array_append(outcome->transfers, line);
    } else if (strncmp(kind, "compare", strlen("compare")) == 0) {
        if (!outcome->compares)
            outcome->compares = json_array();
        json_array_append(outcome->compares, line);
    } else if (strcmp(kind, "end") == 0) {
        outcome->ended = true;
        outcome->peak_bytes = number(line, "peak_bytes");
    }
}

enum status child_read_results(const char *path, struct child_outcome *outcome, struct error *err)
{
    struct mapfile map;
    TRY(mapfile_open(&map, path, err));
    const char *at = (const char *)map.data; /* NULL where nothing is written yet */
    const char *end = at ? at + map.size : NULL;
    while (at != end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        if (!line_end)
            break; /* cut by the end of the process */
        json_t *line = json_loadb(at, (size_t)(line_end - at), 0, NULL);
        if (json_is_object(line))
            add_line(outcome, line);
        json_decref(line);
        at = line_end + 1;
    }
    mapfile_release(&map);
    return STATUS_OK;
}

void child_outcome_release(struct child_outcome *outcome)
{
    free(outcome->latencies_ms);
    json_decref(outcome->transfers);
    json_decref(outcome->compares);
    json_decref(outcome->errors_seen);
    *outcome = (struct child_outcome){ 0 };
}
