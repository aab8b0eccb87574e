/* report_facts.h - facts of an audit made by hand: one with everything in it, hostile names
 * included, and one with as little as an audit can have. */
#ifndef GRETA_TESTS_REPORT_FACTS_H
#define GRETA_TESTS_REPORT_FACTS_H

#include "test.h"

#include "base/clock.h"
#include "event/flight.h"
#include "report/report.h"

#include <stdio.h>
#include <string.h>

/* Names that would break a page, a table, a line or a terminal. */
#define HOSTILE_SCRIPT "<script>alert('x')</script>"
#define HOSTILE_PIPE "a|b`c*d_e"
#define HOSTILE_LINE "one\ntwo\r\x1b[31m"
#define HOSTILE_BYTES "\xff\xfe\xc3(\xed\xa0\x80"

struct report_specimen {
    struct report_facts facts;
    struct finding findings[3];
    struct analysis analysis, clean;
    const struct analysis *analyses[2];
    struct report_row rows[4];
    double latencies[3][400];
    struct report_intervention interventions[2];
    struct report_ablation ablations[3];
    struct report_planted planted[4];
    struct report_transfer transfers[2];
    struct report_earlier earlier[2];
    struct report_difference differences[4];
    struct report_timing timings[3];
    const char *environment[2];
};

/* The seeds' case: rope at layer 17, step 3 reads a position past the table; the error surfaces at
 * the copy of the logits. Ids and times are those of specimen_flight. */
#define SPECIMEN_CAUSE_ID 61u
#define SPECIMEN_SEEN_ID 75u
#define SPECIMEN_START_NS 1000000000u
#define SPECIMEN_FAULT_ADDRESS 0x7f0000300010u

static inline struct analyze_place specimen_place(uint64_t id, enum event_kind kind, const char *op,
                                                  int32_t layer, int32_t step, const char *tensor)
{
    struct analyze_place place = { .event_id = id,
                                   .time_ns = SPECIMEN_START_NS + id * 50000,
                                   .kind = (uint8_t)kind,
                                   .scope = { .step = step, .layer = layer },
                                   .line = 120,
                                   .stream_index = kind == EVENT_BUFFER_DESTROY ? EVENT_NO_STREAM
                                                                                : 1,
                                   .thread_index = 2,
                                   .epoch = 3,
                                   .node = 44,
                                   .iteration = 7,
                                   .operand = 1,
                                   .mode = EVENT_READ,
                                   .address = SPECIMEN_FAULT_ADDRESS,
                                   .bytes = 4096,
                                   .buffer_index = 3 };
    event_set_text(place.op, sizeof(place.op), op);
    event_set_text(place.scope.tensor, sizeof(place.scope.tensor), tensor);
    event_set_text(place.file, sizeof(place.file), "engine/forward.c");
    event_set_text(place.buffer, sizeof(place.buffer), "rope.positions");
    return place;
}

static inline struct analyze_neighbour specimen_neighbour(const char *name, uint64_t address,
                                                          int64_t distance)
{
    struct analyze_neighbour one = {
        .address = address, .bytes = 65536, .distance = distance, .created_id = 3
    };
    event_set_text(one.name, sizeof(one.name), name);
    return one;
}

static inline void specimen_findings(struct report_specimen *s)
{
    s->findings[0] = (struct finding){
        .hypothesis = HYPOTHESIS_KERNEL_FAULT,
        .certainty = FINDING_DIRECT,
        .cause = specimen_place(SPECIMEN_CAUSE_ID, EVENT_LAUNCH, "rope", 17, 3, "blk.17.q"),
        .other = specimen_place(12, EVENT_BUFFER_DESTROY, "rope.positions", -1, -1, ""),
        .seen = specimen_place(SPECIMEN_SEEN_ID, EVENT_COPY_OUT, "", -1, 3, "logits"),
        .check = EVENT_CHECK_VIEW_END,
        .expected = 4096,
        .found = 2139062143,
        .near = { .known = true,
                  .address = SPECIMEN_FAULT_ADDRESS,
                  .before = specimen_neighbour("kv.keys", 0x7f0000200000, 983056),
                  .after = specimen_neighbour("kv.values", 0x7f0000400000, -1048560),
                  .freed = specimen_neighbour("rope.positions", 0x7f0000300000, 0) },
        .candidate_count = 2,
        .order_id = SPECIMEN_CAUSE_ID,
        .count = 1,
        .consequence_of = -1,
    };
    s->findings[0].candidates[0] = s->findings[0].cause;
    s->findings[0].candidates[1] = specimen_place(62, EVENT_LAUNCH, "kv_append", 17, 3, "blk.17.k");
    s->findings[1] = (struct finding){
        .hypothesis = HYPOTHESIS_SILENT_CORRUPTION,
        .certainty = FINDING_DIRECT,
        .cause = specimen_place(SPECIMEN_SEEN_ID, EVENT_COPY_OUT, "", -1, 3, "logits"),
        .order_id = SPECIMEN_SEEN_ID,
        .count = 12,
        .consequence_of = 0,
    };
    s->findings[2] = (struct finding){
        .hypothesis = HYPOTHESIS_HANG,
        .certainty = FINDING_POSSIBLE,
        .cause = specimen_place(90, EVENT_STREAM_SYNC, HOSTILE_PIPE, 2, 4, HOSTILE_SCRIPT),
        .order_id = 90,
        .count = 1,
        .consequence_of = -1,
    };
    s->analysis = (struct analysis){ .level = AUDIT_GUARD,
                                     .findings = s->findings,
                                     .finding_count = 3,
                                     .findings_dropped = 5,
                                     .event_count = 123456,
                                     .iteration_count = 7,
                                     .lost_count = 21,
                                     .dropped_count = 22,
                                     .damaged_count = 23,
                                     .device_lost = true,
                                     .root = 0 };
    s->clean = (struct analysis){
        .level = AUDIT_GUARD, .event_count = 999, .iteration_count = 50, .closed = true, .root = -1
    };
    s->analyses[0] = &s->clean;
    s->analyses[1] = &s->analysis;
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        s->analysis.coverage[i] = (struct hypothesis_coverage){ true, 480, 512 };
}

static inline void specimen_verdict(struct report_specimen *s)
{
    struct audit_verdict *verdict = &s->facts.verdict;
    *verdict = (struct audit_verdict){ .outcome = AUDIT_ROOT_CAUSE,
                                       .root_analysis = 1,
                                       .root_finding = 0,
                                       .seen_analysis = -1,
                                       .seen_finding = -1,
                                       .iterations = 500,
                                       .bound = 0.0149 };
    for (int i = 0; i < HYPOTHESIS_COUNT; i++) {
        verdict->hypotheses[i] = (struct hypothesis_verdict){ .verdict = VERDICT_REFUTED,
                                                              .rank = (uint32_t)i + 4,
                                                              .checked = 98765,
                                                              .total = 98765,
                                                              .analysis = -1,
                                                              .finding = -1 };
        s->facts.self_test[i] = SELF_TEST_PASSED;
    }
    verdict->hypotheses[HYPOTHESIS_KERNEL_FAULT] = (struct hypothesis_verdict){
        .verdict = VERDICT_CONFIRMED, .rank = 1, .checked = 512, .total = 512, .analysis = 1
    };
    verdict->hypotheses[HYPOTHESIS_SILENT_CORRUPTION] =
        (struct hypothesis_verdict){ .verdict = VERDICT_CONFIRMED,
                                     .rank = 2,
                                     .checked = 3,
                                     .total = 40,
                                     .analysis = 1,
                                     .finding = 1 };
    verdict->hypotheses[HYPOTHESIS_NON_DETERMINISM].trials = 201;
    verdict->hypotheses[HYPOTHESIS_NON_DETERMINISM].bound = 0.0149;
    struct hypothesis_verdict *excluded = &verdict->hypotheses[HYPOTHESIS_STAGING_REUSE];
    excluded->verdict = VERDICT_EXCLUDED;
    excluded->excluded_by = "ticket";
    /* One hypothesis for everything that can be missing. */
    static const enum hypothesis open[] = { HYPOTHESIS_SIZE_MISMATCH,
                                            HYPOTHESIS_USE_AFTER_FREE,
                                            HYPOTHESIS_MISSING_SYNC,
                                            HYPOTHESIS_BAD_POINTER,
                                            HYPOTHESIS_OVERLAPPING_COPIES,
                                            HYPOTHESIS_STALE_GRAPH,
                                            HYPOTHESIS_RUNTIME_DEFECT,
                                            HYPOTHESIS_HANG,
                                            HYPOTHESIS_NUMERIC,
                                            HYPOTHESIS_LEAK };
    _Static_assert(COUNT_OF(open) == VERDICT_MISSING_COUNT - 1, "one for each");
    for (size_t i = 0; i < COUNT_OF(open); i++) {
        struct hypothesis_verdict *one = &verdict->hypotheses[open[i]];
        one->verdict = VERDICT_INCONCLUSIVE;
        one->missing = (enum verdict_missing)(i + 1);
    }
    verdict->hypotheses[HYPOTHESIS_STALE_GRAPH].total = 0;
    s->facts.self_test[HYPOTHESIS_MISSING_SYNC] = SELF_TEST_ABSENT;
    s->facts.self_test[HYPOTHESIS_BAD_POINTER] = SELF_TEST_FAILED;
}

static inline void specimen_rows(struct report_specimen *s)
{
    static const size_t counts[] = { 50, 50, 400 };
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < counts[i]; j++)
            s->latencies[i][j] = 40.0 + 10.0 * (double)i + (double)((j * 7919) % 13) +
                                 (j % 37 == 36 ? 30 : 0);
    s->rows[0] = (struct report_row){ .label = "A",
                                      .mode = REPORT_BARE,
                                      .planned = 50,
                                      .done = 50,
                                      .log = "run/A.log",
                                      .log_sha256 = "aa11",
                                      .latencies_ms = s->latencies[0],
                                      .latency_count = counts[0],
                                      .tokens_per_second = 21.25,
                                      .peak_bytes = 777000000 };
    s->rows[1] = (struct report_row){ .label = "B",
                                      .mode = REPORT_AUDIT,
                                      .level = AUDIT_GUARD,
                                      .planned = 50,
                                      .done = 50,
                                      .log = "run/B.log",
                                      .flight = "run/B.flight",
                                      .flight_sha256 = "bb22",
                                      .analysis = &s->clean,
                                      .latencies_ms = s->latencies[1],
                                      .latency_count = counts[1],
                                      .tokens_per_second = 20.75,
                                      .peak_bytes = 888000000,
                                      .copy_out_count = 4321,
                                      .copy_out_bytes = 87654321,
                                      .launch_count = 13579 };
    s->rows[2] = (struct report_row){
        .label = "C",
        .mode = REPORT_STRESS,
        .level = AUDIT_GUARD,
        .planned = 400,
        .done = 6,
        .errors = 1,
        .crashed = true,
        .signal = 11,
        .error = "Generation error: D2H logits failed: an illegal memory access was encountered",
        .log = "run/C.log",
        .flight = "run/C.flight",
        .missing = "recording: no space left on device",
        .parameters = "{\"streams\":3,\"delay_us\":250}",
        .analysis = &s->analysis,
        .latencies_ms = s->latencies[2],
        .latency_count = counts[2],
    };
    s->rows[3] = (struct report_row){ .label = HOSTILE_SCRIPT,
                                      .mode = REPORT_STRESS,
                                      .level = AUDIT_VERIFY,
                                      .planned = 5,
                                      .done = 2,
                                      .interrupted = true,
                                      .exit_code = 3,
                                      .error = HOSTILE_LINE HOSTILE_BYTES,
                                      .parameters = "not JSON" };
    s->facts.rows = s->rows;
    s->facts.row_count = 4;
}

static inline void specimen_reruns(struct report_specimen *s)
{
    s->interventions[0] = (struct report_intervention){
        .changed = "serialised",
        .runs = 10,
        .faults = 9,
        .control_runs = 11,
        .control_faults = 8,
        .proves = { "nothing: the fault stays", "nada: el fallo permanece" },
        .does_not_prove = { "that ordering is right", "que el orden sea correcto" },
    };
    s->interventions[1] = (struct report_intervention){
        .changed = HOSTILE_PIPE,
        .runs = 12,
        .control_runs = 13,
        .control_faults = 13,
        .flips = true,
        .proves = { "the planted position is the cause", "la posición plantada es la causa" },
        .does_not_prove = { "that it is the only one", "que sea la única" },
    };
    s->ablations[0] = (struct report_ablation){ "ticket", 31, 0 };
    s->ablations[1] = (struct report_ablation){ "sync", 32, 0 };
    s->ablations[2] = (struct report_ablation){ "plain", 33, 29 };
    s->planted[0] = (struct report_planted){
        .fault = "wrong-position",
        .hypothesis = HYPOTHESIS_BAD_POINTER,
        .planted = specimen_place(61, EVENT_LAUNCH, "rope", 17, 3, "blk.17.q"),
        .detected = true,
        .found_hypothesis = HYPOTHESIS_BAD_POINTER,
        .culprit = specimen_place(61, EVENT_LAUNCH, "rope", 17, 3, "blk.17.q"),
        .culprit_ok = true,
    };
    s->planted[1] = (struct report_planted){ .fault = "lost-wakeup",
                                             .hypothesis = HYPOTHESIS_HANG,
                                             .found_hypothesis = HYPOTHESIS_COUNT,
                                             .note = "timeout 30 s" };
    s->planted[2] = (struct report_planted){
        .fault = "freed-weight",
        .hypothesis = HYPOTHESIS_USE_AFTER_FREE,
        .detected = true,
        .found_hypothesis = HYPOTHESIS_KERNEL_FAULT,
        .culprit = specimen_place(99, EVENT_COPY_OUT, "", -1, 0, "hidden"),
    };
    s->planted[3] = (struct report_planted){ .fault = "overrun-into-guard",
                                             .hypothesis = HYPOTHESIS_KERNEL_FAULT,
                                             .absent = true,
                                             .found_hypothesis = HYPOTHESIS_COUNT,
                                             .note = "no guards" };
    s->transfers[0] = (struct report_transfer){
        .path = "d2h pinned async", .copies = 3000, .bytes = 123456789, .gigabytes_per_second = 11.5
    };
    s->transfers[1] = (struct report_transfer){ .path = "h2d pageable sync",
                                                .copies = 1500,
                                                .bytes = 5555,
                                                .mismatches = 2,
                                                .note = "4095 + 1" };
    s->facts.interventions = s->interventions;
    s->facts.intervention_count = 2;
    s->facts.ablations = s->ablations;
    s->facts.ablation_count = 3;
    s->facts.planted = s->planted;
    s->facts.planted_count = 4;
    s->facts.transfers = s->transfers;
    s->facts.transfer_count = 2;
}

static inline void specimen_history(struct report_specimen *s)
{
    s->earlier[0] = (struct report_earlier){ .id = "20260206-101112-b362",
                                             .date = "2026-02-06T10:11:12Z",
                                             .outcome = AUDIT_INCONCLUSIVE };
    s->earlier[1] = (struct report_earlier){ .id = "20260207-101112-b363",
                                             .date = "2026-02-07T10:11:12Z",
                                             .outcome = AUDIT_ROOT_CAUSE,
                                             .root_cause = "earlier cause in one language",
                                             .root_cause_es = "causa anterior en otro idioma" };
    s->differences[0] = (struct report_difference){ REPORT_NEW, "kernel-fault", "came in one",
                                                    "apareció en otro" };
    s->differences[1] = (struct report_difference){ REPORT_GONE, "missing-sync", "went in one",
                                                    "se fue en otro" };
    s->differences[2] = (struct report_difference){ REPORT_CHANGED, "hang", "differs in one",
                                                    "difiere en otro" };
    s->differences[3] = (struct report_difference){ REPORT_SAME, "numeric", "stays in one",
                                                    "queda en otro" };
    s->timings[0] = (struct report_timing){ "A latency_median_ms", 40.5, 46.25 };
    s->timings[1] = (struct report_timing){ "A tokens_per_second", 21.0, 0 };
    s->timings[2] = (struct report_timing){ "x-y-z", 0, 5 };
    s->facts.earlier = s->earlier;
    s->facts.earlier_count = 2;
    s->facts.baseline = "20260207-101112-b363";
    s->facts.differences = s->differences;
    s->facts.difference_count = 4;
    s->facts.timings = s->timings;
    s->facts.timing_count = 3;
}

static inline void specimen_identity(struct report_identity *identity)
{
    *identity = (struct report_identity){ .id = "20261115-093012-4f2a",
                                          .date = "2026-11-15T09:30:12Z",
                                          .version = "0.1.0",
                                          .command = "greta audit",
                                          .device_kind = "host",
                                          .device_name = "AMD EPYC 9B14",
                                          .device_driver = "host 1" };
}

/* Facts with everything. */
static inline void specimen_init(struct report_specimen *s)
{
    memset(s, 0, sizeof(*s));
    specimen_identity(&s->facts.identity);
    struct report_identity *identity = &s->facts.identity;
    identity->author = "L.E.T / Leandro Emanuel Timberini";
    identity->commit = "303b634";
    identity->command =
        "greta audit --model greta-v1.gguf --matrix A:bare:50,B:audit:50,C:stress:400";
    identity->binary_sha256 = "5a5a5a";
    identity->model_sha256 = "c3c3c3";
    identity->model_path = "models/greta-v1.gguf";
    identity->model_name = "greta-v1 " HOSTILE_SCRIPT " " HOSTILE_BYTES;
    identity->device_memory_bytes = UINT64_C(151) << 30;
    identity->seed = UINT64_MAX;
    identity->locked = true;
    s->environment[0] = "HIP_LAUNCH_BLOCKING=1";
    s->environment[1] = "AMD_SERIALIZE_KERNEL=" HOSTILE_LINE;
    identity->environment = s->environment;
    identity->environment_count = 2;
    specimen_findings(s);
    specimen_verdict(s);
    specimen_rows(s);
    specimen_reruns(s);
    specimen_history(s);
    s->facts.analyses = s->analyses;
    s->facts.analysis_count = 2;
    s->facts.expected_fault = "an illegal memory access " HOSTILE_PIPE;
    s->facts.self_test_key = "5a5a5a host 1";
    s->facts.partial = true;
}

/* Facts with nothing but an identity and verdicts without evidence. */
static inline void specimen_init_empty(struct report_specimen *s)
{
    memset(s, 0, sizeof(*s));
    specimen_identity(&s->facts.identity);
    s->facts.verdict = (struct audit_verdict){ .outcome = AUDIT_INCONCLUSIVE,
                                               .root_analysis = -1,
                                               .root_finding = -1,
                                               .seen_analysis = -1,
                                               .seen_finding = -1 };
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        s->facts.verdict.hypotheses[i] = (struct hypothesis_verdict){
            .verdict = VERDICT_INCONCLUSIVE,
            .missing = VERDICT_MISSING_SELF_TEST,
            .rank = (uint32_t)i + 1,
            .analysis = -1,
            .finding = -1,
        };
}

/* ---- A recording ---------------------------------------------------------------------------- */

static inline void specimen_tell(struct flight *flight, struct event event)
{
    struct event_observer observer = flight_observer(flight);
    struct event begin = event;
    begin.phase = EVENT_BEGIN;
    begin.outcome = EVENT_PENDING;
    begin.end_ns = 0;
    begin.check = 0;
    observer.notify(observer.context, &begin);
    if (event.outcome == EVENT_PENDING)
        return;
    event.phase = EVENT_END;
    observer.notify(observer.context, &event);
}

/* start_ns: event times count from it; about when the recording began. */
static inline struct event specimen_event(uint64_t start_ns, uint64_t id, enum event_kind kind,
                                          const char *op)
{
    struct event event = { .id = id,
                           .kind = (uint8_t)kind,
                           .begin_ns = start_ns + id * 50000,
                           .end_ns = start_ns + id * 50000 + 8000,
                           .stream_index = (uint32_t)(id % 3),
                           .line = (uint16_t)(100 + id),
                           .scope = { .step = (int32_t)(id / 25), .layer = (int32_t)(id % 25) },
                           .outcome = EVENT_DONE,
                           .operand = EVENT_NO_OPERAND,
                           .access_count = 1 };
    event.accesses[0] = (struct event_access){ .address = 0x7f0000000000 + id * 4096,
                                               .bytes = 4096,
                                               .mode = EVENT_UPDATE };
    event_set_text(event.op, sizeof(event.op), op);
    event_set_text(event.file, sizeof(event.file), "engine/forward.c");
    return event;
}

/* All marks and tickets are number 1. */
static inline void specimen_set_handle(struct event *event)
{
    if (event->kind == EVENT_COPY_OUT)
        event->copy.ticket = 1;
    if (event->kind == EVENT_TICKET_REDEEM)
        event->ticket.ticket = 1;
    if (event->kind == EVENT_MARK_RECORD || event->kind == EVENT_MARK_WAIT)
        event->mark.mark = 1;
}

static inline void specimen_record(struct flight *flight)
{
    static const char *const names[] = { "kv.keys", "blk.0.attn_q.weight", HOSTILE_PIPE,
                                         "rope.positions", "logits" };
    uint64_t start_ns = clock_ns();
    static const char *const ops[] = { "rms_norm", "matmul", "rope", "attention", HOSTILE_SCRIPT };
    for (uint64_t id = 1; id <= 20; id++) {
        struct event event = specimen_event(start_ns, id, EVENT_BUFFER_CREATE, "kv.keys");
        event.buffer.buffer_index = (uint32_t)id;
        event.buffer.bytes = UINT64_C(1) << (id + 8);
        event.stream_index = EVENT_NO_STREAM;
        event.accesses[0].address = 0x7f0000000000 + (id << 20);
        event.accesses[0].bytes = event.buffer.bytes;
        event.accesses[0].buffer_index = (uint32_t)id;
        event.op[0] = '\0';
        event_set_text(event.scope.tensor, sizeof(event.scope.tensor), names[id % 5]);
        specimen_tell(flight, event);
    }
    struct event freed = specimen_event(start_ns, 21, EVENT_BUFFER_DESTROY, "");
    freed.accesses[0].buffer_index = 3;
    freed.stream_index = EVENT_NO_STREAM;
    specimen_tell(flight, freed);
    for (uint64_t id = 22; id <= 100; id++) {
        struct event event = specimen_event(start_ns, id, EVENT_LAUNCH, ops[id % 5]);
        if (id % 10 == 3)
            event.kind = EVENT_COPY_OUT;
        if (id % 10 == 4) {
            event.kind = EVENT_TICKET_REDEEM;
            event.cause_id = id - 1;
        }
        if (id % 10 == 5)
            event.kind = EVENT_MARK_RECORD;
        if (id % 10 == 6)
            event.kind = EVENT_MARK_WAIT;
        specimen_set_handle(&event);
        if (id % 10 == 9) {
            /* The launch before has been done. */
            event.kind = EVENT_COMPLETION;
            event.cause_id = id - 1;
            event.stream_index = (uint32_t)((id - 1) % 3);
            event.op[0] = '\0';
        }
        if (id == SPECIMEN_SEEN_ID || id == 95) {
            event.kind = EVENT_COPY_OUT;
            event.outcome = EVENT_REFUSED;
            event.check = EVENT_CHECK_LOST;
            event_set_text(event.scope.tensor, sizeof(event.scope.tensor), HOSTILE_LINE);
        }
        if (id == 100)
            event.outcome = EVENT_PENDING;
        specimen_tell(flight, event);
    }
    struct crumb_page *crumbs = flight_crumbs(flight);
    crumb_set_order(crumbs, CRUMB_ORDER_EXACT);
    crumb_enter(&crumbs->streams[1], SPECIMEN_CAUSE_ID);
    crumb_finish(&crumbs->streams[1], SPECIMEN_CAUSE_ID - 3);
    crumb_trap_add(crumbs, SPECIMEN_CAUSE_ID, 1, 2139062143, 4096);
}

/* Writes a recording of a hundred events. */
static inline void specimen_flight(const char *path)
{
    struct flight_options options = { .record_count = 256,
                                      .allocation_count = 32,
                                      .graph_record_count = 4,
                                      .device = "host " HOSTILE_SCRIPT,
                                      .command = "greta infer --audit guard " HOSTILE_LINE };
    struct flight *flight;
    struct error err;
    CHECK_OK(flight_create(path, &options, &flight, &err), &err);
    specimen_record(flight);
    flight_close(flight);
}

#endif
