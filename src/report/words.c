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

const char *words_kind(enum analyze_language language, uint8_t kind)
{
    return kind < EVENT_KIND_COUNT ? words_of(language)->kinds[kind] : "?";
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
    ASSERT((unsigned)verdict < WORDS_VERDICT_COUNT);
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

size_t words_placeholder(const char *at)
{
    return at[0] == '{' && at[1] >= '1' && at[1] <= '9' && at[2] == '}' ? (size_t)(at[1] - '0') : 0;
}

void words_fill(struct text *text, const char *words, const char *const *arguments, size_t count)
{
    while (*words) {
        size_t index = words_placeholder(words);
        if (index) {
            ASSERT(index <= count);
            text_add(text, arguments[index - 1]);
            words += WORDS_PLACEHOLDER_BYTES;
        } else {
            text_add_bytes(text, words++, 1);
        }
    }
}
