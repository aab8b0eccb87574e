/* self_test.c - planted faults against what was found: as a table for terminals and as JSON. */
#include "report/json_tools.h"

#include "report/facts.h"
#include "report/table.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>

static json_t *planted_json(struct text *out, const struct report_planted *one)
{
    json_t *item = json_object();
    json_put_text(out, item, "fault", one->fault);
    json_put_text(out, item, "hypothesis", hypothesis_info(one->hypothesis)->slug);
    json_put_place(out, item, "planted", &one->planted);
    json_put_flag(out, item, "absent", one->absent);
    json_put_flag(out, item, "detected", one->detected);
    json_put_text(out, item, "found_hypothesis",
                  one->found_hypothesis < HYPOTHESIS_COUNT
                      ? hypothesis_info(one->found_hypothesis)->slug
                      : NULL);
    json_put_place(out, item, "culprit", &one->culprit);
    json_put_flag(out, item, "only_seen", one->only_seen);
    json_put_flag(out, item, "culprit_ok", one->culprit_ok);
    json_put_text(out, item, "note", one->note);
    return item;
}

json_t *json_planted(struct text *out, const struct report_facts *facts)
{
    json_t *list = json_array();
    for (size_t i = 0; i < facts->planted_count; i++)
        json_add(out, list, planted_json(out, &facts->planted[i]));
    return list;
}

void report_self_test_json(const struct report_facts *facts, struct text *text)
{
    json_t *root = json_object();
    json_put_text(text, root, "device", facts->identity.device_name);
    json_put_text(text, root, "key", facts->self_test_key);
    json_put(text, root, "planted", json_planted(text, facts));
    json_print(text, root);
}

void report_self_test_table(const struct report_facts *facts, enum report_language language,
                            struct text *text)
{
    static const enum word titles[] = { WORD_FAULT, WORD_HYPOTHESIS, WORD_DETECTED, WORD_CULPRIT_OK,
                                        WORD_CULPRIT };
    struct facts_totals totals = facts_totals(facts);
    char numbers[4][24];
    const char *arguments[4] = { numbers[0], numbers[1], numbers[2], numbers[3] };
    struct table table;
    table_init(&table, COUNT_OF(titles));
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        table_add(&table, words_get(language, titles[i]));
    for (size_t i = 0; i < facts->planted_count; i++) {
        const struct report_planted *one = &facts->planted[i];
        struct text place;
        text_init(&place);
        facts_place(&one->culprit, language, &place);
        table_add(&table, one->fault);
        table_add(&table, hypothesis_info(one->hypothesis)->slug);
        table_add(&table, words_get(language, one->absent     ? WORD_SELF_TEST_ABSENT
                                              : one->detected ? WORD_YES
                                                              : WORD_NO));
        table_add(&table, one->absent ? "-" : words_get(language, facts_culprit_word(one)));
        table_add(&table, text_get(&place));
        text->failed = text->failed || place.failed;
        text_release(&place);
    }
    table_print(&table, text);
    table_release(&table);
    snprintf(numbers[0], sizeof(numbers[0]), "%" PRIu64, totals.planted);
    snprintf(numbers[1], sizeof(numbers[1]), "%" PRIu64, totals.detected);
    snprintf(numbers[2], sizeof(numbers[2]), "%" PRIu64, totals.culprits);
    snprintf(numbers[3], sizeof(numbers[3]), "%" PRIu64, totals.seen);
    words_fill(text, words_get(language, WORD_SELF_TEST_TOTAL), arguments, COUNT_OF(arguments));
    text_add(text, "\n");
}
