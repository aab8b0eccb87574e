/* doc.c - what both ways to print a report share. */
#include "report/doc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const char *doc_word(const struct doc *doc, enum word word)
{
    return words_get(doc->language, word);
}

void doc_heading(struct doc *doc, int level, const char *id, enum word word)
{
    doc->methods->heading(doc, level, id, doc_word(doc, word));
}

void doc_paragraph_begin(struct doc *doc)
{
    doc->methods->paragraph(doc, true);
}

void doc_paragraph_end(struct doc *doc)
{
    doc->methods->paragraph(doc, false);
}

void doc_list_begin(struct doc *doc)
{
    doc->methods->list(doc, true);
}

void doc_list_end(struct doc *doc)
{
    doc->methods->list(doc, false);
}

void doc_item_begin(struct doc *doc)
{
    doc->methods->item(doc, true);
}

void doc_item_end(struct doc *doc)
{
    doc->methods->item(doc, false);
}

void doc_facts_begin(struct doc *doc)
{
    doc->methods->facts(doc, true);
}

void doc_facts_end(struct doc *doc)
{
    doc->methods->facts(doc, false);
}

void doc_fact_begin(struct doc *doc, enum word label)
{
    doc->methods->fact(doc, doc_word(doc, label), true);
}

void doc_fact_end(struct doc *doc, enum word label)
{
    doc->methods->fact(doc, doc_word(doc, label), false);
}

void doc_text(struct doc *doc, const char *text)
{
    doc->methods->text(doc, text);
}

void doc_strong(struct doc *doc, const char *text)
{
    doc->methods->strong(doc, text);
}

void doc_code(struct doc *doc, const char *text)
{
    doc->methods->code(doc, text);
}

void doc_badge(struct doc *doc, const char *text, enum doc_tone tone)
{
    doc->methods->badge(doc, text, tone);
}

void doc_link(struct doc *doc, const char *path)
{
    doc->methods->link(doc, path);
}

void doc_banner_begin(struct doc *doc)
{
    doc->methods->banner(doc, true);
}

void doc_banner_end(struct doc *doc)
{
    doc->methods->banner(doc, false);
}

void doc_fold_begin(struct doc *doc)
{
    doc->methods->fold(doc, true);
}

void doc_fold_body(struct doc *doc)
{
    doc->methods->fold_body(doc);
}

void doc_fold_end(struct doc *doc)
{
    doc->methods->fold(doc, false);
}

/* ---- Words with arguments ------------------------------------------------------------------- */

#define ARGUMENT_LIMIT 6

static void flush_run(struct doc *doc, struct text *run, bool code)
{
    if (run->length > 0)
        (code ? doc_code : doc_text)(doc, text_get(run));
    doc->out->failed = doc->out->failed || run->failed;
    text_clear(run);
}

/* Arguments are never looked at for markup: only the word's own ` and {1} mean anything. */
static void print_template(struct doc *doc, const char *at, const char *const *arguments,
                           size_t count)
{
    struct text run;
    text_init(&run);
    bool code = false;
    while (*at) {
        struct words_part part = words_part(at);
        if (part.index) {
            ASSERT(part.index <= count);
            words_add_part(&run, &part, arguments[part.index - 1]);
            at += part.length;
        } else if (*at == '`') {
            flush_run(doc, &run, code);
            code = !code;
            at++;
        } else {
            text_add_bytes(&run, at++, 1);
        }
    }
    flush_run(doc, &run, code);
    text_release(&run);
}

void doc_words(struct doc *doc, enum word word, ...)
{
    const char *arguments[ARGUMENT_LIMIT], *argument;
    size_t count = 0;
    va_list list;
    va_start(list, word);
    while ((argument = va_arg(list, const char *)) != NULL) {
        ASSERT(count < ARGUMENT_LIMIT);
        arguments[count++] = argument;
    }
    va_end(list);
    print_template(doc, doc_word(doc, word), arguments, count);
}

/* ---- Tables --------------------------------------------------------------------------------- */

void doc_table_begin(struct doc *doc, const struct doc_column *columns, size_t count)
{
    doc->columns = columns;
    doc->methods->table(doc, columns, count, true);
    doc->in_table = true;
}

void doc_table_end(struct doc *doc)
{
    doc->in_table = false;
    doc->methods->table(doc, NULL, 0, false);
}

void doc_row_begin(struct doc *doc)
{
    doc->column = 0;
    doc->methods->row(doc, true);
}

void doc_row_end(struct doc *doc)
{
    doc->methods->row(doc, false);
}

void doc_cell_begin(struct doc *doc)
{
    doc->methods->cell(doc, &doc->columns[doc->column], true);
}

void doc_cell_end(struct doc *doc)
{
    doc->methods->cell(doc, &doc->columns[doc->column], false);
    doc->column++;
}

void doc_cell_text(struct doc *doc, const char *text)
{
    doc->empty_cell = !text || !text[0];
    doc_cell_begin(doc);
    doc_text(doc, doc->empty_cell ? "-" : text);
    doc_cell_end(doc);
    doc->empty_cell = false;
}

void doc_cell_code(struct doc *doc, const char *text)
{
    if (!text || !text[0]) {
        doc_cell_text(doc, NULL);
        return;
    }
    doc_cell_begin(doc);
    doc_code(doc, text);
    doc_cell_end(doc);
}

void doc_cell_count(struct doc *doc, uint64_t count)
{
    char number[24];
    snprintf(number, sizeof(number), "%" PRIu64, count);
    doc_cell_text(doc, number);
}

void doc_cell_of(struct doc *doc, uint64_t part, uint64_t whole)
{
    char number[48];
    snprintf(number, sizeof(number), "%" PRIu64 "/%" PRIu64, part, whole);
    doc_cell_text(doc, number);
}

void doc_cell_real(struct doc *doc, double value, int decimals)
{
    char number[352]; /* the largest double in full */
    snprintf(number, sizeof(number), "%.*f", decimals, value);
    doc_cell_text(doc, isfinite(value) ? number : "-");
}

void doc_cell_word(struct doc *doc, enum word word)
{
    doc_cell_begin(doc);
    doc_words(doc, word, NULL);
    doc_cell_end(doc);
}

void doc_cell_badge(struct doc *doc, const char *text, enum doc_tone tone)
{
    doc_cell_begin(doc);
    doc_badge(doc, text, tone);
    doc_cell_end(doc);
}
