/* campaign.h - what greta audit does: workloads in child processes, a matrix of them, faults
 * planted to test the instrument itself, reruns with one thing changed, every copy path of a
 * device; and from all that one verdict with its evidence in a folder.
 *
 * The auditor never opens a device with a workload on it: a crash, a hang or a kill of a child is
 * something it reports. Nothing here reads the environment or writes to the terminal. */
#ifndef GRETA_CAMPAIGN_CAMPAIGN_H
#define GRETA_CAMPAIGN_CAMPAIGN_H

#include "base/status.h"
#include "base/text.h"
#include "device/device.h"
#include "device/options.h"
#include "report/report.h"
#include "session/session.h"

/* ---- Levels --------------------------------------------------------------------------------- */

/* Sets what an audit level asks of a device: guards, poison, quarantine, hashes, scans. The
 * observer and everything else is left as it is. */
void campaign_level_options(enum audit_level level, struct device_options *options);

/* ---- The worker ----------------------------------------------------------------------------- */

/* The command that children are started with, after the program's name; its operand is a job. Not
 * for people. */
#define CAMPAIGN_WORKER_COMMAND "audit-worker"

/* Does the job in the file. *ret_failed: it ran, and an iteration failed. *ret_dumped: the driver
 * wrote a GPU core dump, also set on failure; the process must be left by _exit. */
MUST_CHECK enum status campaign_worker(const char *job_path, bool *ret_failed, bool *ret_dumped,
                                       struct error *err);

/* ---- What to audit -------------------------------------------------------------------------- */

/* Calls to whoever watches a long audit. Entries may be NULL. */
struct campaign_watcher {
    /* stage: "row B (audit)"; borrowed for the call. False: stop now, and leave a record that can
     * be resumed. */
    bool (*step)(void *context, const char *stage, uint64_t done, uint64_t total);
    /* A line for people about what was just found. */
    void (*note)(void *context, const char *line);
    void *context;
};

struct campaign_options {
    /* The process. */
    const char *program;            /* for children: a path of the running program */
    const char *const *environment; /* ends in NULL; children get it */
    const char *cache_folder;       /* where results of self-tests are kept; NULL: nowhere */
    const char *runtime_folder;     /* where locks are */
    const char *temporary_folder;   /* for models made and workers of a self-test */
    const char *version;            /* of greta */
    const char *commit;             /* of its source; NULL: unknown */
    const char *command;            /* as typed */
    struct campaign_watcher watcher;

    /* The workload. */
    const char *device;
    const char *model;  /* NULL: a small synthetic one is made */
    const char *prompt; /* text; NULL: a short one */
    const char *kv_type;
    uint32_t token_limit, context, batch, threads;
    bool ignore_end;
    struct sampler_settings sampling;
    enum device_d2h_mode d2h_mode;
    const char *inject; /* a fault to plant in every row that is not bare; NULL: none */

    /* The audit. */
    enum audit_level level; /* of rows that are not bare */
    uint64_t seed;
    const char *matrix;       /* "A:bare:50,B:audit:50,C:stress:100" */
    const char *expect_fault; /* text of an error that should occur; NULL: none */
    const char *baseline;     /* folder of an audit to compare with; NULL: none */
    const char *resume;       /* folder of an audit to finish; NULL: none */
    const char *artifacts;    /* folder of all audits */
    const char *author;       /* NULL: not given */
    enum report_language language;
    bool locked, ablate_d2h, no_self_test, no_interventions, no_search;
    bool compare_host;  /* the device's ops are also compared with the host's */
    const char *faults; /* of a self-test: only these, NAME,NAME, and no clean runs; NULL: all */
    uint32_t repeats;   /* of each intervention; 0: 3 */
    uint64_t hang_limit_ns; /* 0: 30 s */
};

#define CAMPAIGN_MATRIX_DEFAULT "A:bare:50,B:audit:50,C:stress:100"

/* STATUS_USAGE, saying what was expected, if the text is no matrix. */
MUST_CHECK enum status campaign_check_matrix(const char *matrix, struct error *err);

/* What is known about a run before it begins. */
struct campaign_extent {
    uint64_t step_limit; /* no iteration has more steps; 0: not known */
    uint64_t run_count;  /* iterations; 0: they are not counted */
    bool streams;        /* the streams workload runs too */
    bool only_copies;    /* nothing but the transfers workload runs: it has no layers */
};
struct gguf_file;
/* STATUS_USAGE, listing what exists, if a fault (as given to --inject) names an op, operand, layer,
 * step, run or tensor that a run of the model does not have. */
MUST_CHECK enum status campaign_check_inject(const char *inject, const struct gguf_file *file,
                                             const struct campaign_extent *extent,
                                             struct error *err);

/* ---- Audits --------------------------------------------------------------------------------- */

struct campaign_result {
    enum audit_outcome outcome;
    char folder[4096]; /* of the artifacts */
    struct text table; /* the verdicts, for people; in the language asked for */
    struct text json;  /* summary.json */
};
void campaign_result_init(struct campaign_result *result);
void campaign_result_release(struct campaign_result *result);

/* The whole audit. STATUS_INTERRUPTED leaves a partial record in result->folder. Fails where the
 * workload could not run at all. */
MUST_CHECK enum status campaign_audit(const struct campaign_options *options,
                                      struct campaign_result *result, struct error *err);

/* STATUS_USAGE where a name of the list is not a fault of the self-test; NULL is fine. */
MUST_CHECK enum status campaign_check_faults(const char *faults, struct error *err);

/* Plants every fault and checks that it is found. If all were planted, the results are kept for
 * later audits. Adds the table (or JSON) to text; *ret_passed: every one was detected, with the
 * right culprit, and clean runs had no finding. */
MUST_CHECK enum status campaign_self_test(const struct campaign_options *options, bool json,
                                          struct text *text, bool *ret_passed, struct error *err);

/* Copies on every path, hashed at both ends; and the model's tensors on the device against the
 * file. Adds a table (or JSON) to text; *ret_passed: no byte was wrong; *ret_decided: false if none
 * was wrong although a fault was to be planted. */
MUST_CHECK enum status campaign_transfers(const struct campaign_options *options, uint32_t copies,
                                          bool json, struct text *text, bool *ret_passed,
                                          bool *ret_decided, struct error *err);

/* ---- Audits that were made ------------------------------------------------------------------ */

#define CAMPAIGN_ID_BYTES 32

enum campaign_archived_state {
    CAMPAIGN_FINISHED,
    CAMPAIGN_UNFINISHED, /* interrupted or killed: --resume finishes it */
    CAMPAIGN_RUNNING,    /* a process works in its folder */
    CAMPAIGN_DAMAGED,    /* named as an audit is, and cannot be read as one */
    CAMPAIGN_ARCHIVED_STATE_COUNT
};
const char *campaign_archived_state_name(enum campaign_archived_state state); /* "finished" */

/* An audit, or a trace, in ARTIFACTS/DAY/ID. Texts come from its files: any bytes, cut to fit. */
struct campaign_archived {
    char id[CAMPAIGN_ID_BYTES], day[CAMPAIGN_ID_BYTES];
    char date[CAMPAIGN_ID_BYTES]; /* "2026-11-15 09:30:12", UTC */
    enum campaign_archived_state state;
    enum audit_outcome outcome; /* if it is finished */
    char device[128], model[128];
    char root_cause[1024]; /* one sentence; "" */
    char problem[256];     /* why it cannot be read; "" */
    uint64_t bytes;        /* on the disk */
    uint64_t process;      /* that works in it; 0 */
    bool is_last;          /* ARTIFACTS/last points to it */
};

/* Oldest first. An artifacts folder that is not there has none. */
struct campaign_archive {
    struct campaign_archived *audits; /* owned */
    size_t count;
    bool cut; /* there are more folders than are looked at */
};
MUST_CHECK enum status campaign_archive_open(const char *artifacts, struct campaign_archive *ret,
                                             struct error *err);
void campaign_archive_release(struct campaign_archive *archive); /* an empty struct is fine */

/* By its id or the beginning of it, or "latest": the newest that is finished. STATUS_NOT_FOUND, or
 * STATUS_USAGE where the beginning fits several. Borrowed. */
MUST_CHECK enum status campaign_archive_find(const struct campaign_archive *archive,
                                             const char *name, const struct campaign_archived **ret,
                                             struct error *err);

/* What an audit printed at its end, FOLDER/verdict.txt; nothing is added where there is none. */
void campaign_archive_verdict(const char *artifacts, const struct campaign_archived *audit,
                              struct text *text);

#define CAMPAIGN_KEEP_ALL UINT32_MAX
struct campaign_prune {
    uint32_t keep;       /* newest finished ones that stay; CAMPAIGN_KEEP_ALL: no such limit */
    uint32_t older_days; /* those that are not older stay; 0: age does not matter */
    bool unfinished;     /* also those that are not finished, and that no process works in */
};
/* True if the audit is to be removed. The one that `last` points to is removed only with keep 0.
 * index is its place in the archive; now is in seconds since 1970. */
bool campaign_prune_wants(const struct campaign_prune *prune,
                          const struct campaign_archive *archive, size_t index, int64_t now);
/* Removes its folder, and DAY with it if that was the last in it. STATUS_BUSY if a process works in
 * it by now. */
MUST_CHECK enum status campaign_archive_remove(const char *artifacts,
                                               const struct campaign_archived *audit,
                                               struct error *err);

/* The model once on the device, op by op, and each op once more on the host with the device's own
 * inputs. Adds a table (or JSON) to text; *ret_passed: every op was inside its tolerance;
 * *ret_decided: false if they were, and the fault that was to be planted never was. STATUS_REFUSED
 * where the device is the host. */
MUST_CHECK enum status campaign_compare(const struct campaign_options *options, bool json,
                                        struct text *text, bool *ret_passed, bool *ret_decided,
                                        struct error *err);

/* ---- Foreign programs ----------------------------------------------------------------------- */

struct trace_options {
    const char *const *arguments; /* of the program, its name first; ends in NULL */
    const char *const
        *environment;    /* ends in NULL; the program gets it with greta's variables added */
    const char *program; /* a path of the running greta: libraries are next to it */
    const char *temporary_folder;
    const char *version, *commit, *command, *author; /* as in campaign_options */
    const char *artifacts;                           /* NULL: nothing is kept */
    const char *backend;                             /* "auto", "cuda", "hip" */
    bool cupti;                /* CUDA calls are seen through CUPTI, without preloading */
    const char *cupti_library; /* a libcupti to use; NULL: one is looked for */
    uint32_t records;          /* of each recording; 0: its own choice */
    bool no_coredump;          /* GPU core dumps are not asked for */
    bool keep_core;            /* they stay next to the recordings; needs artifacts */
    bool summary;              /* figures of the program's use of the GPU */
    bool narrow;               /* run again to narrow a window of launches */
    bool tensors;              /* PyTorch's allocator caches nothing */
    bool trap_host;            /* page traps on host memory that queued copies use */
    enum report_language language;
    int (*take_signal)(void); /* a signal that came for the program, once; 0: none; may be NULL */
};

/* Signals meant for the program: the caller of campaign_trace catches or ignores them. */
#define TRACE_SIGNAL_COUNT 6
extern const int trace_signals[TRACE_SIGNAL_COUNT];

struct trace_result {
    enum audit_outcome outcome;
    bool nothing_seen;     /* no GPU call that could be looked at; the table says why */
    int exit_code, signal; /* of the program; signal 0: it ended by itself */
    char folder[4096];     /* of the artifacts; "" */
    struct text table;     /* findings, figures, verdict: for people */
    struct text json;      /* summary.json */
};
void trace_result_init(struct trace_result *result);
void trace_result_release(struct trace_result *result);

/* Runs the program to its end and says what its GPU calls show. Fails if the program could not be
 * started, or if nothing could be recorded or written. */
MUST_CHECK enum status campaign_trace(const struct trace_options *options,
                                      struct trace_result *result, struct error *err);

#endif
