/* template_language_test.c - expressions, statements and scopes. */
#include "template_rows.h"

static void test_operators(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 2 + 3 * 4 - 1 }} {{ 9 / 3 }} {{ -9 // 2 }} {{ -9 % 4 }} {{ 9 % -4 }}", NULL,
          "13 3.0 -5 3 -3" },
        { "{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -2 }} {{ 9.5 // 2 }} {{ -9.5 % 2 }}", NULL,
          "64 4 0.25 4.0 0.5" },
        { "{{ 'p' ~ 1 ~ none ~ [2] }} {{ 'p' + 4 ~ 5 }}", NULL, "p1None[2] p45" },
        { "{{ 'p' + 'q'|upper }} {{ -4|abs }} {{ 3 + x|length }}", "{\"x\": [0]}", "pQ 4 4" },
        { "{{ 'ab' * 2 }} {{ [0] * 2 + [1] }} {{ 2 * 'x' }} {{ 'x' * -1 }}|", NULL,
          "abab [0, 0, 1] xx |" },
        { "{{ '' or 'r' }} {{ 'p' and 'q' }} {{ not '' }} {{ 0 or none }}", NULL, "r q True None" },
        { "{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 == true }} {{ 'a' < 'b' }}", NULL,
          "True False True True" },
        { "{{ [1, 2] == [1, 2.0] }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1} }} {{ '1' == 1 }}",
          NULL, "True False True False" },
        { "{{ 'b' in 'abc' }} {{ 4 not in [1] }} {{ 'k' in {'k': 0} }} {{ 3 in range(9) }}", NULL,
          "True True True True" },
        { "{{ 'y' if x else 'n' }}{{ 'y' if x }}{{ 1 if 0 else 2 if 0 else 3 }}", NULL, "n3" },
        { "{{ [1, 2] < [1, 3] }} {{ 2 >= 2 }} {{ 2.5 <= 2 }} {{ 'Z' > 'a' }}", NULL,
          "True True False False" },
        { "{{ x.a }}{{ x['b'] }}{{ x.c is defined }}{{ x.items is callable }}{{ x['items'] }}",
          "{\"x\": {\"a\": 1, \"b\": 2, \"items\": 3}}", "12FalseTrue3" },
        { "{{ 'abcdef'[1:4] }} {{ 'abcdef'[::-2] }} {{ l[-2:] }} {{ l[5] }} {{ l[::2] }}",
          "{\"l\": [1, 2, 3]}", "bcd fdb [2, 3]  [1, 3]" },
        { "{{ 'a\u00e9\u65e5\U0001F600'[2] }}{{ 'a\u00e9\u65e5'[::-1] }}{{ 'a\u00e9'|length }}",
          NULL, "\u65e5\u65e5\u00e9a2" },
        { "{{ nope == nope2 }} {{ nope == none }} {{ nope|length }} {{ 1 in nope }}", NULL,
          "True False 0 False" },
        { "{{ 7 is odd and not 7 is even }} {{ 1 + 1 is number }} {{ 6 is divisibleby 3 }}", NULL,
          "True 2 True" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_loops(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{% for x in 'ab' %}{{ loop.index }}{{ x }}{{ loop.last }} {% endfor %}", NULL,
          "1aFalse 2bTrue " },
        { "{% for x in l if x > 1 %}{{ loop.index0 }}/{{ loop.length }}:{{ x }} {% endfor %}",
          "{\"l\": [1, 2, 3]}", "0/2:2 1/2:3 " },
        { "{% for x in [] %}a{% else %}b{% endfor %}{% for x in nope %}a{% else %}c{% endfor %}",
          NULL, "bc" },
        { "{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "{\"d\": {\"q\": 1, \"p\": 2}}",
          "q1p2" },
        { "{% for (a, (b, c)) in [(1, (2, 3))] %}{{ c }}{{ b }}{{ a }}{% endfor %}", NULL, "321" },
        { "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% elif i > 3 %}{% break %}"
          "{% endif %}{{ i }}{% endfor %}",
          NULL, "023" },
        { "{% for i in [1] %}{% break %}{% else %}e{% endfor %}", NULL, "e" },
        { "{% for i in [1, 2] %}[{{ loop.previtem }}{{ loop.nextitem }}]{% endfor %}", NULL,
          "[2][1]" },
        { "{% for i in [1, 2] %}{% set o = loop %}{% for j in [1, 2] %}{{ o.index }}{{ loop.index "
          "}} "
          "{% endfor %}{% endfor %}",
          NULL, "11 12 21 22 " },
        { "{% for n in t recursive %}{{ n.v }}{% if n.c %}<{{ loop(n.c) }}>{% endif %}{% endfor %}",
          "{\"t\": [{\"v\": 1, \"c\": [{\"v\": 2}, {\"v\": 3}]}, {\"v\": 4}]}", "1<23>4" },
        { "{% for i in [1, 1, 2] %}{{ loop.changed(i) }}{{ loop.cycle('x', 'y') }} {% endfor %}",
          NULL, "Truex Falsey Truex " },
        { "{% set u = [1, 2]|map('string') %}{{ u|join }}{{ u|join }}", NULL, "12" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_scopes(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{% set n = 0 %}{% for i in [1, 2] %}{% set n = n + i %}{{ n }}{% endfor %}{{ n }}", NULL,
          "120" },
        { "{% set ns = namespace(n=1) %}{% for i in [4, 5] %}{% set ns.n = ns.n + i %}{% endfor %}"
          "{{ ns.n }}",
          NULL, "10" },
        { "{% if true %}{% set q = 1 %}{% endif %}{{ q }}", NULL, "1" },
        { "{% set a, b = 1, 2 %}{% set a, b = b, a %}{{ a }}{{ b }}", NULL, "21" },
        { "{% set q %}x{{ 1 }}{% endset %}{{ q }}{% set r | upper %}y{% endset %}{{ r }}", NULL,
          "x1Y" },
        { "{% with a = 3, b = 4 %}{{ a * b }}{% endwith %}{{ a }}", NULL, "12" },
        { "{% filter upper %}a{{ 'b' }}{% endfilter %}", NULL, "AB" },
        { "{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", NULL,
          "21" },
        { "{% set x = 5 %}{% for x in [x, 6] %}{{ x }}{% endfor %}{{ x }}", NULL, "565" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_macros(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{% macro m(a, b='d', c=b) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, c=2) "
          "}}",
          NULL, "1dd 1d2" },
        { "{% macro m() %}[{{ g }}{{ i }}]{% endmacro %}{% set g = 1 %}{% for i in [2] %}{{ m() }}"
          "{% endfor %}",
          NULL, "[1]" },
        { "{% macro f(n) %}{{ n }}{% if n %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
          NULL, "3210" },
        { "{% macro m(a) %}{{ a is defined }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m() }}"
          "{{ m(1, 2, k=3) }}",
          NULL, "False(){}True(2,){'k': 3}" },
        { "{% macro m() %}<{{ caller(1) }}>{% endmacro %}{% call(x) m() %}q{{ x }}{% endcall %}",
          NULL, "<q1>" },
        { "{% macro m(a, b) %}{% endmacro %}{{ m.name }}{{ m.arguments }}{{ m() is string }}", NULL,
          "m('a', 'b')True" },
        { "{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1, 2]) }}{{ m(**{'b': 3}) }}",
          NULL, "123" },
        { "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}", NULL,
          "12" },
    };
    check_rows(rows, COUNT_OF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_loops),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_macros),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
