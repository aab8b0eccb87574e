/* report_runs.h - the runs of the audit made by hand: rows of its matrix, interventions, transfers,
 * earlier audits and the baseline. */
#ifndef GRETA_TESTS_REPORT_RUNS_H
#define GRETA_TESTS_REPORT_RUNS_H

#include "report_specimen.h"

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

#endif
