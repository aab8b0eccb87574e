/* elf.h - sections of a 64-bit little-endian ELF file, read as foreign bytes.
 *
 * For core dumps, which have hundreds of thousands of sections, and for the cubins in them. Nothing
 * is allocated; a section is decoded when it is asked for, and only one that lies inside the file
 * is handed out. */
#ifndef GRETA_COREDUMP_ELF_H
#define GRETA_COREDUMP_ELF_H

#include "base/bytes.h"

enum {
    ELF_TYPE_CORE = 4,
    ELF_MACHINE_CUDA = 190,
    ELF_SECTION_SYMBOLS = 2,
    ELF_SECTION_STRINGS = 3,
    ELF_SECTION_ADDENDS = 4, /* relocations with addends */
    ELF_SECTION_NO_BITS = 8
};

/* Most sections that are looked at. A dump of a full GPU has about a million. */
#define ELF_SECTION_LIMIT (1u << 26)

struct elf {
    const uint8_t *data; /* borrowed */
    uint64_t bytes;
    const char *source;     /* file name for messages; borrowed */
    uint64_t section_table; /* offset */
    uint32_t section_count;
    struct text_view names; /* the table of section names; empty if there is none */
    uint16_t type, machine;
};

struct elf_section {
    uint32_t index, type, link, info;
    uint32_t name; /* offset in the table of names */
    uint64_t flags;
    uint64_t address;
    uint64_t offset, bytes; /* inside the file; bytes is 0 if it holds none */
    uint64_t row_bytes;     /* sh_entsize */
};

MUST_CHECK enum status elf_open(const void *data, uint64_t bytes, const char *source,
                                struct elf *ret_elf, struct error *err);

/* index < section_count. STATUS_BAD_FILE if it does not lie inside the file. */
MUST_CHECK enum status elf_section_at(const struct elf *elf, uint32_t index,
                                      struct elf_section *ret_section, struct error *err);

/* Type of a section, without the checks. */
uint32_t elf_section_type(const struct elf *elf, uint32_t index);

/* Borrowed; empty if it has none. */
struct text_view elf_section_name(const struct elf *elf, const struct elf_section *section);

/* Names are cut here, so that no count of them makes reading a long table without a NUL slow. */
#define ELF_NAME_BYTES 16384
/* The text at `offset` of a table of strings, up to its NUL or the table's end, and at most
 * ELF_NAME_BYTES of it. Empty past the end. */
struct text_view elf_string(struct text_view table, uint64_t offset);

#endif
