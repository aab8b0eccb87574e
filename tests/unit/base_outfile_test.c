/* base_outfile_test.c - a file appears whole or not at all, and nothing else is left behind. */
#define _XOPEN_SOURCE 700 /* setrlimit, symlink */
#include "test.h"

#include "base/outfile.h"
#include "temp_folder.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* What every test has: a folder, the path of "out" in it, an outfile. */
struct fixture {
    struct temp_folder folder;
    struct temp_path path;
    struct outfile out;
    struct error err;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){ .out = { .descriptor = -1 } };
    temp_folder_init(&fixture.folder);
    fixture.path = temp_folder_path(&fixture.folder, "out");
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    outfile_release(&fixture->out);
    chmod(fixture->folder.path, 0700);
    temp_folder_release(&fixture->folder);
    return 0;
}

static void check_contents(const struct fixture *fixture, const char *name, const char *words)
{
    struct text text;
    text_init(&text);
    temp_folder_read(&fixture->folder, name, &text);
    assert_int_equal(text.length, strlen(words));
    assert_string_equal(text_get(&text), words);
    text_release(&text);
}

static void test_appears_at_commit(void **state)
{
    struct fixture *f = *state;
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 0, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "one ", 4, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, NULL, 0, &f->err), &f->err);
    assert_false(temp_folder_has(&f->folder, "out"));
    assert_int_equal(temp_folder_count(&f->folder), 1);
    CHECK_OK(outfile_write(&f->out, "two", 3, &f->err), &f->err);
    assert_int_equal(f->out.written_bytes, 7);
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    check_contents(f, "out", "one two");
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_release_leaves_nothing(void **state)
{
    struct fixture *f = *state;
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 100, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "half", 4, &f->err), &f->err);
    outfile_release(&f->out);
    assert_int_equal(temp_folder_count(&f->folder), 0);
    outfile_release(&f->out);
}

static void test_existing_is_refused(void **state)
{
    struct fixture *f = *state;
    temp_folder_write(&f->folder, "out", "old", 3);
    CHECK_FAILS(outfile_open(&f->out, f->path.text, false, 0, &f->err), STATUS_EXISTS, &f->err);
    check_contains("what to do", f->err.text, "--force");
    check_contents(f, "out", "old");
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_name_taken_meanwhile(void **state)
{
    struct fixture *f = *state;
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 0, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "mine", 4, &f->err), &f->err);
    temp_folder_write(&f->folder, "out", "theirs", 6);
    CHECK_FAILS(outfile_commit(&f->out, &f->err), STATUS_EXISTS, &f->err);
    check_contents(f, "out", "theirs");
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_replace(void **state)
{
    struct fixture *f = *state;
    temp_folder_write(&f->folder, "out", "the old contents", 16);
    CHECK_OK(outfile_open(&f->out, f->path.text, true, 0, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "new", 3, &f->err), &f->err);
    check_contents(f, "out", "the old contents");
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    check_contents(f, "out", "new");
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_replace_interrupted_keeps_the_old(void **state)
{
    struct fixture *f = *state;
    temp_folder_write(&f->folder, "out", "old", 3);
    CHECK_OK(outfile_open(&f->out, f->path.text, true, 0, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "new", 3, &f->err), &f->err);
    outfile_release(&f->out);
    check_contents(f, "out", "old");
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_reserved_space_is_given_back(void **state)
{
    struct fixture *f = *state;
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 1 << 20, &f->err), &f->err);
    CHECK_OK(outfile_write(&f->out, "short", 5, &f->err), &f->err);
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    check_contents(f, "out", "short");
}

/* Around the buffer of 4 MiB: writes that fit, fill it, overflow it, and bypass it. */
static void test_sizes_of_writes(void **state)
{
    struct fixture *f = *state;
    const size_t buffer = (size_t)4 << 20;
    const size_t pieces[] = { 1, buffer - 1, 1, 7, buffer, buffer + 3, 5, buffer - 5 };
    struct text expected, found;
    text_init(&expected);
    text_init(&found);
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 0, &f->err), &f->err);
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        size_t start = expected.length;
        text_add_fill(&expected, (char)('a' + i), pieces[i]);
        CHECK_OK(outfile_write(&f->out, text_get(&expected) + start, pieces[i], &f->err), &f->err);
    }
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    temp_folder_read(&f->folder, "out", &found);
    assert_int_equal(found.length, expected.length);
    assert_memory_equal(text_get(&found), text_get(&expected), expected.length);
    text_release(&expected);
    text_release(&found);
}

static void test_places_that_cannot_be_written(void **state)
{
    struct fixture *f = *state;
    struct temp_path link_path = temp_folder_path(&f->folder, "link");
    assert_int_equal(symlink("nowhere", link_path.text), 0);
    const struct {
        const char *name, *path;
        bool replace;
        enum status status;
        const char *words;
    } rows[] = {
        { "folder", f->folder.path, false, STATUS_EXISTS, "name a file" },
        { "folder, replaced", f->folder.path, true, STATUS_EXISTS, "name a file" },
        { "no such folder", "/no-such-folder-here/out", false, STATUS_NOT_FOUND, "cannot create" },
        { "device", "/dev/null", true, STATUS_EXISTS, "not a regular file" },
        { "link to nowhere", link_path.text, false, STATUS_EXISTS, "not a regular file" },
        { "link to nowhere, replaced", link_path.text, true, STATUS_EXISTS, "not a regular file" },
        { "no name at all", "", false, STATUS_USAGE, "expected the name of a file" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum status status = outfile_open(&f->out, rows[i].path, rows[i].replace, 0, &f->err);
        if (status != rows[i].status)
            fail_msg("%s: %s", rows[i].name, status_name(status));
        check_contains(rows[i].name, f->err.text, rows[i].words);
        assert_int_equal(f->out.descriptor, -1);
    }
    assert_int_equal(temp_folder_count(&f->folder), 1);
}

static void test_folder_without_permission(void **state)
{
    struct fixture *f = *state;
    if (geteuid() == 0)
        skip(); /* root may write anywhere */
    assert_int_equal(chmod(f->folder.path, 0500), 0);
    CHECK_FAILS(outfile_open(&f->out, f->path.text, false, 0, &f->err), STATUS_IO, &f->err);
    check_contains("why", f->err.text, "Permission denied");
}

/* A limit on the size of files stands for a full disk: write says no in the same places. */
static void limit_file_size(rlim_t bytes, struct rlimit *ret_before)
{
    assert_int_equal(getrlimit(RLIMIT_FSIZE, ret_before), 0);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = { bytes, ret_before->rlim_max };
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_no_room_to_reserve(void **state)
{
    struct fixture *f = *state;
    struct rlimit before;
    limit_file_size(1 << 20, &before);
    enum status status = outfile_open(&f->out, f->path.text, false, 2 << 20, &f->err);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_FAILS(status, STATUS_IO, &f->err);
    check_contains("how much", f->err.text, "cannot reserve 2.00 MiB");
    assert_int_equal(temp_folder_count(&f->folder), 0);
}

static void test_no_room_to_write(void **state)
{
    struct fixture *f = *state;
    struct rlimit before;
    static const char zeros[1 << 16];
    limit_file_size(1 << 20, &before);
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 0, &f->err), &f->err);
    enum status status = STATUS_OK;
    for (int i = 0; i < 32 && !status; i++)
        status = outfile_write(&f->out, zeros, sizeof(zeros), &f->err);
    if (!status) /* all in the buffer still: committing writes it */
        status = outfile_commit(&f->out, &f->err);
    setrlimit(RLIMIT_FSIZE, &before);
    CHECK_FAILS(status, STATUS_IO, &f->err);
    check_contains("what", f->err.text, "out: cannot write to it");
    outfile_release(&f->out);
    assert_int_equal(temp_folder_count(&f->folder), 0);
}

/* Bytes written before are written over, whether they are in the buffer or in the file. */
static void test_patch(void **state)
{
    struct fixture *fixture = *state;
    static char large[3 << 20];
    struct text text;
    text_init(&text);
    CHECK_OK(outfile_open(&fixture->out, fixture->path.text, false, 0, &fixture->err),
             &fixture->err);
    CHECK_OK(outfile_write(&fixture->out, "head body", 9, &fixture->err), &fixture->err);
    CHECK_OK(outfile_patch(&fixture->out, 0, "HE", 2, &fixture->err), &fixture->err);
    CHECK_OK(outfile_write(&fixture->out, large, sizeof(large), &fixture->err), &fixture->err);
    CHECK_OK(outfile_write(&fixture->out, "tail", 4, &fixture->err), &fixture->err);
    CHECK_OK(outfile_patch(&fixture->out, 3, "D-", 2, &fixture->err), &fixture->err);
    CHECK_OK(outfile_patch(&fixture->out, 9 + sizeof(large), "TAIL", 4, &fixture->err),
             &fixture->err);
    CHECK_OK(outfile_commit(&fixture->out, &fixture->err), &fixture->err);
    temp_folder_read(&fixture->folder, "out", &text);
    assert_int_equal(text.length, 9 + sizeof(large) + 4);
    assert_memory_equal(text_get(&text), "HEaD-body", 9);
    assert_memory_equal(text_get(&text) + 9 + sizeof(large), "TAIL", 4);
    text_release(&text);
}

static unsigned mode_of(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return (unsigned)info.st_mode & 07777u;
}

/* A model is for whom the umask says; evidence is its owner's alone. */
static void test_permissions(void **state)
{
    struct fixture *f = *state;
    mode_t old = umask(0002);
    CHECK_OK(outfile_open(&f->out, f->path.text, false, 0, &f->err), &f->err);
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    assert_int_equal(mode_of(f->path.text), 0664);
    umask(0);
    CHECK_OK(outfile_open_private(&f->out, f->path.text, true, &f->err), &f->err);
    assert_int_equal(mode_of(f->out.part_path), 0600);
    assert_int_equal(chmod(f->out.part_path, 0644), 0);
    char *left = strdup(f->out.part_path); /* as a killed process may have left it */
    assert_non_null(left);
    assert_int_equal(link(left, temp_folder_path(&f->folder, "kept").text), 0);
    outfile_release(&f->out);
    assert_int_equal(rename(temp_folder_path(&f->folder, "kept").text, left), 0);
    CHECK_OK(outfile_open_private(&f->out, f->path.text, true, &f->err), &f->err);
    assert_int_equal(mode_of(left), 0600);
    CHECK_OK(outfile_commit(&f->out, &f->err), &f->err);
    assert_int_equal(mode_of(f->path.text), 0600);
    free(left);
    umask(old);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_patch),
        TEST(test_appears_at_commit),
        TEST(test_release_leaves_nothing),
        TEST(test_existing_is_refused),
        TEST(test_name_taken_meanwhile),
        TEST(test_replace),
        TEST(test_permissions),
        TEST(test_replace_interrupted_keeps_the_old),
        TEST(test_reserved_space_is_given_back),
        TEST(test_sizes_of_writes),
        TEST(test_places_that_cannot_be_written),
        TEST(test_folder_without_permission),
        TEST(test_no_room_to_reserve),
        TEST(test_no_room_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
