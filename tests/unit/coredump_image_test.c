/* coredump_image_test.c - kernels, arguments and source lines from a real cubin (faults.cubin), as
 * a driver may have relocated it. */
#include "coredump_opened.h"

enum relocated {
    RELOCATED_SECTIONS = DUMP_RELOCATE_SECTIONS,
    RELOCATED_SYMBOLS = DUMP_RELOCATE_SYMBOLS,
    RELOCATED_ALL = DUMP_RELOCATE_ALL,
    RELOCATED_NOT,
    RELOCATED_COUNT
};

static void open_faults(struct opened *opened, enum relocated how, struct dump_specimen *specimen)
{
    struct text cubin;
    opened_cubin(&cubin);
    if (how != RELOCATED_NOT)
        dump_relocate(&cubin, OPENED_CODE, (enum dump_relocation)how);
    specimen->image = cubin.bytes;
    specimen->image_bytes = cubin.length;
    opened_specimen(opened, specimen);
    text_release(&cubin);
}

static struct dump_specimen nest_at(uint64_t offset)
{
    return (struct dump_specimen){ .entry = OPENED_NEST,
                                   .pc = OPENED_NEST + offset,
                                   .exception = 14,
                                   .error_pc = true,
                                   .argument_bytes = 24 };
}

static void check_frame(const struct coredump_place *place, size_t index, const char *function,
                        uint32_t line)
{
    assert_true(index < place->frame_count);
    check_view(place->frames[index].function, function);
    check_view(place->frames[index].file, "faults.cu");
    check_view(place->frames[index].directory, "/tmp/faults");
    assert_int_equal(place->frames[index].line, line);
}

/* An inlined call in an inlined call: three frames, whatever the driver relocated. */
static void test_inlined(void **state)
{
    (void)state;
    for (int how = 0; how < RELOCATED_COUNT; how++) {
        struct dump_specimen specimen = nest_at(0x30);
        struct opened opened;
        open_faults(&opened, (enum relocated)how, &specimen);
        assert_int_equal(coredump_place_count(opened.dump), 1);
        const struct coredump_place *place = coredump_place_at(opened.dump, 0);
        assert_int_equal(place->function.naming,
                         how == RELOCATED_NOT ? COREDUMP_NAME_ONLY_FIT : COREDUMP_NAME_BY_ADDRESS);
        check_view(place->function.candidates[0], "_Z4nestPfPKfi");
        assert_int_equal(place->offset, 0x30);
        assert_int_equal(place->lines, COREDUMP_LINES_FOUND);
        assert_int_equal(place->frame_count, 3);
        assert_false(place->frames_cut);
        check_frame(place, 0, "_Z5innerPKfi", 15);
        check_frame(place, 1, "_Z5outerPKfi", 20);
        check_frame(place, 2, "_Z4nestPfPKfi", 28);
        opened_release(&opened);
    }
}

/* Each row of the table, as llvm-dwarfdump prints it. */
static void test_rows(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset;
        uint32_t line;
        size_t frames;
    } rows[] = { { 0x00, 25, 1 },  { 0x10, 27, 1 },  { 0x1F, 27, 1 },  { 0x20, 15, 3 },
                 { 0x7F, 15, 3 },  { 0x100, 22, 2 }, { 0x110, 15, 3 }, { 0x130, 28, 1 },
                 { 0x1A0, 29, 1 }, { 0x1AF, 29, 1 }, { 0x1B0, 10, 1 }, { 0x37F, 10, 1 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct dump_specimen specimen = nest_at(rows[i].offset);
        struct opened opened;
        open_faults(&opened, RELOCATED_SECTIONS, &specimen);
        const struct coredump_place *place = coredump_place_at(opened.dump, 0);
        assert_int_equal(place->frame_count, rows[i].frames);
        assert_int_equal(place->frames[0].line, rows[i].line);
        opened_release(&opened);
    }
}

/* The kernel of the grid is one function, the code that failed may be another. */
static void test_called_function(void **state)
{
    (void)state;
    for (int how = 0; how < RELOCATED_COUNT; how++) {
        struct dump_specimen specimen = nest_at(0x200);
        struct opened opened;
        open_faults(&opened, (enum relocated)how, &specimen);
        const struct coredump_place *place = coredump_place_at(opened.dump, 0);
        check_view(place->function.candidates[0], "_Z4deepPKfl");
        assert_int_equal(place->offset, 0x50);
        check_frame(place, 0, "_Z4deepPKfl", 10);
        check_view(coredump_grid_at(opened.dump, 0)->name.candidates[0], "_Z4nestPfPKfi");
        opened_release(&opened);
    }
}

static void test_arguments(void **state)
{
    (void)state;
    static const struct coredump_argument nest[] = { { 0, 8 }, { 8, 8 }, { 16, 4 } };
    static const struct coredump_argument scale[] = { { 0, 1 }, { 2, 2 }, { 8, 16 }, { 24, 8 } };
    static const struct {
        uint64_t entry;
        size_t bytes;
        const struct coredump_argument *arguments;
        size_t count;
        bool known;
    } kernels[] = {
        { OPENED_NEST, 20, nest, COUNT_OF(nest), true },
        { OPENED_NEST, 64, nest, COUNT_OF(nest), true },
        { OPENED_SCALE, 32, scale, COUNT_OF(scale), true },
        { OPENED_SCALE, 31, NULL, 0, false }, /* fewer bytes than the kernel takes */
        { OPENED_SCALE, 0, NULL, 0, false },  /* the dump has none */
    };
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        struct dump_specimen specimen = nest_at(0x30);
        struct opened opened;
        specimen.entry = kernels[i].entry;
        specimen.argument_bytes = kernels[i].bytes;
        open_faults(&opened, RELOCATED_SECTIONS, &specimen);
        const struct coredump_grid *grid = coredump_grid_at(opened.dump, 0);
        assert_int_equal(grid->name.naming, COREDUMP_NAME_BY_ADDRESS);
        assert_int_equal(grid->arguments_known, kernels[i].known);
        assert_int_equal(grid->argument_count, kernels[i].count);
        for (size_t j = 0; j < kernels[i].count; j++) {
            assert_int_equal(grid->arguments[j].offset, kernels[i].arguments[j].offset);
            assert_int_equal(grid->arguments[j].bytes, kernels[i].arguments[j].bytes);
        }
        opened_release(&opened);
    }
}

/* Nothing is guessed: without addresses a kernel has a name only if no other one fits. */
static void test_candidates(void **state)
{
    (void)state;
    static const struct {
        size_t bytes;
        enum coredump_naming naming;
        size_t candidates;
    } rows[] = { { 20, COREDUMP_NAME_ONLY_FIT, 1 },
                 { 32, COREDUMP_NAME_CANDIDATES, 2 },
                 { 0, COREDUMP_NAME_CANDIDATES, 2 },
                 { 8, COREDUMP_NAME_NOT_FOUND, 0 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct dump_specimen specimen = nest_at(0x30);
        struct opened opened;
        specimen.argument_bytes = rows[i].bytes;
        open_faults(&opened, RELOCATED_NOT, &specimen);
        const struct coredump_grid *grid = coredump_grid_at(opened.dump, 0);
        assert_int_equal(grid->name.naming, rows[i].naming);
        assert_int_equal(grid->name.candidate_count, rows[i].candidates);
        assert_int_equal(coredump_name_is_known(&grid->name), rows[i].candidates == 1);
        if (rows[i].candidates != 1)
            assert_int_equal(coredump_place_at(opened.dump, 0)->lines, COREDUMP_LINES_NO_FUNCTION);
        opened_release(&opened);
    }
}

/* Code that no image has. */
static void test_not_found(void **state)
{
    (void)state;
    struct dump_specimen specimen = nest_at(0x380);
    struct opened opened;
    specimen.entry = OPENED_NEST + 0x5000;
    open_faults(&opened, RELOCATED_SECTIONS, &specimen);
    assert_int_equal(coredump_grid_at(opened.dump, 0)->name.naming, COREDUMP_NAME_NOT_FOUND);
    assert_int_equal(coredump_place_at(opened.dump, 0)->function.naming, COREDUMP_NAME_NOT_FOUND);
    assert_int_equal(coredump_place_at(opened.dump, 0)->offset, 0);
    assert_int_equal(coredump_context_at(opened.dump, 0)->image_count, 1);
    opened_release(&opened);
}

/* The second section is at 0x180: the value 0x1b0 of the symbol of deep, which is in it, could be
 * an address or an offset. Nothing is named after it. */
static void test_two_readings(void **state)
{
    (void)state;
    const uint64_t nest = 0x180;
    struct dump_specimen specimen = nest_at(0);
    struct text cubin;
    struct opened opened;
    opened_cubin(&cubin);
    dump_relocate(&cubin, nest - 0x10000, DUMP_RELOCATE_SECTIONS);
    specimen.image = cubin.bytes;
    specimen.image_bytes = cubin.length;
    specimen.entry = nest;
    specimen.pc = nest + 0x40;
    opened_specimen(&opened, &specimen);
    check_view(coredump_place_at(opened.dump, 0)->function.candidates[0], "_Z4nestPfPKfi");
    opened_release(&opened);
    text_release(&cubin);
}

/* A grid whose context is not in the table: its module's handle decides, if one module has it. */
static void test_other_context(void **state)
{
    (void)state;
    enum { GRIDS = 5, CONTEXT = 8 };
    struct dump_specimen specimen = nest_at(0x30);
    struct text cubin, file;
    struct opened opened;
    uint64_t rows;
    opened_cubin(&cubin);
    dump_relocate(&cubin, OPENED_CODE, DUMP_RELOCATE_SECTIONS);
    specimen.image = cubin.bytes;
    specimen.image_bytes = cubin.length;
    dump_specimen(&specimen, &file);
    memcpy(&rows, file.bytes + build_section_at(&file, GRIDS) + 24, sizeof(rows));
    build_put_number(&file, rows + CONTEXT, 77, 8);
    opened_init(&opened, &file);
    assert_int_equal(coredump_grid_at(opened.dump, 0)->context_id, 77);
    check_view(coredump_grid_at(opened.dump, 0)->name.candidates[0], "_Z4nestPfPKfi");
    check_frame(coredump_place_at(opened.dump, 0), 2, "_Z4nestPfPKfi", 28);
    opened_release(&opened);
    text_release(&cubin);
}

/* An image that is no image: its names are missing, the rest of the dump is there. */
static void test_bad_image(void **state)
{
    (void)state;
    struct dump_specimen specimen = nest_at(0);
    struct opened opened;
    specimen.image = "this is no image";
    specimen.image_bytes = 16;
    opened_specimen(&opened, &specimen);
    assert_int_equal(coredump_bad_image_count(opened.dump), 1);
    check_contains("image", coredump_bad_image_reason(opened.dump), "not an ELF file");
    assert_int_equal(coredump_grid_at(opened.dump, 0)->name.naming, COREDUMP_NAME_NO_IMAGE);
    uint64_t total;
    assert_int_equal(coredump_exception_count(opened.dump, &total), 1);
    opened_release(&opened);
}

/* ---- Files for other tests --------------------------------------------------------------------
 */

static void write_dump(const char *folder, const char *name, enum relocated how, bool image,
                       struct dump_specimen specimen)
{
    char path[512];
    struct text cubin, file;
    opened_cubin(&cubin);
    if (how != RELOCATED_NOT)
        dump_relocate(&cubin, OPENED_CODE, (enum dump_relocation)how);
    specimen.image = image ? cubin.bytes : NULL;
    specimen.image_bytes = cubin.length;
    dump_specimen(&specimen, &file);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "wb");
    ASSERT(out && fwrite(file.bytes, 1, file.length, out) == file.length && fclose(out) == 0);
    text_release(&file);
    text_release(&cubin);
}

/* tests/cli/coredump_test.sh reads them, and fuzz/corpus/fuzz_coredump has copies. */
static void write_dumps(const char *folder)
{
    struct dump_specimen specimen = nest_at(0x30);
    write_dump(folder, "fault", RELOCATED_SECTIONS, true, specimen);
    write_dump(folder, "relocated", RELOCATED_ALL, true, specimen);
    write_dump(folder, "fits", RELOCATED_NOT, true, specimen);
    specimen.argument_bytes = 40;
    write_dump(folder, "candidates", RELOCATED_NOT, true, specimen);
    specimen.error_pc = false;
    specimen.failed_warps = 12;
    write_dump(folder, "no-image", RELOCATED_NOT, false, specimen);
    specimen = (struct dump_specimen){ .entry = OPENED_NEST, .sm_exception = 10 };
    write_dump(folder, "sm", RELOCATED_SECTIONS, true, specimen);
    specimen.sm_exception = 0;
    write_dump(folder, "hang", RELOCATED_SECTIONS, true, specimen);
}

/* With a folder as argument it writes dumps there. */
int main(int argument_count, char **arguments)
{
    if (argument_count > 1) {
        write_dumps(arguments[1]);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inlined),         cmocka_unit_test(test_rows),
        cmocka_unit_test(test_called_function), cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_candidates),      cmocka_unit_test(test_not_found),
        cmocka_unit_test(test_bad_image),       cmocka_unit_test(test_other_context),
        cmocka_unit_test(test_two_readings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
