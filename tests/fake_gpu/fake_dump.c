/* fake_dump.c - GPU core dumps of the fake driver: one grid, whose first warp failed, and its
 * kernel's image, made by hand. FAKE_GPU_DUMP: "none" (nothing is written), "crash" (the process
 * crashes when it exits after one, as with the real driver). */
#include "fake.h"

#include "dump_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ON_EXCEPTION = 1, DUMP_FILE = 5, FLAGS = 7, SKIP_ABORT = 16 };
#define CODE 0x7E0000000000u
#define CODE_BYTES 0x1000u
#define HANDLE 0x52u

static struct {
    char file[1024];
    int flags;
    bool on, written;
} settings;

EXPORT CUresult cuCoredumpSetAttributeGlobal(int setting, void *value, size_t *bytes);

CUresult cuCoredumpSetAttributeGlobal(int setting, void *value, size_t *bytes)
{
    if (setting == DUMP_FILE && *bytes <= sizeof(settings.file))
        memcpy(settings.file, value, *bytes);
    if (setting == FLAGS)
        memcpy(&settings.flags, value, sizeof(settings.flags));
    if (setting == ON_EXCEPTION)
        settings.on = *(const char *)value != 0;
    return 0;
}

static bool is_mode(const char *mode)
{
    const char *set = getenv("FAKE_GPU_DUMP");
    return set && strcmp(set, mode) == 0;
}

__attribute__((destructor)) static void leave(void)
{
    if (settings.written && is_mode("crash"))
        abort();
}

/* One kernel, without lines. */
static void make_image(const char *kernel, struct text *ret)
{
    static const char code[CODE_BYTES];
    struct elf_build build;
    struct text symbols, names;
    struct build_section section = {
        .name = ".text.all", .type = BUILD_PROGRAM, .flags = 2 | BUILD_EXECUTABLE, .address = CODE
    };
    elf_build_init(&build, 2, 190);
    uint32_t text = elf_build_add(&build, &section, code, sizeof(code));
    text_init(&symbols);
    text_init(&names);
    for (int i = 0; i < 3; i++)
        build_add_number(&symbols, 0, 8);
    build_add_number(&symbols, 1, 4);
    build_add_number(&symbols, 0x12, 1); /* a global function */
    build_add_number(&symbols, 0x10, 1); /* a kernel */
    build_add_number(&symbols, text, 2);
    build_add_number(&symbols, CODE, 8);
    build_add_number(&symbols, CODE_BYTES, 8);
    text_add_bytes(&names, "", 1);
    text_add_bytes(&names, kernel, strlen(kernel) + 1);
    section = (struct build_section){
        .name = ".symtab", .type = BUILD_SYMBOLS, .link = text + 2, .info = 1, .row_bytes = 24
    };
    elf_build_add(&build, &section, symbols.bytes, symbols.length);
    section = (struct build_section){ .name = ".strtab", .type = BUILD_STRINGS };
    elf_build_add(&build, &section, names.bytes, names.length);
    elf_build_finish(&build, ret);
    elf_build_release(&build);
    text_release(&symbols);
    text_release(&names);
}

#define ROW(rows, bytes, ...)                                                                      \
    dump_build_row((rows), (bytes), (const struct dump_field[]){ __VA_ARGS__, { 0, 0, 0 } })

static void add_module(struct dump_build *build, uint32_t devices, const char *kernel)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_CONTEXT_BYTES, { 0, 8, 1 }, { 36, 4, 1 });
    uint32_t contexts = dump_build_table(build, DUMP_CONTEXTS, ".cudbg.ctxtbl.dev0", devices, 0,
                                         DUMP_CONTEXT_BYTES, &rows);
    text_init(&rows);
    ROW(&rows, DUMP_MODULE_BYTES, { 0, 8, HANDLE });
    uint32_t modules = dump_build_table(build, DUMP_MODULES, ".cudbg.modtbl", contexts, 0,
                                        DUMP_MODULE_BYTES, &rows);
    make_image(kernel, &rows);
    dump_build_table(build, DUMP_IMAGE, ".cudbg.relfimg.mod0", modules, 0, 0, &rows);
}

static void add_grid(struct dump_build *build, uint32_t devices, const struct CUgraphNode_st *work)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_GRID_BYTES, { 0, 8, 1 }, { 8, 8, 1 }, { 24, 8, CODE }, { 32, 8, HANDLE },
        { 56, 4, 2 }, { 64, 4, 2 }, { 72, 4, work->grid_x }, { 76, 4, work->grid_y }, { 80, 4, 1 },
        { 84, 4, work->threads }, { 88, 4, 1 }, { 92, 4, 1 });
    uint32_t grids = dump_build_table(build, DUMP_GRIDS, ".cudbg.gridtbl.dev0", devices, 0,
                                      DUMP_GRID_BYTES, &rows);
    text_init(&rows);
    text_add_bytes(&rows, (const char *)&work->call, sizeof(work->call));
    dump_build_table(build, DUMP_PARAMETERS, ".cudbg.param.dev0", grids, 0, 0, &rows);
}

static void add_warp(struct dump_build *build, uint32_t devices)
{
    struct text rows;
    text_init(&rows);
    ROW(&rows, DUMP_SM_BYTES, { 0, 4, 0 });
    uint32_t sms = dump_build_table(build, DUMP_SMS, ".cudbg.smtbl.dev0", devices, 0, DUMP_SM_BYTES,
                                    &rows);
    text_init(&rows);
    ROW(&rows, DUMP_BLOCK_BYTES, { 0, 8, 1 });
    uint32_t blocks = dump_build_table(build, DUMP_BLOCKS, ".cudbg.ctatbl.dev0.sm0", sms, 0,
                                       DUMP_BLOCK_BYTES, &rows);
    text_init(&rows);
    ROW(&rows, DUMP_WARP_BYTES, { 0, 8, CODE + 0x30 }, { 12, 4, UINT32_MAX }, { 16, 4, 1 },
        { 24, 4, 1 });
    uint32_t warps = dump_build_table(build, DUMP_WARPS, ".cudbg.wptbl.dev0.sm0.cta0", blocks, 0,
                                      DUMP_WARP_BYTES, &rows);
    text_init(&rows);
    for (uint32_t lane = 0; lane < 32; lane++)
        ROW(&rows, DUMP_LANE_BYTES, { 0, 8, CODE + 0x30 }, { 16, 4, lane }, { 20, 4, lane },
            { 32, 4, lane ? 0 : 14 });
    dump_build_table(build, DUMP_LANES, ".cudbg.lntbl.dev0.sm0.cta0.wp0", warps, 0, DUMP_LANE_BYTES,
                     &rows);
}

void fake_dump(const struct CUgraphNode_st *work)
{
    struct dump_build build;
    struct text rows;
    if (!settings.on || settings.written || work->kind != WORK_KERNEL || is_mode("none"))
        return;
    settings.written = true;
    dump_build_init(&build);
    text_init(&rows);
    ROW(&rows, DUMP_DEVICE_BYTES, { 0, 8, dump_build_name(&build, "Emulated") },
        { 8, 8, dump_build_name(&build, "GH100") }, { 16, 8, dump_build_name(&build, "sm_90") },
        { 36, 4, 1 }, { 40, 4, 64 }, { 44, 4, 32 }, { 56, 4, 9 });
    uint32_t devices = dump_build_table(&build, DUMP_DEVICES, ".cudbg.devtbl", 0, 0,
                                        DUMP_DEVICE_BYTES, &rows);
    add_module(&build, devices, work->kernel->name);
    add_grid(&build, devices, work);
    add_warp(&build, devices);
    dump_build_finish(&build, &rows);
    dump_build_release(&build);
    FILE *file = fopen(settings.file, "wb");
    if (file) {
        fwrite(rows.bytes, 1, rows.length, file);
        fclose(file);
    }
    text_release(&rows);
    if (!(settings.flags & SKIP_ABORT))
        abort();
}
