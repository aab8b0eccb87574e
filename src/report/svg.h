/* svg.h - drawing into an HTML page: shapes with classes, whose colours are in the page's style. */
#ifndef GRETA_REPORT_SVG_H
#define GRETA_REPORT_SVG_H

#include "report/doc.h"

/* A figure of width x height pixels, with a class of the page's style. Its caption is its
 * accessible name too. least_width: below it the figure scrolls instead of shrinking further. */
void svg_begin(struct doc *doc, const char *class, const char *caption, double width, double height,
               double least_width);
/* The caption, and before it what the colours mean. */
struct svg_key {
    const char *class;
    enum word word;
};
void svg_end(struct doc *doc, const char *caption, const struct svg_key *keys, size_t key_count);

/* class: of the page's style. title: shown on hovering; NULL: none. */
void svg_rect(struct doc *doc, double x, double y, double width, double height, const char *class,
              const char *title);
void svg_line(struct doc *doc, double x1, double y1, double x2, double y2, const char *class);
void svg_dot(struct doc *doc, double x, double y, double radius, const char *class);
/* anchor: "start", "middle", "end". Text longer than limit characters is cut with an ellipsis. */
void svg_text(struct doc *doc, double x, double y, const char *anchor, const char *class,
              const char *text, size_t limit);

#endif
