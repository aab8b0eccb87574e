/* Templates: what is filled in, what is left out; and those of findings are complete: every kind of
 * defect and every clause has a sentence in both languages, with the same names in braces. */
#include "test.h"

#include "report/finding_words.h"

#include <stdlib.h>
#include <string.h>

/* ---- Filling in ----------------------------------------------------------------------------- */

/* "one" is 1, "two" is 2, anything else is not known. */
static bool fill(const void *context, struct text_view name, struct text *text)
{
    (void)context;
    const char *number = name.length == 3 && memcmp(name.bytes, "one", 3) == 0   ? "1"
                         : name.length == 3 && memcmp(name.bytes, "two", 3) == 0 ? "2"
                                                                                 : "";
    text_add(text, number);
    return number[0] != '\0';
}

static void templates_are_filled_in(void **state)
{
    (void)state;
    static const struct {
        const char *words, *filled;
    } rows[] = {
        { "", "" },
        { "plain", "plain" },
        { "{one}, {two}", "1, 2" },
        { "{one} {one|row|rows}, {two} {two|row|rows}", "1 row, 2 rows" },
        { "a[ by {one}] b", "a by 1 b" },
        { "a[ by {unknown}] b", "a b" },
        { "a[ by {one} of {unknown}]", "a" },
        { "a[ by {unknown|row|rows}][ to {two}]", "a to 2" },
        { "[always]", "always" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text text;
        text_init(&text);
        template_fill(&text, rows[i].words, fill, NULL);
        assert_string_equal(text_get(&text), rows[i].filled);
        text_release(&text);
    }
}

/* ---- Both languages ------------------------------------------------------------------------- */

#define NAME_LIMIT 16
struct names {
    struct text_view names[NAME_LIMIT]; /* in alphabetical order, each once */
    size_t count;
};

static int compare_names(const void *a, const void *b)
{
    const struct text_view *left = a, *right = b;
    size_t shorter = left->length < right->length ? left->length : right->length;
    int order = memcmp(left->bytes, right->bytes, shorter);
    return order ? order : (left->length > right->length) - (left->length < right->length);
}

static void collect(const char *words, struct names *names)
{
    names->count = 0;
    while (*words) {
        struct template_part part = template_part(words);
        words += part.length ? part.length : 1;
        bool known = !part.length;
        for (size_t i = 0; i < names->count; i++)
            known = known || compare_names(&names->names[i], &part.name) == 0;
        if (known)
            continue;
        assert_true(names->count < NAME_LIMIT);
        names->names[names->count++] = part.name;
    }
    qsort(names->names, names->count, sizeof(names->names[0]), compare_names);
}

static void check_pair(const char *english, const char *spanish,
                       const struct finding_defect_info *info)
{
    struct names first, second;
    assert_non_null(english);
    assert_non_null(spanish);
    assert_true(english[0] && spanish[0]);
    collect(english, &first);
    collect(spanish, &second);
    if (first.count != second.count)
        fail_msg("'%s' and '%s' have other names in braces", english, spanish);
    for (size_t i = 0; i < first.count; i++) {
        if (compare_names(&first.names[i], &second.names[i]) != 0)
            fail_msg("'%s' and '%s' have other names in braces", english, spanish);
        if (!tell_knows(info, first.names[i]))
            fail_msg("'%s': nothing is known as '%.*s'", english, (int)first.names[i].length,
                     first.names[i].bytes);
    }
}

static void sentences_have_the_same_names_in_both_languages(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DEFECT_COUNT; i++) {
        enum finding_defect defect = (enum finding_defect)i;
        check_pair(words_defect(defect, REPORT_ENGLISH), words_defect(defect, REPORT_SPANISH),
                   finding_defect_info(defect));
    }
    for (unsigned i = 0; i < CLAUSE_COUNT; i++)
        check_pair(words_clause((enum clause)i, REPORT_ENGLISH),
                   words_clause((enum clause)i, REPORT_SPANISH), NULL);
}

/* Scripts tell kinds of defects apart by their names. */
static void kinds_have_names_of_their_own(void **state)
{
    (void)state;
    for (unsigned i = 0; i < DEFECT_COUNT; i++)
        for (unsigned j = 0; j <= i; j++)
            assert_int_equal(strcmp(finding_defect_info((enum finding_defect)i)->slug,
                                    finding_defect_info((enum finding_defect)j)->slug) == 0,
                             i == j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(templates_are_filled_in),
        cmocka_unit_test(sentences_have_the_same_names_in_both_languages),
        cmocka_unit_test(kinds_have_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
