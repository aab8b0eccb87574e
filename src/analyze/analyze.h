/* analyze.h - events in; findings, what was looked at, and verdicts out.
 *
 * It reads nothing but events (event/event.h) and the crumb page. Whether they come live, from the
 * flight file of a dead process, or from a foreign program seen by interposition makes no
 * difference: the same code gives the same findings. It knows no device and no model.
 *
 *     event -> ledger (what memory there is) -> order (what happened before what, on which bytes)
 *           -> hypotheses (one file each) -> findings + coverage -> verdicts
 *
 * A finding is a value, never an error. A verdict is never more certain than its evidence: what was
 * not looked at is INCONCLUSIVE. */
#ifndef GRETA_ANALYZE_ANALYZE_H
#define GRETA_ANALYZE_ANALYZE_H

#include "analyze/finding.h"
#include "base/status.h"
#include "event/crumb.h"
#include "event/event.h"
#include "event/flight.h"

/* ---- Levels and hypotheses ------------------------------------------------------------------ */

enum audit_level { AUDIT_OFF, AUDIT_LOG, AUDIT_GUARD, AUDIT_VERIFY, AUDIT_LEVEL_COUNT };

const char *audit_level_name(enum audit_level level); /* "guard" */
bool audit_level_from_name(const char *name, enum audit_level *ret_level);

/* What a hypothesis is; static. report/ has its words. */
struct hypothesis_info {
    const char *slug;       /* "missing-sync" */
    enum audit_level level; /* lowest at which its detector runs in full */
    bool exact;             /* false: statistical, a clean run gives only the bound 3/n */
    bool bound_each;  /* statistical: each check is a trial (n); otherwise each iteration is */
    bool bound_equal; /* of the iterations, only those that had an equal one to be compared with */
};

const struct hypothesis_info *hypothesis_info(enum hypothesis hypothesis);
bool hypothesis_from_slug(const char *slug, enum hypothesis *ret_hypothesis);

/* ---- Endings -------------------------------------------------------------------------------- */

/* How a run ended. Not a hypothesis, and no evidence of one: a healthy process can be killed in the
 * middle of a launch. */
enum run_ending_kind {
    ENDING_UNKNOWN,       /* not seen: it runs, or nothing says */
    ENDING_IN_ORDER,      /* of a recording: it was closed */
    ENDING_EXITED,        /* number: exit status */
    ENDING_KILLED,        /* number: signal, sent by another process */
    ENDING_OUT_OF_MEMORY, /* killed by the kernel, which had no memory left */
    ENDING_ABORTED,       /* number: signal of its own doing: abort, segmentation fault */
    ENDING_HUNG,          /* made no progress; the auditor ended it */
    ENDING_STOPPED,       /* number: signal that stopped it; it was not continued */
    ENDING_DEVICE_LOST,
    ENDING_UNCLOSED, /* of a recording: its process is gone and did not close it */
    ENDING_COUNT
};
struct run_ending {
    enum run_ending_kind kind;
    int number;
};
const char *run_ending_name(enum run_ending_kind kind); /* "out-of-memory": a stable slug */
struct run_ending run_ending_of_signal(int number);     /* ENDING_ABORTED or ENDING_KILLED */

/* ---- Subjects ------------------------------------------------------------------------------- */

/* What there is to look at in a foreign program. For greta's own runs the coverage of the
 * hypotheses says more. Saved as bits: new ones come last. */
enum analyze_subject {
    SUBJECT_COPIES, /* their sizes, directions, overlaps, and whether they read what was written */
    SUBJECT_ORDER,  /* of work, between streams and the host */
    SUBJECT_LIFETIMES,  /* of memory */
    SUBJECT_SOURCES,    /* the host memory that queued copies read: every byte */
    SUBJECT_KERNELS,    /* what happens inside of them */
    SUBJECT_HOST_READS, /* of memory that the device may still write */
    SUBJECT_COUNT
};
const char *analyze_subject_name(enum analyze_subject subject); /* "host-reads": a stable slug */

/* Bits: 1 << subject. What is in both was looked at in part, which does not count. */
struct analyze_subjects {
    uint32_t seen;   /* the program had some of it, and it was looked at */
    uint32_t missed; /* it had some that was not looked at */
};
/* True if there was some, and all of it was looked at; false if some of it was not. */
static inline bool subject_was_seen(const struct analyze_subjects *subjects,
                                    enum analyze_subject subject)
{
    return (subjects->seen & ~subjects->missed) >> subject & 1;
}
static inline bool subject_was_missed(const struct analyze_subjects *subjects,
                                      enum analyze_subject subject)
{
    return subjects->missed >> subject & 1;
}

/* ---- Analysis of one stream of events ------------------------------------------------------- */

/* What a detector looked at. A path that was not exercised has total 0. */
struct hypothesis_coverage {
    bool ran;         /* its detector was on: level, options and events allowed it */
    uint64_t checked; /* of total; report_hypothesis_words names the unit */
    uint64_t total;
};

struct analysis {
    enum audit_level level;
    struct finding *findings; /* in order of order_id */
    size_t finding_count;
    uint64_t findings_dropped; /* beyond the limit; counted, not kept */
    struct hypothesis_coverage coverage[HYPOTHESIS_COUNT];
    uint64_t event_count;
    uint64_t iteration_count; /* EVENT_RUN seen */
    uint64_t compared_count;  /* iterations whose results were compared with an earlier equal
                                 iteration's */
    uint64_t ops_compared;    /* operands of launches compared with an earlier equal iteration's */
    /* Launch numbers within a run, from 1. The first difference of hashed operands arose between
     * them: the last launch that agreed (0: none), and the first that differs (0: none). */
    uint64_t op_agreed, op_differs;
    uint64_t run_launches;                             /* launches of the longest run */
    uint64_t lost_count, dropped_count, damaged_count; /* of records */
    bool device_lost;
    bool closed;              /* the process ended in order */
    /* Page traps watched for accesses of the host; and what became of them. */
    bool host_traps;
    enum event_traps host_traps_state;
    struct run_ending ending; /* as far as the events and the file tell */
    struct analyze_subjects subjects;
    /* Indices of direct findings that follow from no other, in happens-before order; -1: none. */
    int32_t root;   /* the first with a culprit */
    int32_t defect; /* the first at all */
    char device[FLIGHT_TEXT_BYTES], command[FLIGHT_TEXT_BYTES];
};

struct analyze_options {
    enum audit_level level;           /* at which the events were recorded */
    uint64_t hang_limit_ns;           /* no progress for longer is a hang; 0: 30 s */
    uint64_t (*clock)(void *context); /* of a live analysis; NULL: clock_ns. For tests */
    void *clock_context;
    uint32_t finding_limit; /* 0: 256 */
    /* Receives every event as it is taken in; notify NULL: there is no such observer. */
    struct event_observer observer;
    /* True if memory that this call stack of a foreign program allocated belongs to a caching
     * allocator, so that it is not a leak. NULL: no memory does. */
    bool (*is_cached)(void *context, uint32_t stack_index);
    void *cached_context;
    /* Name of an op's operand; NULL where it is not known. NULL: names are left out. */
    const char *(*operand_name)(const char *op, uint8_t operand);
    const struct hardware_evidence *hardware; /* as for analyzer_set_hardware; may be NULL */
    uint64_t ended_ns; /* when the process was seen to be gone, on the event clock; 0: unknown, its
                          last event counts instead */
};

struct analyzer;

MUST_CHECK enum status analyzer_create(const struct analyze_options *options,
                                       struct analyzer **ret_analyzer, struct error *err);
void analyzer_destroy(struct analyzer *analyzer); /* NULL is fine */
/* Events in order of id, each once, with its end where it is known. */
MUST_CHECK enum status analyzer_add(struct analyzer *analyzer, const struct event *event,
                                    struct error *err);
/* What the hardware says of a fault (NULL: nothing); before analyzer_finish. It is copied, but for
 * the arguments of its grids, which are borrowed until analyzer_finish has returned. */
void analyzer_set_hardware(struct analyzer *analyzer, const struct hardware_evidence *evidence);
/* There are no more events: evaluates pending calls, crumbs and losses. now_ns: on the event clock.
 * info may be NULL. */
MUST_CHECK enum status analyzer_finish(struct analyzer *analyzer, const struct crumb_page *crumbs,
                                       const struct flight_info *info, uint64_t now_ns,
                                       struct error *err);
/* Borrowed until the analyzer is destroyed; complete after analyzer_finish. */
const struct analysis *analyzer_result(const struct analyzer *analyzer);

/* The state as bytes for flight_checkpoint: counters and findings in full, order as far as the ring
 * still shows it. Returns their count, at most FLIGHT_CHECKPOINT_BYTES. */
size_t analyzer_save(const struct analyzer *analyzer, void *bytes, size_t capacity);

/* All of a flight file: its checkpoint, then its ring. The result is the caller's
 * (analyzer_destroy). options->level is the level of the recording; AUDIT_LEVEL_COUNT: it is taken
 * from the command in the file. */
MUST_CHECK enum status analyze_flight(const char *path, const struct analyze_options *options,
                                      struct analyzer **ret_analyzer, struct error *err);

/* ---- Analysis while it happens -------------------------------------------------------------- */

/* A thread that follows the writers through the flight file of its own process, so that the ring
 * may forget what was analysed, and writes checkpoints. Sees a hang while it lasts. */
struct analyze_live;

MUST_CHECK enum status analyze_live_start(struct flight *flight, const char *path,
                                          const struct analyze_options *options,
                                          struct analyze_live **ret_live, struct error *err);
/* As analyzer_set_hardware; before analyze_live_stop, for what it finishes. */
void analyze_live_set_hardware(struct analyze_live *live, const struct hardware_evidence *evidence);
/* Reads what is left, ends the thread; the result is the caller's (analyzer_destroy). */
MUST_CHECK enum status analyze_live_stop(struct analyze_live *live, struct analyzer **ret_analyzer,
                                         struct error *err);

/* ---- Verdicts ------------------------------------------------------------------------------- */

/* With fewer trials the absence of a fault proves too little for REFUTED or CLEAN: a statistical
 * hypothesis is NOT_SEEN, and so is an audit with such a hypothesis. */
#define VERDICT_TRIALS_LEAST 20u

enum verdict {
    VERDICT_CONFIRMED,
    VERDICT_REFUTED,
    VERDICT_NOT_SEEN, /* statistical: only trials are missing; `bound` says what is ruled out */
    VERDICT_EXCLUDED,
    VERDICT_INCONCLUSIVE,
    VERDICT_COUNT
};
const char *verdict_name(enum verdict verdict); /* "CONFIRMED" */

/* Why a verdict is not REFUTED although nothing was found. */
enum verdict_missing {
    VERDICT_MISSING_NOTHING,
    VERDICT_MISSING_DETECTOR,       /* it was off */
    VERDICT_MISSING_LEVEL,          /* the runs were below the level it needs */
    VERDICT_MISSING_SELF_TEST,      /* none for this binary and device */
    VERDICT_MISSING_SELF_TEST_PASS, /* it failed */
    VERDICT_MISSING_RECORDING,      /* no run of the workload was recorded */
    VERDICT_MISSING_RECORDS,        /* lost before they were analysed, or damaged */
    VERDICT_MISSING_COVERAGE,       /* not all that was recorded could be checked */
    VERDICT_MISSING_EXERCISE,       /* the path was not taken */
    VERDICT_MISSING_EQUAL_RUNS,     /* no two equal iterations to compare */
    VERDICT_MISSING_CERTAINTY,      /* only possible findings, or several candidates */
    VERDICT_MISSING_COMPARISON,     /* needs an A-B run that was not made */
    VERDICT_MISSING_END,            /* a run did not end, and nothing says why */
    VERDICT_MISSING_COUNT
};
const char *verdict_missing_name(enum verdict_missing missing); /* "self-test"; NOTHING: NULL */

enum self_test_state { SELF_TEST_ABSENT, SELF_TEST_PASSED, SELF_TEST_FAILED };

/* What follows from an outcome that flips when one thing is changed, both ways. */
enum verdict_proof {
    VERDICT_PROOF_NONE,   /* it narrows the search down */
    VERDICT_PROOF_DEFECT, /* something is wrong; neither the hypothesis nor the culprit follows */
    VERDICT_PROOF_CULPRIT /* the hypothesis: what was changed is what was wrong */
};

struct verdict_flip {
    enum hypothesis hypothesis;
    enum verdict_proof proof;
};

struct verdict_input {
    const struct analysis *const *analyses; /* of every run that counts */
    size_t analysis_count;
    const struct analysis *nearest; /* one of them: its root is the cause of the others'; or NULL */
    enum self_test_state self_test[HYPOTHESIS_COUNT]; /* of this binary on this device */
    const struct verdict_flip *flips;
    size_t flip_count;
    bool excluded[HYPOTHESIS_COUNT];           /* cannot be expressed through the interface used */
    const char *excluded_by[HYPOTHESIS_COUNT]; /* which check; static */
    bool not_asked[HYPOTHESIS_COUNT]; /* not what this audit is about: does not prevent CLEAN */
    uint64_t total_count;             /* iterations of all runs, recorded or not */
    uint64_t recorded_count; /* those that were recorded: the trials of statistical hypotheses */
    uint64_t crash_count;    /* runs that did not end in order, with no finding */
    uint64_t unfired_count;  /* runs whose planted fault never fired */
    uint64_t fired_count;    /* runs in which a planted fault fired */
    uint64_t failure_count;  /* runs that failed without a finding */
    bool none_recorded;      /* no run of the workload was; analyses are of copies alone */
    bool fault_expected;     /* --expect-fault was given */
    bool fault_occurred;     /* and seen */
};

struct hypothesis_verdict {
    enum verdict verdict;
    enum verdict_missing missing;
    uint32_t rank;             /* 1: likeliest; every hypothesis has one */
    uint64_t checked, total;   /* over all analyses */
    uint64_t trials;           /* statistical: n of the bound; else 0 */
    double bound;              /* statistical: chance per trial is below this (3/n); else 0 */
    int32_t analysis, finding; /* the first that confirms it; -1: none */
    const char *excluded_by;
};

enum audit_outcome {
    AUDIT_CLEAN,          /* every hypothesis settled over enough iterations */
    AUDIT_ROOT_CAUSE,     /* a culprit is singled out */
    AUDIT_DEFECT_SEEN,    /* something is wrong; what did it is not known */
    AUDIT_NOT_SEEN,       /* nothing seen, but in fewer than VERDICT_TRIALS_LEAST trials */
    AUDIT_NOT_REPRODUCED, /* the expected fault did not come */
    AUDIT_INCONCLUSIVE,
    AUDIT_OUTCOME_COUNT
};
const char *audit_outcome_name(enum audit_outcome outcome); /* "ROOT_CAUSE" */

struct audit_verdict {
    enum audit_outcome outcome;
    struct hypothesis_verdict hypotheses[HYPOTHESIS_COUNT];
    int32_t root_analysis, root_finding; /* of ROOT_CAUSE; else -1 */
    int32_t seen_analysis, seen_finding; /* of DEFECT_SEEN, where a finding shows it; else -1 */
    uint64_t iterations;                 /* recorded; of NOT_REPRODUCED all */
    struct analyze_subjects subjects;    /* of all runs */
    /* The settled statistical hypothesis with the fewest trials; HYPOTHESIS_COUNT: there is none.
     */
    enum hypothesis weakest;
    /* For CLEAN, NOT_SEEN and NOT_REPRODUCED: the chance per iteration is below it (3/n), for every
     * hypothesis whose trials are iterations. 0: there is no such bound. */
    double bound;
};

void verdict_decide(const struct verdict_input *input, struct audit_verdict *ret_verdict);

#endif
