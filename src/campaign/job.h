/* job.h - what a worker has to do: one JSON file, written by the auditor, read by the child. */
#ifndef GRETA_CAMPAIGN_JOB_H
#define GRETA_CAMPAIGN_JOB_H

#include "analyze/analyze.h"
#include "base/status.h"
#include "device/device.h"
#include "device/options.h"
#include "session/session.h"

#include <jansson.h>

/* What a worker runs; bits. */
enum job_work {
    JOB_INFER = 1,     /* a model on a prompt */
    JOB_STREAMS = 2,   /* the small workload of several streams */
    JOB_TRANSFERS = 4, /* every copy path, and the model's bytes on the device */
    JOB_BUSY = 8,      /* many streams at a time, none ordered with another */
    JOB_COMPARE = 16,  /* the model once, every op once more on the host */
};

/* A range that stress draws from, both ends included. */
struct job_range {
    uint64_t least, most;
};

/* The ranges of stress. Values are drawn for each iteration from the seed and its number
 * (stress.c). */
struct job_stress {
    bool on;
    struct job_range streams;        /* noise streams next to the engine's own */
    struct job_range chunk;          /* prompt tokens of a batch */
    struct job_range delay_us;       /* longest pause of the host between calls */
    struct job_range pressure_bytes; /* device memory taken during the workload */
    struct job_range repeat;         /* times the prompt is written, which sets the context's use */
};

/* How a run is made while searching for the first op that goes wrong (search.h). */
struct job_search {
    bool on;
    struct device_hash_choice hash; /* whose operands are hashed */
    bool clear;                     /* each run begins with a cache and activations of zeros */
    bool as_audited;                /* with graphs, as in the audit; otherwise op by op */
};

/* Where job.hang_limit_ns is 0. */
#define JOB_HANG_DEFAULT_NS UINT64_C(30000000000)

struct job {
    const char *label;   /* of the row: "A", "self-test bad-index" */
    const char *device;  /* as all_open knows it */
    const char *model;   /* NULL: none */
    const char *inject;  /* a fault as --inject has it; NULL: none */
    const char *flight;  /* file to record to; NULL: none */
    const char *results; /* lines for the auditor */
    const char *log;     /* the same for people */
    const char *prompt;
    const char *kv_type;
    enum audit_level level;
    enum device_d2h_mode d2h_mode;
    unsigned work;             /* enum job_work */
    uint32_t iterations;       /* of JOB_INFER (or of JOB_STREAMS where that is all) */
    uint32_t streams_interval; /* with both: a round of streams every so many iterations */
    uint32_t copies;           /* of each path of JOB_TRANSFERS */
    uint32_t busy_streams;     /* of JOB_BUSY */
    bool busy_replays;         /* of JOB_BUSY: most launches of a round are a graph's */
    uint64_t seed;
    uint64_t hang_limit_ns; /* no progress for longer is a hang */
    uint64_t auditor_pid;   /* the worker ends when this process does */
    struct job_stress stress;
    struct job_search search;
    bool serialise;     /* wait after every call that queues work */
    bool single_stream; /* JOB_STREAMS on one stream */
    bool pageable;      /* staging that is not pinned */
    bool large_copies;  /* transfers: only the speed of large copies, by size */
    bool no_guards;     /* the level's checks without guards, poison and quarantine */
    bool no_live;       /* record only; analysed from the file */
    bool check_weights; /* JOB_INFER: first every weight's bytes on the device against the file */
    bool coredump;      /* a GPU core dump of a fault is wanted, next to the flight file */
    bool kill_at_end;   /* kills itself with SIGKILL at the end: the flight file must suffice */
    uint32_t chunk;     /* prompt tokens of a batch; 0: as many as fit */
    uint32_t token_limit, context, batch, threads;
    bool ignore_end;
    struct sampler_settings sampling;
    json_t *document; /* owner of the texts of a job that was read; NULL otherwise */
};

MUST_CHECK enum status job_write(const struct job *job, const char *path, struct error *err);
MUST_CHECK enum status job_read(const char *path, struct job *ret_job, struct error *err);
/* The same of an object, which is kept until job_release; path is for messages. */
MUST_CHECK enum status job_from_json(json_t *object, const char *path, struct job *ret_job,
                                     struct error *err);
void job_release(struct job *job); /* of job_read */

/* The settings as JSON, for the manifest; the caller's. NULL without memory. */
json_t *job_to_json(const struct job *job);

#endif
