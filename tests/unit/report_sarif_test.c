/* report_sarif_test.c - SARIF and JUnit: findings with the right kinds, at the right places,
 * whatever the names hold. */
#include "report_json.h"

#include <stdlib.h>

static size_t count_kind(const json_t *results, const char *kind)
{
    size_t i, count = 0;
    json_t *result;
    json_array_foreach (results, i, result)
        count += strcmp(json_text_at(result, "kind"), kind) == 0;
    return count;
}

static void test_sarif(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    json_t *root = parse_report(report_sarif, &specimen->facts);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    json_t *results = json_object_get(run, "results");
    /* Two direct findings; one hypothesis refuted, one excluded; the possible finding and
     * the twelve hypotheses that stayed open. */
    assert_int_equal(count_kind(results, "fail"), 2);
    assert_int_equal(count_kind(results, "pass"), 1);
    assert_int_equal(count_kind(results, "notApplicable"), 1);
    assert_int_equal(count_kind(results, "open"), 13);
    json_t *first = json_array_get(results, 0);
    json_t *location = json_array_get(json_object_get(first, "locations"), 0);
    json_t *physical = json_object_get(location, "physicalLocation");
    assert_string_equal(json_text_at(json_object_get(physical, "artifactLocation"), "uri"),
                        "engine/forward.c");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(physical, "region"), "startLine")), 120);
    json_t *logical = json_object_get(location, "logicalLocations");
    assert_int_equal(json_array_size(logical), 4); /* op, layer, step, tensor */
    json_decref(root);
    free(specimen);
}

/* A file name from outside is a URI all the same. */
static void test_sarif_uri(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    event_set_text(specimen->findings[0].cause.file, EVENT_FILE_BYTES, "a b/<c>:\xff.c");
    json_t *root = parse_report(report_sarif, &specimen->facts);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    json_t *first = json_array_get(json_object_get(run, "results"), 0);
    json_t *location = json_array_get(json_object_get(first, "locations"), 0);
    json_t *artifact = json_object_get(json_object_get(location, "physicalLocation"),
                                       "artifactLocation");
    assert_string_equal(json_text_at(artifact, "uri"), "a%20b/%3Cc%3E%3A%FF.c");
    json_decref(root);
    free(specimen);
}

/* A foreign program: a runtime without debug information, called by a program that has some. */
static size_t three_callers(void *context, size_t analysis, uint32_t stack_index,
                            struct report_frame *ret_frames, size_t capacity)
{
    (void)context;
    (void)analysis;
    assert_int_equal(stack_index, 3);
    assert_true(capacity >= 3);
    ret_frames[0] = (struct report_frame){ .function = "cudaFree", .file = "app", .offset = 8 };
    ret_frames[1] = (struct report_frame){ .file = "libc.so.6", .source = "start.c", .line = 58 };
    ret_frames[2] = (struct report_frame){
        .function = "give_back", .file = "app", .source = "/a b/app.cu", .line = 31
    };
    return 3;
}

static void test_sarif_caller(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct analyze_place *cause = &specimen->findings[0].cause;
    cause->file[0] = '\0';
    cause->foreign = true;
    cause->stack_index = 3;
    specimen->facts.callers.stack = three_callers;
    json_t *root = parse_report(report_sarif, &specimen->facts);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    json_t *first = json_array_get(json_object_get(run, "results"), 0);
    json_t *location = json_array_get(json_object_get(first, "locations"), 0);
    json_t *physical = json_object_get(location, "physicalLocation");
    assert_string_equal(json_text_at(json_object_get(physical, "artifactLocation"), "uri"),
                        "file:///a%20b/app.cu");
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(physical, "region"), "startLine")), 31);
    json_decref(root);
    free(specimen);
}

/* A confirmed hypothesis without a finding (an intervention proved it) is a failure too. */
static void test_sarif_without_finding(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    specimen->facts.verdict.hypotheses[HYPOTHESIS_MISSING_SYNC].verdict = VERDICT_CONFIRMED;
    json_t *root = parse_report(report_sarif, &specimen->facts);
    json_t *run = json_array_get(json_object_get(root, "runs"), 0);
    assert_int_equal(count_kind(json_object_get(run, "results"), "fail"), 1);
    json_decref(root);
    free(specimen);
}

static void test_junit(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    text_init(&text);
    report_junit(&specimen->facts, &text);
    /* 4 rows, 15 hypotheses, 4 planted; failures: 2 confirmed, 2 planted; error: the crash;
     * skipped: 1 interrupted row, 11 inconclusive and 1 that cannot be planted. */
    check_contains("junit", text_get(&text),
                   "tests=\"24\" failures=\"4\" errors=\"1\" skipped=\"14\"");
    check_contains("junit", text_get(&text), "&lt;script&gt;");
    assert_null(strstr(text_get(&text), "<script"));
    text_release(&text);
    /* A row in which nothing failed and something was found has not passed. */
    specimen->clean.finding_count = 1;
    specimen->clean.findings = specimen->findings;
    text_init(&text);
    report_junit(&specimen->facts, &text);
    check_contains("junit", text_get(&text),
                   "tests=\"24\" failures=\"5\" errors=\"1\" skipped=\"14\"");
    check_contains("junit", text_get(&text), "findings: 50 of 50 iterations, 0 errors, 1 finding");
    text_release(&text);
    free(specimen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sarif),     cmocka_unit_test(test_sarif_without_finding),
        cmocka_unit_test(test_sarif_uri), cmocka_unit_test(test_sarif_caller),
        cmocka_unit_test(test_junit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
