/* worker_lines.c - what a worker writes for its auditor (lines of JSON) and for people (the row's
 * log): signs of life, and the beginning and end of each iteration. */
#include "campaign/worker_lines.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BEAT_NS UINT64_C(500000000)

void worker_tell(struct worker *worker, json_t *line)
{
    char *text = line ? json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(line);
    size_t length = text ? strlen(text) : 0;
    if (text) {
        text[length] = '\n'; /* in one write, so that a line is there or not */
        if (write(worker->results, text, length + 1) != (ssize_t)length + 1)
            __atomic_store_n(&worker->silent, true, __ATOMIC_RELAXED);
    }
    free(text);
    __atomic_store_n(&worker->beat_ns, clock_ns(), __ATOMIC_RELAXED);
}

void worker_log(struct worker *worker, const char *format, ...)
{
    char line[1024];
    if (worker->log < 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof(line) - 1, format, arguments);
    va_end(arguments);
    size_t count = length < 0 ? 0 : (size_t)length;
    if (count > sizeof(line) - 2)
        count = sizeof(line) - 2;
    line[count++] = '\n';
    if (write(worker->log, line, count) != (ssize_t)count)
        __atomic_store_n(&worker->silent, true, __ATOMIC_RELAXED);
}

static bool is_beat_due(const struct worker *worker)
{
    uint64_t due_ns = worker->job->hang_limit_ns / 4;
    if (due_ns == 0 || due_ns > BEAT_NS)
        due_ns = BEAT_NS;
    return clock_ns() - __atomic_load_n(&worker->beat_ns, __ATOMIC_RELAXED) >= due_ns;
}

void worker_beat(struct worker *worker)
{
    if (is_beat_due(worker))
        worker_tell(worker, json_pack("{s:s}", "kind", "beat"));
}

bool worker_on_pulse(void *context, const struct pulse_watch *watch, bool on_device)
{
    struct worker *worker = context;
    const struct crumb_watch *crumbs = &watch->crumbs;
    if (!is_beat_due(worker))
        return false;
    json_t *line = json_pack("{s:s, s:s}", "kind", "beat", "phase", on_device ? "device" : "host");
    if (line && crumbs->moved_ns) {
        json_object_set_new(line, "stream", json_integer(crumbs->moved_stream));
        json_object_set_new(line, "launch",
                            json_integer((json_int_t)crumbs->seen[crumbs->moved_stream].entered));
    }
    worker_tell(worker, line);
    return true;
}

void worker_ready(struct worker *worker)
{
    worker_tell(worker, json_pack("{s:s}", "kind", "ready"));
    pulse_set_phase(worker->pulse, true);
}

void worker_count_event(void *context, const struct event *event)
{
    struct worker_counts *counts = context;
    if (event->phase != EVENT_END || event->outcome != EVENT_DONE)
        return;
    if (event->kind == EVENT_LAUNCH)
        __atomic_add_fetch(&counts->launches, 1, __ATOMIC_RELAXED);
    if (event->kind == EVENT_COPY_OUT) {
        __atomic_add_fetch(&counts->copies_out, 1, __ATOMIC_RELAXED);
        __atomic_add_fetch(&counts->copy_out_bytes, event->copy.bytes, __ATOMIC_RELAXED);
    }
}

static uint64_t counted(const uint64_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

enum status worker_check_lost(const struct worker *worker, struct error *err)
{
    enum status status = device_check(worker->device, err);
    return status == STATUS_LOST ? status : STATUS_OK;
}

enum status worker_run_begin(struct worker *worker, struct worker_run *run, struct error *err)
{
    worker->run_number++;
    run->begin_ns = clock_ns();
    device_run_begin(worker->device, worker->run_number, run->key);
    return worker_check_lost(worker, err);
}

void worker_run_end(struct worker *worker, const struct worker_run *run, enum status status,
                    const struct error *err)
{
    char result[20];
    const struct worker_counts *counts = &worker->counts;
    snprintf(result, sizeof(result), "%016" PRIx64, run->result);
    worker_log(worker, "run %" PRIu64 " %s: %s%s, %.3f ms, %" PRIu64 " tokens, result %s",
               worker->run_number, run->work, status ? "FAILED: " : "OK", status ? err->text : "",
               (double)(clock_ns() - run->begin_ns) / 1e6, run->tokens, result);
    worker_tell(
        worker,
        json_pack("{s:s, s:s, s:I, s:f, s:s?, s:s?, s:I, s:I, s:f, s:f, s:s, s:I, s:I, s:I}",
                  "kind", "run", "work", run->work, "number", (json_int_t)worker->run_number, "ms",
                  (double)(clock_ns() - run->begin_ns) / 1e6, "status",
                  status ? status_name(status) : NULL, "error", status ? err->text : NULL, "tokens",
                  (json_int_t)run->tokens, "prompt_tokens", (json_int_t)run->prompt_tokens,
                  "prompt_ms", (double)run->prompt_ns / 1e6, "decode_ms",
                  (double)run->decode_ns / 1e6, "result", result, "launches",
                  (json_int_t)counted(&counts->launches), "copies_out",
                  (json_int_t)counted(&counts->copies_out), "copy_out_bytes",
                  (json_int_t)counted(&counts->copy_out_bytes)));
}
