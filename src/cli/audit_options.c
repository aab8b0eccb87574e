/* audit_options.c - see audit_options.h. */
#include "cli/audit_options.h"

#include "base/text.h"
#include "campaign/campaign.h"
#include "cli/audit_sink.h"
#include "device/all/all.h"
#include "event/fan.h"
#include "inject/inject.h"
#include "ops/ops.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FLIGHT_DEFAULT "greta.flight"
#define FINDINGS_SHOWN 5u

struct cli_audit {
    const struct cli_invocation *invocation;
    enum audit_level level;
    const char *path; /* borrowed */
    struct audit_sink *sink;
    struct flight *flight;
    struct analyze_live *live;
    struct event_fan fan;
    char missing[ERROR_TEXT_BYTES]; /* why nothing is recorded; "" */
};

/* ---- Beginning ------------------------------------------------------------------------------ */

/* The lines of the first audits go to stderr where their file cannot be written. */
static enum status open_sink(struct cli_audit *audit, struct error *err)
{
    struct cli_environment environment = *audit->invocation->environment;
    enum status status = audit_sink_create(&environment, &audit->sink, err);
    if (status == STATUS_OK || !environment.d2h_audit_log)
        return status;
    cli_warn(audit->invocation, "%s; its lines follow here", err->text);
    environment.d2h_audit_log = NULL;
    return audit_sink_create(&environment, &audit->sink, err);
}

static void open_flight(struct cli_audit *audit, const char *device_name,
                        const struct device_gpu_image *image)
{
    char command[FLIGHT_TEXT_BYTES], resolved[ALL_NAME_BYTES];
    struct analyze_options analyze_options = { .level = audit->level, .operand_name = ops_operand_name };
    struct error err;
    snprintf(command, sizeof(command), "greta %s --audit %s", audit->invocation->command->name,
             audit_level_name(audit->level));
    all_resolve(device_name, image, resolved);
    struct flight_options options = { .device = resolved, .command = command };
    enum status status = flight_create(audit->path, &options, &audit->flight, &err);
    if (!status)
        status = analyze_live_start(audit->flight, audit->path, &analyze_options, &audit->live,
                                    &err);
    if (!status)
        return;
    snprintf(audit->missing, sizeof(audit->missing), "%s", err.text);
    cli_warn(audit->invocation, "%s; the run goes on without %s", err.text,
             audit->flight ? "analysis" : "a record");
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
        ASSERT(audit_level_from_name(level, &audit->level)); /* of the option's list */
    audit->path = flight_path ? flight_path : FLIGHT_DEFAULT;
    enum status status = open_sink(audit, err);
    if (status) {
        free(audit);
        return status;
    }
    if (audit->level > AUDIT_OFF)
        open_flight(audit, device_name, options->gpu_image);
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

static void show_finding(const struct analysis *analysis, size_t index)
{
    const struct finding *finding = &analysis->findings[index];
    struct text words;
    text_init(&words);
    finding_describe(finding, ANALYZE_ENGLISH, &words);
    fprintf(stderr, "  %s%s: %s\n", (int32_t)index == analysis->root ? "root cause: " : "",
            hypothesis_info(finding->hypothesis)->slug, text_get(&words));
    text_release(&words);
}

static void show_analysis(const struct cli_audit *audit, const struct analysis *analysis)
{
    fprintf(stderr, "Audit: level %s, %" PRIu64 " events, %zu finding%s, recorded in %s\n",
            audit_level_name(audit->level), analysis->event_count, analysis->finding_count,
            analysis->finding_count == 1 ? "" : "s", audit->path);
    uint64_t unseen = analysis->lost_count + analysis->dropped_count;
    if (unseen)
        fprintf(stderr, "  %" PRIu64 " events were not analysed\n", unseen);
    if (analysis->root >= 0)
        show_finding(analysis, (size_t)analysis->root);
    size_t shown = analysis->root >= 0;
    for (size_t i = 0; i < analysis->finding_count && shown < FINDINGS_SHOWN; i++) {
        if ((int32_t)i == analysis->root)
            continue;
        show_finding(analysis, i);
        shown++;
    }
    if (analysis->finding_count > shown)
        fprintf(stderr, "  and %zu more\n", analysis->finding_count - shown);
}

const char *cli_audit_missing(const struct cli_audit *audit)
{
    return audit->missing[0] ? audit->missing : NULL;
}

static void end_recording(struct cli_audit *audit, bool shown)
{
    struct analyzer *analyzer = NULL;
    struct error err;
    if (audit->live && analyze_live_stop(audit->live, &analyzer, &err) && shown)
        fprintf(stderr, "Audit: the analysis failed: %s\n", err.text);
    if (analyzer && shown)
        show_analysis(audit, analyzer_result(analyzer));
    else if (audit->missing[0] && shown)
        fprintf(stderr, "Audit: nothing was %s: %s\n", audit->flight ? "analysed" : "recorded",
                audit->missing);
    analyzer_destroy(analyzer);
    flight_close(audit->flight);
}

static void close_audit(struct cli_audit *audit, bool shown)
{
    bool complete;
    if (audit->level > AUDIT_OFF)
        end_recording(audit, shown);
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
    if (audit)
        close_audit(audit, true);
}

void cli_audit_discard(struct cli_audit *audit)
{
    if (!audit)
        return;
    if (audit->flight)
        unlink(audit->path);
    close_audit(audit, false);
}

/* ---- Faults --------------------------------------------------------------------------------- */

enum cli_exit cli_list_faults(void)
{
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++)
        printf("%-22s %s\n", inject_fault_name((enum inject_fault)fault),
               inject_fault_summary((enum inject_fault)fault));
    return CLI_EXIT_OK;
}
