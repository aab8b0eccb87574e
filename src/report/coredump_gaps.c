/* coredump_gaps.c - what a core dump does not decide, a sentence for each. */
#include "report/coredump_texts.h"

/* "  - The sentence." */
#define ADD_GAP(text, language, ...)                                                               \
    do {                                                                                           \
        text_add((text), "  - ");                                                                  \
        words_add_line((text), (language), __VA_ARGS__, NULL);                                     \
    } while (0)

static void add_kind_gaps(const struct coredump_exception *first, enum report_language language,
                          struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    if (first->kind == 0)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_KIND);
    else if (first->kind >= COREDUMP_EXCEPTION_COUNT)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NEW_KIND, words_number(first->kind, number));
    if (first->kind_of_sm && first->has_warp)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_SM_KIND);
    if (first->pc_origin == COREDUMP_PC_OF_LANE)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_PC);
    if (first->pc_origin == COREDUMP_PC_NONE)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NO_PC);
    if (first->has_warp && first->grid_index == COREDUMP_NO_INDEX)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NO_GRID,
                words_number(first->grid_number, number));
}

static void add_line_gap(const struct coredump_place *place, enum report_language language,
                         struct text *text)
{
    static const enum word words[] = {
        [COREDUMP_LINES_NONE] = WORD_COREDUMP_GAP_NO_LINES,
        [COREDUMP_LINES_NOT_HERE] = WORD_COREDUMP_GAP_LINES_NOT_HERE,
        [COREDUMP_LINES_AMBIGUOUS] = WORD_COREDUMP_GAP_LINES_AMBIGUOUS,
        [COREDUMP_LINES_DAMAGED] = WORD_COREDUMP_GAP_LINES_DAMAGED,
        [COREDUMP_LINES_LIMIT] = WORD_COREDUMP_GAP_LINES_LIMIT,
    };
    _Static_assert(COUNT_OF(words) == COREDUMP_LINES_COUNT, "every result has words");
    /* Without a function, the gap of its name says it. */
    if (place->lines != COREDUMP_LINES_FOUND && place->lines != COREDUMP_LINES_NO_FUNCTION)
        ADD_GAP(text, language, words[place->lines]);
}

static void add_name_gap(const struct coredump_grid *grid, enum report_language language,
                         struct text *text)
{
    char number[WORDS_NUMBER_BYTES], count[WORDS_NUMBER_BYTES];
    struct text list;
    text_init(&list);
    coredump_add_candidates(&list, &grid->name);
    words_number(grid->number, number);
    switch (grid->name.naming) {
    case COREDUMP_NAME_NO_IMAGE:
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NO_IMAGE, number);
        break;
    case COREDUMP_NAME_NOT_FOUND:
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NOT_FOUND, number);
        break;
    case COREDUMP_NAME_CANDIDATES:
        ADD_GAP(text, language, WORD_COREDUMP_GAP_CANDIDATES, number,
                words_number(grid->name.candidate_count, count), text_get(&list));
        break;
    case COREDUMP_NAME_ONLY_FIT:
        ADD_GAP(text, language, WORD_COREDUMP_GAP_ONLY_FIT, number, text_get(&list));
        break;
    default: /* the name is known */
        break;
    }
    text->failed = text->failed || list.failed;
    text_release(&list);
}

static void add_grid_gaps(const struct coredump_grid *grid, enum report_language language,
                          struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    add_name_gap(grid, language, text);
    if (!grid->argument_bytes)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_NO_ARGUMENTS, words_number(grid->number, number));
    else if (!grid->arguments_known)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_LAYOUT, words_number(grid->number, number));
}

void coredump_add_gaps(const struct coredump *dump, enum report_language language,
                       struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    uint64_t total;
    size_t count = coredump_exception_count(dump, &total);
    if (total > 1)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_FIRST, words_number(total, number));
    if (count > 0) {
        const struct coredump_exception *first = coredump_exception_at(dump, 0);
        const struct coredump_place *place = coredump_place_of(dump, first);
        add_kind_gaps(first, language, text);
        if (place)
            add_line_gap(place, language, text);
        if (first->grid_index != COREDUMP_NO_INDEX)
            add_grid_gaps(coredump_grid_at(dump, first->grid_index), language, text);
    }
    if (coredump_bad_image_count(dump) > 0)
        ADD_GAP(text, language, WORD_COREDUMP_GAP_IMAGES,
                words_number(coredump_bad_image_count(dump), number),
                coredump_bad_image_reason(dump));
}
