/* report_specimen.h - one audit made by hand, with everything in it: its names, its findings and
 * its verdicts. What its runs gave is in report_runs.h. */
#ifndef GRETA_TESTS_REPORT_SPECIMEN_H
#define GRETA_TESTS_REPORT_SPECIMEN_H

#include "test.h"

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
    struct report_program program;
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
                                            HYPOTHESIS_CONTRACT_BREACH,
                                            HYPOTHESIS_OVERLAPPING_COPIES,
                                            HYPOTHESIS_UNINITIALISED_READ,
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

#endif
