/* grammar_schema_test.c - JSON schemas: what may be written for them, and what is refused.
 *
 * With --texts it reads a schema from each line of standard input and writes what came of it, for
 * tests/tools/grammar_schemas_test.py: "refused WHY", or texts in hexadecimal, and the line "end".
 */
#include "grammar_fixture.h"

#include <stdio.h>

static const struct {
    const char *schema, *text, *verdict;
} rows[] = {
    { "{}", "{\"a\": [1, null, \"x\"]}", "yes" },
    { "true", "12", "yes" },
    { "{\"type\":\"string\"}", "\"a\\n\\u00e9é\"", "yes" },
    { "{\"type\":\"string\"}", "\"\\ud83d\\ude00\"", "no" },
    { "{\"type\":\"string\"}", "\"a\nb\"", "no" },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"é\"", "no" },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"éa\"", "yes" },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"\\n\\u0041a\"", "yes" },
    { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}", "\"abcd\"", "no" },
    { "{\"type\":\"string\",\"pattern\":\"^a+\\\"?$\"}", "\"aa\\\"\"", "yes" },
    { "{\"type\":\"string\",\"pattern\":\"^a+\\\"?$\"}", "\"b\"", "no" },
    { "{\"pattern\":\"b\"}", "\"abc\"", "yes" },
    { "{\"pattern\":\"b\"}", "\"ac\"", "no" },
    { "{\"pattern\":\"^(?:[^\\\\d]{2}|\\\\w\\\\s)$\"}", "\"ab\"", "yes" },
    { "{\"pattern\":\"^(?<year>\\\\d{4})-[01]\\\\d$\",\"minLength\":7}", "\"2026-11\"", "yes" },
    { "{\"pattern\":\"^a|b$\"}", "\"ax\"", "yes" },
    { "{\"pattern\":\"^a|b$\"}", "\"xb\"", "yes" },
    { "{\"type\":\"string\",\"format\":\"date\"}", "\"2026-02-28\"", "yes" },
    { "{\"type\":\"string\",\"format\":\"date\"}", "\"2026-02-31\"", "no" },
    { "{\"type\":\"string\",\"format\":\"unknown\"}", "\"x\"", "yes" },
    { "{\"type\":\"integer\"}", "-120", "yes" },
    { "{\"type\":\"integer\"}", "012", "no" },
    { "{\"type\":\"integer\"}", "1.5", "no" },
    { "{\"type\":\"integer\",\"minimum\":-7,\"maximum\":120}", "-7", "yes" },
    { "{\"type\":\"integer\",\"minimum\":-7,\"maximum\":120}", "-8", "no" },
    { "{\"type\":\"integer\",\"minimum\":-7,\"maximum\":120}", "120", "yes" },
    { "{\"type\":\"integer\",\"minimum\":-7,\"maximum\":120}", "121", "no" },
    { "{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":12}", "9", "no" },
    { "{\"type\":\"integer\",\"exclusiveMinimum\":9,\"exclusiveMaximum\":12}", "11", "yes" },
    { "{\"type\":\"integer\",\"minimum\":9.5,\"maximum\":10.5}", "10", "yes" },
    { "{\"type\":\"number\"}", "-1.5e+10", "yes" },
    { "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":2.25}", "0.5", "yes" },
    { "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":2.25}", "0.49", "no" },
    { "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":2.25}", "2.250", "yes" },
    { "{\"type\":\"number\",\"minimum\":0.5,\"maximum\":2.25}", "2.26", "no" },
    { "{\"type\":\"number\",\"minimum\":-0.5,\"maximum\":0}", "-0.5", "yes" },
    { "{\"type\":\"number\",\"minimum\":-0.5,\"maximum\":0}", "0.1", "no" },
    { "{\"type\":\"number\",\"exclusiveMinimum\":0}", "0", "prefix" },
    { "{\"type\":\"number\",\"exclusiveMinimum\":0}", "0.01", "yes" },
    { "{\"type\":\"number\",\"multipleOf\":1}", "1.5", "no" },
    { "{\"enum\":[\"a\",1,1.5,null,{\"b\":[true]}]}", "{ \"b\": [true] }", "yes" },
    { "{\"enum\":[\"a\",1,1.5,null,{\"b\":[true]}]}", "1.5", "yes" },
    { "{\"enum\":[\"a\",1,1.5,null,{\"b\":[true]}]}", "2", "no" },
    { "{\"enum\":[1,2,3,\"a\"],\"minimum\":2,\"type\":\"integer\"}", "1", "no" },
    { "{\"enum\":[1,2,3,\"a\"],\"minimum\":2,\"type\":\"integer\"}", "3", "yes" },
    { "{\"const\":\"a\\\"b\"}", "\"a\\\"b\"", "yes" },
    { "{\"type\":[\"string\",\"null\"]}", "null", "yes" },
    { "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":2}", "[true, false]",
      "yes" },
    { "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"maxItems\":2}", "[true,true,true]",
      "no" },
    { "{\"type\":\"array\",\"minItems\":2}", "[1]", "no" },
    { "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3}}", "[1,2,3,3]",
      "yes" },
    { "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":{\"const\":3}}", "[1]", "yes" },
    { "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":false,\"minItems\":2}", "[1,2]",
      "yes" },
    { "{\"prefixItems\":[{\"const\":1},{\"const\":2}],\"items\":false}", "[1,2,3]", "no" },
    { "{\"items\":[{\"const\":1}],\"additionalItems\":false}", "[1,1]", "no" },
    { "{\"maxItems\":0}", "[ ]", "yes" },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}", "{}", "yes" },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}", "{\"b\":2}", "yes" },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}}}", "{\"a\":1, \"b\":2}", "yes" },
    { "{\"properties\":{\"a\":{\"const\":1},\"b\":{\"const\":2}},\"required\":[\"b\"]}",
      "{\"a\":1}", "no" },
    { "{\"properties\":{\"a\":{\"const\":1}}}", "{\"c\":2}", "no" },
    { "{\"properties\":{\"a\":false,\"b\":{\"const\":2}}}", "{\"a\":1}", "no" },
    { "{\"required\":[\"x\"]}", "{\"x\":5}", "yes" },
    { "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"null\"}}", "{\"q\":null}", "yes" },
    { "{\"type\":\"object\",\"additionalProperties\":false}", "{}", "yes" },
    { "{\"type\":\"object\",\"additionalProperties\":false}", "{\"a\":1}", "no" },
    { "{\"properties\":{\"ab\":{\"const\":1},\"é\":{\"const\":1}},\"additionalProperties\":true}",
      "{\"ab\":1,\"abc\":2,\"a\":3,\"x\":4,\"è\":5,\"\":6}", "yes" },
    { "{\"properties\":{\"ab\":{\"const\":1},\"é\":{\"const\":1}},\"additionalProperties\":true}",
      "{\"ab\":2}", "no" },
    { "{\"properties\":{\"ab\":{\"const\":1},\"é\":{\"const\":1}},\"additionalProperties\":true}",
      "{\"x\":2,\"é\":2}", "no" },
    { "{\"anyOf\":[{\"const\":1},{\"const\":2}]}", "2", "yes" },
    { "{\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"properties\":{\"a\":{\"const\":"
      "1}"
      ",\"b\":{\"const\":2}}}",
      "{\"b\":2}", "yes" },
    { "{\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}],\"properties\":{\"a\":{\"const\":"
      "1}"
      ",\"b\":{\"const\":2}}}",
      "{}", "no" },
    { "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "null", "yes" },
    { "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":\"a\"}},\"required\":[\"k\"],\"type\":"
      "\"object\"},{\"properties\":{\"k\":{\"const\":\"b\"}},\"required\":[\"k\"],\"type\":"
      "\"object\"}]}",
      "{\"k\":\"b\"}", "yes" },
    { "{\"allOf\":[{\"minimum\":2},{\"maximum\":4,\"type\":\"integer\"}]}", "5", "no" },
    { "{\"allOf\":[{\"minimum\":2},{\"maximum\":4,\"type\":\"integer\"}]}", "3", "yes" },
    { "{\"$defs\":{\"n\":{\"properties\":{\"next\":{\"$ref\":\"#/$defs/"
      "n\"}},\"additionalProperties\""
      ":false}},\"$ref\":\"#/$defs/n\"}",
      "{\"next\":{\"next\":{}}}", "yes" },
    { "{\"items\":{\"$ref\":\"#\"},\"type\":\"array\"}", "[[],[[]]]", "yes" },
    { "{\"definitions\":{\"a/b~c d\":{\"const\":7}},\"$ref\":\"#/definitions/a~1b~0c%20d\"}", "7",
      "yes" },
    { "{\"$ref\":\"#/$defs/"
      "a\",\"maximum\":3,\"$defs\":{\"a\":{\"type\":\"integer\",\"minimum\":2}}}",
      "4", "no" },
    { "{\"type\":\"object\",\"properties\":{\"x\":{\"not\":{}}},\"title\":\"t\",\"$comment\":\"\"}",
      NULL, "'not' cannot be obeyed" },
};

static const struct {
    const char *schema;
    enum status status;
    const char *text;
} wrong[] = {
    { "{", STATUS_USAGE, "s:1:1: expected JSON" },
    { "{\"a\":1,\"a\":2}", STATUS_USAGE, "expected JSON" },
    { "[]", STATUS_USAGE, "s: #: expected a schema" },
    { "false", STATUS_USAGE, "some value is valid for" },
    { "{\"type\":\"text\"}", STATUS_USAGE, "#: type: expected null, boolean" },
    { "{\"type\":5}", STATUS_USAGE, "found 'something else'" },
    { "{\"properties\":{\"a\":{\"properties\":{\"b\":{\"uniqueItems\":true}}}}}",
      STATUS_UNSUPPORTED, "#/properties/a/properties/b: 'uniqueItems' cannot be obeyed" },
    { "{\"multipleOf\":5,\"type\":\"integer\"}", STATUS_UNSUPPORTED, "'multipleOf'" },
    { "{\"if\":{},\"then\":{}}", STATUS_UNSUPPORTED, "'if'" },
    { "{\"patternProperties\":{\"a\":{}}}", STATUS_UNSUPPORTED, "'patternProperties'" },
    { "{\"minProperties\":1}", STATUS_UNSUPPORTED, "'minProperties'" },
    { "{\"$ref\":\"http://x/y\"}", STATUS_UNSUPPORTED, "$ref: expected a place in the same" },
    { "{\"$ref\":\"#/a\"}", STATUS_USAGE, "$ref: found nothing at '#/a'" },
    { "{\"anyOf\":[]}", STATUS_USAGE, "anyOf: expected an array of 1 to" },
    { "{\"allOf\":{}}", STATUS_USAGE, "allOf: expected an array" },
    { "{\"enum\":[]}", STATUS_USAGE, "enum: expected an array" },
    { "{\"minLength\":-1}", STATUS_USAGE, "minLength: expected a whole number" },
    { "{\"minItems\":1e9}", STATUS_LIMIT, "minItems: expected at most" },
    { "{\"minimum\":\"3\"}", STATUS_USAGE, "minimum: expected a number" },
    { "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", STATUS_USAGE, "some value" },
    { "{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", STATUS_USAGE, "some value" },
    { "{\"properties\":{\"a\":false},\"required\":[\"a\"]}", STATUS_USAGE, "some value" },
    { "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", STATUS_USAGE,
      "some value" },
    { "{\"pattern\":\"(\"}", STATUS_UNSUPPORTED, "pattern: expected a group that ends with )" },
    { "{\"pattern\":\"a)\"}", STATUS_UNSUPPORTED, "pattern: expected a group before )" },
    { "{\"pattern\":\"(?=a)b\"}", STATUS_UNSUPPORTED, "look-around" },
    { "{\"pattern\":\"(?<!a)b\"}", STATUS_UNSUPPORTED, "look-around" },
    { "{\"pattern\":\"a\\\\b\"}", STATUS_UNSUPPORTED, "an escape that cannot be obeyed" },
    { "{\"pattern\":\"(a)\\\\1\"}", STATUS_UNSUPPORTED, "an escape" },
    { "{\"pattern\":\"\\\\ux\"}", STATUS_UNSUPPORTED, "s: #: pattern: an escape" },
    { "{\"pattern\":\"a^b\"}", STATUS_UNSUPPORTED, "'^' cannot be obeyed here" },
    { "{\"pattern\":\"*a\"}", STATUS_UNSUPPORTED, "'*' cannot be obeyed here" },
    { "{\"pattern\":\"[a\"}", STATUS_UNSUPPORTED, "a class that ends with ]" },
    { "{\"pattern\":\"a{2,1}\"}", STATUS_UNSUPPORTED, "{N,M}" },
    { "{\"pattern\":\"^a+$\",\"maxLength\":3}", STATUS_UNSUPPORTED, "together with a pattern" },
    { "{\"pattern\":\"a\",\"allOf\":[{\"pattern\":\"b\"}]}", STATUS_UNSUPPORTED, "two patterns" },
    { "{\"enum\":[\"a\"],\"pattern\":\"a\"}", STATUS_UNSUPPORTED, "'pattern' together with enum" },
    { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}", STATUS_UNSUPPORTED,
      "may be valid for both alternative 0 and 1" },
    { "{\"oneOf\":[{\"properties\":{\"a\":{}}},{\"properties\":{\"b\":{}}}]}", STATUS_UNSUPPORTED,
      "alternative" },
    { "{\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}", STATUS_UNSUPPORTED,
      "an alternative is the schema that it is in" },
};

static enum status make(const struct grammar_fixture *fixture, const char *schema,
                        struct grammar **ret_grammar, struct error *err)
{
    return grammar_create_schema(fixture->vocabulary, text_view_of(schema), "s", ret_grammar, err);
}

static void test_texts(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct grammar *grammar;
        struct error err;
        if (!rows[i].text) {
            CHECK_FAILS(make(&fixture, rows[i].schema, &grammar, &err), STATUS_UNSUPPORTED, &err);
            check_contains(rows[i].schema, err.text, rows[i].verdict);
            continue;
        }
        if (make(&fixture, rows[i].schema, &grammar, &err))
            fail_msg("%s: %s", rows[i].schema, err.text);
        const char *verdict = grammar_verdict(grammar, text_view_of(rows[i].text));
        bool same = strcmp(verdict, rows[i].verdict) == 0;
        if (!same)
            fail_msg("%s: '%s': expected %s, found %s", rows[i].schema, rows[i].text,
                     rows[i].verdict, verdict);
        grammar_destroy(grammar);
    }
    grammar_fixture_close(&fixture);
}

static void test_errors(void **state)
{
    (void)state;
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct grammar *grammar = NULL;
        struct error err = { 0 };
        enum status status = make(&fixture, wrong[i].schema, &grammar, &err);
        if (status != wrong[i].status)
            fail_msg("%s: expected status %d, found %d: %s", wrong[i].schema, wrong[i].status,
                     status, err.text);
        check_contains(wrong[i].schema, err.text, wrong[i].text);
        assert_null(grammar);
    }
    grammar_fixture_close(&fixture);
}

/* Schemas that are deep, wide or refer to themselves: a rule each, or a refusal; not a hang. */
static void test_hostile(void **state)
{
    (void)state;
    static const struct {
        const char *before, *part, *after_each, *after;
        size_t count;
        enum status status;
    } large[] = {
        { "", "{\"items\":", "}", "{}", 200, STATUS_OK },
        { "", "{\"items\":", "}", "{}", 1000, STATUS_LIMIT },
        { "", "{\"allOf\":[", "]}", "{}", 500, STATUS_LIMIT },
        { "", "{\"anyOf\":[{\"type\":\"null\"},", "]}", "{}", 100, STATUS_LIMIT },
        { "", "{\"const\":[", "]}", "1", 1, STATUS_OK },
        { "{\"const\":", "[", "]", "}", 300, STATUS_LIMIT },
        { "{\"enum\":[0", ",\"some value\"", "", "]}", 10000, STATUS_OK },
        { "{\"enum\":[0", ",\"some value\"", "", "]}", 300000, STATUS_LIMIT },
        { "{\"required\":[\"a\"", ",\"b\"", "", "]}", 100000, STATUS_USAGE },
    };
    struct grammar_fixture fixture = grammar_fixture_open();
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        struct grammar *grammar = NULL;
        struct error err;
        struct text text;
        bool closes = large[i].before[0] != '\0';
        text_init(&text);
        text_add(&text, large[i].before);
        for (size_t k = 0; k < large[i].count; k++)
            text_add(&text, large[i].part);
        if (!closes)
            text_add(&text, large[i].after);
        for (size_t k = 0; k < large[i].count; k++)
            text_add(&text, large[i].after_each);
        if (closes)
            text_add(&text, large[i].after);
        enum status status = make(&fixture, text_get(&text), &grammar, &err);
        if (status != large[i].status)
            fail_msg("%s%s x %zu: expected status %d, found %d: %s", large[i].before, large[i].part,
                     large[i].count, large[i].status, status, status ? err.text : "");
        grammar_destroy(grammar);
        text_release(&text);
    }
    grammar_fixture_close(&fixture);
}

/* ---- Texts for another judge ---------------------------------------------------------------- */

static void print_texts(const struct grammar_fixture *fixture, const char *schema, uint64_t *random)
{
    struct grammar *grammar;
    struct error err;
    struct text text;
    if (make(fixture, schema, &grammar, &err)) {
        printf("refused %s\nend\n", err.text);
        return;
    }
    text_init(&text);
    for (int i = 0; i < 8; i++) {
        if (!grammar_write(grammar, random, 250, &text))
            continue;
        for (size_t k = 0; k < text.length; k++)
            printf("%02x", (uint8_t)text.bytes[k]);
        printf("\n");
    }
    printf("end\n");
    text_release(&text);
    grammar_destroy(grammar);
}

static int print_all(void)
{
    struct grammar_fixture fixture = grammar_fixture_open();
    uint64_t random = 11;
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        print_texts(&fixture, line, &random);
    }
    grammar_fixture_close(&fixture);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_hostile),
    };
    if (argc > 1 && strcmp(argv[1], "--texts") == 0)
        return print_all();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
