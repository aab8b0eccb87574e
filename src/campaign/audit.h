/* audit.h - everything an audit holds while it runs. */
#ifndef GRETA_CAMPAIGN_AUDIT_H
#define GRETA_CAMPAIGN_AUDIT_H

#include "campaign/compare.h"
#include "campaign/compare_host.h"
#include "campaign/intervene.h"
#include "campaign/lock.h"
#include "campaign/matrix.h"
#include "campaign/narrow.h"
#include "campaign/search.h"
#include "campaign/self_test.h"
#include "campaign/transfers.h"
#include "report/words.h"

#define AUDIT_ID_BYTES CAMPAIGN_ID_BYTES
#define AUDIT_DATE_BYTES 32

/* A row of the matrix and what came of it. */
struct audit_row {
    struct matrix_row settings;
    bool finished; /* ended, in whatever way; false: still to be run */
    struct child_outcome outcome;
    struct analyzer *analyzer;  /* NULL: nothing was recorded */
    char analysis_missing[512]; /* why a recording could not be analysed; "" */
    char log[40], flight[40];   /* relative to the folder */
    char log_sha256[FILES_SHA256_TEXT_BYTES], flight_sha256[FILES_SHA256_TEXT_BYTES];
    char *parameters; /* of stress, JSON text; owned (free) */
    double tokens_per_second;
};

struct audit {
    struct campaign_options options; /* texts borrowed from the caller, or from `state` */
    json_t *state;                   /* of an audit that is resumed; NULL */
    struct job state_job;            /* its workload */
    struct identity identity;
    struct audit_model model;
    char folder[FILES_PATH_BYTES];
    char id[AUDIT_ID_BYTES], date[AUDIT_DATE_BYTES];
    char workload[FILES_SHA256_TEXT_BYTES]; /* of model, device and what is run */
    char *baseline;                         /* resolved path of the audit to compare with; owned */
    struct device_lock lock;
    struct folder_lock folder_lock;
    const char **environment; /* of the children; owned */
    const char **recorded;    /* the variables of environment that matter; owned */
    size_t recorded_count;
    struct child_setup setup;
    struct matrix matrix;
    struct audit_row rows[MATRIX_ROW_LIMIT];
    enum self_test_state self_test[HYPOTHESIS_COUNT];
    bool self_test_known;
    struct self_test test; /* if it ran in this audit */
    struct narrowing narrowing;
    struct compare_host compare;
    struct search search;
    struct interventions interventions;
    struct transfers_report transfers;
    struct comparison comparison;
    struct history history;
    bool partial;
};

/* audit_begin.c: from the options to the first run. The audit must be released after an error too.
 */
MUST_CHECK enum status audit_begin(struct audit *audit, struct error *err);
/* A line for people, in the language they asked for. */
void audit_note(const struct audit *audit, enum word word, const char *what);

/* audit_rows.c */

/* The job of a row, with stress and planted fault according to its mode. */
struct job audit_row_job(const struct audit *audit, const struct matrix_row *row);
MUST_CHECK enum status audit_run_row(struct audit *audit, struct audit_row *row, struct error *err);
/* Reads a row that was finished earlier from its files. */
MUST_CHECK enum status audit_load_row(struct audit *audit, struct audit_row *row,
                                      struct error *err);
void audit_row_release(struct audit_row *row);
/* How its process ended; ENDING_DEVICE_LOST if its device was lost before. */
struct run_ending audit_row_ending(const struct audit_row *row);
/* It was ended from outside, and nothing had gone wrong until then. */
bool audit_row_is_cut_short(const struct audit_row *row);
/* Something went wrong in it. */
bool audit_row_is_faulty(const struct audit_row *row);

/* audit_state.c: what --resume needs, FOLDER/state.json. */
MUST_CHECK enum status audit_save_state(const struct audit *audit, bool complete,
                                        struct error *err);
/* Takes the options of the audit to be finished into audit->options. */
MUST_CHECK enum status audit_load_state(struct audit *audit, const char *folder, struct error *err);

/* audit_facts.c: the verdict, and all files in the folder. */
MUST_CHECK enum status audit_report(struct audit *audit, struct campaign_result *result,
                                    struct error *err);

#endif
