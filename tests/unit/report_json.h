/* report_json.h - prints a document for programs and parses it again. */
#ifndef GRETA_TESTS_REPORT_JSON_H
#define GRETA_TESTS_REPORT_JSON_H

#include "test.h"

#include "base/text.h"
#include "report_facts.h"

#include <jansson.h>

static inline json_t *parse_report(void (*print)(const struct report_facts *facts,
                                                 struct text *text),
                                   const struct report_facts *facts)
{
    struct text text;
    json_error_t problem;
    text_init(&text);
    print(facts, &text);
    assert_false(text.failed);
    json_t *root = json_loads(text_get(&text), JSON_REJECT_DUPLICATES, &problem);
    if (!root)
        fail_msg("line %d: %s", problem.line, problem.text);
    text_release(&text);
    return root;
}

static inline const char *json_text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    if (!text)
        fail_msg("%s: expected text", key);
    return text;
}

#endif
