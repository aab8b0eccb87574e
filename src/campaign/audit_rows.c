/* audit_rows.c - a row of the matrix: its job, its child, and what its files say. */
#include "campaign/audit.h"

#include "campaign/dump_facts.h"
#include "campaign/stress.h"
#include "event/flight.h"
#include "ops/ops.h"
#include "report/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A round of the streams workload for so many iterations of the model: enough that every path is
 * taken in a row of 50, little enough that the row is about the model. */
#define STREAMS_INTERVAL 5u

struct job audit_row_job(const struct audit *audit, const struct matrix_row *row)
{
    struct job job = audit_job(&audit->options, &audit->model, row->label);
    job.work = JOB_INFER | JOB_STREAMS;
    job.iterations = row->iterations;
    job.streams_interval = row->iterations < 2 * STREAMS_INTERVAL ? 1 : STREAMS_INTERVAL;
    if (row->mode == REPORT_BARE)
        job.level = AUDIT_OFF;
    else
        job.inject = audit->options.inject;
    if (row->mode == REPORT_STRESS)
        job.stress = stress_ranges();
    return job;
}

static bool went_wrong(const struct audit_row *row)
{
    const struct child_outcome *outcome = &row->outcome;
    return !outcome->ended || outcome->errors ||
           (row->analyzer && analyzer_result(row->analyzer)->finding_count > 0);
}

struct run_ending audit_row_ending(const struct audit_row *row)
{
    struct run_ending ending = child_ending(&row->outcome);
    if (ending.kind == ENDING_EXITED && row->analyzer &&
        analyzer_result(row->analyzer)->device_lost)
        ending.kind = ENDING_DEVICE_LOST;
    return ending;
}

bool audit_row_is_cut_short(const struct audit_row *row)
{
    return row->finished && child_was_ended_from_outside(&row->outcome) && !row->outcome.errors &&
           !(row->analyzer && analyzer_result(row->analyzer)->finding_count > 0);
}

bool audit_row_is_faulty(const struct audit_row *row)
{
    return row->finished && went_wrong(row);
}

/* ---- What the files say --------------------------------------------------------------------- */

static void hash_file(const struct audit *audit, const char *relative,
                      char ret_hex[FILES_SHA256_TEXT_BYTES])
{
    char path[FILES_PATH_BYTES];
    struct error unused;
    ret_hex[0] = '\0';
    if (relative[0] && !files_join(path, &unused, audit->folder, "%s", relative) &&
        files_sha256(path, ret_hex, &unused))
        ret_hex[0] = '\0';
}

/* The recording as it was written, or packed by an audit that is resumed: its name in row->flight,
 * its path. */
static enum status find_recording(const struct audit *audit, struct audit_row *row,
                                  char ret_path[FILES_PATH_BYTES], struct error *err)
{
    snprintf(row->flight, sizeof(row->flight), "run/%s.flight", row->settings.label);
    TRY(files_join(ret_path, err, audit->folder, "%s", row->flight));
    if (access(ret_path, F_OK) == 0)
        return STATUS_OK;
    snprintf(row->flight, sizeof(row->flight), "run/%s.flight" FLIGHT_PACKED_SUFFIX,
             row->settings.label);
    return files_join(ret_path, err, audit->folder, "%s", row->flight);
}

/* The recording takes tens of megabytes: it is kept compressed, and of a row in which nothing was
 * found only its newest events. Where that fails, it is kept as it is. */
static void pack_recording(const struct audit *audit, struct audit_row *row, const char *path)
{
    char packed[FILES_PATH_BYTES];
    struct error unused;
    const char *name = row->settings.label;
    /* If a planted fault was not found, every event may say why. */
    bool clean = row->analyzer && !went_wrong(row) && !audit->options.inject;
    if (strcmp(path + strlen(path) - strlen(FLIGHT_PACKED_SUFFIX), FLIGHT_PACKED_SUFFIX) == 0 ||
        files_join(packed, &unused, audit->folder, "run/%s.flight" FLIGHT_PACKED_SUFFIX, name) ||
        flight_pack(path, packed, clean ? FLIGHT_CLEAN_EVENTS : 0, &unused))
        return;
    unlink(path);
    snprintf(row->flight, sizeof(row->flight), "run/%s.flight" FLIGHT_PACKED_SUFFIX, name);
}

static enum status analyse_row(const struct audit *audit, struct audit_row *row, struct error *err)
{
    struct job job = audit_row_job(audit, &row->settings);
    struct analyze_options options = { .level = job.level,
                                       .hang_limit_ns = job.hang_limit_ns,
                                       .operand_name = ops_operand_name };
    char flight[FILES_PATH_BYTES];
    struct error second;
    snprintf(row->log, sizeof(row->log), "run/%s.log", row->settings.label);
    if (job.level != AUDIT_OFF && !row->outcome.missing[0]) {
        TRY(find_recording(audit, row, flight, err));
        if (dump_facts_analyze(flight, &options, &row->analyzer, &second)) {
            row->analyzer = NULL;
            snprintf(row->analysis_missing, sizeof(row->analysis_missing), "%.500s", second.text);
        }
        pack_recording(audit, row, flight);
    }
    hash_file(audit, row->log, row->log_sha256);
    hash_file(audit, row->flight, row->flight_sha256);
    if (job.stress.on) {
        json_t *draws = stress_to_json(&job);
        row->parameters = json_dumps(draws, JSON_COMPACT);
        json_decref(draws);
    }
    double seconds = (row->outcome.prompt_ms + row->outcome.decode_ms) / 1e3;
    if (seconds > 0)
        row->tokens_per_second = (double)row->outcome.tokens / seconds;
    return STATUS_OK;
}

void audit_row_release(struct audit_row *row)
{
    child_outcome_release(&row->outcome);
    analyzer_destroy(row->analyzer);
    free(row->parameters);
    row->analyzer = NULL;
    row->parameters = NULL;
}

/* ---- Running -------------------------------------------------------------------------------- */

struct row_watch {
    const struct campaign_watcher *watcher;
    char stage[64];
};

static bool on_step(void *context, uint64_t done, uint64_t total)
{
    struct row_watch *watch = context;
    return !watch->watcher->step ||
           watch->watcher->step(watch->watcher->context, watch->stage, done, total);
}

/* A line for people, in the language they asked for. */
static void tell(const struct audit *audit, const struct audit_row *row)
{
    const struct campaign_watcher *watcher = &audit->options.watcher;
    const struct child_outcome *outcome = &row->outcome;
    char done[WORDS_NUMBER_BYTES], planned[WORDS_NUMBER_BYTES], errors[WORDS_NUMBER_BYTES],
        findings[WORDS_NUMBER_BYTES];
    struct text ending, line;
    if (!watcher->note)
        return;
    text_init(&ending);
    if (!outcome->ended) {
        text_add(&ending, ", ");
        report_ending_words(audit_row_ending(row), audit->options.language, &ending);
    }
    size_t found = row->analyzer ? analyzer_result(row->analyzer)->finding_count : 0;
    text_init(&line);
    words_add(&line, audit->options.language, WORD_NOTE_ROW, row->settings.label,
              report_row_mode_name(row->settings.mode), words_number(outcome->done, done),
              words_number(row->settings.iterations, planned),
              words_number(outcome->errors, errors), words_number(found, findings),
              text_get(&ending), NULL);
    watcher->note(watcher->context, text_get(&line));
    text_release(&ending);
    text_release(&line);
}

enum status audit_run_row(struct audit *audit, struct audit_row *row, struct error *err)
{
    struct job job = audit_row_job(audit, &row->settings);
    struct row_watch watch = { .watcher = &audit->options.watcher };
    struct progress progress = { on_step, &watch };
    char flight[FILES_PATH_BYTES], packed[FILES_PATH_BYTES];
    snprintf(watch.stage, sizeof(watch.stage), "%s (%s)", row->settings.label,
             report_row_mode_name(row->settings.mode));
    TRY(child_path(audit->folder, row->settings.label, "flight", flight, err));
    TRY(child_path(audit->folder, row->settings.label, "flight" FLIGHT_PACKED_SUFFIX, packed, err));
    unlink(packed); /* of an earlier try */
    if (job.level != AUDIT_OFF)
        job.flight = flight;
    job.coredump = job.level != AUDIT_OFF;
    dump_facts_forget(flight);
    TRY(child_run(&audit->setup, &job, &progress, &row->outcome, err));
    /* What cannot be set up is not a fault of the audited: the audit could not run. */
    if (row->outcome.failed[0] && !row->outcome.ready && !job.inject)
        return error_set(err, STATUS_IO, "%s", row->outcome.failed);
    TRY(analyse_row(audit, row, err));
    row->finished = true;
    tell(audit, row);
    return STATUS_OK;
}

enum status audit_load_row(struct audit *audit, struct audit_row *row, struct error *err)
{
    char results[FILES_PATH_BYTES];
    TRY(child_path(audit->folder, row->settings.label, "results.jsonl", results, err));
    TRY(child_read_results(results, &row->outcome, err));
    child_note_hang(&row->outcome);
    TRY(analyse_row(audit, row, err));
    row->finished = true;
    return STATUS_OK;
}
