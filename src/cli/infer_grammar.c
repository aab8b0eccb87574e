/* infer_grammar.c - see infer_grammar.h. */
#include "cli/infer_grammar.h"

#include "cli/token_input.h"

#include <string.h>

/* No file name begins like a schema or has the sign of a rule in it. */
static bool is_schema(const char *value)
{
    value += strspn(value, " \t\r\n");
    return *value == '{' || strcmp(value, "true") == 0 || strcmp(value, "false") == 0;
}

static bool is_grammar(const char *value)
{
    return strstr(value, "::=") != NULL;
}

static enum status make(const struct infer_settings *settings, const char *value, bool is_text,
                        struct infer_grammar *grammar, struct error *err)
{
    struct text file;
    struct text_view text = text_view_of(value);
    enum status status = STATUS_OK;
    text_init(&file);
    if (!is_text) {
        status = token_input_read_file(value, GRAMMAR_TEXT_LIMIT_BYTES, &file, err);
        text = (struct text_view){ text_get(&file), file.length };
    }
    if (!status && settings->grammar)
        status = grammar_create_gbnf(grammar->vocabulary, text, is_text ? "--grammar" : value,
                                     &grammar->grammar, err);
    else if (!status)
        status = grammar_create_schema(grammar->vocabulary, text, is_text ? "--json-schema" : value,
                                       &grammar->grammar, err);
    text_release(&file);
    return status;
}

enum status infer_grammar_open(const struct infer_settings *settings,
                               const struct tokenizer *tokenizer, struct infer_grammar *ret_grammar,
                               struct error *err)
{
    const char *value = settings->grammar ? settings->grammar : settings->json_schema;
    *ret_grammar = (struct infer_grammar){ 0 };
    if (!value)
        return STATUS_OK;
    if (settings->grammar && settings->json_schema)
        return error_set(err, STATUS_USAGE,
                         "--json-schema: expected it without --grammar, found both");
    if (!value[0])
        return error_set(err, STATUS_USAGE, "%s: expected a file or a text, found nothing",
                         settings->grammar ? "--grammar" : "--json-schema");
    TRY(grammar_vocabulary_create(tokenizer, &ret_grammar->vocabulary, err));
    return make(settings, value, settings->grammar ? is_grammar(value) : is_schema(value),
                ret_grammar, err);
}

void infer_grammar_close(struct infer_grammar *grammar)
{
    grammar_destroy(grammar->grammar);
    grammar_vocabulary_destroy(grammar->vocabulary);
    *grammar = (struct infer_grammar){ 0 };
}
