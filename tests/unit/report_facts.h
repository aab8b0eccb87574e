/* report_facts.h - facts of an audit made by hand: one with everything in it, hostile names
 * included, and one with as little as an audit can have. */
#ifndef GRETA_TESTS_REPORT_FACTS_H
#define GRETA_TESTS_REPORT_FACTS_H

#include "report_runs.h"

#include <stdlib.h>

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

static inline bool specimen_reason(const void *context, size_t index, enum report_language language,
                                   struct text *text)
{
    (void)context;
    if (index > 0)
        return false;
    text_add(text, language == REPORT_SPANISH ? "falta CUPTI" : "there is no CUPTI");
    return true;
}

/* One of which a part was looked at. */
static inline struct report_program specimen_program(void)
{
    return (struct report_program){ .ending = { ENDING_KILLED, 15 },
                                    .signal = 15,
                                    .looked_at = REPORT_LOOKED_AT_PART,
                                    .add_reason = specimen_reason };
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
    s->program = specimen_program();
    s->facts.verdict.subjects = (struct analyze_subjects){ 1u << SUBJECT_COPIES,
                                                           1u << SUBJECT_KERNELS };
    s->facts.program = &s->program;
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

/* Free with free. */
static inline struct report_specimen *specimen_create(bool empty)
{
    struct report_specimen *specimen = malloc(sizeof(*specimen));
    assert_non_null(specimen);
    (empty ? specimen_init_empty : specimen_init)(specimen);
    return specimen;
}

#endif
