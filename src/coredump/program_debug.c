/* program_debug.c - see program_debug.h. */
#include "coredump/program_debug.h"

#include "coredump/elf.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 4096u
#define BUILD_ID_LIMIT 64u
#define SECTION_COMPRESSED 0x800u
/* A file named by a debug link is read in full for its checksum; larger ones are left out. */
#define LINKED_BYTES (UINT64_C(1) << 30)

struct names {
    char build_id[2 * BUILD_ID_LIMIT + 1]; /* "" if there is none */
    char link[256];
    uint32_t link_checksum;
};

static void read_build_id(struct text_view note, struct names *names)
{
    struct cursor cursor = { (const uint8_t *)note.bytes, 0, note.length, false };
    uint64_t name = cursor_number(&cursor, 4), count = cursor_number(&cursor, 4);
    uint64_t type = cursor_number(&cursor, 4);
    cursor_skip(&cursor, 4); /* "GNU" */
    if (cursor.bad || name != 4 || type != 3 || count < 2 || count > BUILD_ID_LIMIT ||
        count > cursor.end - cursor.at)
        return;
    for (uint64_t i = 0; i < count; i++)
        snprintf(names->build_id + 2 * i, 3, "%02x", (unsigned)cursor_number(&cursor, 1));
}

static void read_link(struct text_view link, struct names *names)
{
    struct cursor cursor = { (const uint8_t *)link.bytes, 0, link.length, false };
    struct text_view name = cursor_string(&cursor);
    cursor_skip(&cursor, (4 - cursor.at % 4) % 4);
    names->link_checksum = (uint32_t)cursor_number(&cursor, 4);
    /* A name with a slash would lead elsewhere. */
    if (!cursor.bad && name.length && name.length < sizeof(names->link) &&
        !memchr(name.bytes, '/', name.length))
        memcpy(names->link, name.bytes, name.length);
}

/* Sets what the file has: its table, and the names of other files. */
static void read_file(struct program_debug *debug, const char *path, struct names *names)
{
    struct elf elf;
    struct error err;
    if (mapfile_open(&debug->map, path, &err) || !debug->map.data ||
        elf_open(debug->map.data, debug->map.size, path, &elf, &err))
        return;
    for (uint32_t i = 0; i < elf.section_count; i++) {
        struct elf_section section;
        if (elf_section_at(&elf, i, &section, &err) || (section.flags & SECTION_COMPRESSED))
            continue;
        struct text_view name = elf_section_name(&elf, &section);
        struct text_view bytes = { (const char *)elf.data + section.offset, section.bytes };
        if (text_view_is(name, ".debug_line"))
            debug->sources.lines = bytes;
        else if (text_view_is(name, ".debug_str"))
            debug->sources.strings = bytes;
        else if (text_view_is(name, ".debug_line_str"))
            debug->sources.line_names = bytes;
        else if (text_view_is(name, ".note.gnu.build-id"))
            read_build_id(bytes, names);
        else if (text_view_is(name, ".gnu_debuglink"))
            read_link(bytes, names);
    }
}

uint32_t program_debug_checksum(const uint8_t *bytes, uint64_t count)
{
    uint32_t table[256], sum = UINT32_MAX;
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xEDB88320u : 0);
    }
    for (uint64_t i = 0; i < count; i++)
        sum = sum >> 8 ^ table[(sum ^ bytes[i]) & 255];
    return ~sum;
}

/* Replaces what is open by that file if it has a table and is the one that is meant. names: of the
 * stripped file. by_link: its checksum decides, else its build id does. */
static bool open_other(struct program_debug *debug, const char *path, const struct names *names,
                       bool by_link)
{
    struct program_debug other = { .map = { .data = NULL } };
    struct names found = { .build_id = "" };
    read_file(&other, path, &found);
    bool good = other.sources.lines.length > 0;
    if (good && by_link)
        good = other.map.size <= LINKED_BYTES &&
               program_debug_checksum(other.map.data, other.map.size) == names->link_checksum;
    else if (good)
        good = strcmp(found.build_id, names->build_id) == 0;
    if (!good) {
        program_debug_close(&other);
        return false;
    }
    program_debug_close(debug);
    *debug = other;
    return true;
}

void program_debug_open(struct program_debug *debug, const char *path)
{
    static const struct {
        const char *before, *after; /* the folder of the file */
    } places[] = { { "", "" }, { "", "/.debug" }, { "/usr/lib/debug", "" } };
    struct names names = { .build_id = "" };
    char other[PATH_BYTES];
    *debug = (struct program_debug){ .map = { .data = NULL } };
    read_file(debug, path, &names);
    if (debug->sources.lines.length)
        return;
    if (names.build_id[0]) {
        snprintf(other, sizeof(other), "/usr/lib/debug/.build-id/%.2s/%s.debug", names.build_id,
                 names.build_id + 2);
        if (open_other(debug, other, &names, false))
            return;
    }
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash - path) : 0;
    for (size_t i = 0; names.link[0] && slash && i < COUNT_OF(places); i++) {
        int length = snprintf(other, sizeof(other), "%s%.*s%s/%s", places[i].before, folder, path,
                              places[i].after, names.link);
        if (length > 0 && (size_t)length < sizeof(other) && strcmp(other, path) != 0 &&
            open_other(debug, other, &names, true))
            return;
    }
}

void program_debug_close(struct program_debug *debug)
{
    mapfile_release(&debug->map);
    *debug = (struct program_debug){ .map = { .data = NULL } };
}
