/* junit.c - junit.xml: rows of the matrix, hypotheses and planted faults as test cases, in the
 * shape that build servers read. A row or planted fault that failed and a confirmed hypothesis are
 * failures; what is not decided is skipped, never passed. */
#include "report/facts.h"

#include "report/escape.h"
#include "report/sections.h"

#include <inttypes.h>
#include <math.h>

struct suite {
    const char *name;
    size_t tests, failures, errors, skipped;
    double seconds;
    struct text cases;
};

enum case_result { CASE_PASSED, CASE_FAILED, CASE_ERROR, CASE_SKIPPED };

static void add_attribute(struct text *out, const char *name, const char *value)
{
    text_addf(out, " %s=\"", name);
    escape_markup(out, value);
    text_add(out, "\"");
}

static void add_case(struct suite *suite, const char *name, double seconds, enum case_result result,
                     const char *message)
{
    static const char *const elements[] = { [CASE_PASSED] = "",
                                            [CASE_FAILED] = "failure",
                                            [CASE_ERROR] = "error",
                                            [CASE_SKIPPED] = "skipped" };
    struct text *out = &suite->cases;
    suite->tests++;
    suite->failures += result == CASE_FAILED;
    suite->errors += result == CASE_ERROR;
    suite->skipped += result == CASE_SKIPPED;
    suite->seconds += seconds;
    text_add(out, "    <testcase");
    add_attribute(out, "name", name);
    text_addf(out, " classname=\"greta.%s\" time=\"%.3f\"", suite->name, seconds);
    if (result == CASE_PASSED) {
        text_add(out, "/>\n");
        return;
    }
    text_addf(out, ">\n      <%s", elements[result]);
    add_attribute(out, "message", message);
    text_add(out, "/>\n    </testcase>\n");
}

/* ---- Cases ---------------------------------------------------------------------------------- */

static void add_row(struct suite *suite, const struct report_row *row)
{
    enum facts_row_result result = facts_row_result(row);
    struct text name, message;
    double seconds = 0;
    size_t found = row->analysis ? row->analysis->finding_count : 0;
    text_init(&name);
    text_init(&message);
    for (size_t i = 0; i < row->latency_count; i++)
        seconds += isfinite(row->latencies_ms[i]) ? row->latencies_ms[i] / 1000 : 0;
    text_addf(&name, "%s %s", row->label, report_row_mode_name(row->mode));
    text_addf(&message, "%s: %" PRIu32 " of %" PRIu32 " %s, %" PRIu32 " %s, %zu %s%s%s",
              facts_row_result_name(result), row->done, row->planned,
              text_plural(row->planned, "iteration", "iterations"), row->errors,
              text_plural(row->errors, "error", "errors"), found,
              text_plural(found, "finding", "findings"), row->error ? ": " : "",
              row->error ? row->error : "");
    add_case(suite, text_get(&name), seconds,
             result == FACTS_ROW_PASSED                                   ? CASE_PASSED
             : result == FACTS_ROW_CRASHED || result == FACTS_ROW_HUNG    ? CASE_ERROR
             : result == FACTS_ROW_FAILED || result == FACTS_ROW_FINDINGS ? CASE_FAILED
                                                                          : CASE_SKIPPED,
             text_get(&message));
    suite->cases.failed = suite->cases.failed || name.failed || message.failed;
    text_release(&name);
    text_release(&message);
}

static void add_hypothesis(struct suite *suite, const struct report_facts *facts,
                           enum hypothesis hypothesis)
{
    const struct hypothesis_verdict *one = &facts->verdict.hypotheses[hypothesis];
    const struct finding *finding = facts_finding(facts, one->analysis, one->finding);
    struct text message;
    text_init(&message);
    text_addf(&message, "%s: ", verdict_name(one->verdict));
    if (finding)
        report_finding_describe(finding, REPORT_ENGLISH, &message);
    else if (one->missing != VERDICT_MISSING_NOTHING)
        text_add(&message, report_missing_words(one->missing, REPORT_ENGLISH));
    else
        sections_evidence(facts, hypothesis, REPORT_ENGLISH, &message);
    add_case(suite, hypothesis_info(hypothesis)->slug, 0,
             one->verdict == VERDICT_CONFIRMED ? CASE_FAILED
             : one->verdict == VERDICT_INCONCLUSIVE || one->verdict == VERDICT_NOT_SEEN
                 ? CASE_SKIPPED
                 : CASE_PASSED,
             text_get(&message));
    suite->cases.failed = suite->cases.failed || message.failed;
    text_release(&message);
}

static void add_planted(struct suite *suite, const struct report_planted *one)
{
    struct text message;
    text_init(&message);
    if (one->absent)
        text_add(&message, "cannot show on this device");
    else if (!one->detected)
        text_addf(&message, "planted as %s, not detected", hypothesis_info(one->hypothesis)->slug);
    else
        text_addf(&message, "planted as %s, found as %s; the %s is %s",
                  hypothesis_info(one->hypothesis)->slug,
                  one->found_hypothesis < HYPOTHESIS_COUNT
                      ? hypothesis_info(one->found_hypothesis)->slug
                      : "nothing",
                  one->only_seen ? "place where it was seen" : "culprit",
                  one->culprit_ok ? "right" : "wrong");
    if (one->note)
        text_addf(&message, ": %s", one->note);
    add_case(suite, one->fault, 0,
             one->absent                        ? CASE_SKIPPED
             : one->detected && one->culprit_ok ? CASE_PASSED
                                                : CASE_FAILED,
             text_get(&message));
    suite->cases.failed = suite->cases.failed || message.failed;
    text_release(&message);
}

/* ---- The whole ------------------------------------------------------------------------------ */

static void print_suite(const struct suite *suite, const char *date, struct text *out)
{
    text_addf(out, "  <testsuite name=\"%s\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\"",
              suite->name, suite->tests, suite->failures, suite->errors);
    text_addf(out, " skipped=\"%zu\" time=\"%.3f\"", suite->skipped, suite->seconds);
    add_attribute(out, "timestamp", date);
    text_add(out, ">\n");
    text_add(out, text_get(&suite->cases));
    text_add(out, "  </testsuite>\n");
    out->failed = out->failed || suite->cases.failed;
}

void report_junit(const struct report_facts *facts, struct text *text)
{
    struct suite suites[] = { { .name = "matrix" },
                              { .name = "hypotheses" },
                              { .name = "planted" } };
    struct suite all = { .name = "" };
    for (size_t i = 0; i < COUNT_OF(suites); i++)
        text_init(&suites[i].cases);
    for (size_t i = 0; i < facts->row_count; i++)
        add_row(&suites[0], &facts->rows[i]);
    for (int i = 0; i < HYPOTHESIS_COUNT; i++)
        add_hypothesis(&suites[1], facts, (enum hypothesis)i);
    for (size_t i = 0; i < facts->planted_count; i++)
        add_planted(&suites[2], &facts->planted[i]);
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        all.tests += suites[i].tests;
        all.failures += suites[i].failures;
        all.errors += suites[i].errors;
        all.skipped += suites[i].skipped;
        all.seconds += suites[i].seconds;
    }
    text_add(text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"greta audit\"");
    text_addf(text,
              " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
              all.tests, all.failures, all.errors, all.skipped, all.seconds);
    for (size_t i = 0; i < COUNT_OF(suites); i++) {
        print_suite(&suites[i], facts->identity.date, text);
        text_release(&suites[i].cases);
    }
    text_add(text, "</testsuites>\n");
}
