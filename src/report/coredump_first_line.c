/* coredump_first_line.c - what died where, in one line. */
#include "report/coredump_texts.h"

#include <inttypes.h>

static size_t thread_count(const struct coredump_exception *exception)
{
    return (size_t)__builtin_popcount(exception->thread_mask);
}

void coredump_add_threads(const struct coredump_exception *exception, enum report_language language,
                          struct text *text)
{
    char number[WORDS_NUMBER_BYTES];
    struct text index;
    size_t count = thread_count(exception);
    text_init(&index);
    coredump_add_index(&index, exception->block);
    words_add(text, language, WORD_COREDUMP_BLOCK, text_get(&index), NULL);
    text_clear(&index);
    if (count > 0) {
        int lane = __builtin_ctz(exception->thread_mask);
        coredump_add_index(&index, exception->threads[lane]);
        words_add(text, language, WORD_COREDUMP_THREAD, text_get(&index), NULL);
    }
    if (count > 1)
        words_add(text, language, WORD_COREDUMP_MORE_THREADS, words_number(count - 1, number),
                  NULL);
    text->failed = text->failed || index.failed;
    text_release(&index);
}

/* " at kernels.cu:34"; of a lane's pc, which may be past the instruction: ", stopped at". */
void coredump_add_where(const struct coredump *dump, const struct coredump_exception *exception,
                        enum report_language language, struct text *text)
{
    const struct coredump_place *place = coredump_place_of(dump, exception);
    struct text where;
    if (!place)
        return;
    text_init(&where);
    if (place->frame_count)
        coredump_add_line(&where, &place->frames[0]);
    else
        text_addf(&where, "0x%" PRIx64, place->address);
    words_add(text, language,
              exception->pc_origin == COREDUMP_PC_OF_LANE ? WORD_COREDUMP_STOPPED_AT
                                                          : WORD_COREDUMP_AT_LINE,
              text_get(&where), NULL);
    text->failed = text->failed || where.failed;
    text_release(&where);
}

static void add_failed(const struct coredump *dump, const struct coredump_exception *exception,
                       enum report_language language, struct text *text)
{
    struct coredump_name name = coredump_kernel_of(dump, exception);
    struct text kernel, where, threads;
    text_init(&kernel);
    text_init(&where);
    text_init(&threads);
    coredump_add_name(&kernel, &name, true, language);
    coredump_add_where(dump, exception, language, &where);
    coredump_add_threads(exception, language, &threads);
    words_add(text, language, WORD_COREDUMP_FAILED, text_get(&kernel), text_get(&where),
              coredump_exception_words(exception->kind, language), text_get(&threads), NULL);
    text->failed = text->failed || kernel.failed || where.failed || threads.failed;
    text_release(&kernel);
    text_release(&where);
    text_release(&threads);
}

void coredump_add_first_line(const struct coredump *dump, enum report_language language,
                             struct text *text)
{
    char device[WORDS_NUMBER_BYTES], number[WORDS_NUMBER_BYTES];
    uint64_t total;
    if (coredump_exception_count(dump, &total) == 0) {
        words_add_line(text, language, WORD_COREDUMP_NO_EXCEPTION,
                       words_number(coredump_grid_count(dump), number), NULL);
        return;
    }
    const struct coredump_exception *first = coredump_exception_at(dump, 0);
    if (first->has_warp)
        add_failed(dump, first, language, text);
    else
        words_add(text, language, WORD_COREDUMP_SM_FAILED,
                  words_number(first->device_index, device), words_number(first->sm, number),
                  coredump_exception_words(first->kind, language), NULL);
    if (total > 1)
        words_add(text, language, WORD_COREDUMP_MORE_WARPS, words_number(total - 1, number), NULL);
    text_add(text, "\n");
}
