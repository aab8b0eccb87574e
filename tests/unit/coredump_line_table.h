/* coredump_line_table.h - line tables by hand, and an image with one kernel that has such a table.
 */
#ifndef GRETA_TESTS_COREDUMP_LINE_TABLE_H
#define GRETA_TESTS_COREDUMP_LINE_TABLE_H

#include "elf_build.h"

#define CODE 0x7F0000000000u
enum { CODE_BYTES = 0x100, SYMBOL_BYTES = 24 };

/* ---- Writing a line table ---------------------------------------------------------------------
 */

static inline void put(struct text *text, const char *bytes, size_t count)
{
    text_add_bytes(text, bytes, count);
}
#define PUT(text, bytes) put((text), (bytes), sizeof(bytes) - 1)

/* Directory /src, file k.cu (number 1 in all versions). */
static inline void put_names(struct text *head, unsigned version)
{
    if (version < 5) {
        PUT(head, "/src\0\0k.cu\0\1\0\0\0");
        return;
    }
    PUT(head, "\1\1\10");           /* directories: a path, written in place */
    PUT(head, "\2/\0/src\0");       /* two of them */
    PUT(head, "\3\1\37\2\13\5\36"); /* files: a path in .debug_line_str, a byte, an MD5 */
    PUT(head, "\2");                /* two of them */
    PUT(head, "\0\0\0\0\0");
    text_add_fill(head, 'm', 16);
    PUT(head, "\5\0\0\0\1");
    text_add_fill(head, 'm', 16);
}

/* `length_too_long`: what the unit says of its length beyond its end. */
static inline void put_unit(struct text *lines, unsigned version, const struct text *program,
                            unsigned length_too_long)
{
    struct text head, unit;
    text_init(&head);
    text_init(&unit);
    build_add_number(&head, 1, 1); /* bytes of an instruction */
    if (version >= 4)
        build_add_number(&head, 1, 1);
    PUT(&head, "\1\373\16\12"); /* statements, base -5, range 14, opcodes from 10 */
    PUT(&head, "\0\1\1\1\1\0\0\0\1");
    put_names(&head, version);
    build_add_number(&unit, version, 2);
    if (version == 5)
        PUT(&unit, "\10\0");
    build_add_number(&unit, head.length, 4);
    text_add_bytes(&unit, head.bytes, head.length);
    text_add_bytes(&unit, program->bytes, program->length);
    build_add_number(lines, unit.length + length_too_long, 4);
    text_add_bytes(lines, unit.bytes, unit.length);
    text_release(&head);
    text_release(&unit);
}

static inline void put_address(struct text *program, uint64_t address)
{
    PUT(program, "\0\11\2");
    build_add_number(program, address, 8);
}

/* A sequence that has line 30 at 0x10 and line 35 at 0x40 of the code. */
static inline void put_sequence(struct text *program, uint64_t address)
{
    put_address(program, address);
    PUT(program, "\3\35\2\20\1"); /* line 30, 16 bytes on, a row */
    PUT(program, "\3\5\2\60\1\2\300\1\0\1\1");
}

/* ---- A dump with that line table ---------------------------------------------------------------
 */

static inline void make_image(const struct text *lines, bool second_function,
                              struct text *ret_image)
{
    struct elf_build build;
    struct build_section section = {
        .name = ".text._Z1kv", .type = BUILD_PROGRAM, .flags = BUILD_EXECUTABLE, .address = CODE
    };
    char code[CODE_BYTES] = { 0 };
    struct text symbols;
    elf_build_init(&build, 2, 190);
    elf_build_add(&build, &section, code, sizeof(code));
    text_init(&symbols);
    text_add_fill(&symbols, 0, SYMBOL_BYTES);
    for (int i = 0; i < 1 + second_function; i++) {
        size_t at = symbols.length;
        text_add_fill(&symbols, 0, SYMBOL_BYTES);
        build_put_number(&symbols, at, 1 + 6 * (uint64_t)i, 4);
        build_put_number(&symbols, at + 4, 2, 1);
        build_put_number(&symbols, at + 5, 0x10, 1);
        build_put_number(&symbols, at + 6, 1, 2);
        build_put_number(&symbols, at + 16, CODE_BYTES, 8);
    }
    section = (struct build_section){ .name = ".symtab", .type = BUILD_SYMBOLS, .link = 3 };
    elf_build_add(&build, &section, symbols.bytes, symbols.length);
    text_release(&symbols);
    section = (struct build_section){ .name = ".strtab", .type = BUILD_STRINGS };
    elf_build_add(&build, &section, "\0_Z1kv\0_Z1jv", 13);
    section = (struct build_section){ .name = ".debug_line", .type = BUILD_PROGRAM };
    elf_build_add(&build, &section, lines->bytes, lines->length);
    section = (struct build_section){ .name = ".debug_line_str", .type = BUILD_PROGRAM };
    elf_build_add(&build, &section, "none\0k.cu", 10);
    section = (struct build_section){ .name = ".debug_str", .type = BUILD_PROGRAM };
    elf_build_add(&build, &section, "skipped\0_Z1iv", 14);
    elf_build_finish(&build, ret_image);
    elf_build_release(&build);
}

#endif
