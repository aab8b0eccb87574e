/* base_lines_test.c - lines of this very program by address, of files without debug information,
 * that are damaged or none. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "test.h"

#include "base/dynlib.h"
#include "base/lines.h"
#include "base/mapfile.h"
#include "own_address.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>

/* Its code is of this line and the next four. */
enum { LANDMARK_LINE = __LINE__ + 1 };
__attribute__((noinline)) static int landmark(int value)
{
    return value * 3 + 1;
}

static uint64_t landmark_address(void)
{
    return address_in_file((const void *)(uintptr_t)landmark);
}

static bool has_libdw(void)
{
    static const char *const names[] = { "libdw.so.1", NULL };
    struct dynlib *library = NULL;
    struct error err;
    bool found = dynlib_open(names, &library, &err) == STATUS_OK;
    dynlib_close(library);
    return found;
}

static void test_own_line(void **state)
{
    (void)state;
    char source[256] = "before", cut[8];
    uint32_t line = 0;
    if (!has_libdw())
        skip();
    struct lines *lines = lines_create();
    assert_non_null(lines);
    assert_int_equal(landmark(2), 7);
    for (int again = 0; again < 2; again++) {
        assert_true(
            lines_find(lines, "/proc/self/exe", landmark_address(), source, sizeof(source), &line));
        assert_in_range(line, LANDMARK_LINE, LANDMARK_LINE + 4);
        assert_non_null(strstr(source, "base_lines_test.c"));
    }
    /* A long path keeps its end. */
    assert_true(lines_find(lines, "/proc/self/exe", landmark_address(), cut, sizeof(cut), &line));
    assert_string_equal(cut, "_test.c");
    lines_destroy(lines);
}

static void test_nothing_there(void **state)
{
    (void)state;
    char source[64] = "before";
    uint32_t line = 99;
    struct lines *lines = lines_create();
    assert_non_null(lines);
    static const char *const paths[] = { "/proc/self/exe", "/nowhere/at/all", "/dev/null",
                                         "/proc/self/cmdline" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_false(lines_find(lines, paths[i], UINT64_MAX, source, sizeof(source), &line));
        assert_false(lines_find(lines, paths[i], 1, source, sizeof(source), &line));
        assert_string_equal(source, "");
    }
    assert_int_equal(line, 99);
    lines_destroy(lines);
    lines_destroy(NULL);
}

/* Whatever a file says: no line, a line, but always an answer. */
static void test_damaged(void **state)
{
    (void)state;
    struct mapfile map;
    struct error err;
    struct temp_folder folder;
    CHECK_OK(mapfile_open(&map, "/proc/self/exe", &err), &err);
    uint8_t *copy = malloc(map.size);
    assert_non_null(copy);
    temp_folder_init(&folder);
    for (unsigned round = 0; round < 48; round++) {
        memcpy(copy, map.data, map.size);
        uint64_t seed = round * UINT64_C(0x9E3779B97F4A7C15) + 1;
        for (unsigned i = 0; i < 200; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1;
            /* After the code: debug information, names, the table of sections. */
            uint64_t at = map.size / 4 + (seed >> 33) % (map.size - map.size / 4);
            copy[at] = (uint8_t)(seed >> 56);
        }
        uint64_t size = round % 4 == 3 ? (seed >> 33) % map.size : map.size;
        temp_folder_write(&folder, "damaged", copy, size);
        struct lines *lines = lines_create();
        assert_non_null(lines);
        for (uint64_t address = 0; address < 1u << 16; address += 1021) {
            char source[64];
            uint32_t line = 0;
            bool found = lines_find(lines, temp_folder_path(&folder, "damaged").text, address,
                                    source, sizeof(source), &line);
            assert_int_equal(found, line != 0);
            assert_int_equal(found, source[0] != '\0');
        }
        lines_destroy(lines);
    }
    free(copy);
    mapfile_release(&map);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_line),
        cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
