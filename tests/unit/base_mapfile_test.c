/* base_mapfile_test.c - mapping files, and everything that is not a plain file. */
#define _DEFAULT_SOURCE /* truncate */
#include "test.h"

#include "base/fault.h"
#include "base/mapfile.h"
#include "temp_folder.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void test_contents(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct mapfile map, again;
    struct error err;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "a", "hello", 5);
    struct temp_path path = temp_folder_path(&folder, "a");
    struct temp_path link_path = temp_folder_path(&folder, "link");
    assert_int_equal(symlink(path.text, link_path.text), 0);
    CHECK_OK(mapfile_open(&map, path.text, &err), &err);
    CHECK_OK(mapfile_open(&again, link_path.text, &err), &err);
    assert_int_equal(map.size, 5);
    assert_memory_equal(map.data, "hello", 5);
    assert_int_equal(map.inode, again.inode);
    assert_int_equal(map.device, again.device);
    mapfile_release(&again);
    /* The mapping outlives the name. */
    temp_folder_release(&folder);
    assert_memory_equal(map.data, "hello", 5);
    mapfile_release(&map);
    assert_null(map.data);
    mapfile_release(&map);
}

static void test_empty(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct mapfile map;
    struct error err;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "empty", "", 0);
    CHECK_OK(mapfile_open(&map, temp_folder_path(&folder, "empty").text, &err), &err);
    assert_int_equal(map.size, 0);
    assert_null(map.data);
    mapfile_drop(&map, 0, 0);
    mapfile_release(&map);
    temp_folder_release(&folder);
}

static void check_refused(const char *path, enum status wanted, const char *words)
{
    struct mapfile map;
    struct error err;
    memset(&map, 0xEE, sizeof(map));
    CHECK_FAILS(mapfile_open(&map, path, &err), wanted, &err);
    check_contains(path, err.text, path);
    check_contains(path, err.text, words);
    /* Initialised whatever the outcome, so that releasing is always right. */
    assert_null(map.data);
    assert_int_equal(map.size, 0);
    mapfile_release(&map);
}

static void test_not_a_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct temp_path pipe_path = temp_folder_path(&folder, "pipe");
    assert_int_equal(mkfifo(pipe_path.text, 0600), 0);
    check_refused(temp_folder_path(&folder, "none").text, STATUS_NOT_FOUND, "No such file");
    check_refused(folder.path, STATUS_IO, "found a directory");
    check_refused("/dev/null", STATUS_IO, "expected a regular file");
    alarm(20); /* opening a pipe without a writer must not wait */
    check_refused(pipe_path.text, STATUS_IO, "copy it to a file first");
    alarm(0);
    temp_folder_release(&folder);
}

static void test_drop_keeps_contents(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct mapfile map;
    struct error err;
    struct text text;
    text_init(&text);
    text_add_fill(&text, 'x', 3 * 65536 + 5);
    temp_folder_init(&folder);
    temp_folder_write(&folder, "large", text_get(&text), text.length);
    CHECK_OK(mapfile_open(&map, temp_folder_path(&folder, "large").text, &err), &err);
    static const struct {
        uint64_t offset, bytes;
    } rows[] = { { 0, 3 * 65536 + 5 }, { 1, 65536 }, { 5, 1 }, { 3 * 65536 + 5, 0 }, { 0, 1 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        mapfile_drop(&map, rows[i].offset, rows[i].bytes);
        assert_memory_equal(map.data, text_get(&text), text.length);
    }
    mapfile_release(&map);
    text_release(&text);
    temp_folder_release(&folder);
}

/* The same bytes with the file kept open and through the mapping; what was cut is an error in both.
 */
static void test_read(void **state)
{
    (void)state;
    static const struct {
        uint64_t offset, bytes;
    } rows[] = { { 0, 200000 }, { 1, 4096 }, { 199999, 1 }, { 200000, 0 }, { 65536, 65537 } };
    for (int kept = 0; kept < 2; kept++) {
        struct temp_folder folder;
        struct mapfile map;
        struct error err;
        static uint8_t bytes[200000], found[200000];
        for (size_t i = 0; i < sizeof(bytes); i++)
            bytes[i] = (uint8_t)(i * 2654435761u >> 11);
        temp_folder_init(&folder);
        temp_folder_write(&folder, "file", bytes, sizeof(bytes));
        struct temp_path path = temp_folder_path(&folder, "file");
        CHECK_OK(kept ? mapfile_open_kept(&map, path.text, &err)
                      : mapfile_open(&map, path.text, &err),
                 &err);
        fault_install();
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            memset(found, 0xEE, sizeof(found));
            CHECK_OK(mapfile_read(&map, rows[i].offset, found, rows[i].bytes, &err), &err);
            assert_memory_equal(found, bytes + rows[i].offset, rows[i].bytes);
        }
        assert_int_equal(truncate(path.text, 100000), 0);
        CHECK_OK(mapfile_read(&map, 0, found, 100000, &err), &err);
        assert_memory_equal(found, bytes, 100000);
        CHECK_FAILS(mapfile_read(&map, 98000, found, 100000, &err), STATUS_IO, &err);
        check_contains("the message", err.text,
                       kept ? "expected 98000 more bytes at 100000, found the file's end"
                            : "100000 bytes at 98000 are not there any more");
        mapfile_release(&map);
        mapfile_release(&map);
        temp_folder_release(&folder);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_contents),   cmocka_unit_test(test_empty),
        cmocka_unit_test(test_not_a_file), cmocka_unit_test(test_drop_keeps_contents),
        cmocka_unit_test(test_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
