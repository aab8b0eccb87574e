/* doc_markdown.c - the report as Markdown (CommonMark with tables). */
#include "report/doc.h"

#include "report/escape.h"

static void heading(struct doc *doc, int level, const char *id, const char *text)
{
    (void)id;
    text_add_fill(doc->out, '#', (size_t)level);
    text_add(doc->out, " ");
    escape_markdown(doc->out, text);
    text_add(doc->out, "\n\n");
}

static void paragraph(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "" : "\n\n");
}

static void list(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "" : "\n");
}

static void item(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "- " : "\n");
}

static void facts(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "" : "\n");
}

static void fact(struct doc *doc, const char *label, bool begin)
{
    if (!begin) {
        /* Two spaces: a line of its own. */
        text_add(doc->out, "  \n");
        return;
    }
    text_add(doc->out, "**");
    escape_markdown(doc->out, label);
    text_add(doc->out, ":** ");
}

static void table(struct doc *doc, const struct doc_column *columns, size_t count, bool begin)
{
    if (!begin) {
        text_add(doc->out, "\n");
        return;
    }
    text_add(doc->out, "|");
    for (size_t i = 0; i < count; i++) {
        text_add(doc->out, " ");
        escape_markdown(doc->out, doc_word(doc, columns[i].title));
        text_add(doc->out, " |");
    }
    text_add(doc->out, "\n|");
    for (size_t i = 0; i < count; i++)
        text_add(doc->out, columns[i].number ? "---:|" : "---|");
    text_add(doc->out, "\n");
}

static void row(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "|" : "\n");
}

static void cell(struct doc *doc, const struct doc_column *column, bool begin)
{
    (void)column;
    text_add(doc->out, begin ? " " : " |");
}

static void plain(struct doc *doc, const char *text)
{
    escape_markdown(doc->out, text);
}

static void strong(struct doc *doc, const char *text)
{
    text_add(doc->out, "**");
    escape_markdown(doc->out, text);
    text_add(doc->out, "**");
}

static void code(struct doc *doc, const char *text)
{
    escape_markdown_code(doc->out, text, doc->in_table);
}

static void badge(struct doc *doc, const char *text, enum doc_tone tone)
{
    (void)tone;
    strong(doc, text);
}

static void link_to(struct doc *doc, const char *path)
{
    text_add(doc->out, "[");
    code(doc, path);
    text_add(doc->out, "](");
    escape_uri(doc->out, path);
    text_add(doc->out, ")");
}

/* Nothing folds here: the words are a paragraph before what follows. */
static void fold(struct doc *doc, bool begin)
{
    (void)doc;
    (void)begin;
}

static void fold_body(struct doc *doc)
{
    text_add(doc->out, "\n\n");
}

static void banner(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "> " : "\n\n");
}

const struct doc_methods doc_markdown = {
    .figures = false,
    .heading = heading,
    .paragraph = paragraph,
    .list = list,
    .item = item,
    .facts = facts,
    .fact = fact,
    .table = table,
    .row = row,
    .cell = cell,
    .text = plain,
    .strong = strong,
    .code = code,
    .badge = badge,
    .link = link_to,
    .fold = fold,
    .fold_body = fold_body,
    .banner = banner,
};
