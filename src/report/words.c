/* words.c - see words.h. */
#include "report/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const all_words[][REPORT_LANGUAGE_COUNT] = {
#define WORD(name, english, spanish) [WORD_##name] = { english, spanish },
#include "report/words/all.def"
#undef WORD
};

const char *words_get(enum report_language language, enum word word)
{
    ASSERT((unsigned)word < WORD_COUNT && (unsigned)language < REPORT_LANGUAGE_COUNT);
    return all_words[word][language];
}

struct words_part words_part(const char *at)
{
    struct words_part part = { 0 };
    if (at[0] != '{' || at[1] < '1' || at[1] > '9' || (at[2] != '}' && at[2] != '|'))
        return part;
    part.index = (size_t)(at[1] - '0');
    part.length = 3;
    if (at[2] == '}')
        return part;
    size_t one = strcspn(at + 3, "|"), many = strcspn(at + 3 + one, "}");
    ASSERT(at[3 + one] == '|' && at[3 + one + many] == '}');
    part.one = (struct text_view){ at + 3, one };
    part.many = (struct text_view){ at + 3 + one + 1, many - 1 };
    part.length = 3 + one + many + 1;
    return part;
}

void words_add_part(struct text *text, const struct words_part *part, const char *argument)
{
    const struct text_view *word = strcmp(argument, "1") == 0 ? &part->one : &part->many;
    if (part->many.bytes)
        text_add_bytes(text, word->bytes, word->length);
    else
        text_add(text, argument);
}

void words_fill(struct text *text, const char *words, const char *const *arguments, size_t count)
{
    while (*words) {
        struct words_part part = words_part(words);
        if (part.index) {
            ASSERT(part.index <= count);
            words_add_part(text, &part, arguments[part.index - 1]);
            words += part.length;
        } else {
            text_add_bytes(text, words++, 1);
        }
    }
}

static void add_with(struct text *text, enum report_language language, enum word word, va_list list)
{
    const char *arguments[9];
    size_t count = 0;
    for (const char *one; (one = va_arg(list, const char *));) {
        ASSERT(count < COUNT_OF(arguments));
        arguments[count++] = one;
    }
    words_fill(text, words_get(language, word), arguments, count);
}

void words_add(struct text *text, enum report_language language, enum word word, ...)
{
    va_list list;
    va_start(list, word);
    add_with(text, language, word, list);
    va_end(list);
}

void words_add_line(struct text *text, enum report_language language, enum word word, ...)
{
    va_list list;
    va_start(list, word);
    add_with(text, language, word, list);
    va_end(list);
    text_add(text, "\n");
}

const char *words_number(uint64_t number, char *buffer)
{
    snprintf(buffer, WORDS_NUMBER_BYTES, "%" PRIu64, number);
    return buffer;
}
