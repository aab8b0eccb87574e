/* case.c - upper, lower, title and capital letters. */
#include "template/render.h"

#include "template/text_case.h"
#include "template/unicode.h"

static enum status add_converted(struct render *r, uint32_t code, enum unicode_case to)
{
    uint32_t converted[UNICODE_MANY];
    uint32_t count = jinja_unicode_convert(code, to, converted);
    for (uint32_t i = 0; i < count; i++)
        TRY(jinja_add_code(r, converted[i]));
    return STATUS_OK;
}

/* The last cased character before a place, looking past what case ignores. */
static bool cased_before(struct text_view text, size_t at)
{
    uint32_t code;
    while (at > 0) {
        at--;
        if (((unsigned char)text.bytes[at] & 0xC0) == 0x80)
            continue;
        jinja_decode(text.bytes + at, text.length - at, &code);
        if (!jinja_unicode_is(code, UNICODE_CASE_IGNORABLE))
            return jinja_unicode_is(code, UNICODE_CASED);
    }
    return false;
}

static bool cased_after(struct text_view text, size_t at)
{
    uint32_t code;
    while (at < text.length) {
        at += jinja_decode(text.bytes + at, text.length - at, &code);
        if (!jinja_unicode_is(code, UNICODE_CASE_IGNORABLE))
            return jinja_unicode_is(code, UNICODE_CASED);
    }
    return false;
}

#define CAPITAL_SIGMA 0x3A3u
#define FINAL_SIGMA 0x3C2u

static enum status add_lower(struct render *r, struct text_view text, size_t at, uint32_t code,
                             uint32_t step)
{
    if (code != CAPITAL_SIGMA)
        return add_converted(r, code, UNICODE_TO_LOWER);
    TRY(jinja_spend(r, text.length / 8));
    if (cased_before(text, at) && !cased_after(text, at + step))
        return jinja_add_code(r, FINAL_SIGMA);
    return add_converted(r, code, UNICODE_TO_LOWER);
}

/* What the character at `at` becomes, given that a word or the text begins there. */
static enum status add_one(struct render *r, struct text_view text, size_t at, bool begins, int how)
{
    uint32_t code;
    uint32_t step = jinja_decode(text.bytes + at, text.length - at, &code);
    if (how == UNICODE_TO_UPPER || (begins && how == TEXT_WORDS))
        return add_converted(r, code, UNICODE_TO_UPPER);
    if (begins && how != UNICODE_TO_LOWER)
        return add_converted(r, code, UNICODE_TO_TITLE);
    return add_lower(r, text, at, code, step);
}

/* True if a character that Jinja's title filter takes for the space between words. */
static bool separates_words(uint32_t code)
{
    return jinja_is_space(code) || code == '-' || code == '(' || code == '{' || code == '[' ||
           code == '<';
}

enum status jinja_convert_case(struct render *r, struct text_view text, int how)
{
    bool begins = true;
    TRY(jinja_spend(r, text.length / 8));
    for (size_t at = 0; at < text.length;) {
        uint32_t code;
        uint32_t step = jinja_decode(text.bytes + at, text.length - at, &code);
        TRY(add_one(r, text, at, begins, how));
        if (how == TEXT_TITLE)
            begins = !jinja_unicode_is(code, UNICODE_CASED);
        else if (how == TEXT_WORDS)
            begins = separates_words(code);
        else
            begins = false;
        at += step;
    }
    return STATUS_OK;
}
