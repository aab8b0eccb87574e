/* subjects.c - what of a traced program was looked at, and what was not, in words. */
#include "report/words.h"

#include <ctype.h>

/* words NULL: it is part of another. */
static const struct {
    const char *seen[REPORT_LANGUAGE_COUNT], *missed[REPORT_LANGUAGE_COUNT];
} subjects[] = {
#define SUBJECT(name, english, spanish, not_english, not_spanish)                                  \
    [SUBJECT_##name] = { { english, spanish }, { not_english, not_spanish } },
#include "report/words/subjects.def"
#undef SUBJECT
};
_Static_assert(COUNT_OF(subjects) == SUBJECT_COUNT, "every subject has words");

static bool add_list(const struct analyze_subjects *of, bool missed, const char *separator,
                     enum report_language language, struct text *text)
{
    bool first = true;
    for (unsigned i = 0; i < SUBJECT_COUNT; i++) {
        enum analyze_subject subject = (enum analyze_subject)i;
        const char *words = missed ? subjects[i].missed[language] : subjects[i].seen[language];
        if (!(missed ? subject_was_missed(of, subject) : subject_was_seen(of, subject)) || !words)
            continue;
        if (!first)
            text_add(text, separator);
        text_add(text, words);
        first = false;
    }
    return !first;
}

void report_subjects_words(const struct analyze_subjects *of, enum report_language language,
                           struct text *text)
{
    struct text missed;
    text_init(&missed);
    if (!of->seen && !of->missed)
        return;
    text_add(text, ": ");
    if (!add_list(of, false, ", ", language, text))
        text_add(text, words_get(language, WORD_SUBJECTS_NONE));
    if (add_list(of, true, "; ", language, &missed)) {
        const char *words = text_get(&missed);
        text_addf(text, ". %c%s", toupper((unsigned char)words[0]), words + 1);
    }
    text->failed = text->failed || missed.failed;
    text_release(&missed);
}
