/* coredump_damaged_test.c - dumps that are cut, changed, or made to keep a reader busy: they are
 * refused or read, without a crash and without much work. */
#include "coredump_opened.h"

/* Reads a copy of exactly that size, so that sanitizers see a byte read past its end; looks at all
 * that was read. */
static enum status read_bytes(const char *bytes, size_t count, struct error *err)
{
    char *copy = malloc(count ? count : 1);
    struct coredump *dump;
    uint64_t total;
    assert_non_null(copy);
    memcpy(copy, bytes, count);
    enum status status = coredump_open_memory(copy, count, "dump", &dump, err);
    if (!status) {
        for (size_t i = 0; i < coredump_grid_count(dump); i++) {
            const struct coredump_grid *grid = coredump_grid_at(dump, i);
            for (size_t j = 0; j < grid->argument_count; j++)
                assert_true((uint64_t)grid->arguments[j].offset + grid->arguments[j].bytes <=
                            grid->argument_byte_count);
        }
        for (size_t i = 0; i < coredump_exception_count(dump, &total); i++)
            assert_true(coredump_exception_at(dump, i)->place_index == COREDUMP_NO_INDEX ||
                        coredump_exception_at(dump, i)->place_index < coredump_place_count(dump));
        coredump_close(dump);
    }
    free(copy);
    return status;
}

static void make_small(struct text *file, struct text *cubin)
{
    opened_cubin(cubin);
    dump_relocate(cubin, OPENED_CODE, DUMP_RELOCATE_SECTIONS);
    struct dump_specimen specimen = { .image = cubin->bytes,
                                      .image_bytes = cubin->length,
                                      .entry = OPENED_NEST,
                                      .pc = OPENED_NEST + 0x30,
                                      .exception = 14,
                                      .error_pc = true,
                                      .argument_bytes = 24 };
    dump_specimen(&specimen, file);
}

/* The table of sections is at the end: every cut is seen. */
static void test_cut(void **state)
{
    (void)state;
    struct text file, cubin;
    struct error err;
    make_small(&file, &cubin);
    for (size_t i = 0; i < file.length; i++)
        CHECK_FAILS(read_bytes(file.bytes, i, &err), STATUS_BAD_FILE, &err);
    CHECK_OK(read_bytes(file.bytes, file.length, &err), &err);
    text_release(&file);
    text_release(&cubin);
}

/* Every byte, changed in four ways. */
static void test_changed(void **state)
{
    (void)state;
    static const unsigned char changes[] = { 0x01, 0x80, 0xFF, 0x10 };
    struct text file, cubin;
    struct error err;
    size_t refused = 0;
    make_small(&file, &cubin);
    for (size_t i = 0; i < file.length; i++)
        for (size_t j = 0; j < COUNT_OF(changes); j++) {
            file.bytes[i] = (char)(file.bytes[i] ^ (char)changes[j]);
            if (read_bytes(file.bytes, file.length, &err)) {
                refused++;
                assert_true(err.text[0] != '\0');
            }
            file.bytes[i] = (char)(file.bytes[i] ^ (char)changes[j]);
        }
    assert_true(refused > 100);
    text_release(&file);
    text_release(&cubin);
}

/* ---- Hostile files --------------------------------------------------------------------------- */

static uint32_t add_rows(struct dump_build *build, enum dump_type type, uint32_t parent,
                         size_t row_bytes, size_t rows)
{
    struct text text;
    text_init(&text);
    text_add_fill(&text, 0, row_bytes * rows);
    return dump_build_table(build, type, ".rows", parent, 0, row_bytes, &text);
}

/* Many sections of one kind over the same bytes, under `parent`. */
static void add_overlapping(struct dump_build *build, uint32_t section, size_t count)
{
    struct text *headers = &build->elf.headers;
    struct text copy;
    text_init(&copy);
    text_add_bytes(&copy, headers->bytes + (size_t)section * BUILD_SECTION_BYTES,
                   BUILD_SECTION_BYTES);
    for (size_t i = 0; i < count; i++)
        text_add_bytes(headers, copy.bytes, copy.length);
    build->elf.section_count += (uint32_t)count;
    text_release(&copy);
}

/* 100,000 tables of lanes, or of warps, over the same bytes: the work is bounded by the file. */
static void test_overlapping(void **state)
{
    (void)state;
    for (int lanes = 0; lanes < 2; lanes++) {
        struct dump_build build;
        struct text file;
        struct error err;
        dump_build_init(&build);
        build.elf.many_sections = true;
        uint32_t devices = add_rows(&build, DUMP_DEVICES, 0, DUMP_DEVICE_BYTES, 1);
        uint32_t sms = add_rows(&build, DUMP_SMS, devices, DUMP_SM_BYTES, 1);
        uint32_t blocks = add_rows(&build, DUMP_BLOCKS, sms, DUMP_BLOCK_BYTES, 1);
        uint32_t warps = add_rows(&build, DUMP_WARPS, blocks, DUMP_WARP_BYTES, lanes ? 1 : 10000);
        uint32_t table = lanes ? add_rows(&build, DUMP_LANES, warps, DUMP_LANE_BYTES, 32) : warps;
        add_overlapping(&build, table, 100000);
        dump_build_finish(&build, &file);
        dump_build_release(&build);
        uint64_t start = processor_ns();
        CHECK_FAILS(read_bytes(file.bytes, file.length, &err), STATUS_LIMIT, &err);
        check_contains("overlap", err.text, "its sections overlap");
        assert_true(processor_ns() - start < 5000000000u);
        text_release(&file);
    }
}

/* 10,000 modules, all with the same image: the image is read for the grids that need it, and then
 * no more bytes than a few times the file. */
static void test_shared_image(void **state)
{
    (void)state;
    struct dump_build build;
    struct text file, cubin, rows;
    struct error err;
    enum { COUNT = 10000 };
    opened_cubin(&cubin);
    dump_build_init(&build);
    build.elf.many_sections = true;
    uint32_t devices = add_rows(&build, DUMP_DEVICES, 0, DUMP_DEVICE_BYTES, 1);
    uint32_t contexts = add_rows(&build, DUMP_CONTEXTS, 0, DUMP_CONTEXT_BYTES, 1);
    text_init(&rows);
    for (uint64_t i = 0; i < COUNT; i++)
        build_add_number(&rows, i, 8);
    uint32_t modules = dump_build_table(&build, DUMP_MODULES, ".m", contexts, 0, DUMP_MODULE_BYTES,
                                        &rows);
    text_init(&rows);
    text_add_bytes(&rows, cubin.bytes, cubin.length);
    uint32_t image = dump_build_table(&build, DUMP_IMAGE, ".i", modules, 0, 0, &rows);
    add_overlapping(&build, image, COUNT - 1);
    for (uint32_t i = 1; i < COUNT; i++)
        build_put_number(&build.elf.headers, (size_t)(image + i) * BUILD_SECTION_BYTES + 44, i, 4);
    text_init(&rows);
    for (uint64_t i = 0; i < COUNT; i++)
        dump_build_row(&rows, DUMP_GRID_BYTES, (const struct dump_field[]){ { 32, 8, i }, { 0 } });
    dump_build_table(&build, DUMP_GRIDS, ".g", devices, 0, DUMP_GRID_BYTES, &rows);
    dump_build_finish(&build, &file);
    dump_build_release(&build);
    uint64_t start = processor_ns();
    CHECK_OK(read_bytes(file.bytes, file.length, &err), &err);
    assert_true(processor_ns() - start < 5000000000u);
    text_release(&file);
    text_release(&cubin);
}

/* Counts that no dump has. */
static void test_limits(void **state)
{
    (void)state;
    static const struct {
        enum dump_type type;
        size_t row_bytes, rows;
        const char *words;
    } tables[] = {
        { DUMP_GRIDS, DUMP_GRID_BYTES, 65537, "live grids" },
        { DUMP_SMS, DUMP_SM_BYTES, 65537, "SMs" },
        { DUMP_CONTEXTS, DUMP_CONTEXT_BYTES, 1025, "table of contexts" },
    };
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        struct dump_build build;
        struct text file;
        struct error err;
        dump_build_init(&build);
        uint32_t devices = add_rows(&build, DUMP_DEVICES, 0, DUMP_DEVICE_BYTES, 1);
        add_rows(&build, tables[i].type, devices, tables[i].row_bytes, tables[i].rows);
        dump_build_finish(&build, &file);
        dump_build_release(&build);
        CHECK_FAILS(read_bytes(file.bytes, file.length, &err), STATUS_LIMIT, &err);
        check_contains("limit", err.text, tables[i].words);
        text_release(&file);
    }
}

/* As many sections as were measured in a real dump; most of them are registers of lanes. */
static void test_many_sections(void **state)
{
    (void)state;
    struct dump_build build;
    struct text file;
    struct error err;
    dump_build_init(&build);
    build.elf.many_sections = true;
    uint32_t devices = add_rows(&build, DUMP_DEVICES, 0, DUMP_DEVICE_BYTES, 1);
    uint32_t sms = add_rows(&build, DUMP_SMS, devices, DUMP_SM_BYTES, 132);
    uint32_t blocks = add_rows(&build, DUMP_BLOCKS, sms, DUMP_BLOCK_BYTES, 1);
    uint32_t warps = add_rows(&build, DUMP_WARPS, blocks, DUMP_WARP_BYTES, 8448);
    for (uint32_t i = 0; i < 8448; i++)
        add_rows(&build, DUMP_LANES, warps, DUMP_LANE_BYTES, 32);
    uint32_t registers = add_rows(&build, DUMP_REGISTERS, warps, 4, 255);
    add_overlapping(&build, registers, 400000);
    dump_build_finish(&build, &file);
    dump_build_release(&build);
    uint64_t start = processor_ns();
    CHECK_OK(read_bytes(file.bytes, file.length, &err), &err);
    assert_true(processor_ns() - start < 2000000000u);
    text_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_changed),
        cmocka_unit_test(test_overlapping), cmocka_unit_test(test_shared_image),
        cmocka_unit_test(test_limits),      cmocka_unit_test(test_many_sections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
