/* dump_build.c - see dump_build.h. */
#include "dump_build.h"

#include "base/bytes.h"

#include <string.h>

enum { CORE = 4, CUDA = 190, SYMBOL_BYTES = 24, FUNCTION = 2, ADDENDS = 4 };

void dump_build_init(struct dump_build *build)
{
    elf_build_init(&build->elf, CORE, CUDA);
    text_init(&build->strings);
    text_add_bytes(&build->strings, "", 1);
}

void dump_build_release(struct dump_build *build)
{
    elf_build_release(&build->elf);
    text_release(&build->strings);
}

uint32_t dump_build_name(struct dump_build *build, const char *name)
{
    uint32_t at = (uint32_t)build->strings.length;
    text_add_bytes(&build->strings, name, strlen(name) + 1);
    return at;
}

uint32_t dump_build_table(struct dump_build *build, enum dump_type type, const char *name,
                          uint32_t parent, uint32_t row, size_t row_bytes, struct text *rows)
{
    struct build_section section = { .name = name,
                                     .type = 0x80000000u + (uint32_t)type,
                                     .link = parent,
                                     .info = row,
                                     .row_bytes = row_bytes };
    uint32_t index = elf_build_add(&build->elf, &section, rows->bytes, rows->length);
    text_release(rows);
    return index;
}

void dump_build_finish(struct dump_build *build, struct text *ret_file)
{
    static const struct build_section strings = { .name = ".strtab", .type = BUILD_STRINGS };
    elf_build_add(&build->elf, &strings, build->strings.bytes, build->strings.length);
    elf_build_finish(&build->elf, ret_file);
}

void dump_build_row(struct text *rows, size_t row_bytes, const struct dump_field *fields)
{
    size_t start = rows->length;
    text_add_fill(rows, 0, row_bytes);
    for (; fields->bytes; fields++)
        build_put_number(rows, start + fields->at, fields->value, fields->bytes);
}

/* ---- A whole dump --------------------------------------------------------------------------- */

#define ROW(rows, bytes, ...)                                                                      \
    dump_build_row((rows), (bytes), (const struct dump_field[]){ __VA_ARGS__, { 0, 0, 0 } })

static uint32_t add_devices(struct dump_build *build)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_DEVICE_BYTES, { 0, 8, dump_build_name(build, "NVIDIA H200") },
        { 8, 8, dump_build_name(build, "GH100") }, { 16, 8, dump_build_name(build, "sm_90") },
        { 28, 4, 0x18 }, { 36, 4, 132 }, { 40, 4, 64 }, { 44, 4, 32 }, { 56, 4, 9 });
    return dump_build_table(build, DUMP_DEVICES, ".cudbg.devtbl", 0, 0, DUMP_DEVICE_BYTES, &rows);
}

static void add_context(struct dump_build *build, uint32_t devices,
                        const struct dump_specimen *specimen)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_CONTEXT_BYTES, { 0, 8, 1 }, { 36, 4, 4711 });
    uint32_t contexts = dump_build_table(build, DUMP_CONTEXTS, ".cudbg.ctxtbl.dev0", devices, 0,
                                         DUMP_CONTEXT_BYTES, &rows);
    text_init(&rows);
    ROW(&rows, DUMP_MODULE_BYTES, { 0, 8, DUMP_SPECIMEN_HANDLE });
    uint32_t modules = dump_build_table(build, DUMP_MODULES, ".cudbg.modtbl.dev0.ctx1", contexts, 0,
                                        DUMP_MODULE_BYTES, &rows);
    if (!specimen->image)
        return;
    text_init(&rows);
    text_add_bytes(&rows, specimen->image, specimen->image_bytes);
    dump_build_table(build, DUMP_IMAGE, ".cudbg.relfimg.dev0.ctx1.mod0", modules, 0, 0, &rows);
}

static void add_grids(struct dump_build *build, uint32_t devices,
                      const struct dump_specimen *specimen)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_GRID_BYTES, { 0, 8, DUMP_SPECIMEN_GRID }, { 8, 8, 1 }, { 16, 8, 0x7000 },
        { 24, 8, specimen->entry }, { 32, 8, DUMP_SPECIMEN_HANDLE }, { 56, 4, 2 }, { 64, 4, 2 },
        { 68, 4, 24 }, { 72, 4, 16 }, { 76, 4, 1 }, { 80, 4, 1 }, { 84, 4, 256 }, { 88, 4, 1 },
        { 92, 4, 1 }, { 100, 4, 4711 }, { 104, 4, 1 }, { 108, 4, 1 }, { 112, 4, 1 });
    ROW(&rows, DUMP_GRID_BYTES, { 0, 8, DUMP_SPECIMEN_OTHER }, { 8, 8, 1 }, { 24, 8, 0x40 },
        { 32, 8, 0x1234 }, { 56, 4, 2 }, { 64, 4, 1 }, { 72, 4, 1 }, { 76, 4, 1 }, { 80, 4, 1 },
        { 84, 4, 32 }, { 88, 4, 1 }, { 92, 4, 1 });
    uint32_t grids = dump_build_table(build, DUMP_GRIDS, ".cudbg.gridtbl.dev0", devices, 0,
                                      DUMP_GRID_BYTES, &rows);
    if (!specimen->argument_bytes)
        return;
    text_init(&rows);
    for (size_t i = 1; i <= specimen->argument_bytes; i++)
        build_add_number(&rows, i, 1);
    dump_build_table(build, DUMP_PARAMETERS, ".cudbg.param.dev0.grid55", grids, 0, 0, &rows);
}

static void add_lanes(struct dump_build *build, uint32_t warps, uint32_t row,
                      const struct dump_specimen *specimen, bool failed)
{
    struct text rows;
    text_init(&rows);
    for (uint32_t lane = 0; lane < 32; lane++)
        ROW(&rows, DUMP_LANE_BYTES, { 0, 8, specimen->pc }, { 16, 4, lane },
            { 20, 4, 96 + 32 * row + lane },
            { 32, 4, failed && (lane == 4 || lane == 5) ? specimen->exception : 0 });
    dump_build_table(build, DUMP_LANES, ".cudbg.lntbl.dev0.sm7.cta0.wp", warps, row,
                     DUMP_LANE_BYTES, &rows);
}

static void add_sms(struct dump_build *build, uint32_t devices,
                    const struct dump_specimen *specimen)
{
    uint32_t failed = specimen->failed_warps ? specimen->failed_warps : 1;
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_SM_BYTES, { 0, 4, 6 });
    ROW(&rows, DUMP_SM_BYTES, { 0, 4, 7 }, { 8, 4, specimen->sm_exception });
    uint32_t sms = dump_build_table(build, DUMP_SMS, ".cudbg.smtbl.dev0", devices, 0, DUMP_SM_BYTES,
                                    &rows);
    text_init(&rows);
    ROW(&rows, DUMP_BLOCK_BYTES, { 0, 8, DUMP_SPECIMEN_GRID }, { 8, 4, 8 });
    uint32_t blocks = dump_build_table(build, DUMP_BLOCKS, ".cudbg.ctatbl.dev0.sm7", sms, 1,
                                       DUMP_BLOCK_BYTES, &rows);
    text_init(&rows);
    for (uint32_t i = 0; i < failed + 1; i++)
        ROW(&rows, DUMP_WARP_BYTES, { 0, 8, i < failed && specimen->error_pc ? specimen->pc : 0 },
            { 8, 4, 3 + i }, { 12, 4, UINT32_MAX }, { 16, 4, 0x30 },
            { 24, 4, i < failed && specimen->error_pc });
    uint32_t warps = dump_build_table(build, DUMP_WARPS, ".cudbg.wptbl.dev0.sm7.cta0", blocks, 0,
                                      DUMP_WARP_BYTES, &rows);
    for (uint32_t i = 0; i < failed + 1; i++)
        add_lanes(build, warps, i, specimen, i < failed);
}

static void add_metadata(struct dump_build *build)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_METADATA_BYTES, { 0, 8, dump_build_name(build, "CUDA Driver") }, { 8, 4, 580 },
        { 12, 4, 65 }, { 16, 4, 13 }, { 28, 4, 1700000000 });
    dump_build_table(build, DUMP_METADATA, ".cudbg.meta", 0, 0, DUMP_METADATA_BYTES, &rows);
}

void dump_specimen(const struct dump_specimen *specimen, struct text *ret_file)
{
    struct dump_build build;
    dump_build_init(&build);
    build.elf.many_sections = specimen->many_sections;
    uint32_t devices = add_devices(&build);
    add_context(&build, devices, specimen);
    add_grids(&build, devices, specimen);
    add_sms(&build, devices, specimen);
    if (!specimen->no_metadata)
        add_metadata(&build);
    dump_build_finish(&build, ret_file);
    dump_build_release(&build);
}

/* ---- Relocation ----------------------------------------------------------------------------- */

static uint64_t header_number(const struct text *file, uint32_t section, size_t at)
{
    return bytes_load_u64((const uint8_t *)file->bytes + build_section_at(file, section) + at);
}

static uint32_t header_word(const struct text *file, uint32_t section, size_t at)
{
    return bytes_load_u32((const uint8_t *)file->bytes + build_section_at(file, section) + at);
}

static void relocate_symbols(struct text *cubin, uint32_t section)
{
    size_t at = header_number(cubin, section, 24), bytes = header_number(cubin, section, 32);
    for (; bytes >= SYMBOL_BYTES; bytes -= SYMBOL_BYTES, at += SYMBOL_BYTES) {
        const uint8_t *symbol = (const uint8_t *)cubin->bytes + at;
        uint16_t index = bytes_load_u16(symbol + 6);
        if ((symbol[4] & 15) == FUNCTION)
            build_put_number(cubin, at + 8,
                             bytes_load_u64(symbol + 8) + header_number(cubin, index, 16), 8);
    }
}

/* Writes the addresses that the relocations of the line table stand for, after the symbols have
 * theirs. */
static void relocate_lines(struct text *cubin, uint32_t section)
{
    uint32_t symbols = header_word(cubin, section, 40), lines = header_word(cubin, section, 44);
    size_t symbols_at = header_number(cubin, symbols, 24);
    size_t at = header_number(cubin, section, 24), bytes = header_number(cubin, section, 32);
    for (; bytes >= 24; bytes -= 24, at += 24) {
        const uint8_t *entry = (const uint8_t *)cubin->bytes + at;
        uint64_t symbol = bytes_load_u64(entry + 8) >> 32;
        uint64_t value = bytes_load_u64((const uint8_t *)cubin->bytes + symbols_at +
                                        symbol * SYMBOL_BYTES + 8);
        build_put_number(cubin, header_number(cubin, lines, 24) + bytes_load_u64(entry),
                         value + bytes_load_u64(entry + 16), 8);
    }
}

static bool is_called(const struct text *cubin, uint32_t section, const char *name)
{
    uint16_t names = bytes_load_u16((const uint8_t *)cubin->bytes + 62);
    const char *text = cubin->bytes + header_number(cubin, names, 24);
    return strcmp(text + header_word(cubin, section, 0), name) == 0;
}

static void set_addresses(struct text *cubin, uint64_t address, uint64_t apart)
{
    uint16_t count = bytes_load_u16((const uint8_t *)cubin->bytes + 60);
    for (uint16_t i = 0; i < count; i++)
        if (header_word(cubin, i, 4) == BUILD_PROGRAM &&
            header_number(cubin, i, 8) & BUILD_EXECUTABLE) {
            build_put_number(cubin, build_section_at(cubin, i) + 16, address, 8);
            address += apart;
        }
}

void dump_relocate(struct text *cubin, uint64_t address, enum dump_relocation what)
{
    uint16_t count = bytes_load_u16((const uint8_t *)cubin->bytes + 60);
    set_addresses(cubin, address, 0x10000);
    if (what == DUMP_RELOCATE_SECTIONS)
        return;
    for (uint16_t i = 0; i < count; i++)
        if (header_word(cubin, i, 4) == BUILD_SYMBOLS)
            relocate_symbols(cubin, i);
    for (uint16_t i = 0; i < count && what == DUMP_RELOCATE_ALL; i++)
        if (header_word(cubin, i, 4) == ADDENDS && is_called(cubin, i, ".rela.debug_line"))
            relocate_lines(cubin, i);
    if (what == DUMP_RELOCATE_SYMBOLS)
        set_addresses(cubin, 0, 0);
}
