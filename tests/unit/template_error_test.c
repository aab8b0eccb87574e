/* template_error_test.c - what is refused, with its kind and place, and where the limits are. */
#include "template_rows.h"

#include <stdlib.h>

struct error_row {
    const char *template, *variables;
    enum template_problem problem;
    uint32_t line, column; /* 0: anywhere */
    const char *words;
};

static void check_errors(const struct error_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct rendered rendered = render_template(rows[i].template, rows[i].variables);
        if (!rendered.status)
            fail_msg("%s: expected an error, found '%s'", rows[i].template,
                     text_get(&rendered.out));
        check_contains(rows[i].template, text_get(&rendered.failure.message), rows[i].words);
        assert_string_equal(template_problem_name(rendered.failure.problem),
                            template_problem_name(rows[i].problem));
        if (rows[i].line &&
            (rendered.failure.line != rows[i].line || rendered.failure.column != rows[i].column))
            fail_msg("%s: expected line %u, column %u, found %u, %u", rows[i].template,
                     rows[i].line, rows[i].column, rendered.failure.line, rendered.failure.column);
        assert_int_equal(rendered.out.length, 0);
        rendered_release(&rendered);
    }
}

#define P(name) TEMPLATE_PROBLEM_##name

static void test_syntax(void **state)
{
    (void)state;
    static const struct error_row rows[] = {
        { "a\n{{ x", NULL, P(SYNTAX), 2, 5, "unexpected end of template" },
        { "{% if a %}", NULL, P(SYNTAX), 1, 11, "'elif' or 'else' or 'endif'" },
        { "{% endfor %}", NULL, P(SYNTAX), 1, 4, "unknown tag 'endfor'" },
        { "\n\n  {# x", NULL, P(SYNTAX), 3, 3, "end of comment" },
        { "{% raw %}", NULL, P(SYNTAX), 1, 1, "end of raw" },
        { "{{ 'abc }}", NULL, P(SYNTAX), 1, 4, "string without end" },
        { "{{ a ! b }}", NULL, P(SYNTAX), 1, 6, "unexpected char '!'" },
        { "{{ \u00e9\u00e9 $ }}", NULL, P(SYNTAX), 1, 7, "unexpected char '$'" },
        { "{{ (1] }}", NULL, P(SYNTAX), 1, 6, "expected ')'" },
        { "{{ }}", NULL, P(SYNTAX), 1, 4, "Expected an expression" },
        { "{% set 1 = 2 %}", NULL, P(SYNTAX), 1, 8, "can't assign to 'const'" },
        { "{% for x y %}{% endfor %}", NULL, P(SYNTAX), 1, 10, "expected token 'in', got 'y'" },
        { "{{ f(a=1, 2) }}", NULL, P(SYNTAX), 0, 0, "invalid syntax for function call" },
        { "{% macro m(a=1, b) %}{% endmacro %}", NULL, P(SYNTAX), 0, 0, "non-default" },
        { "{% continue %}", NULL, P(SYNTAX), 1, 4, "'continue' outside loop" },
        { "{% macro m() %}{% break %}{% endmacro %}", NULL, P(SYNTAX), 0, 0, "outside loop" },
        { "{{ 1|q }}", NULL, P(SYNTAX), 1, 6, "No filter named 'q'" },
        { "{{ 1 is q }}", NULL, P(SYNTAX), 1, 6, "No test named 'q'" },
        { "{% if 1 %}{% for i in [] %}{{ 1|q }}{% endfor %}{% endif %}", NULL, P(SYNTAX), 0, 0,
          "No filter" },
        { "{% include 'x' %}", NULL, P(SYNTAX), 1, 4, "unknown tag 'include'" },
        { "{{ '\\ud800' }}", NULL, P(SYNTAX), 0, 0, "no character" },
        { "{{ '\\x4' }}", NULL, P(SYNTAX), 0, 0, "cut escape" },
        { "q\xff", NULL, P(SYNTAX), 1, 2, "expected UTF-8, found the byte 0xff" },
        { "{{ x is defined is defined }}", NULL, P(SYNTAX), 0, 0, "cannot chain" },
    };
    check_errors(rows, COUNT_OF(rows));
}

static void test_rendering(void **state)
{
    (void)state;
    static const struct error_row rows[] = {
        { "a\n  {{ raise_exception('no ' ~ 1) }}", NULL, P(RAISED), 2, 21, "no 1" },
        { "{{ x.y }}", NULL, P(UNDEFINED), 1, 5, "'x' is undefined" },
        { "{{ d.q.r }}", "{\"d\": {}}", P(UNDEFINED), 1, 7, "'dict object' has no attribute 'q'" },
        { "{{ [1][4].x }}", NULL, P(UNDEFINED), 0, 0, "list object has no element 4" },
        { "{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}", NULL, P(UNDEFINED), 0, 0,
          "parameter 'a' was not provided" },
        { "{{ x() }}", NULL, P(UNDEFINED), 0, 0, "'x' is undefined" },
        { "{{ 'q' + 1 }}", NULL, P(TYPE), 1, 8, "can only concatenate str (not \"int\") to str" },
        { "{{ 1 + 'q' }}", NULL, P(TYPE), 0, 0,
          "unsupported operand type(s) for +: 'int' and 'str'" },
        { "{{ none < 1 }}", NULL, P(TYPE), 0, 0, "'<' not supported between" },
        { "{{ 1 in 2 }}", NULL, P(TYPE), 0, 0, "argument of type 'int' is not iterable" },
        { "{% for i in 3 %}{% endfor %}", NULL, P(TYPE), 0, 0, "'int' object is not iterable" },
        { "{% set a, b = [1] %}", NULL, P(VALUE), 0, 0, "not enough values to unpack" },
        { "{{ 3|length }}", NULL, P(TYPE), 0, 0, "has no len()" },
        { "{{ x|tojson }}", NULL, P(TYPE), 0, 0, "Undefined is not JSON serializable" },
        { "{{ [1]|map('string')|tojson }}", NULL, P(TYPE), 0, 0, "generator is not JSON" },
        { "{{ 1 // 0 }}{{ 1 % 0 }}", NULL, P(ARITHMETIC), 0, 0, "by zero" },
        { "{{ {[]: 1} }}", NULL, P(TYPE), 0, 0, "unhashable type: 'list'" },
        { "{% set d = {} %}{% set d.a = 1 %}", NULL, P(RUNTIME), 0, 0, "non-namespace" },
        { "{{ ''.__class__.x }}", NULL, P(SECURITY), 0, 0, "access to attribute '__class__'" },
        { "{% if 1 %}{{ 1|q }}{% endif %}", NULL, P(RUNTIME), 0, 0, "No filter named 'q' found." },
        { "{% macro m() %}{% endmacro %}{{ m(1) }}", NULL, P(TYPE), 0, 0, "not more than 0" },
        { "{% macro m() %}{% endmacro %}{{ m(k=1) }}", NULL, P(TYPE), 0, 0,
          "no keyword argument 'k'" },
        { "{{ 'a'|replace('b') }}", NULL, P(TYPE), 0, 0, "missing a required argument: 'new'" },
        { "{{ 'a'|trim('b', 'c') }}", NULL, P(TYPE), 0, 0, "at most 1" },
        { "{{ 'a'|trim(q=1) }}", NULL, P(TYPE), 0, 0, "unexpected keyword" },
        { "{{ '%d' % 'q' }}", NULL, P(TYPE), 0, 0, "a real number is required" },
        { "{{ '%s' % () }}", NULL, P(TYPE), 0, 0, "not enough arguments" },
        { "{{ '{' .format() }}", NULL, P(VALUE), 0, 0, "expected '}'" },
        { "{{ [1][::0] }}", NULL, P(VALUE), 0, 0, "slice step cannot be zero" },
        { "{{ 'a'.split('') }}", NULL, P(VALUE), 0, 0, "empty separator" },
    };
    check_errors(rows, COUNT_OF(rows));
}

/* ---- Limits ---------------------------------------------------------------------------------- */

static void test_bombs(void **state)
{
    (void)state;
    static const struct error_row rows[] = {
        { "{{ range(100001) }}", NULL, P(LIMIT), 0, 0, "Range too big" },
        { "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", NULL,
          P(LIMIT), 0, 0, "too many steps" },
        { "{{ 'q' * 99999999999 }}", NULL, P(LIMIT), 0, 0, "a text of more than" },
        { "{{ [1] * 99999999999 }}", NULL, P(LIMIT), 0, 0, "a list of more than" },
        { "{% set n = namespace(s='q') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% "
          "endfor %}",
          NULL, P(LIMIT), 0, 0, "a text of more than" },
        { "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", NULL, P(LIMIT), 0, 0,
          "macros or loops within each other" },
        { "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}", NULL, P(LIMIT), 0, 0,
          "macros or loops within each other" },
        { "{% set l = [] %}{{ l.append(l) }}{{ l }}", NULL, P(LIMIT), 0, 0, "nested more than" },
        { "{% set l = [] %}{% set m = [] %}{{ l.append(m) }}{{ m.append(l) }}{{ l == m }}", NULL,
          P(LIMIT), 0, 0, "nested more than" },
        { "{% set l = [] %}{{ l.append(l) }}{{ l|tojson }}", NULL, P(LIMIT), 0, 0, "nested more" },
        { "{{ '%999999999d' % 1 }}", NULL, P(LIMIT), 0, 0, "a text of more than" },
        { "{{ '%.999d' % 1 }}", NULL, P(LIMIT), 0, 0, "a precision" },
        { "{{ 'q'|indent(999999999, true) }}", NULL, P(LIMIT), 0, 0, "a text of more than" },
        { "{{ [1]|tojson(indent=999999999) }}", NULL, P(LIMIT), 0, 0, "a text of more than" },
        { "{{ 3 ** 999999999 }}", NULL, P(LIMIT), 0, 0, "64 bits" },
        { "{{ 9223372036854775807 + 1 }}", NULL, P(LIMIT), 0, 0, "64 bits" },
        { "{{ 99999999999999999999 }}", NULL, P(LIMIT), 1, 4, "64 bits" },
        { "{{ (0 - 9223372036854775807 - 1) // -1 }}", NULL, P(LIMIT), 0, 0, "64 bits" },
    };
    check_errors(rows, COUNT_OF(rows));
}

/* "open" so many times, the middle, "close" so many times. */
static void check_deep(const char *begin, const char *open, const char *middle, const char *close,
                       const char *end)
{
    struct text source;
    text_init(&source);
    text_add(&source, begin);
    for (int i = 0; i < 50000; i++)
        text_add(&source, open);
    text_add(&source, middle);
    for (int i = 0; i < 50000; i++)
        text_add(&source, close);
    text_add(&source, end);
    struct rendered rendered = render_limited(text_get(&source), source.length, NULL,
                                              (struct template_limits){ 0 });
    if (rendered.status != STATUS_LIMIT)
        fail_msg("%s: expected a limit, found %s: %s", open, status_name(rendered.status),
                 rendered.err.text);
    rendered_release(&rendered);
    text_release(&source);
}

static void test_depth(void **state)
{
    (void)state;
    check_deep("{{ ", "(", "1", ")", " }}");
    check_deep("{{ ", "[", "", "]", " }}");
    check_deep("{{ ", "not ", "1", "", " }}");
    check_deep("{{ ", "- ", "1", "", " }}");
    check_deep("{{ 1", " + 1", "", "", " }}");
    check_deep("{{ x", ".a", "", "", " }}");
    check_deep("{{ x", "|trim", "", "", " }}");
    check_deep("{{ ", "1 if x else ", "1", "", " }}");
    check_deep("", "{% if x %}", "", "{% endif %}", "");
    check_deep("", "{% for i in x %}", "", "{% endfor %}", "");
}

static void test_size(void **state)
{
    (void)state;
    size_t bytes = ((size_t)1 << 20) + 1;
    char *source = malloc(bytes);
    assert_non_null(source);
    memset(source, 'q', bytes);
    struct rendered rendered = render_limited(source, bytes, NULL, (struct template_limits){ 0 });
    assert_int_equal(rendered.status, STATUS_LIMIT);
    rendered_release(&rendered);
    rendered = render_limited(source, bytes - 1, NULL, (struct template_limits){ 0 });
    CHECK_OK(rendered.status, &rendered.err);
    assert_int_equal(rendered.out.length, bytes - 1);
    rendered_release(&rendered);
    rendered = render_limited(source, 100, NULL, (struct template_limits){ .output_bytes = 99 });
    assert_int_equal(rendered.status, STATUS_LIMIT);
    rendered_release(&rendered);
    free(source);
}

/* A text that grows in a loop is not copied each time: 20,000 times 100 bytes stay within 16 MB. */
static void test_growing_text(void **state)
{
    (void)state;
    static const char source[] = "{% set n = namespace(s='') %}{% for i in range(20000) %}"
                                 "{% set n.s = n.s ~ x %}{% endfor %}{{ n.s|length }}";
    static const char variables[] =
        "{\"x\": \"0123456789012345678901234567890123456789012345678901234567890123456789"
        "012345678901234567890123456789\"}";
    struct rendered rendered = render_limited(
        source, strlen(source), variables,
        (struct template_limits){ .memory_bytes = (uint64_t)16 << 20 });
    CHECK_OK(rendered.status, &rendered.err);
    assert_string_equal(text_get(&rendered.out), "2000000");
    rendered_release(&rendered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syntax), cmocka_unit_test(test_rendering),
        cmocka_unit_test(test_bombs),  cmocka_unit_test(test_depth),
        cmocka_unit_test(test_size),   cmocka_unit_test(test_growing_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
