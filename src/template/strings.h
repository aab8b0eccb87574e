/* strings.h - strings as Python has them: indexed by character, kept as UTF-8. */
#ifndef GRETA_TEMPLATE_STRINGS_H
#define GRETA_TEMPLATE_STRINGS_H

#include "template/arena.h"
#include "template/value.h"

/* The character at bytes; returns its bytes, at least 1. Text in a template is always valid. */
uint32_t jinja_decode(const char *bytes, size_t available, uint32_t *ret_code);
uint32_t jinja_encode(uint32_t code, char ret_bytes[4]);
uint32_t jinja_count_characters(const char *bytes, size_t length);

/* A copy in the arena; NULL if there is no room. */
const struct string *jinja_string_in(struct arena *arena, const char *bytes, size_t length);

/* Byte offset of a character; `character` may be the number of characters. */
uint32_t jinja_offset_of(const struct string *string, uint32_t character);

bool jinja_text_equal(const struct string *a, const struct string *b);
bool jinja_text_is(const struct string *string, const char *zero_terminated);
int jinja_text_compare(const struct string *a, const struct string *b);

/* Bytes of white space at the place, as Python's \s and str.isspace have it; 0: none. */
uint32_t jinja_space_at(const char *bytes, uint32_t length);
bool jinja_is_space(uint32_t code);

/* Where the needle begins in [at, length), or -1. An empty one is found at once. */
int64_t jinja_find(struct text_view text, struct text_view needle, size_t at);
int64_t jinja_find_last(struct text_view text, struct text_view needle);

/* Without the characters of the set at the ends; NULL: white space. */
struct text_view jinja_strip(struct text_view text, const struct string *set, bool left,
                             bool right);

#endif
