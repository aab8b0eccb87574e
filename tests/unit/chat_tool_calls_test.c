/* chat_tool_calls_test.c - calls of tools in the forms of each family, and damaged ones. */
#include "test.h"

#include "chat/tool_calls.h"

#include <stdlib.h>
#include <string.h>

static const char offered[] =
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"properties\": {"
    "\"a\": {\"type\": \"integer\"}, \"s\": {\"type\": \"string\"}}}}}]";

/* "f {"a": 1}; g {}" of the calls in a text. */
static struct text calls_of(const char *answer, size_t length)
{
    json_t *tools = json_loads(offered, 0, NULL), *calls = NULL;
    struct text list;
    struct error err;
    text_init(&list);
    CHECK_OK(chat_tool_calls((struct text_view){ answer, length }, tools, 7, &calls, &err), &err);
    for (size_t i = 0; i < json_array_size(calls); i++) {
        const json_t *call = json_array_get(calls, i);
        const json_t *function = json_object_get(call, "function");
        assert_string_equal(json_string_value(json_object_get(call, "type")), "function");
        text_addf(&list, "%s%s %s", i ? "; " : "",
                  json_string_value(json_object_get(function, "name")),
                  json_string_value(json_object_get(function, "arguments")));
    }
    json_decref(calls);
    json_decref(tools);
    return list;
}

struct call_row {
    const char *answer, *calls;
};

static const struct call_row rows[] = {
    { "no call at all", "" },
    { "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>"
      "{\"name\": \"g\"}</tool_call>",
      "f {\"a\": 1}; g {}" },
    { "<tool_call>\n<function=f>\n<parameter=a>\n12\n</parameter>\n<parameter=s>\n12\n</parameter>"
      "\n</function>\n</tool_call>",
      "f {\"a\": 12, \"s\": \"12\"}" },
    { "{\"name\": \"f\", \"parameters\": {\"a\": 2}}", "f {\"a\": 2}" },
    { "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}", "f {}" },
    { "<|python_tag|>brave_search.call(query=\"x y\")", "brave_search {\"query\": \"x y\"}" },
    { "[f(a=1, s='it\\'s'), g(l=[1, None, True], d={'k': 2.5})]",
      "f {\"a\": 1, \"s\": \"it's\"}; g {\"l\": [1, null, true], \"d\": {\"k\": 2.5}}" },
    { "<|tool_call_start|>[f(a=3)]<|tool_call_end|>", "f {\"a\": 3}" },
    { "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abcdefghi\"}]",
      "f {\"a\": 1}" },
    { "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{\"a\": 1}[TOOL_CALLS]g[ARGS]{}",
      "f {\"a\": 1}; g {}" },
    { "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```"
      "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
      "f {\"a\": 1}" },
    { "<｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>", "f {\"a\": 1}" },
    { "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" "
      "string=\"true\">"
      "12</｜DSML｜parameter>\n<｜DSML｜parameter name=\"l\" "
      "string=\"false\">[1]</｜DSML｜parameter>\n"
      "</｜DSML｜invoke>",
      "f {\"s\": \"12\", \"l\": [1]}" },
    { "<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
      "f {\"a\": 1}" },
    { "<tool_call>f\n<arg_key>a</arg_key>\n<arg_value>4</arg_value>\n<arg_key>s</arg_key>\n"
      "<arg_value>x</arg_value>\n</tool_call>",
      "f {\"a\": 4, \"s\": \"x\"}" },
    { "<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
      "{\"a\": 1}<|tool_call_end|>",
      "f {\"a\": 1}" },
    { "<|tool_call|>[{\"name\": \"f\", \"arguments\": {\"a\": 1}}]", "f {\"a\": 1}" },
    { "<|START_ACTION|>[{\"tool_call_id\": \"0\", \"tool_name\": \"f\", \"parameters\": {}}]"
      "<|END_ACTION|>",
      "f {}" },
    { "<minimax:tool_call>\n<invoke name=\"f\">\n<parameter name=\"s\">v</parameter>\n</invoke>",
      "f {\"s\": \"v\"}" },
    { "<function=f>{\"a\": 1}</function>", "f {\"a\": 1}" },
    { "<TOOLCALL>[{\"name\": \"f\", \"arguments\": {}}]</TOOLCALL>", "f {}" },
    { "<|tools_prefix|>[{\"f\": {\"a\": 1}}]<|tools_suffix|>", "f {\"a\": 1}" },
    /* Arguments as text, damaged and cut calls. */
    { "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}", "f {\"a\": 1}" },
    { "<tool_call>{\"name\": \"f\", \"arguments\": [1]}", "" },
    { "<tool_call>{\"name\": \"f\", ", "" },
    { "<tool_call>{\"name\": 3}</tool_call><tool_call>{\"name\": \"g\"}</tool_call>", "g {}" },
    { "[f(a=", "" },
    { "[1, 2, 3]", "" },
    { "<function=f", "" },
    { "<function=f><parameter=a>1", "" },
};

static void test_forms(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text found = calls_of(rows[i].answer, strlen(rows[i].answer));
        if (strcmp(text_get(&found), rows[i].calls) != 0)
            fail_msg("%s: expected '%s', found '%s'", rows[i].answer, rows[i].calls,
                     text_get(&found));
        text_release(&found);
    }
}

/* Every beginning of every answer is read without a crash, from memory that ends there. */
static void test_cut(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (size_t length = 0; length <= strlen(rows[i].answer); length++) {
            char *copy = malloc(length + 1);
            assert_non_null(copy);
            memcpy(copy, rows[i].answer, length);
            struct text found = calls_of(copy, length);
            text_release(&found);
            free(copy);
        }
}

static void test_ids(void **state)
{
    (void)state;
    static const struct {
        const char *answer, *id;
    } id_rows[] = {
        { "[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}", "abcdefghi" },
        { "<|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}", "functions.f:3" },
        { "<tool_call>{\"name\": \"f\"}", "call00007" },
    };
    for (size_t i = 0; i < COUNT_OF(id_rows); i++) {
        json_t *calls;
        struct error err;
        CHECK_OK(chat_tool_calls(text_view_of(id_rows[i].answer), NULL, 7, &calls, &err), &err);
        assert_string_equal(json_string_value(json_object_get(json_array_get(calls, 0), "id")),
                            id_rows[i].id);
        json_decref(calls);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
