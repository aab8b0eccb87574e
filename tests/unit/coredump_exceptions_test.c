/* coredump_exceptions_test.c - who failed: lanes, a warp, an SM, many of them, or none. */
#include "coredump_opened.h"

static struct dump_specimen failing(void)
{
    return (struct dump_specimen){ .entry = 0x1000, .pc = 0x1230, .exception = 14 };
}

static const struct coredump_exception *only_exception(const struct opened *opened)
{
    uint64_t total;
    assert_int_equal(coredump_exception_count(opened->dump, &total), 1);
    assert_int_equal(total, 1);
    return coredump_exception_at(opened->dump, 0);
}

static void test_lanes(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    opened_specimen(&opened, &specimen);
    const struct coredump_exception *exception = only_exception(&opened);
    assert_int_equal(exception->kind, 14);
    assert_false(exception->kind_of_sm);
    assert_true(exception->has_warp);
    assert_int_equal(exception->sm, 7);
    assert_int_equal(exception->warp, 3);
    assert_int_equal(exception->lane_mask, 0x30);
    assert_int_equal(exception->thread_mask, 0x30);
    assert_int_equal(exception->threads[4].x, 100);
    assert_int_equal(exception->block.x, 8);
    assert_int_equal(exception->grid_number, DUMP_SPECIMEN_GRID);
    assert_int_equal(exception->grid_index, 0);
    assert_int_equal(exception->pc_origin, COREDUMP_PC_OF_LANE);
    assert_int_equal(exception->pc, 0x1230);
    opened_release(&opened);
}

/* The hardware's own record of the place is better than where the lanes stopped. */
static void test_error_pc(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    specimen.error_pc = true;
    opened_specimen(&opened, &specimen);
    assert_int_equal(only_exception(&opened)->pc_origin, COREDUMP_PC_OF_ERROR);
    opened_release(&opened);
}

/* No lane has an exception: the warp has the place, the SM has the kind. */
static void test_warp(void **state)
{
    (void)state;
    static const uint32_t kinds[] = { 0, 6 };
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct dump_specimen specimen = failing();
        struct opened opened;
        specimen.exception = 0;
        specimen.error_pc = true;
        specimen.sm_exception = kinds[i];
        opened_specimen(&opened, &specimen);
        const struct coredump_exception *exception = only_exception(&opened);
        assert_int_equal(exception->kind, kinds[i]);
        assert_int_equal(exception->kind_of_sm, kinds[i] != 0);
        assert_true(exception->has_warp);
        assert_int_equal(exception->lane_mask, 0);
        assert_int_equal(exception->thread_mask, 0x30); /* the active lanes */
        opened_release(&opened);
    }
}

static void test_sm(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    specimen.exception = 0;
    specimen.sm_exception = 10;
    opened_specimen(&opened, &specimen);
    const struct coredump_exception *exception = only_exception(&opened);
    assert_int_equal(exception->kind, 10);
    assert_false(exception->has_warp);
    assert_int_equal(exception->sm, 7);
    assert_int_equal(exception->grid_index, COREDUMP_NO_INDEX);
    assert_int_equal(exception->pc_origin, COREDUMP_PC_NONE);
    assert_int_equal(exception->place_index, COREDUMP_NO_INDEX);
    opened_release(&opened);
}

static void test_none(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    uint64_t total;
    specimen.exception = 0;
    opened_specimen(&opened, &specimen);
    assert_int_equal(coredump_exception_count(opened.dump, &total), 0);
    assert_int_equal(total, 0);
    assert_int_equal(coredump_place_count(opened.dump), 0);
    opened_release(&opened);
}

/* More than are kept: all are counted, those that are kept are in order. */
static void test_many(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    uint64_t total;
    specimen.failed_warps = COREDUMP_EXCEPTION_LIMIT + 100;
    opened_specimen(&opened, &specimen);
    size_t count = coredump_exception_count(opened.dump, &total);
    assert_int_equal(count, COREDUMP_EXCEPTION_LIMIT);
    assert_int_equal(total, COREDUMP_EXCEPTION_LIMIT + 100);
    assert_int_equal(coredump_place_count(opened.dump), 1);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(coredump_exception_at(opened.dump, i)->warp, 3 + i);
    opened_release(&opened);
}

/* Where a lane of the specimen's first table is in the file. */
static size_t lane_at(const struct text *file, uint32_t lane)
{
    enum { LANES_0 = 8 };
    uint64_t offset;
    memcpy(&offset, file->bytes + build_section_at(file, LANES_0) + 24, sizeof(offset));
    return offset + (size_t)lane * DUMP_LANE_BYTES;
}

/* Lanes of one warp can fail in different ways. */
static void test_two_kinds(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct opened opened;
    struct text file;
    uint64_t total;
    specimen.argument_bytes = 0;
    dump_specimen(&specimen, &file);
    build_put_number(&file, lane_at(&file, 31) + 32, 11, 4);
    opened_init(&opened, &file);
    assert_int_equal(coredump_exception_count(opened.dump, &total), 2);
    assert_int_equal(coredump_exception_at(opened.dump, 0)->kind, 11);
    assert_int_equal(coredump_exception_at(opened.dump, 0)->lane_mask, 1u << 31);
    assert_int_equal(coredump_exception_at(opened.dump, 1)->lane_mask, 0x30);
    opened_release(&opened);
}

static void test_bad_lane(void **state)
{
    (void)state;
    struct dump_specimen specimen = failing();
    struct coredump *dump;
    struct text file;
    struct error err;
    dump_specimen(&specimen, &file);
    build_put_number(&file, lane_at(&file, 0) + 16, 32, 4);
    CHECK_FAILS(coredump_open_memory(file.bytes, file.length, "dump", &dump, &err), STATUS_BAD_FILE,
                &err);
    check_contains("lane", err.text, "number of a lane: expected below 32, found 32");
    text_release(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes),     cmocka_unit_test(test_error_pc),
        cmocka_unit_test(test_warp),      cmocka_unit_test(test_sm),
        cmocka_unit_test(test_none),      cmocka_unit_test(test_many),
        cmocka_unit_test(test_two_kinds), cmocka_unit_test(test_bad_lane),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
