/* words.h - every word of a report in every language.
 *
 * A word may hold {1}, {2}, ... for arguments, {1|row|rows} for a word that depends on whether the
 * first argument is 1, and `...` for code (doc.h). Both languages use the same arguments; a test
 * compares them with each other. */
#ifndef GRETA_REPORT_WORDS_H
#define GRETA_REPORT_WORDS_H

#include "base/text.h"
#include "report/report.h"

/* words/all.def has them, by subject, in both languages. */
enum word {
#define WORD(name, english, spanish) WORD_##name,
#include "report/words/all.def"
#undef WORD
    WORD_COUNT
};

const char *words_get(enum report_language language, enum word word);
const char *words_outcome(enum report_language language, enum audit_outcome outcome);
const char *words_verdict(enum report_language language, enum verdict verdict);
const char *words_severity(enum report_language language, enum report_severity severity);
const char *words_mode(enum report_language language, enum report_row_mode mode);
/* What an intervention changes, by its slug; NULL: not one of ours. */
const char *words_intervention(enum report_language language, const char *slug);

/* What stands in the place of a placeholder. */
struct words_part {
    size_t index;          /* of the argument: 1 for "{1}"; 0: no placeholder stands here */
    size_t length;         /* of the placeholder in bytes */
    struct text_view one;  /* of "{1|row|rows}": row; empty of "{1}" */
    struct text_view many; /* rows */
};
struct words_part words_part(const char *at);
/* Adds it to text. */
void words_add_part(struct text *text, const struct words_part *part, const char *argument);

/* Adds the word and an end of line. The arguments are text, the last one is NULL. */
void words_add_line(struct text *text, enum report_language language, enum word word, ...)
    __attribute__((sentinel));
/* The same without the end of line. */
void words_add(struct text *text, enum report_language language, enum word word, ...)
    __attribute__((sentinel));

#define WORDS_NUMBER_BYTES 24
/* "512": returns buffer, which has WORDS_NUMBER_BYTES bytes. */
const char *words_number(uint64_t number, char *buffer);

/* Adds words with {1}.. replaced; ` stays. */
void words_fill(struct text *text, const char *words, const char *const *arguments, size_t count);

#endif
