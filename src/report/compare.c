/* compare.c - ops of a device compared with the host's: as a table, as JSON, as a section. */
#include "report/json_tools.h"
#include "report/sections.h"
#include "report/table.h"
#include "report/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- The sentence --------------------------------------------------------------------------- */

static const char *say(enum report_language language, const char *english, const char *spanish)
{
    return language == REPORT_SPANISH ? spanish : english;
}

/* "rope, layer 2, step 3" */
static void add_op(const struct report_compare_row *row, enum report_language language,
                   struct text *text)
{
    text_add(text, row->op);
    if (row->layer >= 0)
        text_addf(text, ", %s %d", say(language, "layer", "capa"), (int)row->layer);
    if (row->step >= 0)
        text_addf(text, ", %s %d", say(language, "step", "paso"), (int)row->step);
    if (row->tensor[0])
        text_addf(text, ", tensor %s", row->tensor);
}

/* Values that are not finite, and errors of them, are written as numbers no value has. */
static const char *number_words(double value, enum report_language language, char words[32])
{
    snprintf(words, 32, "%.6g", value);
    return value >= REPORT_COMPARE_NOT_FINITE || value <= -REPORT_COMPARE_NOT_FINITE
               ? say(language, "not finite", "no finito")
               : words;
}

bool report_compare_is_untested(const struct report_compare *compare)
{
    return compare->planting.fault && compare->planting.reported && !compare->first &&
           !compare->error;
}

bool report_compare_is_ambiguous(const struct report_compare_row *row)
{
    return row->packed_by && row->packed_by[0];
}

void compare_describe(const struct report_compare_row *row, enum report_language language,
                      struct text *text)
{
    char device[32], host[32], error[32];
    add_op(row, language, text);
    text_addf(text,
              say(language,
                  " (%s:%" PRIu32 "): %s[%" PRIu64 "][%" PRIu64
                  "] is %s, the host computes %s from "
                  "the same inputs; error %s, tolerance %.3g",
                  " (%s:%" PRIu32 "): %s[%" PRIu64 "][%" PRIu64 "] es %s, el anfitrión calcula %s "
                  "con las mismas entradas; error %s, tolerancia %.3g"),
              row->file, row->line, row->operand, row->row, row->column,
              number_words(row->device_value, language, device),
              number_words(row->host_value, language, host),
              number_words(row->error, language, error), row->tolerance);
    if (report_compare_is_ambiguous(row))
        text_addf(text,
                  say(language,
                      "; or %s before it packed that input wrongly: packed values are not compared",
                      "; o bien %s, antes, empaquetó mal esa entrada: los valores empaquetados no "
                      "se comparan"),
                  row->packed_by);
}

static void add_conclusion(const struct report_compare *compare, enum report_language language,
                           struct text *text)
{
    const struct report_compare_row *first = compare->first;
    if (!first && compare->error) {
        text_addf(text,
                  say(language,
                      "The run ended early; %" PRIu64 " launches were compared with the host until "
                      "then, all inside their tolerance.",
                      "La ejecución terminó antes de tiempo; hasta entonces se compararon %" PRIu64
                      " lanzamientos con el anfitrión, todos dentro de su tolerancia."),
                  compare->launches);
        return;
    }
    if (!first) {
        text_addf(text,
                  say(language,
                      "%" PRIu64 " launches compared with the host: all inside their tolerance.",
                      "%" PRIu64 " lanzamientos comparados con el anfitrión: todos dentro de su "
                      "tolerancia."),
                  compare->launches);
        return;
    }
    text_add(text, say(language, "First op outside its tolerance: ",
                       "Primera operación fuera de su tolerancia: "));
    compare_describe(first, language, text);
    text_add(text, ".");
}

static const char *error_words(const struct report_compare_row *row, enum report_language language,
                               char words[32])
{
    const char *text = number_words(row->error, language, words);
    if (text == words)
        snprintf(words, 32, "%.2e", row->error);
    return text;
}

/* ---- The terminal --------------------------------------------------------------------------- */

static void add_cells(const struct report_compare_row *row, enum report_language language,
                      struct table *table)
{
    char number[32];
    struct text where;
    table_add(table, row->op);
    table_add(table, row->type);
    snprintf(number, sizeof(number), "%" PRIu64, row->launches);
    table_add(table, number);
    table_add(table, error_words(row, language, number));
    snprintf(number, sizeof(number), "%.0e", row->tolerance);
    table_add(table, row->tolerance > 0 ? number : "0");
    snprintf(number, sizeof(number), "%" PRIu64, row->outside);
    table_add(table, number);
    text_init(&where);
    if (row->error > 0)
        add_op(row, language, &where);
    table_add(table, text_get(&where));
    text_release(&where);
}

void report_compare_table(const struct report_compare *compare, enum report_language language,
                          struct text *text)
{
    static const enum word titles[] = { WORD_OP,         WORD_TYPE,      WORD_LAUNCHES,
                                        WORD_ERROR_MAX,  WORD_TOLERANCE, WORD_OUTSIDE,
                                        WORD_ERROR_WHERE };
    struct table table;
    if (compare->device) { /* not a part of an audit, which says it itself */
        report_planting_add(&compare->planting, language, text);
        text_addf(text, "%s\n\n", compare->device);
    }
    table_init(&table, COUNT_OF(titles));
    for (size_t i = 0; i < COUNT_OF(titles); i++)
        table_add(&table, words_get(language, titles[i]));
    for (size_t i = 0; i < compare->row_count; i++)
        add_cells(&compare->rows[i], language, &table);
    table_print(&table, text);
    table_release(&table);
    text_add(text, "\n");
    add_conclusion(compare, language, text);
    text_add(text, "\n");
    if (compare->not_compared)
        text_addf(text,
                  say(language, "Not compared: %" PRIu64 " launches.\n",
                      "Sin comparar: %" PRIu64 " lanzamientos.\n"),
                  compare->not_compared);
    if (compare->error)
        text_addf(text, "%s\n", compare->error);
    if (report_compare_is_untested(compare))
        text_addf(text, "%s\n",
                  words_get(language, compare->planting.fired ? WORD_HEADLINE_FIRED_UNSEEN
                                                              : WORD_HEADLINE_NEVER_FIRED));
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static json_t *row_json(struct text *out, const struct report_compare_row *row)
{
    json_t *item = json_object();
    json_put_text(out, item, "op", row->op);
    json_put_text(out, item, "type", row->type);
    json_put_count(out, item, "launches", row->launches);
    json_put_count(out, item, "outside", row->outside);
    json_put_real(out, item, "tolerance", row->tolerance);
    json_put_real(out, item, "error", row->error);
    json_put(out, item, "layer", json_integer(row->layer));
    json_put(out, item, "step", json_integer(row->step));
    json_put_text(out, item, "tensor", row->tensor);
    json_put_text(out, item, "operand", row->operand);
    json_put_text(out, item, "packed_by", row->packed_by ? row->packed_by : "");
    json_put_count(out, item, "row", row->row);
    json_put_count(out, item, "column", row->column);
    json_put_real(out, item, "device_value", row->device_value);
    json_put_real(out, item, "host_value", row->host_value);
    json_put_text(out, item, "file", row->file);
    json_put_count(out, item, "line", row->line);
    return item;
}

json_t *json_compare(struct text *out, const struct report_compare *compare)
{
    if (!compare)
        return json_null();
    json_t *item = json_object(), *rows = json_array();
    json_put(out, item, "inside", json_boolean(!compare->first && !compare->error));
    json_put_count(out, item, "launches", compare->launches);
    json_put_count(out, item, "not_compared", compare->not_compared);
    json_put(out, item, "first", compare->first ? row_json(out, compare->first) : json_null());
    for (size_t i = 0; i < compare->row_count; i++)
        json_add(out, rows, row_json(out, &compare->rows[i]));
    json_put(out, item, "ops", rows);
    json_put_text(out, item, "error", compare->error);
    json_put(out, item, "planted_fault", report_planting_json(&compare->planting, out));
    return item;
}

void report_compare_json(const struct report_compare *compare, struct text *text)
{
    json_t *document = json_compare(text, compare);
    json_put_text(text, document, "device", compare->device);
    char *dumped = document ? json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(document);
    text_add(text, dumped ? dumped : "");
    text_add(text, "\n");
    text->failed = text->failed || !dumped;
    free(dumped);
}

/* ---- The report ----------------------------------------------------------------------------- */

void section_compare(struct doc *doc, const struct report_facts *facts)
{
    static const struct doc_column columns[] = {
        { WORD_OP, false, false },         { WORD_TYPE, false, false },
        { WORD_LAUNCHES, true, false },    { WORD_ERROR_MAX, true, false },
        { WORD_TOLERANCE, true, false },   { WORD_OUTSIDE, true, false },
        { WORD_ERROR_WHERE, false, true },
    };
    const struct report_compare *compare = facts->compare;
    struct text words;
    char number[32];
    if (!compare)
        return;
    doc_heading(doc, 2, "compare", WORD_SECTION_COMPARE);
    doc_sentence(doc, WORD_COMPARE_READING, NULL);
    text_init(&words);
    add_conclusion(compare, doc->language, &words);
    doc_paragraph_begin(doc);
    doc_strong(doc, text_get(&words));
    doc_paragraph_end(doc);
    doc_table_begin(doc, columns, COUNT_OF(columns));
    for (size_t i = 0; i < compare->row_count; i++) {
        const struct report_compare_row *row = &compare->rows[i];
        doc_row_begin(doc);
        doc_cell_code(doc, row->op);
        doc_cell_code(doc, row->type);
        doc_cell_count(doc, row->launches);
        doc_cell_text(doc, error_words(row, doc->language, number));
        snprintf(number, sizeof(number), "%.0e", row->tolerance);
        doc_cell_text(doc, row->tolerance > 0 ? number : "0");
        doc_cell_count(doc, row->outside);
        text_clear(&words);
        if (row->error > 0)
            add_op(row, doc->language, &words);
        doc_cell_text(doc, text_get(&words));
        doc_row_end(doc);
    }
    doc_table_end(doc);
    text_release(&words);
}
