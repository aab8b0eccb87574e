/* planting.c - a fault that was planted on purpose: said with every result that it may explain. */
#include "report/json_tools.h"
#include "report/report.h"
#include "report/words.h"

static enum word word_of(const struct report_planting *planting)
{
    return !planting->reported ? WORD_PLANTED_UNKNOWN
           : planting->fired   ? WORD_PLANTED_FIRED
                               : WORD_PLANTED_NEVER;
}

const char *report_planting_words(const struct report_planting *planting,
                                  enum report_language language)
{
    return words_get(language, word_of(planting));
}

void report_planting_add(const struct report_planting *planting, enum report_language language,
                         struct text *text)
{
    if (!planting->fault)
        return;
    text_addf(text, "%s: ", words_get(language, WORD_PLANTED_FAULT));
    text_add_printable(text, text_view_of(planting->fault), SIZE_MAX);
    text_addf(text, " (%s)\n", report_planting_words(planting, language));
}

struct json_t *report_planting_json(const struct report_planting *planting, struct text *out)
{
    if (!planting->fault)
        return json_null();
    json_t *item = json_object();
    json_put_text(out, item, "fault", planting->fault);
    json_put(out, item, "fired", planting->reported ? json_boolean(planting->fired) : json_null());
    return item;
}
