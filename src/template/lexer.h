/* lexer.h - the source of a template as tokens.
 *
 * All that decides white space happens here: the texts between tags are final. */
#ifndef GRETA_TEMPLATE_LEXER_H
#define GRETA_TEMPLATE_LEXER_H

#include "template/node.h"
#include "template/report.h"

enum token_kind {
    TOKEN_TEXT,
    TOKEN_OUTPUT_BEGIN,
    TOKEN_OUTPUT_END,
    TOKEN_TAG_BEGIN,
    TOKEN_TAG_END,
    TOKEN_NAME,
    TOKEN_STRING, /* value: what it stands for */
    TOKEN_NUMBER, /* value */
    TOKEN_OPERATOR,
    TOKEN_END
};

/* An operator of one or two characters as a number. */
#define TWO(first, second) ((uint16_t)((first) << 8 | (second)))

struct token {
    uint8_t kind;
    uint16_t op;
    uint32_t at, length; /* bytes of the source */
    struct value value;
};

struct lexer {
    struct template *template;
    struct report *report;
    const char *source;
    uint32_t length, at;
    struct token *tokens; /* malloc; ends in TOKEN_END */
    size_t count, capacity;
};

/* Initialise source, length and the pointers; release the tokens with free. */
MUST_CHECK enum status jinja_lex(struct lexer *lexer);

/* lexer.c calls these; token.c has them. */
MUST_CHECK enum status jinja_lex_add(struct lexer *lexer, struct token token);
/* Reads the tokens of {{ }} or {% %} with its end, which may take white space after it. */
MUST_CHECK enum status jinja_lex_inside(struct lexer *lexer, enum token_kind end);
MUST_CHECK enum status jinja_lex_string(struct lexer *lexer);

#endif
