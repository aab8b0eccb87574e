/* transfers_print.c - greta audit --transfers as a table and as JSON. */
#include "campaign/inject_stage.h"
#include "campaign/transfers.h"

#include "campaign/campaign.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* None of n copies was wrong: the chance of a wrong one is below 3/n (95 %). */
static double bound_of(uint64_t copies)
{
    return copies ? 3.0 / (double)copies : 1;
}

/* Nothing was found although a fault was to be planted: whether it would be is not known. */
static bool is_untested(const struct transfers_report *report, bool passed)
{
    return report->planting.fault && passed;
}

static void print_json(const struct transfers_report *report, const struct identity *identity,
                       uint64_t findings, bool passed, struct text *text)
{
    json_t *paths = json_array();
    for (size_t i = 0; i < report->count; i++) {
        const struct report_transfer *path = &report->paths[i];
        json_array_append_new(paths, json_pack("{s:s, s:I, s:I, s:I, s:f, s:s?}", "path",
                                               path->path, "copies", (json_int_t)path->copies,
                                               "bytes", (json_int_t)path->bytes, "mismatches",
                                               (json_int_t)path->mismatches, "gigabytes_per_second",
                                               path->gigabytes_per_second, "note", path->note));
    }
    json_t *document = json_pack("{s:s, s:s, s:o, s:I, s:I, s:I, s:f, s:b, s:s?, s:o}", "device",
                                 identity->device.name, "kind", identity->device.kind, "paths",
                                 paths, "copies", (json_int_t)report->copies, "mismatches",
                                 (json_int_t)report->mismatches, "findings", (json_int_t)findings,
                                 "bound", bound_of(report->copies), "passed", passed, "error",
                                 report->error[0] ? report->error : NULL, "planted_fault",
                                 report_planting_json(&report->planting, text));
    char *dumped = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) : NULL;
    json_decref(document);
    text_add(text, dumped ? dumped : "");
    text_add(text, "\n");
    text->failed = text->failed || !dumped;
    free(dumped);
}

static void print_table(const struct transfers_report *report, const struct identity *identity,
                        uint64_t findings, bool passed, enum report_language language,
                        struct text *text)
{
    char bytes[TEXT_BYTES_CAPACITY];
    report_planting_add(&report->planting, language, text);
    text_addf(text, "%s\n\n%-40s %8s %12s %10s %9s\n", identity->device.name,
              words_get(language, WORD_TRANSFERS_PATH), words_get(language, WORD_TRANSFERS_COPIES),
              "bytes", words_get(language, WORD_TRANSFERS_WRONG), "GB/s");
    for (size_t i = 0; i < report->count; i++) {
        const struct report_transfer *path = &report->paths[i];
        text_addf(text, "%-40s %8" PRIu64 " %12s %10" PRIu64, path->path, path->copies,
                  text_bytes(path->bytes, bytes), path->mismatches);
        if (path->gigabytes_per_second > 0)
            text_addf(text, " %9.2f", path->gigabytes_per_second);
        text_addf(text, "%s%s\n", path->note ? "  " : "", path->note ? path->note : "");
    }
    char copies[WORDS_NUMBER_BYTES], wrong[WORDS_NUMBER_BYTES], found[WORDS_NUMBER_BYTES],
        bound[32];
    text_add(text, "\n");
    words_add(text, language, WORD_TRANSFERS_TOTAL, words_number(report->copies, copies),
              words_number(report->mismatches, wrong), words_number(findings, found), NULL);
    snprintf(bound, sizeof(bound), "%.1e", bound_of(report->copies));
    if (!report->mismatches && !report->failed)
        words_add(text, language, WORD_TRANSFERS_BOUND, bound, NULL);
    text_add(text, "\n");
    if (report->error[0])
        text_addf(text, "%s\n", report->error);
    if (is_untested(report, passed))
        text_addf(text, "%s\n",
                  words_get(language, report->planting.fired ? WORD_HEADLINE_FIRED_UNSEEN
                                                             : WORD_HEADLINE_NEVER_FIRED));
}

static enum status check_inject(const struct campaign_options *options,
                                const struct audit_model *model, struct error *err)
{
    const struct campaign_extent extent = { .only_copies = true };
    return options->inject ? inject_stage_check(options->inject, model->path, &extent, err)
                           : STATUS_OK;
}

enum status campaign_transfers(const struct campaign_options *options, uint32_t copies, bool json,
                               struct text *text, bool *ret_passed, bool *ret_decided,
                               struct error *err)
{
    struct transfers_report *report = calloc(1, sizeof(*report));
    struct identity identity;
    struct audit_model model = { 0 };
    char folder[FILES_PATH_BYTES] = "";
    if (!report)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a table");
    enum status status = identity_find(options, &identity, err);
    if (!status)
        status = audit_model_open(options, &model, err);
    if (!status)
        status = check_inject(options, &model, err);
    if (!status)
        status = temporary_open(options, folder, err);
    if (!status) {
        struct child_setup setup = { options->program, options->environment, folder, false };
        status = transfers_run(options, &setup, &model, copies, false, report, err);
    }
    if (!status) {
        uint64_t findings = 0;
        for (size_t i = 0; i < report->analyzer_count; i++)
            findings += analyzer_result(report->analyzers[i])->finding_count;
        *ret_passed = !report->mismatches && !report->failed && !findings;
        *ret_decided = !is_untested(report, *ret_passed);
        if (json)
            print_json(report, &identity, findings, *ret_passed, text);
        else
            print_table(report, &identity, findings, *ret_passed, options->language, text);
    }
    if (folder[0])
        temporary_close(folder);
    audit_model_close(&model);
    transfers_release(report);
    free(report);
    return status;
}
