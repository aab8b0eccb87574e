/* coredump_open_test.c - what a small dump says of devices, contexts, grids and arguments; which
 * files are refused, and how. */
#include "coredump_opened.h"

static const struct dump_specimen plain = {
    .entry = 0x1000, .pc = 0x1230, .exception = 14, .error_pc = true, .argument_bytes = 20
};

static void check_specimen(const struct dump_specimen *specimen)
{
    struct opened opened;
    opened_specimen(&opened, specimen);
    const struct coredump_info *info = coredump_info(opened.dump);
    assert_true(info->generator_known);
    check_view(info->generator, "CUDA Driver");
    assert_int_equal(info->driver_major, 580);
    assert_int_equal(info->driver_minor, 65);
    assert_int_equal(info->cuda_major, 13);
    assert_int_equal(coredump_device_count(opened.dump), 1);
    const struct coredump_device *device = coredump_device_at(opened.dump, 0);
    check_view(device->name, "NVIDIA H200");
    check_view(device->chip, "GH100");
    check_view(device->architecture, "sm_90");
    assert_int_equal(device->sm_count, 132);
    assert_int_equal(device->sm_major, 9);
    assert_int_equal(coredump_context_count(opened.dump), 1);
    assert_int_equal(coredump_context_at(opened.dump, 0)->host_thread, 4711);
    assert_int_equal(coredump_context_at(opened.dump, 0)->module_count, 1);
    assert_int_equal(coredump_context_at(opened.dump, 0)->image_count, 0);
    opened_release(&opened);
}

static void test_devices(void **state)
{
    (void)state;
    struct dump_specimen many = plain;
    check_specimen(&plain);
    many.many_sections = true;
    check_specimen(&many);
}

static void test_grids(void **state)
{
    (void)state;
    struct opened opened;
    opened_specimen(&opened, &plain);
    assert_int_equal(coredump_grid_count(opened.dump), 2);
    const struct coredump_grid *grid = coredump_grid_at(opened.dump, 0);
    assert_int_equal(grid->number, DUMP_SPECIMEN_GRID);
    assert_int_equal(grid->entry, 0x1000);
    assert_int_equal(grid->registers, 24);
    assert_int_equal(grid->blocks.x, 16);
    assert_int_equal(grid->threads.x, 256);
    assert_int_equal(grid->cluster.x, 1);
    assert_string_equal(coredump_grid_status_name(grid->status), "active");
    assert_string_equal(coredump_kernel_type_name(grid->type), "application");
    assert_int_equal(grid->name.naming, COREDUMP_NAME_NO_IMAGE);
    assert_false(coredump_name_is_known(&grid->name));
    assert_int_equal(grid->argument_byte_count, 20);
    assert_int_equal(grid->argument_bytes[19], 20);
    assert_false(grid->arguments_known);
    grid = coredump_grid_at(opened.dump, 1);
    assert_int_equal(grid->number, DUMP_SPECIMEN_OTHER);
    assert_string_equal(coredump_grid_status_name(grid->status), "pending");
    assert_null(grid->argument_bytes);
    opened_release(&opened);
}

/* A dump without metadata is of an older driver. */
static void test_no_metadata(void **state)
{
    (void)state;
    struct dump_specimen old = plain;
    struct opened opened;
    old.no_metadata = true;
    opened_specimen(&opened, &old);
    assert_false(coredump_info(opened.dump)->generator_known);
    opened_release(&opened);
}

static void test_number_names(void **state)
{
    (void)state;
    assert_string_equal(coredump_exception_name(14), "warp-illegal-address");
    assert_string_equal(coredump_exception_name(23), "unknown");
    assert_string_equal(coredump_grid_status_name(6), "unknown");
    assert_string_equal(coredump_kernel_type_name(77), "unknown");
    for (int i = 0; i < COREDUMP_NAMING_COUNT; i++)
        assert_true(coredump_naming_name((enum coredump_naming)i)[0] != '\0');
    for (int i = 0; i < COREDUMP_LINES_COUNT; i++)
        assert_true(coredump_lines_name((enum coredump_lines)i)[0] != '\0');
}

/* ---- Refused -------------------------------------------------------------------------------- */

struct change {
    const char *what;
    size_t at, bytes; /* in the file */
    uint64_t value;
    enum status status;
    const char *words;
};

static void check_refused(const struct text *file, const struct change *change)
{
    struct coredump *dump;
    struct error err;
    CHECK_FAILS(coredump_open_memory(file->bytes, file->length, "dump", &dump, &err),
                change->status, &err);
    check_contains(change->what, err.text, change->words);
    check_contains(change->what, err.text, "dump: ");
}

static void test_other_files(void **state)
{
    (void)state;
    static const struct change changes[] = {
        { "a process's core", 18, 2, 62, STATUS_UNSUPPORTED, "of a process, not of a GPU" },
        { "a cubin", 16, 2, 2, STATUS_UNSUPPORTED, "image of kernels (cubin)" },
        { "another ABI", 7, 1, 0x41, STATUS_UNSUPPORTED, "expected 0x33 and 7, found 0x41 and 7" },
        { "a newer version", 8, 1, 9, STATUS_UNSUPPORTED, "a newer driver than greta knows" },
        { "gzip", 0, 4, 0x00088B1F, STATUS_BAD_FILE, "compressed with gzip" },
        { "no ELF", 0, 4, 0x464C4500, STATUS_BAD_FILE, "not an ELF file" },
    };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct text file;
        dump_specimen(&plain, &file);
        build_put_number(&file, changes[i].at, changes[i].value, changes[i].bytes);
        check_refused(&file, &changes[i]);
        text_release(&file);
    }
}

/* Sections of the specimen, in their order. */
enum {
    DEVICES = 1,
    CONTEXTS,
    MODULES,
    GRIDS,
    PARAMETERS,
    SMS,
    BLOCKS,
    WARPS,
    LANES_0,
    LANES_1,
    META
};
/* Fields of a section's header. */
enum { AT_TYPE = 4, AT_BYTES = 32, AT_LINK = 40, AT_INFO = 44, AT_ROW_BYTES = 56 };

/* Every table: rows that are too short, rows that do not fit, a parent of another kind, a parent
 * that is not there, a row that the parent does not have. */
static void test_tables(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t section;
        uint64_t row_bytes;
        bool has_parent;
    } tables[] = {
        { "table of devices", DEVICES, 72, false },
        { "table of contexts", CONTEXTS, 40, false },
        { "table of modules", MODULES, 8, true },
        { "table of grids", GRIDS, 104, true },
        { "arguments of a grid", PARAMETERS, 0, true },
        { "table of SMs", SMS, 8, true },
        { "table of blocks", BLOCKS, 24, true },
        { "table of warps", WARPS, 32, true },
        { "table of lanes", LANES_1, 48, true },
        { "metadata", META, 32, false },
    };
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        const struct change rows[] = {
            { tables[i].name, AT_ROW_BYTES, 8, tables[i].row_bytes - 1, STATUS_UNSUPPORTED,
              tables[i].name },
            { tables[i].name, AT_BYTES, 8, tables[i].row_bytes + 1, STATUS_BAD_FILE,
              tables[i].name },
        };
        const struct change parents[] = {
            { tables[i].name, AT_LINK, 4, META + 1, STATUS_BAD_FILE, "section type of its parent" },
            { tables[i].name, AT_LINK, 4, tables[i].section, STATUS_BAD_FILE,
              "section type of its parent" },
            { tables[i].name, AT_LINK, 4, 4000000000, STATUS_BAD_FILE, "section of its parent" },
            { tables[i].name, AT_INFO, 4, 64, STATUS_BAD_FILE, "row of its parent, below" },
        };
        for (size_t j = 0; j < COUNT_OF(rows) + COUNT_OF(parents); j++) {
            bool of_rows = j < COUNT_OF(rows);
            const struct change *change = of_rows ? &rows[j] : &parents[j - COUNT_OF(rows)];
            struct text file;
            if (of_rows ? !tables[i].row_bytes : !tables[i].has_parent)
                continue;
            dump_specimen(&plain, &file);
            build_put_number(&file, build_section_at(&file, tables[i].section) + change->at,
                             change->value, change->bytes);
            check_refused(&file, change);
            text_release(&file);
        }
    }
}

static void test_other_damage(void **state)
{
    (void)state;
    static const struct {
        uint32_t section;
        struct change change;
    } damages[] = {
        { DEVICES,
          { "no devices", AT_TYPE, 4, 1, STATUS_BAD_FILE, "tables of devices: expected 1" } },
        { LANES_0, { "two tables", AT_TYPE, 4, 0x80000009, STATUS_BAD_FILE, "found 2" } },
    };
    for (size_t i = 0; i < COUNT_OF(damages); i++) {
        const struct change *change = &damages[i].change;
        struct text file;
        dump_specimen(&plain, &file);
        build_put_number(&file, build_section_at(&file, damages[i].section) + change->at,
                         change->value, change->bytes);
        check_refused(&file, change);
        text_release(&file);
    }
}

/* Rows of the oldest layout have no newer fields; rows of a newer one have more. */
static void test_row_sizes(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        uint32_t cluster;
    } layouts[] = { { 104, 0 }, { 120, 7 }, { 136, 7 }, { 4096, 7 } };
    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        struct dump_build build;
        struct opened opened;
        struct text rows, file;
        dump_build_init(&build);
        text_init(&rows);
        text_add_fill(&rows, 0, DUMP_DEVICE_BYTES);
        uint32_t devices = dump_build_table(&build, DUMP_DEVICES, ".d", 0, 0, DUMP_DEVICE_BYTES,
                                            &rows);
        text_init(&rows);
        text_add_fill(&rows, 7, 2 * layouts[i].bytes);
        dump_build_table(&build, DUMP_GRIDS, ".g", devices, 0, layouts[i].bytes, &rows);
        dump_build_finish(&build, &file);
        dump_build_release(&build);
        opened_init(&opened, &file);
        assert_int_equal(coredump_grid_count(opened.dump), 2);
        assert_int_equal(coredump_grid_at(opened.dump, 1)->cluster.x & 0xFF, layouts[i].cluster);
        assert_int_equal(coredump_grid_at(opened.dump, 1)->threads.z, 0x07070707);
        opened_release(&opened);
    }
}

static void test_no_file(void **state)
{
    (void)state;
    struct coredump *dump;
    struct error err;
    CHECK_FAILS(coredump_open("/no/such/dump", &dump, &err), STATUS_NOT_FOUND, &err);
    coredump_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices),      cmocka_unit_test(test_grids),
        cmocka_unit_test(test_no_metadata),  cmocka_unit_test(test_number_names),
        cmocka_unit_test(test_other_files),  cmocka_unit_test(test_tables),
        cmocka_unit_test(test_other_damage), cmocka_unit_test(test_row_sizes),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
