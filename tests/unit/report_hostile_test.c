/* report_hostile_test.c - no name from outside can break a page, a table, a line or a terminal. */
#include "report_documents.h"

#include <stdlib.h>

static void check_no_control(const char *text)
{
    for (const char *at = text; *at; at++)
        if ((unsigned char)*at < 0x20 && *at != '\n')
            fail_msg("a control character is in the text, at byte %zu", (size_t)(at - text));
}

static void check_utf8(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t one = text_utf8_length(text + at, length - at);
        if (one == 0)
            fail_msg("not UTF-8 at byte %zu", at);
        at += one;
    }
}

static void test_hostile_markdown(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    print_report(report_markdown, &specimen->facts, REPORT_ENGLISH, &text);
    check_no_control(text_get(&text));
    check_utf8(text_get(&text), text.length);
    remove_code(&text);
    for (const char *at = text_get(&text); (at = strchr(at, '<')) != NULL; at++)
        assert_true(at > text_get(&text) && at[-1] == '\\');
    /* All rows of a table have as many cells as its head: no pipe got through. */
    text_release(&text);
    print_report(report_markdown, &specimen->facts, REPORT_ENGLISH, &text);
    size_t columns = 0;
    for (char *line = text.bytes, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        size_t pipes = 0;
        *end = '\0';
        for (const char *at = line; *at; at++)
            pipes += *at == '|' && (at == line || at[-1] != '\\');
        if (line[0] != '|')
            columns = 0;
        else if (columns == 0)
            columns = pipes;
        else if (pipes != columns)
            fail_msg("%zu instead of %zu cells: %s", pipes, columns, line);
    }
    text_release(&text);
    free(specimen);
}

static void test_hostile_html(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    print_report(report_html, &specimen->facts, REPORT_ENGLISH, &text);
    check_no_control(text_get(&text));
    check_utf8(text_get(&text), text.length);
    assert_null(strstr(text_get(&text), "<script"));
    check_contains("html", text_get(&text), "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;");
    /* Nothing is loaded from elsewhere. */
    assert_null(strstr(text_get(&text), "src="));
    assert_null(strstr(text_get(&text), "url("));
    assert_null(strstr(text_get(&text), "<link"));
    text_release(&text);
    free(specimen);
}

static void test_hostile_terminal(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(false);
    struct text text;
    event_set_text(specimen->findings[0].cause.op, EVENT_OP_BYTES, "\x1b[2J\n" HOSTILE_BYTES);
    specimen->planted[0].fault = HOSTILE_LINE;
    print_report(report_verdict_table, &specimen->facts, REPORT_ENGLISH, &text);
    check_no_control(text_get(&text));
    check_utf8(text_get(&text), text.length);
    text_release(&text);
    print_report(report_self_test_table, &specimen->facts, REPORT_SPANISH, &text);
    check_no_control(text_get(&text));
    text_release(&text);
    free(specimen);
}

static void test_escape(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    escape_markup(&text, "<a b='c'>&\"\xff\x01\xef\xbf\xbf");
    assert_string_equal(text_get(&text), "&lt;a b=&#39;c&#39;&gt;&amp;&quot;\\xFF\\x01?");
    text_clear(&text);
    escape_markdown(&text, "a|b*c\\d rms_norm _x_ <i>");
    assert_string_equal(text_get(&text), "a\\|b\\*c\\\\d rms_norm \\_x\\_ \\<i\\>");
    text_clear(&text);
    escape_markdown_code(&text, "a``b|c", true);
    assert_string_equal(text_get(&text), "``` a``b\\|c ```");
    text_clear(&text);
    escape_json(&text, "a\"b\\c\n\xff");
    assert_string_equal(text_get(&text), "\"a\\\"b\\\\c\\\\x0A\\\\xFF\"");
    text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_markdown),
        cmocka_unit_test(test_hostile_html),
        cmocka_unit_test(test_hostile_terminal),
        cmocka_unit_test(test_escape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
