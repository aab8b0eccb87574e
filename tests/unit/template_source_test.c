/* template_source_test.c - what becomes of the texts between tags, and what literals stand for. */
#include "template_rows.h"

static void test_white_space(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "", NULL, "" },
        { "plain", NULL, "plain" },
        { "one\n\n", NULL, "one\n" },
        { "{% set a = 1 %}\n{{ a }}\n\nz", NULL, "1\n\nz" },
        { "q\n \t{% if 1 %}\n  r\n  {% endif %}\ns", NULL, "q\n  r\ns" },
        { "q {% if 1 %} r{% endif %}", NULL, "q  r" },
        { "q \n {{- 7 -}} \n r", NULL, "q7r" },
        { "q\n {%+ if 1 +%}\nr{% endif %}", NULL, "q\n \nr" },
        { "q\n  {# c #}\nr {#- c -#} s", NULL, "q\nrs" },
        { "{% if 1 %}\n  {% endif %}z", NULL, "z" },
        { "{{ 1 }}\n{{ 2 }}", NULL, "1\n2" },
        { "\r\nq\rr\r\n", NULL, "\nq\nr" },
        { "q\u2003\u3000{%- if 1 -%}\u00a0r{% endif %}", NULL, "qr" },
        { "  {% raw %} {% x %} {{ y }} {% endraw %}\nz", NULL, " {% x %} {{ y }} z" },
        { "q {%- raw -%} r {%- endraw -%} s", NULL, "qrs" },
        { "{ { } } # % {", NULL, "{ { } } # % {" },
        { "{% for i in [1, 2] %}\n    {{ i }}\n{% endfor %}\n", NULL, "    1\n    2\n" },
        { "a {% generation -%} b {%- endgeneration %} c", NULL, "a b c" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_literals(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 'q\\n\\t\\\\\\'' }}", NULL, "q\n\t\\'" },
        { "{{ \"\\u00fc\\x2b\\U0001F680\\101\" }}", NULL, "\u00fc+\U0001F680A" },
        { "{{ '\\w\\%' }}", NULL, "\\w\\%" },
        { "{{ 'a\\\nb' }}", NULL, "ab" },
        { "{{ 'one' \"two\" 'three' }}", NULL, "onetwothree" },
        { "{{ 2_000 }} {{ 0xFF }} {{ 0b11 }} {{ 0o20 }} {{ 2.5E-2 }}", NULL,
          "2000 255 3 16 0.025" },
        { "{{ True }} {{ none }} {{ False }}", NULL, "True None False" },
        { "{{ [1, 'b', none,] }} {{ (3,) }} {{ () }} {{ (1) }}", NULL, "[1, 'b', None] (3,) () 1" },
        { "{{ {'k': {'l': 1}}}}{{ {} }}", NULL, "{'k': {'l': 1}}{}" },
        { "{% set \u03b1\u03b2 = 2 %}{{ \u03b1\u03b2 }}", NULL, "2" },
        { "{{ 1, 2 }}", NULL, "(1, 2)" },
        { "{% print 1, 2 %}", NULL, "12" },
        { "{{ l.0.1 }}", "{\"l\": [[5, 6]]}", "6" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_printing(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 2.0 }} {{ 0.1 + 0.2 }} {{ 1e15 }} {{ 1e16 }} {{ 1.25e-5 }} {{ 0.0001 }}", NULL,
          "2.0 0.30000000000000004 1000000000000000.0 1e+16 1.25e-05 0.0001" },
        { "{{ -0.0 }} {{ 1e308 * 10 }} {{ 123456789012345.6 }}", NULL,
          "-0.0 inf 123456789012345.6" },
        { "{{ [\"it's\", 'a\"b', 'c\\'\"'] }}", NULL, "[\"it's\", 'a\"b', 'c\\'\"']" },
        { "{{ ['\\x07\\u200e\\u00ad\\U000e0001\\u3000', '\u00e9'] }}", NULL,
          "['\\x07\\u200e\\xad\\U000e0001\\u3000', '\u00e9']" },
        { "{{ d }} {{ d.items() }} {{ range(4) }}", "{\"d\": {\"z\": 1, \"a\": [true, null]}}",
          "{'z': 1, 'a': [True, None]} dict_items([('z', 1), ('a', [True, None])]) range(0, 4)" },
        { "{{ x }}|{{ x|tojson }}", "{\"x\": [3, 3.0, 1e-7, 12345678901234567]}",
          "[3, 3.0, 1e-07, 12345678901234567]|[3, 3.0, 1e-07, 12345678901234567]" },
        { "{{ x|tojson }}", "{\"x\": {\"a\": \"<&'\\\"\\\\\\u0001\u00e9\"}}",
          "{\"a\": \"<&'\\\"\\\\\\u0001\u00e9\"}" },
        { "{{ x|tojson(indent=2, sort_keys=true) }}", "{\"x\": {\"b\": [], \"a\": [1]}}",
          "{\n  \"a\": [\n    1\n  ],\n  \"b\": []\n}" },
        { "{{ '\u00e9\U0001F600'|tojson(ensure_ascii=true) }}{{ [1,2]|tojson(separators=(';', '')) "
          "}}",
          NULL, "\"\\u00e9\\ud83d\\ude00\"[1;2]" },
        { "{{ x is undefined }}{{ x }}{{ none.a }}", NULL, "True" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_nul(void **state)
{
    (void)state;
    static const char source[] = "a\0{{ x }}b";
    struct rendered rendered = render_limited(source, sizeof(source) - 1, "{\"x\": \"\\u0000\"}",
                                              (struct template_limits){ 0 });
    CHECK_OK(rendered.status, &rendered.err);
    assert_int_equal(rendered.out.length, 4);
    assert_memory_equal(rendered.out.bytes, "a\0\0b", 4);
    rendered_release(&rendered);
}

/* What is there already stays, and a failure takes back only its own. */
static void test_appends(void **state)
{
    (void)state;
    struct template *template;
    struct error err;
    json_t *none = json_object();
    struct template_input input = { .variables = none };
    struct text out;
    text_init(&out);
    text_add(&out, "before ");
    CHECK_OK(template_parse(text_view_of("q{{ x.y }}"), &template, NULL, &err), &err);
    CHECK_FAILS(template_render(template, &input, &out, NULL, &err), STATUS_BAD_FILE, &err);
    assert_string_equal(text_get(&out), "before ");
    template_destroy(template);
    CHECK_OK(template_parse(text_view_of("after"), &template, NULL, &err), &err);
    CHECK_OK(template_render(template, &input, &out, NULL, &err), &err);
    assert_string_equal(text_get(&out), "before after");
    assert_true(template_mentions(template, "after") == false);
    template_destroy(template);
    CHECK_OK(template_parse(text_view_of("{{ a.b['c'] }}"), &template, NULL, &err), &err);
    assert_true(template_mentions(template, "a") && template_mentions(template, "b") &&
                template_mentions(template, "c"));
    assert_false(template_mentions(template, "d"));
    template_destroy(template);
    text_release(&out);
    json_decref(none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_white_space), cmocka_unit_test(test_literals),
        cmocka_unit_test(test_printing),    cmocka_unit_test(test_nul),
        cmocka_unit_test(test_appends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
