/* template.c - see template.h. */
#include "report/template.h"

#include "base/status.h"

#include <string.h>

struct template_part template_part(const char *at)
{
    struct template_part part = { 0 };
    if (at[0] != '{')
        return part;
    size_t inside = strcspn(at, "}");
    ASSERT(at[inside] == '}');
    part.length = inside + 1;
    const char *bar = memchr(at, '|', inside);
    part.name = (struct text_view){ at + 1, (bar ? (size_t)(bar - at) : inside) - 1 };
    if (!bar)
        return part;
    const char *next = memchr(bar + 1, '|', (size_t)(at + inside - bar - 1));
    ASSERT(next);
    part.one = (struct text_view){ bar + 1, (size_t)(next - bar - 1) };
    part.many = (struct text_view){ next + 1, (size_t)(at + inside - next - 1) };
    return part;
}

static bool fill_part(struct text *text, const struct template_part *part, template_filler fill,
                      const void *context)
{
    struct text number;
    if (!part->many.bytes)
        return fill(context, part->name, text);
    text_init(&number);
    bool known = fill(context, part->name, &number);
    const struct text_view *word = strcmp(text_get(&number), "1") == 0 ? &part->one : &part->many;
    if (known)
        text_add_bytes(text, word->bytes, word->length);
    text->failed = text->failed || number.failed;
    text_release(&number);
    return known;
}

/* Up to its end, or to a bracket; returns how far it came. *ret_known: every name was known. */
static size_t fill_run(struct text *text, const char *words, template_filler fill,
                       const void *context, bool *ret_known)
{
    size_t at = 0;
    *ret_known = true;
    while (words[at] && words[at] != '[' && words[at] != ']') {
        struct template_part part = template_part(words + at);
        if (part.length) {
            *ret_known = fill_part(text, &part, fill, context) && *ret_known;
            at += part.length;
        } else {
            size_t plain = strcspn(words + at, "{[]");
            text_add_bytes(text, words + at, plain);
            at += plain;
        }
    }
    return at;
}

void template_fill(struct text *text, const char *words, template_filler fill, const void *context)
{
    bool known;
    while (*words) {
        words += fill_run(text, words, fill, context, &known);
        if (*words != '[')
            break;
        struct text part;
        text_init(&part);
        words += 1 + fill_run(&part, words + 1, fill, context, &known);
        ASSERT(*words == ']');
        words++;
        if (known)
            text_add(text, text_get(&part));
        text->failed = text->failed || part.failed;
        text_release(&part);
    }
    ASSERT(!*words);
}
