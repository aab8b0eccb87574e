/* unicode.h - what Python's str knows of characters: classes and cases. */
#ifndef GRETA_TEMPLATE_UNICODE_H
#define GRETA_TEMPLATE_UNICODE_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of the runs in unicode_classes.def. */
enum unicode_property {
    UNICODE_PRINTABLE = 1, /* shown by repr as it is */
    UNICODE_ALPHA = 2,
    UNICODE_IDENTIFIER = 4, /* may continue a name */
    UNICODE_CASED = 8,
    UNICODE_CASE_IGNORABLE = 16,
    UNICODE_DIGIT = 32,
};

enum unicode_case { UNICODE_TO_UPPER, UNICODE_TO_LOWER, UNICODE_TO_TITLE };

bool jinja_unicode_is(uint32_t code, enum unicode_property property);
/* As str.isupper and str.islower, for characters that have a case. */
bool jinja_unicode_is_upper(uint32_t code);
bool jinja_unicode_is_lower(uint32_t code);

/* The characters that one becomes; returns their number, 1 to 3. */
#define UNICODE_MANY 3
uint32_t jinja_unicode_convert(uint32_t code, enum unicode_case to, uint32_t ret[UNICODE_MANY]);

#endif
