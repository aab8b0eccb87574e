/* doc_html.c - the report as HTML. Every element is closed and every attribute quoted, so that the
 * page is XML too and a test can give it to a parser. */
#include "report/doc.h"

#include "report/escape.h"

static void heading(struct doc *doc, int level, const char *id, const char *text)
{
    text_addf(doc->out, "<h%d id=\"", level);
    escape_markup(doc->out, id);
    text_add(doc->out, "\">");
    escape_markup(doc->out, text);
    text_addf(doc->out, "</h%d>\n", level);
    if (level != 2 || !doc->contents)
        return;
    text_add(doc->contents, "<li><a href=\"#");
    escape_markup(doc->contents, id);
    text_add(doc->contents, "\">");
    escape_markup(doc->contents, text);
    text_add(doc->contents, "</a></li>\n");
}

static void paragraph(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<p>" : "</p>\n");
}

static void list(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<ul>\n" : "</ul>\n");
}

static void item(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<li>" : "</li>\n");
}

static void facts(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<dl>\n" : "</dl>\n");
}

static void fact(struct doc *doc, const char *label, bool begin)
{
    if (!begin) {
        text_add(doc->out, "</dd></div>\n");
        return;
    }
    text_add(doc->out, "<div><dt>");
    escape_markup(doc->out, label);
    text_add(doc->out, "</dt><dd>");
}

static void table(struct doc *doc, const struct doc_column *columns, size_t count, bool begin)
{
    if (!begin) {
        text_add(doc->out, "</tbody></table></div>\n");
        return;
    }
    /* The frame scrolls where the table is wider than the screen; the page never does. */
    text_add(doc->out, "<div class=\"wide\"><table><thead><tr>");
    for (size_t i = 0; i < count; i++) {
        text_add(doc->out,
                 columns[i].number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">");
        escape_markup(doc->out, doc_word(doc, columns[i].title));
        text_add(doc->out, "</th>");
    }
    text_add(doc->out, "</tr></thead><tbody>\n");
}

static void row(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<tr>" : "</tr>\n");
}

/* The title goes with the cell: on a narrow screen rows are stacked and there is no head. */
static void cell(struct doc *doc, const struct doc_column *column, bool begin)
{
    if (!begin) {
        text_add(doc->out, "</div></td>");
        return;
    }
    text_addf(doc->out, "<td class=\"%s%s\" data-title=\"",
              column->number ? "n"
              : column->wide ? "t"
                             : "c",
              doc->empty_cell ? " e" : "");
    escape_markup(doc->out, doc_word(doc, column->title));
    text_add(doc->out, "\"><div>");
}

static void plain(struct doc *doc, const char *text)
{
    escape_markup(doc->out, text);
}

static void strong(struct doc *doc, const char *text)
{
    text_add(doc->out, "<strong>");
    escape_markup(doc->out, text);
    text_add(doc->out, "</strong>");
}

static void code(struct doc *doc, const char *text)
{
    text_add(doc->out, "<code>");
    escape_markup(doc->out, text);
    text_add(doc->out, "</code>");
}

static void badge(struct doc *doc, const char *text, enum doc_tone tone)
{
    static const char *const classes[] = {
        [DOC_BAD] = "bad", [DOC_GOOD] = "good", [DOC_QUIET] = "quiet", [DOC_OPEN] = "open"
    };
    text_addf(doc->out, "<span class=\"badge %s\">", classes[tone]);
    escape_markup(doc->out, text);
    text_add(doc->out, "</span>");
}

static void link_to(struct doc *doc, const char *path)
{
    text_add(doc->out, "<a href=\"");
    escape_uri(doc->out, path);
    text_add(doc->out, "\">");
    code(doc, path);
    text_add(doc->out, "</a>");
}

static void fold(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<details><summary>" : "</div></details>\n");
}

static void fold_body(struct doc *doc)
{
    text_add(doc->out, "</summary>\n<div>\n");
}

static void banner(struct doc *doc, bool begin)
{
    text_add(doc->out, begin ? "<p class=\"banner\">" : "</p>\n");
}

const struct doc_methods doc_html = {
    .figures = true,
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
