/* elf_build.c - see elf_build.h. */
#include "elf_build.h"

#include "base/bytes.h"

#include <string.h>

void build_add_number(struct text *text, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(value >> 8 * i);
        text_add_bytes(text, &byte, 1);
    }
}

void build_put_number(struct text *text, size_t at, uint64_t value, size_t bytes)
{
    ASSERT(at + bytes <= text->length);
    for (size_t i = 0; i < bytes; i++)
        text->bytes[at + i] = (char)(value >> 8 * i);
}

size_t build_section_at(const struct text *file, uint32_t index)
{
    return bytes_load_u64((const uint8_t *)file->bytes + 40) + (size_t)index * BUILD_SECTION_BYTES;
}

void elf_build_init(struct elf_build *build, uint16_t type, uint16_t machine)
{
    static const struct build_section none = { .name = "" };
    *build = (struct elf_build){ .type = type, .machine = machine };
    text_init(&build->data);
    text_init(&build->headers);
    text_init(&build->names);
    text_add_bytes(&build->names, "", 1);
    elf_build_add(build, &none, NULL, 0);
}

void elf_build_release(struct elf_build *build)
{
    text_release(&build->data);
    text_release(&build->headers);
    text_release(&build->names);
}

uint32_t elf_build_add(struct elf_build *build, const struct build_section *section,
                       const void *bytes, size_t count)
{
    struct text *headers = &build->headers;
    build_add_number(headers, section->name[0] ? build->names.length : 0, 4);
    if (section->name[0])
        text_add_bytes(&build->names, section->name, strlen(section->name) + 1);
    build_add_number(headers, section->type, 4);
    build_add_number(headers, section->flags, 8);
    build_add_number(headers, section->address, 8);
    build_add_number(headers, count ? BUILD_HEADER_BYTES + build->data.length : 0, 8);
    build_add_number(headers, count, 8);
    build_add_number(headers, section->link, 4);
    build_add_number(headers, section->info, 4);
    build_add_number(headers, 1, 8);
    build_add_number(headers, section->row_bytes, 8);
    text_add_bytes(&build->data, bytes ? bytes : "", count);
    return build->section_count++;
}

void elf_build_finish(struct elf_build *build, struct text *ret_file)
{
    static const uint8_t identity[16] = { 0x7F, 'E', 'L', 'F', 2, 1, 1, 0x33, 7 };
    static const struct build_section table = { .name = ".shstrtab", .type = BUILD_STRINGS };
    struct text names;
    text_init(&names);
    text_add_bytes(&names, build->names.bytes, build->names.length);
    text_add_bytes(&names, ".shstrtab", sizeof(".shstrtab"));
    uint32_t names_index = elf_build_add(build, &table, names.bytes, names.length);
    if (build->many_sections)
        build_put_number(&build->headers, 32, build->section_count, 8);
    text_init(ret_file);
    text_add_bytes(ret_file, identity, sizeof(identity));
    build_add_number(ret_file, build->type, 2);
    build_add_number(ret_file, build->machine, 2);
    build_add_number(ret_file, 1, 4);
    build_add_number(ret_file, 0, 8); /* entry */
    build_add_number(ret_file, 0, 8); /* program headers */
    build_add_number(ret_file, BUILD_HEADER_BYTES + build->data.length, 8);
    build_add_number(ret_file, 0, 4);
    build_add_number(ret_file, BUILD_HEADER_BYTES, 2);
    build_add_number(ret_file, 0, 2);
    build_add_number(ret_file, 0, 2);
    build_add_number(ret_file, BUILD_SECTION_BYTES, 2);
    build_add_number(ret_file, build->many_sections ? 0 : build->section_count, 2);
    build_add_number(ret_file, names_index, 2);
    text_add_bytes(ret_file, build->data.bytes, build->data.length);
    text_add_bytes(ret_file, build->headers.bytes, build->headers.length);
    ASSERT(!ret_file->failed);
    text_release(&names);
}
