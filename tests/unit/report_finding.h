/* report_finding.h - the calls that findings name in these tests, and a check of a headline in both
 * languages. */
#ifndef GRETA_TESTS_REPORT_FINDING_H
#define GRETA_TESTS_REPORT_FINDING_H

#include "analyze_model.h"

#include "report/finding.h"

static inline struct analyze_place place_of(enum event_kind kind, const char *op,
                                            const char *tensor, const char *buffer, uint8_t operand)
{
    struct analyze_place one = { .event_id = 10,
                                 .time_ns = 1000000,
                                 .kind = (uint8_t)kind,
                                 .scope = { 3, kind == EVENT_LAUNCH ? 2 : -1, "" },
                                 .stream_index = 1,
                                 .line = 7,
                                 .operand = operand,
                                 .mode = EVENT_READ,
                                 .bytes = 1 };
    event_set_text(one.op, sizeof(one.op), op);
    event_set_text(one.scope.tensor, sizeof(one.scope.tensor), tensor);
    event_set_text(one.buffer, sizeof(one.buffer), buffer);
    event_set_text(one.file, sizeof(one.file), "forward.c");
    return one;
}

static inline struct analyze_place rope_place(void)
{
    struct analyze_place one = place_of(EVENT_LAUNCH, "rope", "rope_qk", "indices", 1);
    event_set_text(one.operand_name, sizeof(one.operand_name), "positions");
    return one;
}

static inline void check_headline(const struct finding *finding, const char *english,
                                  const char *spanish)
{
    struct text text;
    text_init(&text);
    report_finding_headline(finding, REPORT_ENGLISH, &text);
    assert_string_equal(text_get(&text), english);
    text_clear(&text);
    report_finding_headline(finding, REPORT_SPANISH, &text);
    assert_string_equal(text_get(&text), spanish);
    text_release(&text);
}

#endif
