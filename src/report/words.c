/* words.c - see words.h. */
#include "report/words.h"

#include <string.h>

const struct words *words_of(enum analyze_language language)
{
    return language == ANALYZE_SPANISH ? &words_es : &words_en;
}

const char *words_get(enum analyze_language language, enum word word)
{
    ASSERT((unsigned)word < WORD_COUNT);
    return words_of(language)->words[word];
}

const char *words_outcome(enum analyze_language language, enum audit_outcome outcome)
{
    ASSERT((unsigned)outcome < AUDIT_OUTCOME_COUNT);
    return words_of(language)->outcomes[outcome];
}

const char *report_outcome_words(enum audit_outcome outcome, enum analyze_language language)
{
    return words_outcome(language, outcome);
}

const char *words_verdict(enum analyze_language language, enum verdict verdict)
{
    ASSERT((unsigned)verdict < VERDICT_COUNT);
    return words_of(language)->verdicts[verdict];
}

const char *words_severity(enum analyze_language language, enum report_severity severity)
{
    ASSERT((unsigned)severity < REPORT_SEVERITY_COUNT);
    return words_of(language)->severities[severity];
}

const char *words_mode(enum analyze_language language, enum report_row_mode mode)
{
    ASSERT((unsigned)mode < REPORT_ROW_MODE_COUNT);
    return words_of(language)->modes[mode];
}

const char *words_intervention(enum analyze_language language, const char *slug)
{
    const struct words_intervention *row = words_of(language)->interventions;
    for (; row->slug; row++)
        if (strcmp(row->slug, slug) == 0)
            return row->words;
    return NULL;
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
