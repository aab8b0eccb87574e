/* child.h - a workload in a process of its own, and what it left: lines, a flight file, an end.
 *
 * A crash, a hang or a kill of the child is an outcome, never an error of the auditor. */
#ifndef GRETA_CAMPAIGN_CHILD_H
#define GRETA_CAMPAIGN_CHILD_H

#include "base/progress.h"
#include "campaign/campaign.h"
#include "campaign/job.h"

/* How children are started; the same for all of an audit. */
struct child_setup {
    const char *program;            /* "/proc/self/exe" */
    const char *const *environment; /* ends in NULL */
    const char *folder;             /* jobs, results, logs and flight files go to folder/run */
    bool keep; /* run/LABEL.job.json and .results.jsonl stay, for the record; logs always do */
};

/* What the worker says of the planted fault. */
struct child_planted {
    bool reported, planted;
    uint64_t event_id;
    struct event_scope scope;
    char op[EVENT_OP_BYTES], operand[EVENT_OP_BYTES];
};

struct child_outcome {
    bool started;   /* the device was opened */
    bool ready;     /* the workload was set up */
    bool ended;     /* in order */
    bool hung;      /* no progress for too long: killed */
    int stopped_by; /* the signal that stopped it; not continued within the limit, so it was killed;
                       0: none */
    uint64_t still_ns;    /* how long a hung or stopped child had made no progress */
    uint64_t beat_launch; /* the launch that moved last, as it reported; 0: none */
    uint32_t beat_stream;
    bool interrupted;
    bool out_of_memory; /* the kernel killed it */
    int exit_code, signal;
    uint32_t done;        /* iterations of the job's main workload */
    uint32_t errors;      /* iterations in which it, or the streams workload run with it, failed */
    uint32_t failed_last; /* the iteration counted last as failed, from 1 */
    uint32_t
        streams_done;     /* rounds of the streams workload; its errors are among the iterations' */
    double *latencies_ms; /* of the main workload; owned */
    size_t latency_count, latency_capacity;
    char error[512];     /* the first; "" if none */
    char failed[512];    /* why it could not run; "" if it could */
    char missing[512];   /* evidence that could not be kept; "" if none */
    json_t *errors_seen; /* every different one, at most CHILD_ERROR_LIMIT; owned, or NULL */
    char device_kind[16], device_name[128], device_driver[64];
    uint64_t device_memory_bytes, peak_bytes;
    uint64_t launches, copies_out, copy_out_bytes; /* seen in the events */
    uint64_t tokens, prompt_tokens;                /* in all */
    double prompt_ms, decode_ms;
    bool live_ended;     /* live analysis reached the end of the recording */
    char live_root[512]; /* what live analysis called the root cause, else the defect it saw */
    char live_hypothesis[32];
    struct child_planted planted;
    json_t *transfers; /* lines of JOB_TRANSFERS, owned; NULL: none */
    json_t *compares;  /* lines of JOB_COMPARE, owned; NULL: none */
};

#define CHILD_ERROR_LIMIT 32u

/* How the process ended; this does not know whether its device was lost. */
struct run_ending child_ending(const struct child_outcome *outcome);

/* Sets the error of a hung child that has none: what moved last. */
void child_note_hang(struct child_outcome *outcome);

/* Another process or the kernel ended it: that says nothing about what it ran. */
bool child_was_ended_from_outside(const struct child_outcome *outcome);

/* How it ended, in English: "killed by signal 9 (SIGKILL)". */
#define CHILD_ENDING_BYTES 96
void child_ending_words(const struct child_outcome *outcome, char ret_words[CHILD_ENDING_BYTES]);

void child_outcome_release(struct child_outcome *outcome);

/* Runs a job to its end. job->results, flight and auditor_pid are set here from the label; with
 * job->flight NULL nothing is recorded. progress receives the iterations done. Fails only where the
 * child could not be started or watched, and with STATUS_INTERRUPTED. */
MUST_CHECK enum status child_run(const struct child_setup *setup, struct job *job,
                                 const struct progress *progress, struct child_outcome *ret_outcome,
                                 struct error *err);

/* One of several runs. During it the watcher is given the number of finished runs and may stop. */
struct child_step {
    const struct campaign_watcher *watcher;
    const char *stage; /* as campaign_watcher.step has it */
    uint64_t done, total;
};

/* The same for a run whose outcome is evidence: a run that was ended from outside is repeated, at
 * most twice. */
MUST_CHECK enum status child_run_again(const struct child_setup *setup, struct job *job,
                                       const struct child_step *step,
                                       struct child_outcome *ret_outcome, struct error *err);

/* Reads the lines of a results file. A line cut by the end of the process is ignored. */
MUST_CHECK enum status child_read_results(const char *path, struct child_outcome *outcome,
                                          struct error *err);

/* Paths of a label's files: folder/run/LABEL.SUFFIX. */
MUST_CHECK enum status child_path(const char *folder, const char *label, const char *suffix,
                                  char *ret_path, struct error *err);

#endif
