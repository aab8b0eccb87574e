/* line_input.h - lines that a person types, with editing and history where libedit is installed, or
 * lines of a pipe. */
#ifndef GRETA_CLI_LINE_INPUT_H
#define GRETA_CLI_LINE_INPUT_H

#include "base/text.h"

struct line_input;

/* editing: standard input and output are a terminal. history_path: where entries are kept from one
 * run to the next; NULL: nowhere. */
MUST_CHECK enum status line_input_open(bool editing, const char *history_path,
                                       struct line_input **ret, struct error *err);
void line_input_close(struct line_input *input); /* NULL is fine; saves the history */

/* Reads a line without its end into *line, which is cleared first. more: the line goes on with
 * something. STATUS_NOT_FOUND at the end of the input, STATUS_INTERRUPTED if Ctrl-C ended it; while
 * a line is edited, Ctrl-C only clears that line. */
MUST_CHECK enum status line_input_read(struct line_input *input, bool more, struct text *line,
                                       struct error *err);
/* Adds what was entered to the history. */
void line_input_remember(struct line_input *input, const char *entry);

#endif
