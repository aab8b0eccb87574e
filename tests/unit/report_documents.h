/* report_documents.h - prints a report, and takes what is code out of a page: what the tests of
 * reports for people share. */
#ifndef GRETA_TESTS_REPORT_DOCUMENTS_H
#define GRETA_TESTS_REPORT_DOCUMENTS_H

#include "test.h"

#include "base/text.h"
#include "report/escape.h"
#include "report/words.h"
#include "report_facts.h"

typedef void (*print_function)(const struct report_facts *facts, enum report_language language,
                               struct text *text);

static inline void print_report(print_function printer, const struct report_facts *facts,
                                enum report_language language, struct text *text)
{
    text_init(text);
    printer(facts, language, text);
    assert_false(text->failed);
}

/* What is code is a name: slugs, paths, flags. Cut out of the Markdown before looking. */
static inline void remove_code(struct text *text)
{
    char *to = text->bytes;
    bool code = false, target = false;
    for (const char *from = text->bytes; *from; from++) {
        code = *from == '`' ? !code : code;
        /* Where a link leads is a name too. */
        target = strncmp(from, "](", 2) == 0 || (target && *from != ')');
        if (!code && !target && *from != '`')
            *to++ = *from;
    }
    *to = '\0';
    text->length = (size_t)(to - text->bytes);
}

#endif
