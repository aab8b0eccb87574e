/* call_reader.h - what the readers of tool calls share: a place in the text, and the calls so far.
 */
#ifndef GRETA_CHAT_CALL_READER_H
#define GRETA_CHAT_CALL_READER_H

#include "base/text.h"

#include <jansson.h>
#include <stdbool.h>

struct call_reader {
    const char *bytes;
    size_t length, at;
    const json_t *tools;
    json_t *calls;
    uint32_t next_number;
};

bool call_skip(struct call_reader *reader, const char *words); /* if they are next */
void call_skip_blanks(struct call_reader *reader);
/* The text up to the words, which are skipped; up to the end if they are missing and not `must`. */
bool call_until(struct call_reader *reader, const char *words, bool must, struct text_view *ret);
/* The next JSON value; NULL if there is none. A new reference. */
json_t *call_json(struct call_reader *reader);
struct text_view call_trimmed(struct text_view text);

/* Takes over arguments, an object. id NULL: made. */
bool call_add(struct call_reader *reader, struct text_view name, json_t *arguments, const char *id);
/* An object with name and arguments (or parameters), or an array of them. Takes the value over. */
bool call_add_json(struct call_reader *reader, json_t *value);
/* A value written as bare text: of the type that the tool's schema gives the parameter. */
json_t *call_bare_value(const struct call_reader *reader, struct text_view function,
                        const char *parameter, struct text_view value);

/* "f(a=1, b='x')" or "[f(), g()]", as Python writes them (call_python.c). */
bool call_read_python(struct call_reader *reader);

#endif
