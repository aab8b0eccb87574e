/* svg.c - see svg.h. */
#include "report/svg.h"

#include "report/escape.h"

#include <string.h>

void svg_begin(struct doc *doc, const char *class, const char *caption, double width, double height,
               double least_width)
{
    text_addf(doc->out,
              "<figure><div class=\"wide\"><svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
              "class=\"%s\" viewBox=\"0 0 %.0f %.0f\" style=\"max-width:%.0fpx;min-width:%.0fpx\" "
              "aria-label=\"",
              class, width, height, width, least_width);
    escape_markup(doc->out, caption);
    text_add(doc->out, "\">\n");
}

void svg_end(struct doc *doc, const char *caption, const struct svg_key *keys, size_t key_count)
{
    text_add(doc->out, "</svg></div>\n");
    if (key_count)
        text_add(doc->out, "<p class=\"legend\">");
    for (size_t i = 0; i < key_count; i++) {
        text_addf(doc->out, "<span><span class=\"key %s\"></span>", keys[i].class);
        escape_markup(doc->out, doc_word(doc, keys[i].word));
        text_add(doc->out, "</span> ");
    }
    text_add(doc->out, key_count ? "</p>\n<figcaption>" : "<figcaption>");
    escape_markup(doc->out, caption);
    text_add(doc->out, "</figcaption></figure>\n");
}

void svg_rect(struct doc *doc, double x, double y, double width, double height, const char *class,
              const char *title)
{
    text_addf(doc->out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" class=\"%s\"",
              x, y, width, height, class);
    if (!title) {
        text_add(doc->out, "/>\n");
        return;
    }
    text_add(doc->out, "><title>");
    escape_markup(doc->out, title);
    text_add(doc->out, "</title></rect>\n");
}

void svg_line(struct doc *doc, double x1, double y1, double x2, double y2, const char *class)
{
    text_addf(doc->out, "<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" class=\"%s\"/>\n",
              x1, y1, x2, y2, class);
}

void svg_dot(struct doc *doc, double x, double y, double radius, const char *class)
{
    text_addf(doc->out, "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.1f\" class=\"%s\"/>\n", x, y, radius,
              class);
}

/* Bytes of the first `limit` characters. */
static size_t cut_length(const char *text, size_t limit)
{
    size_t at = 0, whole = strlen(text);
    for (size_t count = 0; at < whole && count < limit; count++) {
        size_t length = text_utf8_length(text + at, whole - at);
        at += length ? length : 1;
    }
    return at;
}

void svg_text(struct doc *doc, double x, double y, const char *anchor, const char *class,
              const char *text, size_t limit)
{
    struct text shown, cut;
    text_init(&shown);
    text_init(&cut);
    text_add_printable(&shown, text_view_of(text), SIZE_MAX);
    size_t length = cut_length(text_get(&shown), limit);
    bool whole = length == shown.length;
    if (!whole)
        length = cut_length(text_get(&shown), limit > 1 ? limit - 1 : 0);
    text_add_bytes(&cut, text_get(&shown), length);
    text_add(&cut, whole ? "" : "…");
    text_addf(doc->out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\" class=\"%s\">", x, y,
              anchor, class);
    escape_markup(doc->out, text_get(&cut));
    text_add(doc->out, "</text>\n");
    doc->out->failed = doc->out->failed || shown.failed || cut.failed;
    text_release(&shown);
    text_release(&cut);
}
