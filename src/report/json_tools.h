/* json_tools.h - building JSON documents from facts.
 *
 * `out` is the text the document goes to: running out of memory is remembered in out->failed, so
 * that printers need not check every field. Values are taken. */
#ifndef GRETA_REPORT_JSON_TOOLS_H
#define GRETA_REPORT_JSON_TOOLS_H

#include "base/text.h"
#include "report/report.h"

#include <jansson.h>

void json_put(struct text *out, json_t *object, const char *key, json_t *value);
void json_add(struct text *out, json_t *array, json_t *value);

/* NULL becomes null; what is not UTF-8 is escaped. */
void json_put_text(struct text *out, json_t *object, const char *key, const char *text);
void json_add_text(struct text *out, json_t *array, const char *text);
void json_put_flag(struct text *out, json_t *object, const char *key, bool value);
/* jansson's integers have 63 bits: larger ones become text. */
void json_put_count(struct text *out, json_t *object, const char *key, uint64_t value);
void json_put_integer(struct text *out, json_t *object, const char *key, int64_t value);
/* JSON has no NaN: null. */
void json_put_real(struct text *out, json_t *object, const char *key, double value);
void json_put_address(struct text *out, json_t *object, const char *key, uint64_t address);
const char *json_language_name(enum report_language language); /* "en" */
/* The text in every language: {"en": .., "es": ..}. */
void json_put_finding_words(struct text *out, json_t *object, const char *key,
                            const struct finding *finding);
void json_put_place(struct text *out, json_t *object, const char *key,
                    const struct analyze_place *place);

/* The list of planted faults, for summary.json and the self-test (self_test.c). */
json_t *json_planted(struct text *out, const struct report_facts *facts);

/* Parts of summary.json (summary_runs.c). */
json_t *json_rows(struct text *out, const struct report_facts *facts);
json_t *json_program(struct text *out, const struct report_facts *facts);
json_t *json_interventions(struct text *out, const struct report_facts *facts);
/* The frames of a call stack of a foreign program (summary_findings.c). */
json_t *json_frames(struct text *out, const struct report_facts *facts, size_t analysis,
                    uint32_t stack_index);
/* What a GPU core dump shows of the finding (finding_hardware.c); null: there is none. */
json_t *json_hardware(struct text *out, const struct report_facts *facts, size_t analysis,
                      const struct finding *finding);
json_t *json_findings(struct text *out, const struct report_facts *facts);
json_t *json_compare(struct text *out, const struct report_compare *compare);
json_t *json_search(struct text *out, const struct report_facts *facts);
json_t *json_ablation(struct text *out, const struct report_facts *facts);
json_t *json_self_test(struct text *out, const struct report_facts *facts);
json_t *json_transfers(struct text *out, const struct report_facts *facts);
json_t *json_earlier(struct text *out, const struct report_facts *facts);
json_t *json_baseline(struct text *out, const struct report_facts *facts);

const char *json_self_test_name(enum self_test_state state);

/* Prints indented and releases root. */
void json_print(struct text *out, json_t *root);

#endif
