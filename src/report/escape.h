/* escape.h - text from outside, made safe for the document it goes into.
 *
 * Every name, path and message is hostile: it may hold markup, control characters and bytes that
 * are not UTF-8. All of it passes here; control characters and invalid bytes become \xHH first. */
#ifndef GRETA_REPORT_ESCAPE_H
#define GRETA_REPORT_ESCAPE_H

#include "base/text.h"

/* Longer texts are cut with "...": a report is read by people. */
#define ESCAPE_LIMIT 4096

/* For content and quoted attributes of HTML, SVG and XML. */
void escape_markup(struct text *out, const char *text);

/* For running Markdown, also in a cell of a table. */
void escape_markdown(struct text *out, const char *text);

/* As a code span of Markdown; in_table: a cell, where a pipe ends the cell even inside code. */
void escape_markdown_code(struct text *out, const char *text, bool in_table);

/* As a JSON string with its quotes. */
void escape_json(struct text *out, const char *text);

/* A path as a reference: bytes that a URI cannot have become %HH, so that it can name no scheme. */
void escape_uri(struct text *out, const char *path);

#endif
