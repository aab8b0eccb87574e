/* fake_dump.c - grid numbers and GPU core dumps of the emulated driver; see fake_trace.h. As the
 * real driver it counts the grids of each context from 1, memsets too; the nodes of a graph get
 * numbers when it is instantiated, and keep them in all replays. A dump has a kernel's image if the
 * kernel is in tests/data/coredump/faults.cubin (FAKE_CUBIN) or is made by hand here.
 *
 * FAKE_DUMP says what goes wrong: "refused" (a setting is), "none" (nothing is written), "cut",
 * "garbage", "unnamed" (no images), "no-arguments", "foreign" (of another program). */
#include "fake_driver.h"

#include "dump_build.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ON_EXCEPTION = 1, DUMP_FILE = 5, FLAGS = 7, SKIP_ABORT = 16, REFUSED = 801 };
enum { CONTEXT_LIMIT = 4, LIVE_LIMIT = 16 };
#define CUBIN_CODE 0x7F0000000000u
#define NEST_CODE (CUBIN_CODE + 0x10000u)
#define HAND_CODE 0x7E0000000000u
#define HAND_APART 0x1000u

static struct {
    char file[1024];
    int flags, on, written;
} settings;

static struct {
    void *handle;
    uint64_t grids;
} contexts[CONTEXT_LIMIT];

static struct fake_launch live[LIVE_LIMIT];
static size_t launches;

static int is_mode(const char *mode)
{
    const char *set = getenv("FAKE_DUMP");
    return set && strcmp(set, mode) == 0;
}

#ifndef FAKE_OLD
EXPORT result cuCoredumpSetAttributeGlobal(int setting, void *value, size_t *bytes)
{
    if (setting == FLAGS && is_mode("refused"))
        return REFUSED;
    if (setting == DUMP_FILE && *bytes <= sizeof(settings.file))
        memcpy(settings.file, value, *bytes);
    if (setting == FLAGS)
        memcpy(&settings.flags, value, sizeof(int));
    if (setting == ON_EXCEPTION)
        settings.on = *(const char *)value != 0;
    return OK;
}
#endif

/* What a program has the driver call at its end. */
static void (*fake_leaving)(void);

/* A driver that wrote a dump may crash when the process exits. */
__attribute__((destructor)) static void leave(void)
{
    if (settings.written && fake_leaving)
        fake_leaving();
    if (settings.written && getenv("FAKE_CRASH"))
        raise(SIGSEGV);
}

EXPORT void fake_when_leaving(void (*called)(void))
{
    fake_leaving = called;
}

uint64_t fake_next_grid(void)
{
    void *now = fake_context();
    for (size_t i = 0; i < CONTEXT_LIMIT; i++) {
        if (!contexts[i].handle)
            contexts[i].handle = now;
        if (contexts[i].handle == now)
            return ++contexts[i].grids;
    }
    return 0;
}

static uint64_t context_number(void)
{
    for (uint64_t i = 0; i < CONTEXT_LIMIT; i++)
        if (contexts[i].handle == fake_context())
            return i + 1;
    return 0;
}

void fake_note_launch(const struct fake_launch *launch)
{
    live[launches++ % LIVE_LIMIT] = *launch;
}

/* ---- Images --------------------------------------------------------------------------------- */

static const char *const by_hand[] = { "out_of_bounds", "third_time" };
enum { BY_HAND = sizeof(by_hand) / sizeof(*by_hand) };

static uint64_t code_of(const char *kernel)
{
    for (uint64_t i = 0; i < BY_HAND; i++)
        if (strcmp(kernel, by_hand[i]) == 0)
            return HAND_CODE + i * HAND_APART;
    return strcmp(kernel, "_Z4nestPfPKfi") == 0 ? NEST_CODE : 0x100;
}

static int read_cubin(struct text *ret)
{
    char buffer[4096];
    size_t count;
    const char *path = getenv("FAKE_CUBIN");
    FILE *file = path ? fopen(path, "rb") : NULL;
    text_init(ret);
    while (file && (count = fread(buffer, 1, sizeof(buffer), file)) > 0)
        text_add_bytes(ret, buffer, count);
    if (file)
        fclose(file);
    if (ret->length)
        dump_relocate(ret, CUBIN_CODE, DUMP_RELOCATE_ALL);
    return ret->length != 0;
}

/* Symbols without anything else: names, no lines. */
static void make_image(struct text *ret)
{
    static const char code[BY_HAND * HAND_APART];
    struct elf_build build;
    struct text symbols, names;
    struct build_section section = { .name = ".text.all",
                                     .type = BUILD_PROGRAM,
                                     .flags = 2 | BUILD_EXECUTABLE,
                                     .address = HAND_CODE };
    elf_build_init(&build, 2, 190);
    uint32_t text = elf_build_add(&build, &section, code, sizeof(code));
    text_init(&symbols);
    text_init(&names);
    text_add_bytes(&names, "", 1);
    build_add_number(&symbols, 0, 8);
    build_add_number(&symbols, 0, 8);
    build_add_number(&symbols, 0, 8);
    for (size_t i = 0; i < BY_HAND; i++) {
        build_add_number(&symbols, names.length, 4);
        build_add_number(&symbols, 0x12, 1); /* a global function */
        build_add_number(&symbols, 0x10, 1); /* a kernel */
        build_add_number(&symbols, text, 2);
        build_add_number(&symbols, HAND_CODE + i * HAND_APART, 8);
        build_add_number(&symbols, HAND_APART, 8);
        text_add_bytes(&names, by_hand[i], strlen(by_hand[i]) + 1);
    }
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

/* ---- The dump ------------------------------------------------------------------------------- */

#define ROW(rows, bytes, ...)                                                                      \
    dump_build_row((rows), (bytes), (const struct dump_field[]){ __VA_ARGS__, { 0, 0, 0 } })

enum { HANDLE_CUBIN = 0x51, HANDLE_HAND = 0x52 };

static void add_modules(struct dump_build *build, uint32_t contexts_table)
{
    struct text rows, image;
    text_init(&rows);
    ROW(&rows, DUMP_MODULE_BYTES, { 0, 8, HANDLE_CUBIN });
    ROW(&rows, DUMP_MODULE_BYTES, { 0, 8, HANDLE_HAND });
    uint32_t modules = dump_build_table(build, DUMP_MODULES, ".cudbg.modtbl", contexts_table, 0,
                                        DUMP_MODULE_BYTES, &rows);
    if (is_mode("unnamed"))
        return;
    if (read_cubin(&image))
        dump_build_table(build, DUMP_IMAGE, ".cudbg.relfimg.mod0", modules, 0, 0, &image);
    else
        text_release(&image);
    make_image(&image);
    dump_build_table(build, DUMP_IMAGE, ".cudbg.relfimg.mod1", modules, 1, 0, &image);
}

static void add_grid(struct text *rows, const struct fake_launch *launch)
{
    uint64_t code = code_of(launch->name);
    uint64_t module = code >= CUBIN_CODE ? HANDLE_CUBIN : code >= HAND_CODE ? HANDLE_HAND : 0x99;
    ROW(rows, DUMP_GRID_BYTES, { 0, 8, launch->number }, { 8, 8, launch->context }, { 24, 8, code },
        { 32, 8, module }, { 56, 4, 2 }, { 64, 4, 2 }, { 68, 4, 24 },
        { 72, 4, launch->grid[0] + (is_mode("foreign") ? 7 : 0) }, { 76, 4, launch->grid[1] },
        { 80, 4, launch->grid[2] }, { 84, 4, launch->block[0] }, { 88, 4, launch->block[1] },
        { 92, 4, launch->block[2] });
}

/* One warp, of which the third and the fourth lane failed. */
static void add_failed(struct dump_build *build, uint32_t devices, const struct fake_launch *launch)
{
    struct text rows;
    uint64_t pc = code_of(launch->name) + 0x30;
    text_init(&rows);
    ROW(&rows, DUMP_SM_BYTES, { 0, 4, 0 });
    uint32_t sms = dump_build_table(build, DUMP_SMS, ".cudbg.smtbl.dev0", devices, 0, DUMP_SM_BYTES,
                                    &rows);
    text_init(&rows);
    ROW(&rows, DUMP_BLOCK_BYTES, { 0, 8, launch->number }, { 8, 4, 0 });
    uint32_t blocks = dump_build_table(build, DUMP_BLOCKS, ".cudbg.ctatbl.dev0.sm0", sms, 0,
                                       DUMP_BLOCK_BYTES, &rows);
    text_init(&rows);
    ROW(&rows, DUMP_WARP_BYTES, { 0, 8, pc }, { 8, 4, 0 }, { 12, 4, UINT32_MAX }, { 16, 4, 0xC },
        { 24, 4, 1 });
    uint32_t warps = dump_build_table(build, DUMP_WARPS, ".cudbg.wptbl.dev0.sm0.cta0", blocks, 0,
                                      DUMP_WARP_BYTES, &rows);
    text_init(&rows);
    for (uint32_t lane = 0; lane < 32; lane++)
        ROW(&rows, DUMP_LANE_BYTES, { 0, 8, pc }, { 16, 4, lane }, { 20, 4, lane },
            { 32, 4, lane == 2 || lane == 3 ? 14 : 0 });
    dump_build_table(build, DUMP_LANES, ".cudbg.lntbl.dev0.sm0.cta0.wp0", warps, 0, DUMP_LANE_BYTES,
                     &rows);
}

static void make_dump(const struct fake_launch *failed, struct text *ret)
{
    struct dump_build build;
    struct text rows;
    dump_build_init(&build);
    text_init(&rows);
    ROW(&rows, DUMP_DEVICE_BYTES, { 0, 8, dump_build_name(&build, "Emulated") },
        { 8, 8, dump_build_name(&build, "GH100") }, { 16, 8, dump_build_name(&build, "sm_90") },
        { 36, 4, 1 }, { 40, 4, 64 }, { 44, 4, 32 }, { 56, 4, 9 });
    uint32_t devices = dump_build_table(&build, DUMP_DEVICES, ".cudbg.devtbl", 0, 0,
                                        DUMP_DEVICE_BYTES, &rows);
    text_init(&rows);
    ROW(&rows, DUMP_CONTEXT_BYTES, { 0, 8, failed->context }, { 36, 4, 1 });
    add_modules(&build, dump_build_table(&build, DUMP_CONTEXTS, ".cudbg.ctxtbl.dev0", devices, 0,
                                         DUMP_CONTEXT_BYTES, &rows));
    text_init(&rows);
    add_grid(&rows, failed);
    for (size_t i = 0; i < LIVE_LIMIT && i < launches; i++)
        if (live[i].number != failed->number && live[i].context == failed->context)
            add_grid(&rows, &live[i]);
    uint32_t grids = dump_build_table(&build, DUMP_GRIDS, ".cudbg.gridtbl.dev0", devices, 0,
                                      DUMP_GRID_BYTES, &rows);
    text_init(&rows);
    text_add_bytes(&rows, (const char *)failed->arguments, failed->argument_bytes);
    if (is_mode("no-arguments"))
        text_release(&rows);
    else
        dump_build_table(&build, DUMP_PARAMETERS, ".cudbg.param.dev0", grids, 0, 0, &rows);
    add_failed(&build, devices, failed);
    dump_build_finish(&build, ret);
    dump_build_release(&build);
}

void fake_fail(const struct fake_launch *launch)
{
    struct text dump;
    struct fake_launch failed = *launch;
    fake_lost = 1;
    if (!settings.on || settings.written || is_mode("none"))
        return;
    failed.context = context_number();
    make_dump(&failed, &dump);
    if (is_mode("garbage"))
        memset(dump.bytes, 'x', dump.length);
    FILE *file = fopen(settings.file, "wb");
    if (file) {
        fwrite(dump.bytes, 1, is_mode("cut") ? dump.length / 2 : dump.length, file);
        fclose(file);
    }
    text_release(&dump);
    settings.written = 1;
    if (!(settings.flags & SKIP_ABORT))
        abort();
}
