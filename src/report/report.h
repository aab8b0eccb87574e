/* report.h - what an audit knows, and the files made of it.
 *
 * Printers, no logic: every number and every verdict is in the facts. Texts exist in English and
 * Spanish; a report in one language has no word of the other but names. All files are written
 * atomically (base/outfile.h). Schema of the JSON files: docs/report-format.md. */
#ifndef GRETA_REPORT_REPORT_H
#define GRETA_REPORT_REPORT_H

#include "analyze/analyze.h"
#include "base/status.h"
#include "report/finding.h"
#include "report/program.h"

/* Texts are borrowed and may be NULL where said; arrays are borrowed. */

/* What binds the evidence to what was run. */
struct report_identity {
    const char *id;      /* of the audit, also its folder: "20261115-093012-4f2a" */
    const char *date;    /* ISO 8601, UTC */
    const char *author;  /* NULL: not given */
    const char *version; /* of greta */
    const char *commit;  /* of greta's source; NULL: unknown */
    const char *command; /* as typed */
    const char *binary_sha256, *model_sha256; /* hex; NULL: none, or not computed */
    const char *model_path, *model_name;      /* NULL: none */
    /* Hash of model, device and everything that decides what is run: audits with the same one
     * belong to one history. NULL: none. */
    const char *workload_sha256;
    const char *device_kind, *device_name, *device_driver;
    uint64_t device_memory_bytes;
    uint64_t seed;
    const char *const *environment; /* "NAME=value" of variables that matter */
    size_t environment_count;
    bool locked; /* one audit per device at a time, serialising environment */
};

enum report_row_mode { REPORT_BARE, REPORT_AUDIT, REPORT_STRESS, REPORT_ROW_MODE_COUNT };
const char *report_row_mode_name(enum report_row_mode mode); /* "bare" */

/* What became of the fault that a row was to plant. */
enum report_row_fault {
    REPORT_FAULT_NONE, /* none was to be planted, or the row did not get so far */
    REPORT_FAULT_PLANTED,
    REPORT_FAULT_UNFIRED, /* no call matched it */
};

/* A row of the matrix: one child process, the model loaded once, iterations one after another. */
struct report_row {
    const char *label; /* "A" */
    enum report_row_mode mode;
    enum audit_level level;
    uint32_t planned, done; /* iterations */
    uint32_t errors;        /* iterations that failed */
    bool crashed, hung, interrupted;
    struct run_ending ending;               /* of the child */
    int exit_code, signal;                  /* of the child; 0 */
    const char *error;                      /* first error in words; NULL: none */
    const char *log;                        /* "run/A.log", relative to the audit's folder */
    const char *flight;                     /* "run/A.flight"; NULL: none (bare) */
    const char *log_sha256, *flight_sha256; /* hex; NULL: none, or not computed */
    enum report_row_fault fault;
    const char *missing;             /* why evidence is missing (full disk); NULL: nothing is */
    const char *parameters;          /* of stress, as JSON text; NULL */
    const struct analysis *analysis; /* NULL: none */
    const double *latencies_ms;      /* of each iteration done */
    size_t latency_count;
    double tokens_per_second;
    uint64_t peak_bytes;
    uint64_t copy_out_count, copy_out_bytes, launch_count; /* seen in the events */
};

/* A rerun with one thing changed. */
struct report_intervention {
    const char *changed;                   /* slug: "serialised", "single-stream", "guards", ... */
    uint32_t runs, faults;                 /* with the change */
    uint32_t control_runs, control_faults; /* without it, run in turn */
    bool flips;                            /* outcome changes both ways */
    const char *proves[REPORT_LANGUAGE_COUNT];         /* what follows */
    const char *does_not_prove[REPORT_LANGUAGE_COUNT]; /* what does not */
};

/* What a step of a search, or all of it, came to. */
enum report_search_result {
    REPORT_SEARCH_CULPRIT,  /* one op is singled out */
    REPORT_SEARCH_INTERVAL, /* between an op that agrees and one that differs */
    REPORT_SEARCH_SEEN,     /* the defect came, and no op of those looked at shows it */
    REPORT_SEARCH_NOT_SEEN, /* the defect did not come */
    REPORT_SEARCH_RESULT_COUNT
};
const char *report_search_result_name(enum report_search_result result); /* "culprit" */

/* Equal runs again, with operands of launches hashed or outputs scanned. */
struct report_search_step {
    const char *what; /* slug: "every-op", "outputs", "every-8th", "results", "scan-every-op" ... */
    uint32_t runs;    /* iterations */
    uint64_t compared; /* operands hashed and compared; launches scanned */
    enum report_search_result result;
};
struct report_search {
    enum hypothesis hypothesis;
    enum report_search_result result;
    const struct report_search_step *steps;
    size_t step_count;
};

/* Written instead of a value or an error that is not finite. */
#define REPORT_COMPARE_NOT_FINITE 1e30

/* An op compared with the host's: the launch with the largest error. */
struct report_compare_row {
    const char *op;
    const char *type; /* of a matmul's weights, of a cache */
    const char *operand, *tensor, *file;
    const char *packed_by; /* op that packed the input, which is not compared; "" or NULL: none */
    uint32_t line;
    int32_t layer, step;
    uint64_t launches, outside;
    double tolerance, error; /* relative to the largest value of the row */
    uint64_t row, column;    /* of the value */
    double device_value, host_value;
};
/* A fault that was to be planted on purpose. */
struct report_planting {
    const char *fault; /* as --inject has it; NULL: none */
    bool reported;     /* a run reported whether it fired */
    bool fired;
};
/* planting.c. The banner, a line: the fault, and whether it fired. Adds nothing without a fault. */
void report_planting_add(const struct report_planting *planting, enum report_language language,
                         struct text *text);
const char *report_planting_words(const struct report_planting *planting,
                                  enum report_language language);
/* {"fault", "fired": null if no run said so}, or null. */
struct json_t *report_planting_json(const struct report_planting *planting, struct text *out);

struct report_compare {
    const char *device; /* NULL: said elsewhere */
    const struct report_compare_row *rows;
    size_t row_count;
    const struct report_compare_row *first; /* the first launch that was outside; NULL: none */
    uint64_t launches, not_compared;
    const char *error; /* why the run ended early; NULL */
    struct report_planting planting;
};

/* A mode of --ablate d2h. */
struct report_ablation {
    const char *mode; /* "ticket" */
    uint32_t runs, faults;
};

/* A line of the self-test. */
struct report_planted {
    const char *fault; /* slug */
    enum hypothesis hypothesis;
    struct analyze_place planted; /* where it was put */
    bool absent;                  /* not planted: it cannot show on this device; note says why */
    bool detected;
    enum hypothesis found_hypothesis; /* HYPOTHESIS_COUNT: nothing found */
    struct analyze_place culprit;     /* as the finding names it */
    bool only_seen;   /* one run cannot show the culprit: the place is where it must be seen */
    bool culprit_ok;  /* the place is right */
    const char *note; /* NULL */
};

/* A copy path of --transfers. */
struct report_transfer {
    const char *path; /* "D2H/pinned/async/kernel": while a kernel runs */
    uint64_t copies, bytes, mismatches;
    double gigabytes_per_second; /* 0: not measured */
    const char *note;            /* NULL */
};

/* An earlier audit in the same artifacts folder. */
struct report_earlier {
    const char *id, *date;
    enum audit_outcome outcome;
    const char *root_cause;    /* one sentence; NULL */
    const char *root_cause_es; /* the same in Spanish; NULL: root_cause is quoted */
};

enum report_change { REPORT_NEW, REPORT_GONE, REPORT_CHANGED, REPORT_SAME };
/* A finding compared with the baseline's. */
struct report_difference {
    enum report_change change;
    const char *slug;    /* hypothesis */
    const char *what;    /* one sentence */
    const char *what_es; /* the same in Spanish; NULL: what is quoted */
};
/* A figure compared with the baseline's. */
struct report_timing {
    const char *what; /* as report_figures names it: "A latency_median_ms" */
    double before, now;
};

/* A function that led to a call of a foreign program. */
struct report_frame {
    char function[200]; /* "" where only the file is known */
    char file[200];     /* without its folder; "" */
    uint64_t offset;    /* from the function's start, else the file's */
    char source[200];   /* where it has debug information: the source file; "" */
    uint32_t line;      /* of it; 0: not known */
};
struct report_callers {
    /* Fills at most capacity frames of the stack with that number (struct analyze_place), the
     * innermost first; returns how many. NULL: not known. */
    size_t (*stack)(void *context, size_t analysis, uint32_t stack_index,
                    struct report_frame *ret_frames, size_t capacity);
    /* The kernel's full name; false: not known. */
    bool (*kernel)(void *context, size_t analysis, uint32_t name_index, char *ret_name,
                   size_t name_bytes);
    void *context;
};
#define REPORT_FRAME_LIMIT 16

struct report_facts {
    struct report_identity identity;
    struct audit_verdict verdict;
    const struct analysis *const *analyses; /* what verdict's indices mean */
    size_t analysis_count;
    const char *expected_fault; /* --expect-fault; NULL */
    const char *inject; /* --inject: what was to be planted; NULL: nothing. Reports say so first */
    const struct report_row *rows;
    size_t row_count;
    const struct report_intervention *interventions;
    size_t intervention_count;
    const struct report_search *search;   /* NULL: none was made */
    const struct report_compare *compare; /* NULL: none was made */
    const struct report_ablation *ablations;
    size_t ablation_count;
    const struct report_planted *planted;
    size_t planted_count;
    enum self_test_state self_test[HYPOTHESIS_COUNT];
    const char
        *self_test_key; /* what the self-test's results are bound to; NULL: none were there */
    const struct report_transfer *transfers;
    size_t transfer_count;
    const struct report_earlier *earlier; /* oldest first */
    size_t earlier_count;
    const char *baseline; /* id of the audit compared with; NULL */
    const struct report_difference *differences;
    size_t difference_count;
    const struct report_timing *timings;
    size_t timing_count;
    struct report_callers callers;
    const struct report_program *program; /* NULL: it was greta's own workload */
    bool partial; /* the audit was killed or interrupted: --resume finishes it */
    const char
        *flight_path; /* absolute or relative path of the file timeline.json is made of; NULL */
};

/* Into an existing folder: manifest.json, summary.json, report.en.md, report.es.md, report.html
 * (in `language`), timeline.json, findings.sarif, junit.xml. */
MUST_CHECK enum status report_write(const struct report_facts *facts, const char *folder,
                                    enum report_language language, struct error *err);

/* ---- What follows from the facts ------------------------------------------------------------ */

/* critical: results can be wrong without any error; high: runs die, hang or differ, or a run failed
 * and no finding says why; medium: refused before it reached the device, or undecided; none: clean.
 */
enum report_severity {
    REPORT_SEVERITY_NONE,
    REPORT_SEVERITY_MEDIUM,
    REPORT_SEVERITY_HIGH,
    REPORT_SEVERITY_CRITICAL,
    REPORT_SEVERITY_COUNT
};
enum report_severity report_severity(const struct report_facts *facts);
const char *report_severity_name(enum report_severity severity); /* "critical" */

/* What makes two findings of two audits the same: op, operand, layer, step, tensor, check. Adds to
 * text. */
void report_finding_key(const struct finding *finding, struct text *text);

/* The figures of the rows that a later audit compares itself with, as summary.json has them. */
struct report_figure {
    char what[64]; /* "A latency_median_ms": row and measure */
    double value;
};
/* Fills at most capacity; returns how many there are. */
size_t report_figures(const struct report_row *rows, size_t row_count, struct report_figure *ret,
                      size_t capacity);

/* ---- Single documents, for commands and tests ----------------------------------------------- */

/* Adds to text, which tells whether memory sufficed. */
/* One line: who did what, with the numbers, and where it surfaced. */
void report_headline(const struct report_facts *facts, enum report_language language,
                     struct text *text);
void report_markdown(const struct report_facts *facts, enum report_language language,
                     struct text *text);
void report_html(const struct report_facts *facts, enum report_language language,
                 struct text *text);
void report_summary_json(const struct report_facts *facts, struct text *text);
void report_manifest_json(const struct report_facts *facts, struct text *text);
void report_sarif(const struct report_facts *facts, struct text *text);
void report_junit(const struct report_facts *facts, struct text *text);
/* "ROOT CAUSE FOUND", in the language; static. */
const char *report_outcome_words(enum audit_outcome outcome, enum report_language language);
/* The verdict table as people see it in a terminal. */
void report_verdict_table(const struct report_facts *facts, enum report_language language,
                          struct text *text);
/* Planted x detected, as a table and as the JSON of greta audit --self-test --json. */
void report_self_test_table(const struct report_facts *facts, enum report_language language,
                            struct text *text);
void report_self_test_json(const struct report_facts *facts, struct text *text);

/* greta audit --compare host. */
void report_compare_table(const struct report_compare *compare, enum report_language language,
                          struct text *text);
/* True if a fault was to be planted and nothing shows it, so that it is not known whether the
 * comparison would. */
bool report_compare_is_untested(const struct report_compare *compare);
/* Another op may be at fault: the one that packed its input. */
bool report_compare_is_ambiguous(const struct report_compare_row *row);
void report_compare_json(const struct report_compare *compare, struct text *text);

/* ---- A GPU core dump, for greta coredump show ------------------------------------------------ */

struct coredump;
/* The first line says what died where; then the exception, its grid and arguments, other live
 * grids, and what the dump does not decide. */
void report_coredump(const struct coredump *dump, enum report_language language, struct text *text);
void report_coredump_json(const struct coredump *dump, struct text *text);

#endif
