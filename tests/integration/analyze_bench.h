/* analyze_bench.h - a device that is recorded into a flight file, and analyses compared with each
 * other. */
#ifndef GRETA_TESTS_ANALYZE_BENCH_H
#define GRETA_TESTS_ANALYZE_BENCH_H

#include "analyze/analyze.h"
#include "base/clock.h"
#include "base/text.h"
#include "device_fixture.h"
#include "event/fan.h"
#include "report/report.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A workload ----------------------------------------------------------------------------- */

struct bench {
    char path[128];
    struct flight *flight;
    struct device *device;
    struct device_stream streams[2];
    struct device_mark there, back;
    struct error err;
};

static inline void bench_open(struct bench *bench, const char *folder, const char *name,
                              uint32_t record_count, bool guards)
{
    memset(bench, 0, sizeof(*bench));
    snprintf(bench->path, sizeof(bench->path), "%s/%s.flight", folder, name);
    struct flight_options flight_options = { .record_count = record_count,
                                             .device = "host",
                                             .command = "test --audit guard" };
    CHECK_OK(flight_create(bench->path, &flight_options, &bench->flight, &bench->err), &bench->err);
    struct device_options options = { .observer = flight_observer(bench->flight),
                                      .crumbs = flight_crumbs(bench->flight),
                                      .thread_count = 1,
                                      .guards = guards,
                                      /* Freed memory stays readable: what is found must not
                                       * depend on whether the work was done by then. */
                                      .quarantine_bytes = guards ? 0 : (uint64_t)1 << 30,
                                      .hash_results = true };
    CHECK_OK(host_device_open(&options, &bench->device, &bench->err), &bench->err);
    CHECK_OK(device_module_load(bench->device, &test_image, DEVICE_HERE, &bench->err), &bench->err);
    for (size_t i = 0; i < 2; i++)
        CHECK_OK(device_stream_create(bench->device, DEVICE_HERE, &bench->streams[i], &bench->err),
                 &bench->err);
    CHECK_OK(device_mark_create(bench->device, &bench->there, &bench->err), &bench->err);
    CHECK_OK(device_mark_create(bench->device, &bench->back, &bench->err), &bench->err);
}

static inline void bench_close(struct bench *bench)
{
    device_close(bench->device);
    flight_close(bench->flight);
}

static inline struct device_view make_floats(struct bench *bench, uint64_t count, const char *name)
{
    struct device_view view = { .dtype = DTYPE_F32, .shape = shape_make(1, &count) };
    CHECK_OK(device_buffer_create(bench->device, count * sizeof(float), name, DEVICE_HERE,
                                  &view.buffer, &bench->err),
             &bench->err);
    return view;
}

static inline void set_scope(struct bench *bench, size_t stream, int32_t layer, int32_t step,
                             const char *tensor)
{
    struct event_scope scope = { step, layer, "" };
    event_set_text(scope.tensor, sizeof(scope.tensor), tensor);
    device_scope_set(bench->device, bench->streams[stream], &scope);
}

/* Failures are the point of some runs. */
static inline void launch(struct bench *bench, size_t stream, const struct device_launch *launch)
{
    struct error unused;
    if (device_launch(bench->device, bench->streams[stream], launch, DEVICE_HERE, &unused))
        return;
}

/* ---- Comparing ------------------------------------------------------------------------------ */

static inline void check_place(const char *what, const struct analyze_place *a,
                               const struct analyze_place *b)
{
    if (a->event_id != b->event_id || a->kind != b->kind || strcmp(a->op, b->op) != 0 ||
        a->scope.layer != b->scope.layer || a->scope.step != b->scope.step ||
        strcmp(a->scope.tensor, b->scope.tensor) != 0 || a->stream_index != b->stream_index ||
        a->iteration != b->iteration || a->operand != b->operand || a->address != b->address ||
        a->bytes != b->bytes || strcmp(a->buffer, b->buffer) != 0 || a->line != b->line ||
        a->node != b->node || a->epoch != b->epoch || a->time_ns != b->time_ns)
        fail_msg("%s: event %" PRIu64 " (%s, %s) against event %" PRIu64 " (%s, %s)", what,
                 a->event_id, a->op, a->buffer, b->event_id, b->op, b->buffer);
}

static inline void check_equal(const struct analysis *a, const struct analysis *b)
{
    assert_int_equal(a->finding_count, b->finding_count);
    assert_int_equal(a->root, b->root);
    assert_int_equal(a->device_lost, b->device_lost);
    assert_int_equal(a->iteration_count, b->iteration_count);
    for (size_t i = 0; i < a->finding_count; i++) {
        const struct finding *x = &a->findings[i], *y = &b->findings[i];
        assert_int_equal(x->hypothesis, y->hypothesis);
        assert_int_equal(x->certainty, y->certainty);
        check_place("cause", &x->cause, &y->cause);
        check_place("other", &x->other, &y->other);
        check_place("seen", &x->seen, &y->seen);
        assert_int_equal(x->check, y->check);
        assert_int_equal(x->expected, y->expected);
        assert_int_equal(x->found, y->found);
        assert_int_equal(x->near.known, y->near.known);
        assert_int_equal(x->near.address, y->near.address);
        assert_string_equal(x->near.live.name, y->near.live.name);
        assert_string_equal(x->near.freed.name, y->near.freed.name);
        assert_string_equal(x->near.before.name, y->near.before.name);
        assert_string_equal(x->near.after.name, y->near.after.name);
        assert_int_equal(x->near.before.distance, y->near.before.distance);
        assert_int_equal(x->candidate_count, y->candidate_count);
        assert_int_equal(x->order_id, y->order_id);
        assert_int_equal(x->count, y->count);
        assert_int_equal(x->consequence_of, y->consequence_of);
        assert_int_equal(x->reason, y->reason);
    }
}

static inline void show(const struct analysis *analysis)
{
    struct text text;
    text_init(&text);
    for (size_t i = 0; i < analysis->finding_count; i++) {
        text_addf(&text, "  %zu (%d) %s: ", i, analysis->findings[i].consequence_of,
                  hypothesis_info(analysis->findings[i].hypothesis)->slug);
        report_finding_describe(&analysis->findings[i], REPORT_ENGLISH, &text);
        text_add(&text, "\n");
    }
    print_message("%s", text_get(&text));
    text_release(&text);
}

/* ---- Folder ---------------------------------------------------------------------------------- */

static inline int make_folder(void **state)
{
    static char folder[64];
    snprintf(folder, sizeof(folder), "/tmp/greta-analyze-XXXXXX");
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    return rmdir(*state);
}

#endif
