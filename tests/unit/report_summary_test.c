/* report_summary_test.c - an earlier summary read back: what was written comes back, and a file
 * that is damaged in any way gives an error that names it, never a crash. */
#include "test.h"

#include "base/text.h"
#include "report/earlier.h"
#include "report_facts.h"
#include "temp_folder.h"

#include <stdlib.h>

static void print_summary(struct text *text)
{
    struct report_specimen *specimen = malloc(sizeof(*specimen));
    assert_non_null(specimen);
    specimen_init(specimen);
    text_init(text);
    report_summary_json(&specimen->facts, text);
    assert_false(text->failed);
    free(specimen);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct report_summary summary;
    struct error err;
    struct text text;
    temp_folder_init(&folder);
    print_summary(&text);
    temp_folder_write(&folder, "summary.json", text_get(&text), text.length);
    CHECK_OK(report_summary_read(temp_folder_path(&folder, "summary.json").text, &summary, &err),
             &err);
    assert_string_equal(summary.id, "20261115-093012-4f2a");
    assert_string_equal(summary.date, "2026-11-15T09:30:12Z");
    assert_int_equal(summary.outcome, AUDIT_ROOT_CAUSE);
    assert_non_null(strstr(summary.root_cause, "layer 17"));
    assert_non_null(strstr(summary.root_cause_es, "capa 17"));
    assert_int_equal(summary.finding_count, 3);
    assert_string_equal(summary.findings[0].slug, "kernel-fault");
    assert_string_equal(summary.findings[0].key,
                        "rope[1] layer=17 step=3 tensor=blk.17.q check=view-end");
    assert_non_null(strstr(summary.findings[0].text_es, "capa 17"));
    assert_string_equal(summary.timings[0].what, "A latency_median_ms");
    assert_true(summary.timings[0].value > 40 && summary.timings[0].value < 60);
    assert_true(summary.timing_count >= 6);
    report_summary_release(&summary);
    report_summary_release(&summary); /* an empty one is fine */
    text_release(&text);
    temp_folder_release(&folder);
}

static void test_no_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct report_summary summary;
    struct error err;
    temp_folder_init(&folder);
    CHECK_FAILS(report_summary_read(temp_folder_path(&folder, "none.json").text, &summary, &err),
                STATUS_NOT_FOUND, &err);
    CHECK_FAILS(report_summary_read(folder.path, &summary, &err), STATUS_IO, &err);
    temp_folder_release(&folder);
}

/* ---- Damage --------------------------------------------------------------------------------- */

#define HEAD "{\"schema\":\"greta-audit-summary\",\"schema_version\":1,\"id\":\"i\",\"date\":\"d\","
#define REST "\"root_cause\":null,\"findings\":[],\"figures\":[]}"

static void test_damaged(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *words;
        enum status status;
    } rows[] = {
        { "empty", "", "empty file", STATUS_BAD_FILE },
        { "not JSON", "{", "not JSON", STATUS_BAD_FILE },
        { "a list", "[]", "not a summary", STATUS_BAD_FILE },
        { "a number", "7", "not JSON", STATUS_BAD_FILE },
        { "twice", "{\"schema\":1,\"schema\":2}", "duplicate", STATUS_BAD_FILE },
        { "other schema", "{\"schema\":\"x\"}", "not a summary", STATUS_BAD_FILE },
        { "other version", "{\"schema\":\"greta-audit-summary\",\"schema_version\":2}",
          "schema_version", STATUS_UNSUPPORTED },
        { "no id", "{\"schema\":\"greta-audit-summary\",\"schema_version\":1}",
          "id: expected text, found nothing", STATUS_BAD_FILE },
        { "no outcome", HEAD REST, "outcome: expected text", STATUS_BAD_FILE },
        { "bad outcome", HEAD "\"outcome\":\"FINE\\u001b\"," REST, "found 'FINE\\x1B'",
          STATUS_BAD_FILE },
        { "root is text", HEAD "\"outcome\":\"CLEAN\",\"root_cause\":\"x\"}",
          "root_cause: expected an object or null, found text", STATUS_BAD_FILE },
        { "root is absent", HEAD "\"outcome\":\"CLEAN\",\"findings\":[]}",
          "root_cause: expected an object or null, found nothing", STATUS_BAD_FILE },
        { "findings are an object",
          HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":{}}",
          "findings: expected a list, found an object", STATUS_BAD_FILE },
        { "a finding is null",
          HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":[null]}",
          "findings: expected objects, found null", STATUS_BAD_FILE },
        { "a finding without text",
          HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":[{\"hypothesis\":\"h\","
               "\"key\":\"k\"}]}",
          "text: expected an object, found nothing", STATUS_BAD_FILE },
        { "a figure without a value",
          HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":[],\"figures\":[{\"what\":"
               "\"w\"}]}",
          "value: expected a number", STATUS_BAD_FILE },
        { "a figure is a list",
          HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":[],\"figures\":[[]]}",
          "what: expected text", STATUS_BAD_FILE },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct report_summary summary;
        struct error err;
        enum status status = report_summary_parse(rows[i].text, strlen(rows[i].text), "file.json",
                                                  &summary, &err);
        if (status != rows[i].status)
            fail_msg("%s: expected %s, found %s", rows[i].name, status_name(rows[i].status),
                     status_name(status));
        check_contains(rows[i].name, err.text, "file.json: ");
        check_contains(rows[i].name, err.text, rows[i].words);
    }
}

/* Nested deeper than any parser should follow. */
static void test_deep(void **state)
{
    (void)state;
    struct report_summary summary;
    struct error err;
    struct text text;
    text_init(&text);
    text_add_fill(&text, '[', 1000000);
    CHECK_FAILS(report_summary_parse(text_get(&text), text.length, "deep", &summary, &err),
                STATUS_BAD_FILE, &err);
    text_release(&text);
}

static void test_too_many(void **state)
{
    (void)state;
    struct report_summary summary;
    struct error err;
    struct text text;
    text_init(&text);
    text_add(&text, HEAD "\"outcome\":\"CLEAN\",\"root_cause\":null,\"findings\":[0");
    for (size_t i = 0; i < 70000; i++)
        text_add(&text, ",0");
    text_add(&text, "]}");
    CHECK_FAILS(report_summary_parse(text_get(&text), text.length, "many", &summary, &err),
                STATUS_LIMIT, &err);
    text_release(&text);
}

/* Bytes changed, removed and repeated at random: an error or a summary, and nothing else. */
static void test_mutations(void **state)
{
    (void)state;
    struct text text;
    size_t refused = 0, taken = 0;
    uint64_t random = 88172645463325252u;
    print_summary(&text);
    char *copy = malloc(text.length);
    assert_non_null(copy);
    for (size_t round = 0; round < 1500; round++) {
        size_t length = text.length;
        memcpy(copy, text_get(&text), length);
        for (size_t change = 0; change <= round % 4; change++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            size_t at = (size_t)(random >> 8) % length;
            switch (random % 3) {
            case 0:
                copy[at] = (char)(random >> 40);
                break;
            case 1:
                memmove(copy + at, copy + at + 1, length - at - 1);
                length--;
                break;
            default:
                length = at + 1;
            }
        }
        struct report_summary summary;
        struct error err;
        enum status status = report_summary_parse(copy, length, "mutated", &summary, &err);
        if (status) {
            refused++;
            check_contains("mutated", err.text, "mutated: ");
        } else {
            taken++;
            report_summary_release(&summary);
        }
    }
    /* Both happen: a changed digit is a summary still. */
    assert_true(refused > 100 && taken > 20);
    free(copy);
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_no_file),
        cmocka_unit_test(test_damaged),    cmocka_unit_test(test_deep),
        cmocka_unit_test(test_too_many),   cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
