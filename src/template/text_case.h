/* text_case.h - ways to change the case of a text, next to UNICODE_TO_UPPER and UNICODE_TO_LOWER.
 */
#ifndef GRETA_TEMPLATE_TEXT_CASE_H
#define GRETA_TEMPLATE_TEXT_CASE_H

enum text_case {
    TEXT_CAPITAL = 100, /* str.capitalize */
    TEXT_TITLE,         /* str.title: after everything that is no letter */
    TEXT_WORDS,         /* the title filter: after white space, hyphens and opening brackets */
};

#endif
