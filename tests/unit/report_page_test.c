/* report_page_test.c - what the page shows below its headline: only facts that are known, the
 * planted fault before all else, findings that are no failure, and links without a scheme. */
#include "test.h"

#include "base/text.h"
#include "report/escape.h"
#include "report_facts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_unknown_facts_vanish(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    text_init(&text);
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("known", text_get(&text), "<dt>Author</dt>");
    specimen->facts.identity.author = NULL;
    text_clear(&text);
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    assert_null(strstr(text_get(&text), "<dt>Author</dt>"));
    text_release(&text);
    free(specimen);
}

/* A planted fault is announced before anything else is read. */
static void test_planted_fault_is_announced(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    text_init(&text);
    specimen->facts.inject = NULL;
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    assert_null(strstr(text_get(&text), "<p class=\"banner\">"));
    specimen->facts.inject = "rope-position@layer=2<b>";
    text_clear(&text);
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    const char *banner = strstr(text_get(&text), "<p class=\"banner\">");
    assert_non_null(banner);
    check_contains("fault", banner, "rope-position@layer=2&lt;b&gt;");
    assert_true(banner < strstr(text_get(&text), "<dl>"));
    text_release(&text);
    free(specimen);
}

/* Findings without an error are no failure of the runs. */
static void test_total(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    specimen->facts.row_count = 2; /* A passed; B has a finding and no error */
    text_init(&text);
    report_markdown(&specimen->facts, REPORT_ENGLISH, &text);
    const char *total = strstr(text_get(&text), "| Total |");
    assert_non_null(total);
    char line[256];
    snprintf(line, sizeof(line), "%.*s", (int)strcspn(total, "\n"), total);
    check_contains("total", line, "**FINDINGS**");
    text_release(&text);
    free(specimen);
}

static void test_links_name_no_scheme(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    text_init(&text);
    escape_uri(&text, "run/A b.log");
    assert_string_equal(text_get(&text), "run/A%20b.log");
    specimen->rows[0].log = "javascript:alert('x')\"";
    text_clear(&text);
    report_html(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("html", text_get(&text), "<a href=\"javascript%3Aalert%28%27x%27%29%22\">");
    text_clear(&text);
    report_markdown(&specimen->facts, REPORT_ENGLISH, &text);
    check_contains("markdown", text_get(&text), "](javascript%3Aalert%28%27x%27%29%22)");
    text_release(&text);
    free(specimen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_facts_vanish),
        cmocka_unit_test(test_total),
        cmocka_unit_test(test_planted_fault_is_announced),
        cmocka_unit_test(test_links_name_no_scheme),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
