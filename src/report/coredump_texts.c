/* coredump_texts.c - see coredump_texts.h. */
#include "report/coredump_texts.h"

#include "base/symbols.h"

#include <inttypes.h>
#include <string.h>

/* ---- Names ---------------------------------------------------------------------------------- */

/* Longer names are shown as they are. */
#define NAME_BYTES 4096
/* A demangled name repeats what its mangled form only refers to, and a hostile one repeats
 * repetitions. Each reference at most doubles the name. */
#define DEMANGLED_LIMIT (16u << 20)

static bool may_demangle(struct text_view name)
{
    uint64_t longest = name.length;
    if (name.length >= NAME_BYTES)
        return false;
    for (size_t i = 0; i + 1 < name.length; i++) {
        bool letter = name.bytes[i] == 'S' || name.bytes[i] == 'T';
        char next = name.bytes[i + 1];
        bool refers = next == '_' || (next >= '0' && next <= '9') || (next >= 'A' && next <= 'Z');
        if (letter && refers && (longest *= 2) > DEMANGLED_LIMIT)
            return false;
    }
    return memchr(name.bytes, '\0', name.length) == NULL;
}

void coredump_add_function(struct text *text, struct text_view mangled, bool brief)
{
    char name[NAME_BYTES], shown[NAME_BYTES];
    if (!may_demangle(mangled)) {
        text_add_printable(text, mangled, NAME_BYTES);
        return;
    }
    memcpy(name, mangled.bytes, mangled.length);
    name[mangled.length] = '\0';
    symbols_demangle(name, brief, shown, sizeof(shown));
    text_add_printable(text, text_view_of(shown), NAME_BYTES);
}

void coredump_add_candidates(struct text *text, const struct coredump_name *name)
{
    for (size_t i = 0; i < name->candidate_count && i < COREDUMP_CANDIDATE_LIMIT; i++) {
        text_add(text, i ? ", " : "");
        coredump_add_function(text, name->candidates[i], true);
    }
    if (name->candidate_count > COREDUMP_CANDIDATE_LIMIT)
        text_add(text, ", ...");
}

void coredump_add_name(struct text *text, const struct coredump_name *name, bool brief,
                       enum report_language language)
{
    if (coredump_name_is_known(name)) {
        coredump_add_function(text, name->candidates[0], brief);
    } else if (name->naming == COREDUMP_NAME_CANDIDATES) {
        char count[WORDS_NUMBER_BYTES];
        struct text list;
        text_init(&list);
        coredump_add_candidates(&list, name);
        words_add(text, language, WORD_COREDUMP_ONE_OF, words_number(name->candidate_count, count),
                  text_get(&list), NULL);
        text->failed = text->failed || list.failed;
        text_release(&list);
    } else {
        text_add(text, words_get(language, WORD_COREDUMP_NO_NAME));
    }
}

const char *coredump_exception_words(uint32_t kind, enum report_language language)
{
    static const enum word words[] = {
        WORD_EXCEPTION_UNTOLD,
        WORD_EXCEPTION_LANE_ADDRESS,
        WORD_EXCEPTION_LANE_STACK,
        WORD_EXCEPTION_DEVICE_STACK,
        WORD_EXCEPTION_WARP_INSTRUCTION,
        WORD_EXCEPTION_WARP_RANGE,
        WORD_EXCEPTION_WARP_MISALIGNED,
        WORD_EXCEPTION_WARP_SPACE,
        WORD_EXCEPTION_WARP_PC,
        WORD_EXCEPTION_WARP_STACK,
        WORD_EXCEPTION_DEVICE_ADDRESS,
        WORD_EXCEPTION_LANE_MISALIGNED,
        WORD_EXCEPTION_WARP_ASSERT,
        WORD_EXCEPTION_LANE_SYSCALL,
        WORD_EXCEPTION_WARP_ADDRESS,
        WORD_EXCEPTION_LANE_NONMIGRATABLE,
        WORD_EXCEPTION_LANE_ATOMIC,
        WORD_EXCEPTION_CLUSTER_RANGE,
        WORD_EXCEPTION_CLUSTER_BLOCK,
        WORD_EXCEPTION_STACK_CANARY,
        WORD_EXCEPTION_TENSOR_ACCESS,
        WORD_EXCEPTION_TENSOR_LEAK,
        WORD_EXCEPTION_NEWER,
    };
    _Static_assert(COUNT_OF(words) == COREDUMP_EXCEPTION_COUNT, "every exception has words");
    return words_get(language,
                     kind < COREDUMP_EXCEPTION_COUNT ? words[kind] : WORD_EXCEPTION_UNTOLD);
}

const char *coredump_status_words(uint32_t status, enum report_language language)
{
    static const enum word words[] = {
        WORD_COREDUMP_STATUS_INVALID,    WORD_COREDUMP_STATUS_PENDING,
        WORD_COREDUMP_STATUS_ACTIVE,     WORD_COREDUMP_STATUS_SLEEPING,
        WORD_COREDUMP_STATUS_TERMINATED, WORD_COREDUMP_STATUS_UNDETERMINED,
    };
    _Static_assert(COUNT_OF(words) == COREDUMP_GRID_STATUS_COUNT, "every status has words");
    return words_get(language, status < COREDUMP_GRID_STATUS_COUNT ? words[status]
                                                                   : WORD_COREDUMP_STATUS_UNKNOWN);
}

/* ---- Places and numbers --------------------------------------------------------------------- */

void coredump_add_line(struct text *text, const struct coredump_frame *frame)
{
    text_add_printable(text, frame->directory, NAME_BYTES);
    if (frame->directory.length && frame->directory.bytes[frame->directory.length - 1] != '/')
        text_add(text, "/");
    text_add_printable(text, frame->file, NAME_BYTES);
    text_addf(text, ":%" PRIu32, frame->line);
}

void coredump_add_index(struct text *text, struct coredump_dim3 index)
{
    text_addf(text, "(%" PRIu32 ",%" PRIu32 ",%" PRIu32 ")", index.x, index.y, index.z);
}

void coredump_add_shape(struct text *text, struct coredump_dim3 shape)
{
    text_addf(text, "%" PRIu32 " x %" PRIu32 " x %" PRIu32, shape.x, shape.y, shape.z);
}

void coredump_add_value(struct text *text, const uint8_t *bytes, uint64_t count, uint64_t most)
{
    if (count == 1 || count == 2 || count == 4 || count == 8) {
        text_add(text, "0x");
        for (uint64_t i = count; i > 0; i--)
            text_addf(text, "%02x", bytes[i - 1]);
        return;
    }
    for (uint64_t i = 0; i < count && i < most; i++)
        text_addf(text, i && i % 4 == 0 ? " %02x" : "%02x", bytes[i]);
    text_add(text, count > most ? " ..." : "");
}

const struct coredump_place *coredump_place_of(const struct coredump *dump,
                                               const struct coredump_exception *exception)
{
    return exception->place_index == COREDUMP_NO_INDEX
               ? NULL
               : coredump_place_at(dump, exception->place_index);
}

struct coredump_name coredump_kernel_of(const struct coredump *dump,
                                        const struct coredump_exception *exception)
{
    const struct coredump_place *place = coredump_place_of(dump, exception);
    if (exception->grid_index != COREDUMP_NO_INDEX)
        return coredump_grid_at(dump, exception->grid_index)->name;
    return place ? place->function : (struct coredump_name){ .naming = COREDUMP_NAME_NO_IMAGE };
}
