/* looks.c - what the program read in memory that a queued kernel may write: with the bytes that it
 * found there, to be compared when the program has waited.
 *
 * Bytes that changed after the program read them prove that it read them too early, unless the two
 * talk to each other through this memory on purpose. So nothing is kept of a program that reads the
 * same place again with the same instruction, as one does that waits for a flag, or that writes
 * such memory itself, as one does that lets a kernel go on. */
#include "interpose/pages/table.h"

#include <string.h>

/* All looks at once, and those of one trap. */
#define LOOK_LIMIT 256u
#define LOOKS_OF_ONE 8u
/* Looks nearer to each other than this may be at one value. */
#define APART_BYTES 64u
#define LOOK_BYTES 32u
/* Nor is it one value or flag if this many of them changed. */
#define SEVERAL 3u

static struct look {
    const struct trap_listener *listener; /* NULL: free */
    uint64_t id, address, pc;
    size_t count; /* of bytes */
    uint8_t bytes[LOOK_BYTES];
    uint64_t frames[TRAP_FRAME_LIMIT];
    size_t frame_count; /* 0: not known yet */
} looks[LOOK_LIMIT];

static bool is_of(const struct look *look, const struct trap *trap)
{
    return look->listener && look->listener == trap->listener && look->id == trap->id;
}

void looks_forget_all(void)
{
    for (size_t i = 0; i < LOOK_LIMIT; i++)
        looks[i].listener = NULL;
}

void looks_forget(const struct trap *trap)
{
    for (size_t i = 0; i < LOOK_LIMIT; i++)
        if (is_of(&looks[i], trap))
            looks[i].listener = NULL;
}

bool looks_again(const struct trap *trap, uint64_t address, uint64_t pc)
{
    for (size_t i = 0; i < LOOK_LIMIT; i++)
        if (is_of(&looks[i], trap) && looks[i].address == address && looks[i].pc == pc)
            return true;
    return false;
}

/* How many bytes an instruction of x86-64 reads, if it is a usual one; else 4. */
static size_t size_of(const uint8_t *code, size_t room)
{
    bool wide = false, half = false;
    uint8_t repeat = 0;
    size_t at = 0;
    for (; at < room; at++) {
        if (code[at] == 0x66)
            half = true;
        else if (code[at] == 0xf2 || code[at] == 0xf3)
            repeat = code[at];
        else if ((code[at] & 0xf0) == 0x40)
            wide = (code[at] & 8) != 0;
        else if (code[at] != 0x2e && code[at] != 0x3e && code[at] != 0x64 && code[at] != 0x65)
            break;
    }
    if (at + 1 >= room)
        return 4;
    uint8_t op = code[at], next = code[at + 1];
    if (op == 0x0f && (next == 0xb6 || next == 0xbe))
        return 1;
    if (op == 0x0f && (next == 0xb7 || next == 0xbf))
        return 2;
    if (op == 0x0f && (next == 0x10 || next == 0x28 || next == 0x6f) &&
        !(repeat == 0xf3 && next == 0x10))
        return repeat == 0xf2 ? 8 : half || repeat || next != 0x6f ? 16 : 8;
    if (op == 0x0f)
        return repeat == 0xf2 || wide ? 8 : 4;
    if (op == 0xc5 && at + 2 < room) { /* two bytes of VEX: its lowest bits are the prefix */
        static const uint8_t bytes[] = { 16, 16, 4, 8 };
        return next & 4 ? 32 : bytes[next & 3];
    }
    bool byte = !(op & 1) && (op < 0x40 || op == 0x80 || op == 0x84 || op == 0x8a || op == 0xa4 ||
                              op == 0xa6 || op == 0xac || op == 0xf6);
    return byte ? 1 : wide ? 8 : half ? 2 : 4;
}

bool looks_add(const struct trap *trap, uint64_t address, uint64_t pc, size_t *ret_place)
{
    size_t used = 0, place = LOOK_LIMIT;
    for (size_t i = LOOK_LIMIT; i-- > 0;) {
        used += is_of(&looks[i], trap);
        place = looks[i].listener ? place : i;
    }
    if (used == LOOKS_OF_ONE || place == LOOK_LIMIT)
        return false;
    size_t room = PAGE_BYTES - (size_t)(pc % PAGE_BYTES);
    size_t bytes = size_of((const uint8_t *)(uintptr_t)pc, room < 15 ? room : 15);
    size_t left = PAGE_BYTES - (size_t)(address % PAGE_BYTES);
    struct look *look = &looks[place];
    *look =
        (struct look){ .listener = trap->listener, .id = trap->id, .address = address, .pc = pc };
    look->count = bytes < left ? bytes : left;
    memcpy(look->bytes, (const void *)(uintptr_t)address, look->count);
    *ret_place = place;
    return true;
}

void looks_set_frames(size_t place, uint64_t pc, const uint64_t *frames, size_t count)
{
    struct look *look = &looks[place];
    if (!look->listener || look->pc != pc) /* forgotten meanwhile */
        return;
    memcpy(look->frames, frames, count * sizeof(*frames));
    look->frame_count = count;
    if (count == 0)
        look->listener = NULL;
}

bool looks_settle(const struct trap *trap, struct trap_access *ret_access,
                  uint64_t ret_frames[TRAP_FRAME_LIMIT])
{
    const struct look *first = NULL;
    bool apart = false;
    size_t changed = 0;
    for (size_t i = 0; i < LOOK_LIMIT; i++) {
        const struct look *look = &looks[i];
        if (!is_of(look, trap) || !look->frame_count ||
            memcmp(look->bytes, (const void *)(uintptr_t)look->address, look->count) == 0)
            continue;
        changed++;
        apart = apart || (first && look->address - first->address >= APART_BYTES &&
                          first->address - look->address >= APART_BYTES);
        first = first ? first : look;
    }
    if (first) {
        memcpy(ret_frames, first->frames, first->frame_count * sizeof(*ret_frames));
        *ret_access = (struct trap_access){ .id = trap->id,
                                            .address = first->address,
                                            .several = apart || changed >= SEVERAL,
                                            .frames = ret_frames,
                                            .frame_count = first->frame_count };
    }
    return first != NULL;
}
