/* coredump_program_lines_test.c - source lines of this very program, of one whose debug information
 * lies in another file, and of damaged files. */
#define _GNU_SOURCE /* dl_iterate_phdr */
#include "test.h"

#include "base/mapfile.h"
#include "coredump/program_debug.h"
#include "coredump/program_lines.h"
#include "own_address.h"
#include "temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

static char source[256];
static uint32_t line;

static bool find(const char *path, uint64_t address)
{
    struct program_lines *lines = program_lines_create();
    assert_non_null(lines);
    memcpy(source, "before", 7);
    line = 99;
    bool found = program_lines_find(lines, path, address, source, sizeof(source), &line);
    bool again = program_lines_find(lines, path, address, source, sizeof(source), &line);
    assert_int_equal(found, again);
    program_lines_destroy(lines);
    return found;
}

static void test_own_line(void **state)
{
    (void)state;
    assert_int_equal(landmark(2), 7);
    assert_true(find("/proc/self/exe", landmark_address()));
    assert_in_range(line, LANDMARK_LINE, LANDMARK_LINE + 4);
    assert_non_null(strstr(source, "coredump_program_lines_test.c"));
    char cut[8];
    struct program_lines *lines = program_lines_create();
    assert_true(
        program_lines_find(lines, "/proc/self/exe", landmark_address(), cut, sizeof(cut), &line));
    assert_string_equal(cut, "_test.c");
    program_lines_destroy(lines);
}

static void test_nothing_there(void **state)
{
    (void)state;
    static const char *const paths[] = { "/proc/self/exe", "/nowhere/at/all", "/dev/null",
                                         "/proc/self/cmdline" };
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_false(find(paths[i], UINT64_MAX));
        assert_string_equal(source, "");
        assert_false(find(paths[i], 1));
        assert_int_equal(line, 99);
    }
}

/* As packagers do it: the program is stripped, and names the file that has the rest. */
static void test_separate_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    char command[2048];
    struct temp_path program;
    temp_folder_init(&folder);
    program = temp_folder_path(&folder, "program");
    snprintf(command, sizeof(command),
             "cd '%s' && objcopy --only-keep-debug \"$(readlink /proc/%ld/exe)\" program.debug && "
             "objcopy --strip-debug --add-gnu-debuglink=program.debug "
             "\"$(readlink /proc/%ld/exe)\" program",
             folder.path, (long)getpid(), (long)getpid());
    assert_int_equal(system(command), 0);
    assert_true(find(program.text, landmark_address()));
    assert_in_range(line, LANDMARK_LINE, LANDMARK_LINE + 4);
    /* In a folder of its own; then changed, so that its checksum is not the one that is meant. */
    snprintf(command, sizeof(command), "cd '%s' && mkdir .debug && mv program.debug .debug/",
             folder.path);
    assert_int_equal(system(command), 0);
    assert_true(find(program.text, landmark_address()));
    snprintf(command, sizeof(command), "printf x >>'%s/.debug/program.debug'", folder.path);
    assert_int_equal(system(command), 0);
    assert_false(find(program.text, landmark_address()));
    temp_folder_release(&folder);
}

static void test_checksum(void **state)
{
    (void)state;
    assert_int_equal(program_debug_checksum((const uint8_t *)"123456789", 9), 0xCBF43926);
    assert_int_equal(program_debug_checksum(NULL, 0), 0);
}

/* Whatever a file says: no line, a line, but always an answer. */
static void test_damaged(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct mapfile own;
    struct error err;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "damaged");
    CHECK_OK(mapfile_open(&own, "/proc/self/exe", &err), &err);
    uint8_t *bytes = malloc(own.size);
    assert_non_null(bytes);
    uint64_t random = 1;
    for (int round = 0; round < 60; round++) {
        memcpy(bytes, own.data, own.size);
        for (int i = 0; i < 400; i++) {
            random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[(random >> 20) % own.size] = (uint8_t)(random >> 56);
        }
        memcpy(bytes, own.data, 64); /* still a file of its kind */
        uint64_t size = round % 4 ? own.size : own.size * (uint64_t)round / 60;
        FILE *file = fopen(path.text, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(bytes, 1, size, file), size);
        fclose(file);
        (void)find(path.text, landmark_address());
    }
    free(bytes);
    mapfile_release(&own);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_line),      cmocka_unit_test(test_nothing_there),
        cmocka_unit_test(test_separate_file), cmocka_unit_test(test_checksum),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
