/* elf.c - see elf.h. */
#include "coredump/elf.h"

#include "base/size.h"

#include <inttypes.h>
#include <string.h>

enum { HEADER_BYTES = 64, SECTION_BYTES = 64, NAMES_IN_SECTION_0 = 0xFFFF };

/* ---- The header ----------------------------------------------------------------------------- */

struct header {
    uint64_t section_table;
    uint16_t section_bytes, section_count, names_index;
};

static enum status read_identity(struct bytes *in, struct error *err)
{
    const uint8_t *identity;
    if (in->size == 0)
        return bytes_fail(in, 0, "ELF header", err, "the file is empty; expected a GPU core dump");
    if (in->size >= 2 && in->data[0] == 0x1F && in->data[1] == 0x8B)
        return bytes_fail(in, 0, "ELF header", err,
                          "the file is compressed with gzip; expand it with gunzip first");
    TRY(bytes_take(in, "ELF identity", 16, &identity, err));
    if (memcmp(identity, "\177ELF", 4) != 0)
        return bytes_fail(in, 0, "ELF identity", err,
                          "expected 7f 45 4c 46, found %02x %02x %02x %02x: not an ELF file",
                          identity[0], identity[1], identity[2], identity[3]);
    if (identity[4] != 2 || identity[5] != 1)
        return bytes_fail(in, 4, "ELF class and byte order", err,
                          "expected 2 and 1 (64 bits, little endian), found %u and %u", identity[4],
                          identity[5]);
    return STATUS_OK;
}

static enum status read_header(struct bytes *in, struct elf *elf, struct header *header,
                               struct error *err)
{
    uint64_t entry, segments;
    uint32_t version, flags;
    uint16_t header_bytes, segment_bytes, segment_count;
    TRY(read_identity(in, err));
    TRY(bytes_u16(in, "ELF type", &elf->type, err));
    TRY(bytes_u16(in, "ELF machine", &elf->machine, err));
    TRY(bytes_u32(in, "ELF version", &version, err));
    TRY(bytes_u64(in, "entry point", &entry, err));
    TRY(bytes_u64(in, "offset of program headers", &segments, err));
    TRY(bytes_u64(in, "offset of section headers", &header->section_table, err));
    TRY(bytes_u32(in, "ELF flags", &flags, err));
    TRY(bytes_u16(in, "size of the header", &header_bytes, err));
    TRY(bytes_u16(in, "size of a program header", &segment_bytes, err));
    TRY(bytes_u16(in, "number of program headers", &segment_count, err));
    TRY(bytes_u16(in, "size of a section header", &header->section_bytes, err));
    TRY(bytes_u16(in, "number of section headers", &header->section_count, err));
    return bytes_u16(in, "index of section names", &header->names_index, err);
}

/* ---- Sections ------------------------------------------------------------------------------- */

static const uint8_t *section_header(const struct elf *elf, uint32_t index)
{
    ASSERT(index < elf->section_count);
    return elf->data + elf->section_table + (uint64_t)index * SECTION_BYTES;
}

static void decode_section(const uint8_t *header, uint32_t index, struct elf_section *section)
{
    *section = (struct elf_section){ .index = index,
                                     .name = bytes_load_u32(header),
                                     .type = bytes_load_u32(header + 4),
                                     .flags = bytes_load_u64(header + 8),
                                     .address = bytes_load_u64(header + 16),
                                     .offset = bytes_load_u64(header + 24),
                                     .bytes = bytes_load_u64(header + 32),
                                     .link = bytes_load_u32(header + 40),
                                     .info = bytes_load_u32(header + 44),
                                     .row_bytes = bytes_load_u64(header + 56) };
    /* It has a size, but no bytes in the file. */
    if (section->type == ELF_SECTION_NO_BITS || section->type == 0)
        section->bytes = 0;
}

/* More than 65,279 sections do not fit in the header: section 0 has their number then. */
static enum status find_sections(struct bytes *in, struct elf *elf, const struct header *header,
                                 uint32_t *ret_names_index, struct error *err)
{
    struct elf_section first = { 0 };
    uint64_t count = header->section_count, names = header->names_index;
    uint64_t at = header->section_table;
    if (at == 0)
        return bytes_fail(in, 40, "offset of section headers", err,
                          "0: the file has no sections; was it written to its end?");
    if (header->section_bytes != SECTION_BYTES)
        return bytes_fail(in, 58, "size of a section header", err, "expected %d, found %u",
                          SECTION_BYTES, header->section_bytes);
    if (!size_range_inside(at, SECTION_BYTES, in->size))
        return bytes_fail(in, 40, "offset of section headers", err,
                          "expected an offset inside the file of %" PRIu64 " bytes, found %" PRIu64
                          ": the file was cut short",
                          in->size, at);
    decode_section(in->data + at, 0, &first);
    if (count == 0)
        count = bytes_load_u64(in->data + at + 32);
    if (names == NAMES_IN_SECTION_0)
        names = first.link;
    uint64_t room = (in->size - at) / SECTION_BYTES;
    if (count == 0 || count > room)
        return bytes_fail(in, 60, "number of section headers", err,
                          "expected 1 to %" PRIu64
                          ", which is what fits in the file, found %" PRIu64 "%s",
                          room, count, count > room ? ": the file was cut short" : "");
    if (count > ELF_SECTION_LIMIT)
        return error_set(err, STATUS_LIMIT,
                         "%s: %" PRIu64 " sections: greta reads files of at most %u", in->source,
                         count, ELF_SECTION_LIMIT);
    elf->section_table = at;
    elf->section_count = (uint32_t)count;
    *ret_names_index = names < count ? (uint32_t)names : 0;
    return STATUS_OK;
}

enum status elf_open(const void *data, uint64_t bytes, const char *source, struct elf *ret_elf,
                     struct error *err)
{
    struct elf elf = { .data = data, .bytes = bytes, .source = source };
    struct elf_section names;
    struct header header;
    struct bytes in;
    uint32_t names_index;
    bytes_init(&in, data, bytes, source);
    TRY(read_header(&in, &elf, &header, err));
    TRY(find_sections(&in, &elf, &header, &names_index, err));
    if (names_index) {
        TRY(elf_section_at(&elf, names_index, &names, err));
        elf.names = (struct text_view){ (const char *)elf.data + names.offset, names.bytes };
    }
    *ret_elf = elf;
    return STATUS_OK;
}

enum status elf_section_at(const struct elf *elf, uint32_t index, struct elf_section *ret_section,
                           struct error *err)
{
    struct elf_section section;
    char name[128];
    decode_section(section_header(elf, index), index, &section);
    if (section.bytes == 0)
        section.offset = 0;
    if (!size_range_inside(section.offset, section.bytes, elf->bytes))
        return error_set(
            err, STATUS_BAD_FILE,
            "%s: section %" PRIu32 " (%s): %" PRIu64 " bytes at %" PRIu64
            " do not fit in the file of %" PRIu64 " bytes: the file was cut short or is "
            "damaged",
            elf->source, index, text_printable(elf_section_name(elf, &section), name, sizeof(name)),
            section.bytes, section.offset, elf->bytes);
    *ret_section = section;
    return STATUS_OK;
}

uint32_t elf_section_type(const struct elf *elf, uint32_t index)
{
    return bytes_load_u32(section_header(elf, index) + 4);
}

struct text_view elf_string(struct text_view table, uint64_t offset)
{
    if (offset >= table.length)
        return (struct text_view){ "", 0 };
    const char *text = table.bytes + offset;
    uint64_t left = table.length - offset;
    return (struct text_view){ text, strnlen(text, min_u64(left, ELF_NAME_BYTES)) };
}

struct text_view elf_section_name(const struct elf *elf, const struct elf_section *section)
{
    return elf_string(elf->names, section->name);
}
