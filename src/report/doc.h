/* doc.h - a report as headings, paragraphs, lists and tables; Markdown and HTML print the same
 * calls.
 *
 * Everything given as text is escaped here. Words of a language come from words.h; in them `...`
 * is code and {1}, {2} stand for arguments. */
#ifndef GRETA_REPORT_DOC_H
#define GRETA_REPORT_DOC_H

#include "analyze/analyze.h"
#include "base/text.h"
#include "report/words.h"

/* The colour of a badge. Its text always says the same as the colour. */
enum doc_tone { DOC_BAD, DOC_GOOD, DOC_QUIET, DOC_OPEN };

struct doc;

struct doc_column {
    enum word title;
    bool number; /* to the right */
    bool wide;   /* sentences: gets room also on a narrow screen */
};

struct doc_methods {
    bool figures; /* takes SVG */
    void (*heading)(struct doc *doc, int level, const char *id, const char *text);
    void (*paragraph)(struct doc *doc, bool begin);
    void (*list)(struct doc *doc, bool begin);
    void (*item)(struct doc *doc, bool begin);
    void (*facts)(struct doc *doc, bool begin); /* a list of label and value */
    void (*fact)(struct doc *doc, const char *label, bool begin);
    void (*table)(struct doc *doc, const struct doc_column *columns, size_t count, bool begin);
    void (*row)(struct doc *doc, bool begin);
    void (*cell)(struct doc *doc, const struct doc_column *column, bool begin);
    void (*text)(struct doc *doc, const char *text);
    void (*strong)(struct doc *doc, const char *text);
    void (*code)(struct doc *doc, const char *text);
    void (*badge)(struct doc *doc, const char *text, enum doc_tone tone);
    void (*link)(struct doc *doc, const char *path);
    void (*fold)(struct doc *doc, bool begin); /* begin: what comes first stays visible */
    void (*fold_body)(struct doc *doc);
    void (*banner)(struct doc *doc, bool begin);
};

extern const struct doc_methods doc_markdown;
extern const struct doc_methods doc_html;

struct doc {
    const struct doc_methods *methods;
    struct text *out;
    enum report_language language;
    struct text *contents; /* gets an entry for each section; NULL: none is wanted */
    bool in_table;
    const struct doc_column *columns; /* of the open table */
    size_t column;                    /* of the next cell */
    bool empty_cell;                  /* the next cell has nothing to say */
};

const char *doc_word(const struct doc *doc, enum word word);

/* id: anchor in HTML. */
void doc_heading(struct doc *doc, int level, const char *id, enum word word);
void doc_paragraph_begin(struct doc *doc);
void doc_paragraph_end(struct doc *doc);
void doc_list_begin(struct doc *doc);
void doc_list_end(struct doc *doc);
void doc_item_begin(struct doc *doc);
void doc_item_end(struct doc *doc);
void doc_facts_begin(struct doc *doc);
void doc_facts_end(struct doc *doc);
void doc_fact_begin(struct doc *doc, enum word label);
void doc_fact_end(struct doc *doc, enum word label);

void doc_text(struct doc *doc, const char *text);
void doc_strong(struct doc *doc, const char *text);
void doc_code(struct doc *doc, const char *text);
void doc_badge(struct doc *doc, const char *text, enum doc_tone tone);
/* The name of a file in the report's folder, which leads there. */
void doc_link(struct doc *doc, const char *path);
/* A word of the language with its arguments, NULL-terminated: doc_words(doc, W, "3", "5", NULL). */
void doc_words(struct doc *doc, enum word word, ...) __attribute__((sentinel));
/* A paragraph of just that. */
#define doc_sentence(doc, ...)                                                                     \
    do {                                                                                           \
        doc_paragraph_begin(doc);                                                                  \
        doc_words(doc, __VA_ARGS__);                                                               \
        doc_paragraph_end(doc);                                                                    \
    } while (0)

/* Something that must be seen before anything else. */
void doc_banner_begin(struct doc *doc);
void doc_banner_end(struct doc *doc);

/* What is long and seldom read: on a page it is folded away under the words given first, which end
 * with doc_fold_body. */
void doc_fold_begin(struct doc *doc);
void doc_fold_body(struct doc *doc);
void doc_fold_end(struct doc *doc);

/* Tables: cells come in the order of the columns, which are borrowed until the end. */
void doc_table_begin(struct doc *doc, const struct doc_column *columns, size_t count);
void doc_table_end(struct doc *doc);
void doc_row_begin(struct doc *doc);
void doc_row_end(struct doc *doc);
void doc_cell_begin(struct doc *doc);
void doc_cell_end(struct doc *doc);
void doc_cell_text(struct doc *doc, const char *text); /* NULL, "": a dash */
void doc_cell_code(struct doc *doc, const char *text); /* NULL, "": a dash */
void doc_cell_count(struct doc *doc, uint64_t count);
void doc_cell_of(struct doc *doc, uint64_t part, uint64_t whole); /* "3/5" */
void doc_cell_real(struct doc *doc, double value, int decimals);
void doc_cell_word(struct doc *doc, enum word word);
void doc_cell_badge(struct doc *doc, const char *text, enum doc_tone tone);

#endif
