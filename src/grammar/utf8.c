/* utf8.c - ranges of characters as steps over the bytes of UTF-8.
 *
 * A range is cut until its characters are all combinations of one range of bytes in each place.
 * Last bytes are made first, and equal rests are shared. */
#include "grammar/program.h"

#include <string.h>

/* Ways that begin a character: a set of first bytes, and the step for the rest. Rests that are
 * whole (80-BF in every place) are shared by all ranges. */
struct utf8_ways {
    struct program *program;
    uint32_t next;
    uint32_t whole[4]; /* step for n whole continuation bytes, then next; 0: not made yet */
    struct {
        struct byte_set bytes;
        uint32_t step;
    } shared[4];    /* first bytes before n whole continuation bytes */
    uint32_t split; /* all other ways so far, or 0 */
};

static void add_bytes(struct byte_set *set, unsigned first, unsigned last)
{
    for (unsigned byte = first; byte <= last; byte++)
        set->bits[byte >> 6] |= (uint64_t)1 << (byte & 63);
}

static uint32_t whole_step(struct utf8_ways *ways, unsigned count)
{
    if (count == 0)
        return ways->next;
    if (!ways->whole[count]) {
        struct byte_set set = { { 0 } };
        add_bytes(&set, 0x80, 0xBF);
        ways->whole[count] = program_add_set(ways->program, &set, whole_step(ways, count - 1));
    }
    return ways->whole[count];
}

static unsigned encode(uint32_t character, uint8_t bytes[4])
{
    if (character < 0x80) {
        bytes[0] = (uint8_t)character;
        return 1;
    }
    unsigned count = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (unsigned i = count - 1; i > 0; i--, character >>= 6)
        bytes[i] = (uint8_t)(0x80 | (character & 0x3F));
    bytes[0] = (uint8_t)((0xF00u >> count) | character);
    return count;
}

static void add_way(struct utf8_ways *ways, const uint8_t *low, const uint8_t *high, unsigned count)
{
    unsigned whole = 0;
    while (whole < count - 1 && low[count - 1 - whole] == 0x80 && high[count - 1 - whole] == 0xBF)
        whole++;
    if (whole == count - 1) {
        add_bytes(&ways->shared[whole].bytes, low[0], high[0]);
        return;
    }
    uint32_t step = whole_step(ways, whole);
    for (unsigned i = count - whole; i-- > 0;) {
        struct byte_set set = { { 0 } };
        add_bytes(&set, low[i], high[i]);
        step = program_add_set(ways->program, &set, step);
    }
    ways->split = ways->split ? program_add(ways->program,
                                            (struct program_step){
                                                .op = PROGRAM_SPLIT, .a = ways->split, .b = step })
                              : step;
}

/* Cuts [first, last] where the number of bytes changes, and where a byte other than the last that
 * differs is followed by less than all continuation bytes. */
static void add_range(struct utf8_ways *ways, uint32_t first, uint32_t last)
{
    static const uint32_t ends[] = { 0x7F, 0x7FF, 0xFFFF };
    while (first <= last) {
        uint32_t end = last;
        for (size_t i = 0; i < COUNT_OF(ends); i++)
            if (first <= ends[i] && end > ends[i])
                end = ends[i];
        for (unsigned i = 1; i < 4 && first > 0x7F; i++) {
            uint32_t mask = (1u << (6 * i)) - 1;
            if ((first & ~mask) == (end & ~mask))
                break; /* they differ only in the last i bytes */
            if (first & mask)
                end = first | mask;
            else if ((end & mask) != mask)
                end = (end & ~mask) - 1;
        }
        uint8_t low[4] = { 0 }, high[4] = { 0 };
        unsigned count = encode(first, low);
        encode(end, high);
        add_way(ways, low, high, count);
        if (end == last)
            break;
        first = end + 1;
    }
}

uint32_t program_add_characters(struct program *program, const struct rules_range *ranges,
                                size_t count, uint32_t next)
{
    struct utf8_ways ways = { .program = program, .next = next };
    for (size_t i = 0; i < count; i++)
        add_range(&ways, ranges[i].first, ranges[i].last);
    for (unsigned whole = 0; whole < 4; whole++) {
        const struct byte_set *set = &ways.shared[whole].bytes;
        static const struct byte_set none;
        if (memcmp(set, &none, sizeof(none)) == 0)
            continue;
        uint32_t step = program_add_set(program, set, whole_step(&ways, whole));
        ways.split = ways.split ? program_add(program, (struct program_step){ .op = PROGRAM_SPLIT,
                                                                              .a = ways.split,
                                                                              .b = step })
                                : step;
    }
    return ways.split;
}
