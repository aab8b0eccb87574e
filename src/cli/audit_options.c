/* audit_options.c - see audit_options.h. */
#include "cli/audit_options.h"

#include "base/text.h"
#include "campaign/campaign.h"
#include "cli/audit_result.h"
#include "cli/audit_sink.h"
#include "cli/command_line.h"
#include "device/all/all.h"
#include "event/fan.h"
#include "inject/inject.h"
#include "ops/ops.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* If one process begins more recordings than this within a second, something else is wrong. */
#define NAME_LIMIT 100

struct cli_audit {
    const struct cli_invocation *invocation;
    enum audit_level level;
    char path[1024]; /* of the recording */
    struct audit_sink *sink;
    struct flight *flight;
    struct analyze_live *live;
    struct event_fan fan;
    bool finished, printed;
    bool unplanted;                 /* a fault was to be planted, and no call matched it */
    struct analyzer *analyzer;      /* set when it is finished; NULL: the analysis failed */
    char failure[ERROR_TEXT_BYTES]; /* why */
};

/* ---- Beginning ------------------------------------------------------------------------------ */

/* The D2H lines go to stderr if their file cannot be written. */
static enum status open_sink(struct cli_audit *audit, struct error *err)
{
    struct cli_environment environment = *audit->invocation->environment;
    enum status status = audit_sink_create(&environment, &audit->sink, err);
    if (status == STATUS_OK || !environment.d2h_audit_log)
        return status;
    cli_warn(audit->invocation, "%s; the lines go to standard error instead", err->text);
    environment.d2h_audit_log = NULL;
    return audit_sink_create(&environment, &audit->sink, err);
}

/* Every recording has a name of its own; number 1 is the usual one. */
static void name_recording(struct cli_audit *audit, int number)
{
    char when[32] = "", suffix[16] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &parts);
    if (number > 1)
        snprintf(suffix, sizeof(suffix), "-%d", number);
    snprintf(audit->path, sizeof(audit->path), "greta-%s-%d%s.flight", when, (int)getpid(), suffix);
}

/* path NULL: under a new name. */
static enum status create_flight(struct cli_audit *audit, const char *path,
                                 const struct flight_options *options, struct error *err)
{
    if (path) {
        int length = snprintf(audit->path, sizeof(audit->path), "%s", path);
        if (length >= (int)sizeof(audit->path))
            return error_set(err, STATUS_USAGE, "--flight: expected at most %zu bytes, found %d",
                             sizeof(audit->path) - 1, length);
        enum status status = flight_create(path, options, &audit->flight, err);
        if (status == STATUS_EXISTS)
            return error_set(err, STATUS_EXISTS,
                             "--flight %s: expected a new name, found a file; a recording is never "
                             "overwritten: move it away, or choose another name",
                             path);
        return status ? error_wrap(err, "cannot record the run as requested") : STATUS_OK;
    }
    for (int number = 1;; number++) {
        name_recording(audit, number);
        enum status status = flight_create(audit->path, options, &audit->flight, err);
        if (status != STATUS_EXISTS || number == NAME_LIMIT)
            return status ? error_wrap(err, "cannot record the run as requested (name another "
                                            "place with --flight)")
                          : STATUS_OK;
    }
}

static enum status open_flight(struct cli_audit *audit, const char *path, const char *device_name,
                               const struct device_gpu_image *image, struct error *err)
{
    char resolved[ALL_NAME_BYTES];
    struct analyze_options analyze_options = { .level = audit->level,
                                               .operand_name = ops_operand_name };
    struct text command;
    text_init(&command);
    cli_add_command_line(&command, audit->invocation->environment);
    all_resolve(device_name, image, resolved);
    struct flight_options options = { .device = resolved,
                                      .command = text_get(&command),
                                      .keeps_old = true };
    enum status status = create_flight(audit, path, &options, err);
    text_release(&command);
    if (!status)
        status = analyze_live_start(audit->flight, audit->path, &analyze_options, &audit->live,
                                    err);
    if (status && audit->flight) {
        flight_close(audit->flight);
        audit->flight = NULL;
        unlink(audit->path);
    }
    return status;
}

enum status cli_audit_open(const struct cli_invocation *invocation, const char *level,
                           const char *flight_path, const char *device_name,
                           struct device_options *options, struct cli_audit **ret_audit,
                           struct error *err)
{
    struct cli_audit *audit = calloc(1, sizeof(*audit));
    if (!audit)
        return error_set(err, STATUS_NO_MEMORY, "no memory for an audit");
    audit->invocation = invocation;
    audit->level = flight_path ? AUDIT_LOG : AUDIT_OFF;
    if (level)
        ASSERT(audit_level_from_name(level, &audit->level)); /* one of the option's values */
    enum status status = open_sink(audit, err);
    if (!status && audit->level > AUDIT_OFF)
        status = open_flight(audit, flight_path, device_name, options->gpu_image, err);
    if (status) {
        bool unused;
        audit_sink_destroy(audit->sink, &unused);
        free(audit);
        return status;
    }
    campaign_level_options(audit->level, options);
    event_fan_add(&audit->fan, audit_sink_observer(audit->sink));
    if (audit->flight) {
        event_fan_add(&audit->fan, flight_observer(audit->flight));
        options->crumbs = flight_crumbs(audit->flight);
    }
    options->observer = event_fan_observer(&audit->fan);
    *ret_audit = audit;
    return STATUS_OK;
}

/* ---- Ending --------------------------------------------------------------------------------- */

void cli_audit_finish(struct cli_audit *audit)
{
    struct error err;
    if (!audit || audit->finished)
        return;
    audit->finished = true;
    if (audit->level == AUDIT_OFF)
        return;
    if (analyze_live_stop(audit->live, &audit->analyzer, &err)) {
        audit->analyzer = NULL;
        snprintf(audit->failure, sizeof(audit->failure), "%s", err.text);
    }
    flight_close(audit->flight);
}

static struct audit_result result_of(const struct cli_audit *audit)
{
    return (struct audit_result){ .level = audit->level,
                                  .recording = audit->path,
                                  .analysis = audit->analyzer ? analyzer_result(audit->analyzer)
                                                              : NULL,
                                  .failure = audit->failure };
}

enum cli_audit_answer cli_audit_answer(const struct cli_audit *audit)
{
    if (!audit || audit->level == AUDIT_OFF)
        return CLI_AUDIT_NOT_ASKED;
    ASSERT(audit->finished);
    return !audit->analyzer                 ? CLI_AUDIT_UNKNOWN
           : cli_audit_finding_count(audit) ? CLI_AUDIT_FINDINGS
           : audit->unplanted               ? CLI_AUDIT_UNKNOWN
                                            : CLI_AUDIT_NOTHING;
}

const char *cli_audit_unknown_reason(const struct cli_audit *audit)
{
    return audit->analyzer ? "the fault that was to be found was never planted"
                           : "the analysis of the run failed";
}

void cli_audit_check_planted(const struct cli_invocation *invocation, struct cli_audit *audit,
                             const struct inject *inject, const char *spec)
{
    if (!inject || inject_record(inject)->planted)
        return;
    cli_warn(invocation, "no call matched %s: the fault was never planted", spec);
    if (audit)
        audit->unplanted = true;
}

size_t cli_audit_finding_count(const struct cli_audit *audit)
{
    return audit && audit->analyzer ? analyzer_result(audit->analyzer)->finding_count : 0;
}

void cli_audit_print(struct cli_audit *audit)
{
    if (cli_audit_answer(audit) == CLI_AUDIT_NOT_ASKED)
        return;
    struct audit_result result = result_of(audit);
    audit_result_print(&result, stderr);
    audit->printed = true;
}

json_t *cli_audit_json(const struct cli_audit *audit)
{
    if (cli_audit_answer(audit) == CLI_AUDIT_NOT_ASKED)
        return NULL;
    struct audit_result result = result_of(audit);
    return audit_result_json(&result);
}

static void close_audit(struct cli_audit *audit)
{
    bool complete;
    analyzer_destroy(audit->analyzer);
    audit_sink_destroy(audit->sink, &complete);
    if (!complete)
        cli_warn(audit->invocation, "%s: not every line on copies could be written",
                 audit->invocation->environment->d2h_audit_log
                     ? audit->invocation->environment->d2h_audit_log
                     : "stderr");
    free(audit);
}

void cli_audit_close(struct cli_audit *audit)
{
    if (!audit)
        return;
    cli_audit_finish(audit);
    if (!audit->printed && !audit->invocation->quiet)
        cli_audit_print(audit);
    close_audit(audit);
}

void cli_audit_discard(struct cli_audit *audit)
{
    if (!audit)
        return;
    cli_audit_finish(audit);
    if (audit->level > AUDIT_OFF)
        unlink(audit->path);
    close_audit(audit);
}

/* ---- Faults --------------------------------------------------------------------------------- */

enum cli_exit cli_list_faults(void)
{
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++)
        printf("%-22s %s\n", inject_fault_name((enum inject_fault)fault),
               inject_fault_summary((enum inject_fault)fault));
    return CLI_EXIT_OK;
}
