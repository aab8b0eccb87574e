/* elf_build.h - an ELF file by hand, for tests: sections one after the other. */
#ifndef GRETA_TESTS_ELF_BUILD_H
#define GRETA_TESTS_ELF_BUILD_H

#include "base/text.h"

/* Fields of the headers that tests set. */
enum {
    BUILD_HEADER_BYTES = 64,
    BUILD_SECTION_BYTES = 64,
    BUILD_EXECUTABLE = 4, /* a flag */
    BUILD_PROGRAM = 1,    /* types of sections */
    BUILD_SYMBOLS = 2,
    BUILD_STRINGS = 3,
    BUILD_RELOCATIONS = 4
};

struct build_section {
    const char *name;
    uint32_t type;
    uint64_t flags, address;
    uint32_t link, info;
    uint64_t row_bytes;
};

struct elf_build {
    struct text data;    /* of the sections */
    struct text headers; /* of the sections */
    struct text names;
    uint32_t section_count;
    uint16_t type, machine;
    bool many_sections; /* their number stands in section 0, as where there are very many */
};

/* For a type and a machine: section 0 is made. */
void elf_build_init(struct elf_build *build, uint16_t type, uint16_t machine);
void elf_build_release(struct elf_build *build);
/* Adds a section; returns its index. */
uint32_t elf_build_add(struct elf_build *build, const struct build_section *section,
                       const void *bytes, size_t count);
/* Adds the table of names, and writes the file to ret_file, which the caller releases. */
void elf_build_finish(struct elf_build *build, struct text *ret_file);

/* Little-endian numbers at the end of text, and at a place in it. */
void build_add_number(struct text *text, uint64_t value, size_t bytes);
void build_put_number(struct text *text, size_t at, uint64_t value, size_t bytes);
/* Where the header of a section is in a finished file. */
size_t build_section_at(const struct text *file, uint32_t index);

#endif
