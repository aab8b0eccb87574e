/* template_builtin_test.c - filters, tests, methods and functions. */
#include "template_rows.h"

static void test_text_filters(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 'sTra\u00dfe'|upper }} {{ '\u0391\u03a3'|lower }} {{ \"it's a-b\"|title }} "
          "{{ 'hE Y'|capitalize }}",
          NULL, "STRASSE \u03b1\u03c2 It's A-B He y" },
        { "[{{ ' q '|trim }}][{{ 'xqx'|trim('x') }}][{{ 7|trim }}][{{ '\u2003q\u00a0'|trim }}]",
          NULL, "[q][q][7][q]" },
        { "{{ 'aXbX'|replace('X', '-', 1) }} {{ 'ab'|replace('', '.') }}", NULL, "a-bX .a.b." },
        { "{{ [1, none]|join('/') }} {{ l|join('-', attribute='a') }}",
          "{\"l\": [{\"a\": 1}, {\"a\": 2}]}", "1/None 1-2" },
        { "{{ 'p\nq\n\nr'|indent(2) }}|{{ 'p\nq'|indent('> ', true) }}", NULL,
          "p\n  q\n\n  r|> p\n> q" },
        { "{{ '<q>'|e }} {{ '<q>'|safe|e }} {{ '<'|safe + '>' }} {{ '<'|forceescape }}", NULL,
          "&lt;q&gt; <q> <&gt; &lt;" },
        { "{{ 'one two three'|truncate(9, leeway=0) }} {{ 'abc'|center(7) }}|{{ 'a b_c'|wordcount "
          "}}",
          NULL, "one...   abc  |2" },
        { "{{ 'aa bb cc'|wordwrap(5) }} {{ 'abcdef'|wordwrap(4) }}", NULL, "aa bb\ncc abcd\nef" },
        { "{{ 'a b/\u00e9'|urlencode }} {{ ' <b>x</b>  y '|striptags }}", NULL,
          "a%20b/%C3%A9 x y" },
        { "{{ '%s|%4d|%-3s|%.2f|%x|%%'|format('q', 7, 'r', 2.345, 255) }}", NULL,
          "q|   7|r  |2.35|ff|%" },
        { "{{ '%(a)s-%(b)03d' % {'a': 1, 'b': 2} }} {{ '%r' % ('q',) }}", NULL, "1-002 'q'" },
        { "{{ '{\"a\": [1, 2.5]}'|fromjson }}", NULL, "{'a': [1, 2.5]}" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_list_filters(void **state)
{
    (void)state;
    static const char people[] =
        "{\"l\": [{\"n\": \"b\", \"a\": 2, \"x\": {\"y\": 1}}, {\"n\": \"A\", "
        "\"a\": 1}, {\"n\": \"c\", \"a\": 2}]}";
    static const struct template_row rows[] = {
        { "{{ l|map(attribute='n')|list }} {{ l|map(attribute='x.y', default=0)|join }}", people,
          "['b', 'A', 'c'] 100" },
        { "{{ l|selectattr('a', '==', 2)|map(attribute='n')|join }}{{ "
          "l|rejectattr('x')|list|length }}",
          people, "bc2" },
        { "{{ l|sort(attribute='n')|map(attribute='n')|join }} {{ [3, 1, 2]|sort(reverse=true) }}",
          people, "Abc [3, 2, 1]" },
        { "{{ l|sort(attribute='a,n')|map(attribute='n')|join }}", people, "Abc" },
        { "{% for k, v in l|groupby('a') %}{{ k }}{{ v|length }} {% endfor %}", people, "11 22 " },
        { "{{ [1, 2, 3]|select('gt', 1)|list }} {{ ['', 'q']|select|list }} {{ "
          "[1]|reject('odd')|list }}",
          NULL, "[2, 3] ['q'] []" },
        { "{{ ['b', 'B', 'a']|unique|list }} {{ ['b', 'A']|min }} {{ [1, 3]|max }} {{ []|min }}|",
          NULL, "['b', 'a'] A 3 |" },
        { "{{ {'b': 1, 'A': 0}|dictsort }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }}", NULL,
          "[('A', 0), ('b', 1)] [('b', 1), ('a', 2)]" },
        { "{{ range(5)|batch(2, 'z')|list }} {{ range(5)|slice(2)|list }}", NULL,
          "[[0, 1], [2, 3], [4, 'z']] [[0, 1, 2], [3, 4]]" },
        { "{{ [1, 2]|first }}{{ [1, 2]|last }}{{ 'abc'|reverse }}{{ [1, 2]|reverse|list }}", NULL,
          "12cba[2, 1]" },
        { "{{ [1, 2]|sum }} {{ l|sum(attribute='a') }} {{ none|selectattr('a')|list }}", people,
          "3 5 []" },
        { "{{ x|default('d') }} {{ none|default('d') }} {{ ''|d('e', true) }}", NULL, "d None e" },
        { "{{ {'q': 1}|items|list }} {{ x|items|list }} {{ {'a': 1}|attr('a') }}|", NULL,
          "[('q', 1)] [] |" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_numbers(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ '12'|int }} {{ 'q'|int(5) }} {{ '3.9'|int }} {{ '0x1f'|int(base=16) }} {{ ' 7 '|int "
          "}}",
          NULL, "12 5 3 31 7" },
        { "{{ '1.5'|float }} {{ 'q'|float }} {{ 2|float }} {{ 'inf'|float }}", NULL,
          "1.5 0.0 2.0 inf" },
        { "{{ 2.5|round }} {{ 3.456|round(2) }} {{ 3.1|round(0, 'ceil') }} {{ 7|round }} {{ -3|abs "
          "}}",
          NULL, "2.0 3.46 4.0 7 3" },
        { "{{ 1|filesizeformat }} {{ 1500|filesizeformat }} {{ 2048|filesizeformat(true) }}", NULL,
          "1 Byte 1.5 kB 2.0 KiB" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_tests(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 1 is integer }}{{ true is integer }}{{ true is number }}{{ 1.0 is float }}", NULL,
          "TrueFalseTrueTrue" },
        { "{{ {} is mapping }}{{ 'a' is sequence }}{{ nope is iterable }}{{ 1 is iterable }}", NULL,
          "TrueTrueTrueFalse" },
        { "{{ none is none }}{{ 0 is false }}{{ false is false }}{{ 1 is boolean }}", NULL,
          "TrueFalseTrueFalse" },
        { "{{ 1 is in [1] }}{{ 2 is gt 1 }}{{ 2 is sameas 2 }}{{ 'QA' is upper }}{{ 'q1' is lower "
          "}}",
          NULL, "TrueTrueTrueTrueTrue" },
        { "{{ 'trim' is filter }}{{ 'odd' is test }}{{ 'x' is filter }}{{ range is callable }}",
          NULL, "TrueTrueFalseTrue" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_methods(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ 'a,b,,c'.split(',') }} {{ ' p  q '.split() }} {{ 'a/b/c'.rsplit('/', 1) }}", NULL,
          "['a', 'b', '', 'c'] ['p', 'q'] ['a/b', 'c']" },
        { "[{{ 'xxqx'.lstrip('x') }}][{{ 'qyx'.rstrip('xy') }}][{{ '\\n q'.strip() }}]", NULL,
          "[qx][q][q]" },
        { "{{ 'abc'.startswith(('x', 'ab')) }}{{ 'abc'.endswith('c') }}{{ 'abcb'.find('b') }}"
          "{{ 'abcb'.rfind('b') }}{{ 'aXbX'.count('X') }}",
          NULL, "TrueTrue132" },
        { "{{ 'a=b'.partition('=') }} {{ 'p\\nq\\r\\nr'.splitlines() }} {{ '-'.join(['a', 'b']) }}",
          NULL, "('a', '=', 'b') ['p', 'q', 'r'] a-b" },
        { "{{ 'abc'.removeprefix('a').removesuffix('c') }} {{ \"they're\".title() }} "
          "{{ '12'.isdigit() }} {{ 'ab'.isupper() }}",
          NULL, "b They'Re True False" },
        { "{{ '{}-{}'.format(1, 'q') }} {{ '{a:>4}|{b:<4}|{0:^5.1f}'.format(2.25, a=1, b='x') }} "
          "{{ '{:,}'.format(1234567) }} {{ '{{}}'.format() }}",
          NULL, "1-q    1|x   | 2.2  1,234,567 {}" },
        { "{{ d.get('q') }} {{ d.get('z', 0) }} {{ d.keys()|list }} {{ d.values()|list }}",
          "{\"d\": {\"q\": 1}}", "1 0 ['q'] [1]" },
        { "{% set l = [1] %}{{ l.append(2) }}{{ l.insert(0, 0) }}{{ l.pop() }}{{ l }}{{ l.index(1) "
          "}}",
          NULL, "NoneNone2[0, 1]1" },
        { "{% set d = {'a': 1} %}{{ d.update({'b': 2}) }}{{ d.pop('a') }}{{ d.setdefault('c', 3) "
          "}}{{ d }}",
          NULL, "None13{'b': 2, 'c': 3}" },
    };
    check_rows(rows, COUNT_OF(rows));
}

static void test_functions(void **state)
{
    (void)state;
    static const struct template_row rows[] = {
        { "{{ range(2, 9, 3)|list }} {{ range(3, 0, -1)[1] }} {{ range(4)|length }}", NULL,
          "[2, 5, 8] 2 4" },
        { "{{ dict(a=1, b=2) }} {{ dict([('x', 1)], y=2) }} {{ namespace(a=1).a }}", NULL,
          "{'a': 1, 'b': 2} {'x': 1, 'y': 2} 1" },
        { "{% set c = cycler('p', 'q') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}"
          "{% set j = joiner('; ') %}{% for i in [1, 2] %}{{ j() }}{{ i }}{% endfor %}",
          NULL, "pqp1; 2" },
        { "{{ strftime_now('%d %b %Y, %A') }}[{{ strftime_now('') }}]", NULL,
          "03 Feb 2026, Tuesday[]" },
    };
    check_rows(rows, COUNT_OF(rows));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_filters), cmocka_unit_test(test_list_filters),
        cmocka_unit_test(test_numbers),      cmocka_unit_test(test_tests),
        cmocka_unit_test(test_methods),      cmocka_unit_test(test_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
