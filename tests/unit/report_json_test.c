/* report_json_test.c - summary and manifest: JSON that parses and says what the facts say, whatever
 * the names hold. The files as a whole are compared with their schema by
 * tests/tools/report_files_test.py. */
#include "report/earlier.h"
#include "report_json.h"

#include <stdlib.h>

/* ---- Summary and manifest ------------------------------------------------------------------- */

static void test_summary(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    json_t *root = parse_report(report_summary_json, &specimen->facts);
    assert_string_equal(json_text_at(root, "schema"), "greta-audit-summary");
    assert_string_equal(json_text_at(root, "outcome"), "ROOT_CAUSE");
    assert_string_equal(json_text_at(root, "severity"), "critical");
    json_t *cause = json_object_get(root, "root_cause");
    assert_string_equal(json_text_at(cause, "hypothesis"), "kernel-fault");
    json_t *hypotheses = json_object_get(root, "hypotheses");
    assert_int_equal(json_array_size(hypotheses), HYPOTHESIS_COUNT);
    /* In the order of rank. */
    assert_string_equal(json_text_at(json_array_get(hypotheses, 0), "slug"), "kernel-fault");
    assert_string_equal(json_text_at(json_array_get(hypotheses, 1), "slug"), "silent-corruption");
    json_t *findings = json_object_get(root, "findings");
    assert_int_equal(json_array_size(findings), 3);
    json_t *first = json_array_get(findings, 0);
    assert_true(json_is_true(json_object_get(first, "root")));
    assert_string_equal(json_text_at(first, "row"), "C");
    assert_string_equal(json_text_at(first, "key"),
                        "rope[1] layer=17 step=3 tensor=blk.17.q check=view-end");
    assert_string_equal(json_text_at(json_object_get(first, "cause"), "address"), "0x7f0000300010");
    assert_true(json_is_null(json_object_get(json_array_get(findings, 1), "seen")));
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(findings, 1), "consequence_of")), 0);
    json_t *rows = json_object_get(root, "rows");
    assert_int_equal(json_array_size(rows), 4);
    assert_string_equal(json_text_at(json_array_get(rows, 2), "result"), "crashed");
    assert_string_equal(json_text_at(json_array_get(rows, 3), "result"), "interrupted");
    json_t *program = json_object_get(root, "program");
    assert_string_equal(json_text_at(program, "ending"), "killed");
    assert_string_equal(json_text_at(program, "looked_at"), "part");
    assert_string_equal(json_text_at(json_object_get(program, "ending_text"), "en"),
                        "killed by signal 15 (SIGTERM)");
    json_t *reasons = json_object_get(program, "reasons");
    assert_int_equal(json_array_size(reasons), 1);
    assert_string_equal(json_text_at(json_array_get(reasons, 0), "en"), "there is no CUPTI");
    assert_string_equal(json_text_at(json_array_get(reasons, 0), "es"), "falta CUPTI");
    json_t *subjects = json_object_get(program, "subjects");
    assert_int_equal(json_array_size(subjects), 2);
    assert_string_equal(json_text_at(json_array_get(subjects, 0), "subject"), "copies");
    assert_true(json_is_true(json_object_get(json_array_get(subjects, 0), "looked_at")));
    assert_string_equal(json_text_at(json_array_get(subjects, 1), "subject"), "kernels");
    assert_true(json_is_false(json_object_get(json_array_get(subjects, 1), "looked_at")));
    json_t *figures = json_object_get(root, "figures");
    assert_string_equal(json_text_at(json_array_get(figures, 0), "what"), "A latency_median_ms");
    json_decref(root);
    free(specimen);
}

/* What a sentence says, as data: the kind of defect, its numbers, why it is only possible. */
static json_t *first_finding(const struct report_specimen *specimen, json_t **ret_root)
{
    *ret_root = parse_report(report_summary_json, &specimen->facts);
    return json_array_get(json_object_get(*ret_root, "findings"), 0);
}

static void test_findings_are_data(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct finding *finding = &specimen->findings[0];
    json_t *root;
    *finding = (struct finding){
        .hypothesis = HYPOTHESIS_BAD_POINTER, .expected = 1024, .found = 5000, .consequence_of = -1
    };
    json_t *first = first_finding(specimen, &root);
    assert_string_equal(json_text_at(first, "defect"), "index-past-bound");
    json_t *parameters = json_object_get(first, "parameters");
    assert_int_equal(json_object_size(parameters), 2);
    assert_int_equal(json_integer_value(json_object_get(parameters, "bound")), 1024);
    assert_int_equal(json_integer_value(json_object_get(parameters, "index")), 5000);
    assert_true(json_is_null(json_object_get(first, "reason_name")));
    assert_true(json_is_null(json_object_get(first, "miss")));
    assert_true(json_is_null(json_object_get(first, "ranking")));
    json_decref(root);

    *finding = (struct finding){ .hypothesis = HYPOTHESIS_KERNEL_FAULT,
                                 .near = { .known = true, .address = 0x1010 },
                                 .expected = 0x1000,
                                 .found = 0x10,
                                 .consequence_of = -1 };
    first = first_finding(specimen, &root);
    assert_string_equal(json_text_at(json_object_get(first, "parameters"), "buffer_address"),
                        "0x1000");
    json_t *miss = json_object_get(first, "miss");
    assert_string_equal(json_text_at(miss, "side"), "past-end");
    assert_int_equal(json_integer_value(json_object_get(miss, "bytes")), 1);
    json_decref(root);

    finding->certainty = FINDING_POSSIBLE;
    finding->candidate_count = 2;
    finding->reason = REASON_NEAR_ADDRESS;
    first = first_finding(specimen, &root);
    assert_string_equal(json_text_at(first, "reason_name"), "near-address");
    assert_string_equal(json_text_at(first, "ranking"), "near-address");
    /* It would be an operand of one of them. */
    assert_true(json_is_null(json_object_get(first, "miss")));
    json_decref(root);

    finding->hypothesis = HYPOTHESIS_SILENT_CORRUPTION;
    finding->reason = REASON_CANARY_WINDOW;
    first = first_finding(specimen, &root);
    assert_string_equal(json_text_at(first, "defect"), "write-outside-buffer");
    assert_string_equal(json_text_at(first, "ranking"), "near-damage");
    json_decref(root);
    free(specimen);
}

static void test_manifest(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    json_t *root = parse_report(report_manifest_json, &specimen->facts);
    /* 2^64-1 does not fit a JSON integer here: it must not change. */
    assert_string_equal(json_text_at(root, "seed"), "18446744073709551615");
    assert_string_equal(json_text_at(json_object_get(root, "greta"), "binary_sha256"), "5a5a5a");
    assert_string_equal(json_text_at(json_object_get(root, "model"), "sha256"), "c3c3c3");
    json_t *rows = json_object_get(root, "rows");
    assert_string_equal(json_text_at(json_array_get(rows, 0), "log_sha256"), "aa11");
    /* Parameters are JSON where they can be, else they are kept as text. */
    json_t *parameters = json_object_get(json_array_get(rows, 2), "parameters");
    assert_int_equal(json_integer_value(json_object_get(parameters, "streams")), 3);
    assert_string_equal(json_text_at(json_array_get(rows, 3), "parameters"), "not JSON");
    json_decref(root);
    free(specimen);
}

static void test_empty(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    json_decref(parse_report(report_summary_json, &specimen->facts));
    json_decref(parse_report(report_manifest_json, &specimen->facts));
    json_decref(parse_report(report_sarif, &specimen->facts));
    json_decref(parse_report(report_self_test_json, &specimen->facts));
    free(specimen);
}

static void test_self_test(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    json_t *root = parse_report(report_self_test_json, &specimen->facts);
    assert_string_equal(json_text_at(root, "device"), "AMD EPYC 9B14");
    json_t *planted = json_object_get(root, "planted"), *first = json_array_get(planted, 0);
    assert_int_equal(json_array_size(planted), 4);
    assert_string_equal(json_text_at(first, "fault"), "wrong-position");
    assert_string_equal(json_text_at(first, "hypothesis"), "bad-pointer");
    assert_true(json_is_true(json_object_get(first, "detected")));
    assert_true(json_is_true(json_object_get(first, "culprit_ok")));
    assert_string_equal(json_text_at(json_object_get(first, "culprit"), "op"), "rope");
    assert_true(json_is_false(json_object_get(json_array_get(planted, 1), "detected")));
    assert_true(json_is_false(json_object_get(json_array_get(planted, 1), "absent")));
    assert_true(json_is_true(json_object_get(json_array_get(planted, 3), "absent")));
    json_decref(root);
    free(specimen);
}

/* ---- What follows from the facts ------------------------------------------------------------ */

static void test_severity(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    struct report_facts *facts = &specimen->facts;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_MEDIUM);
    facts->verdict.outcome = AUDIT_CLEAN;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_NONE);
    facts->verdict.outcome = AUDIT_INCONCLUSIVE;
    struct report_row row = { .label = "A", .crashed = true };
    facts->rows = &row;
    facts->row_count = 1;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_HIGH);
    facts->row_count = 0;
    facts->verdict.outcome = AUDIT_ROOT_CAUSE;
    facts->verdict.hypotheses[HYPOTHESIS_CONTRACT_BREACH].verdict = VERDICT_CONFIRMED;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_MEDIUM);
    facts->verdict.hypotheses[HYPOTHESIS_KERNEL_FAULT].verdict = VERDICT_CONFIRMED;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_HIGH);
    facts->verdict.hypotheses[HYPOTHESIS_MISSING_SYNC].verdict = VERDICT_CONFIRMED;
    assert_int_equal(report_severity(facts), REPORT_SEVERITY_CRITICAL);
    free(specimen);
}

static void test_figures(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct report_figure figures[16];
    size_t count = report_figures(specimen->rows, 2, figures, COUNT_OF(figures));
    assert_int_equal(count, 6);
    assert_string_equal(figures[1].what, "A tokens_per_second");
    assert_true(figures[1].value > 21.2 && figures[1].value < 21.3);
    /* The count is of all of them, also where there is no room. */
    assert_int_equal(report_figures(specimen->rows, 2, figures, 1), 6);
    free(specimen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),   cmocka_unit_test(test_findings_are_data),
        cmocka_unit_test(test_manifest),  cmocka_unit_test(test_empty),
        cmocka_unit_test(test_self_test), cmocka_unit_test(test_severity),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
