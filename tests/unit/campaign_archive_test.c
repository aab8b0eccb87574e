/* campaign_archive_test.c - the folder of audits: names, what prune takes, the link to the newest,
 * locks, and folders with too much in them. */
#define _XOPEN_SOURCE 700 /* nftw, readlink */
#include "test.h"

#include "campaign/archive.h"
#include "campaign/files.h"
#include "campaign/lock.h"
#include "temp_folder.h"

#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_names(void **state)
{
    (void)state;
    static const char *const ids[] = { "20261115-093012-4f2a", "00000000-000000-0000" };
    static const char *const others[] = { "",
                                          ".",
                                          "..",
                                          "last",
                                          "20261115-093012-4f2",
                                          "20261115-093012-4f2aa",
                                          "20261115-093012-4F2A",
                                          "20261115-093012-4f2g",
                                          "2026111509301204f2a" };
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        if (!archive_is_id(ids[i]))
            fail_msg("'%s': expected an id", ids[i]);
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (archive_is_id(others[i]) || archive_is_day(others[i]))
            fail_msg("'%s': expected neither an id nor a day", others[i]);
    assert_true(archive_is_day("2026-11-15"));
    assert_false(archive_is_day("2026-11-15x"));
    assert_false(archive_is_day("2026/11/15"));
}

/* ---- What goes ------------------------------------------------------------------------------ */

static struct campaign_archived audit_of(const char *id, enum campaign_archived_state condition)
{
    struct campaign_archived audit = { .state = condition };
    snprintf(audit.id, sizeof(audit.id), "%s", id);
    return audit;
}

/* Five audits, oldest first: finished, unfinished, finished, finished (last), running. Each row
 * says which of them go, as letters. */
static void test_prune(void **state)
{
    (void)state;
    struct campaign_archived audits[] = {
        audit_of("20260101-000000-0001", CAMPAIGN_FINISHED),
        audit_of("20260102-000000-0002", CAMPAIGN_UNFINISHED),
        audit_of("20260103-000000-0003", CAMPAIGN_FINISHED),
        audit_of("20260104-000000-0004", CAMPAIGN_FINISHED),
        audit_of("20260105-000000-0005", CAMPAIGN_RUNNING),
        audit_of("20250101-000000-0006", CAMPAIGN_DAMAGED),
    };
    audits[3].is_last = true;
    const struct campaign_archive archive = { audits, COUNT_OF(audits), false };
    static const struct {
        const char *name;
        struct campaign_prune prune;
        const char *gone;
    } rows[] = {
        { "nothing is asked", { CAMPAIGN_KEEP_ALL, 0, false }, "" },
        { "keep one", { 1, 0, false }, "AC" },
        { "keep two", { 2, 0, false }, "A" },
        { "keep more than there are", { 9, 0, false }, "" },
        { "keep none", { 0, 0, false }, "ACD" },
        { "keep none, unfinished too", { 0, 0, true }, "ABCD" },
        { "unfinished alone", { CAMPAIGN_KEEP_ALL, 0, true }, "B" },
        { "older than five days", { CAMPAIGN_KEEP_ALL, 5, false }, "A" },
        { "older than a day: not what last is", { CAMPAIGN_KEEP_ALL, 1, false }, "AC" },
        { "older than five days, unfinished too", { CAMPAIGN_KEEP_ALL, 5, true }, "A" },
        { "older than four days, unfinished too", { CAMPAIGN_KEEP_ALL, 4, true }, "AB" },
        { "either keeps", { 2, 1, false }, "A" },
        { "either keeps, by age", { 0, 4, false }, "A" },
        { "an age past all time", { CAMPAIGN_KEEP_ALL, UINT32_MAX, false }, "" },
    };
    const int64_t now = 1767744000; /* 2026-01-07 00:00:00 */
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char gone[COUNT_OF(audits) + 1] = "";
        size_t count = 0;
        for (size_t a = 0; a < archive.count; a++)
            if (campaign_prune_wants(&rows[i].prune, &archive, a, now))
                gone[count++] = (char)('A' + a);
        if (strcmp(gone, rows[i].gone) != 0)
            fail_msg("%s: expected '%s' to go, found '%s'", rows[i].name, rows[i].gone, gone);
    }
}

/* ---- Folders -------------------------------------------------------------------------------- */

struct tree {
    struct temp_folder folder;
    struct error err;
};

static void make(struct tree *tree, const char *name)
{
    CHECK_OK(files_make_folder(temp_folder_path(&tree->folder, name).text, &tree->err), &tree->err);
}

static void tree_init(struct tree *tree)
{
    temp_folder_init(&tree->folder);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    return at->level ? remove(path) : 0;
}

static void tree_release(struct tree *tree)
{
    assert_int_equal(nftw(tree->folder.path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    temp_folder_release(&tree->folder);
}

static void check_last(struct tree *tree, const char *folder, const char *id, bool done,
                       const char *target)
{
    char found[64] = "";
    bool is_done = !done;
    CHECK_OK(
        archive_point_last(temp_folder_path(&tree->folder, folder).text, id, &is_done, &tree->err),
        &tree->err);
    assert_int_equal(is_done, done);
    ssize_t length = readlink(temp_folder_path(&tree->folder, "last").text, found,
                              sizeof(found) - 1);
    found[length > 0 ? length : 0] = '\0';
    assert_string_equal(found, target);
}

static void test_last(void **state)
{
    (void)state;
    struct tree tree;
    bool done;
    tree_init(&tree);
    make(&tree, "2026-01-01/20260101-000000-0001");
    make(&tree, "2026-01-02/20260102-000000-0002");
    make(&tree, "elsewhere/20260103-000000-0003");
    check_last(&tree, "2026-01-01/20260101-000000-0001", "20260101-000000-0001", true,
               "2026-01-01/20260101-000000-0001");
    check_last(&tree, "2026-01-02/20260102-000000-0002/", "20260102-000000-0002", true,
               "2026-01-02/20260102-000000-0002");
    /* One begun earlier and finished later. */
    check_last(&tree, "2026-01-01/20260101-000000-0001", "20260101-000000-0001", false,
               "2026-01-02/20260102-000000-0002");
    /* Moved, or renamed: in no archive. */
    check_last(&tree, "elsewhere/20260103-000000-0003", "20260103-000000-0003", false,
               "2026-01-02/20260102-000000-0002");
    check_last(&tree, "2026-01-02/20260102-000000-0002", "20260109-000000-0009", false,
               "2026-01-02/20260102-000000-0002");
    /* A link to what is gone makes way. */
    assert_int_equal(rmdir(temp_folder_path(&tree.folder, "2026-01-02/20260102-000000-0002").text),
                     0);
    check_last(&tree, "2026-01-01/20260101-000000-0001", "20260101-000000-0001", true,
               "2026-01-01/20260101-000000-0001");
    /* A user's folder of that name stays. */
    assert_int_equal(unlink(temp_folder_path(&tree.folder, "last").text), 0);
    make(&tree, "last/inside");
    CHECK_FAILS(
        archive_point_last(temp_folder_path(&tree.folder, "2026-01-01/20260101-000000-0001").text,
                           "20260101-000000-0001", &done, &tree.err),
        STATUS_EXISTS, &tree.err);
    tree_release(&tree);
}

static bool count_folder(void *context, const struct archive_folder *folder)
{
    (void)folder;
    ++*(unsigned *)context;
    return true;
}

static void test_too_many(void **state)
{
    (void)state;
    struct tree tree;
    char name[64];
    tree_init(&tree);
    for (unsigned i = 0; i < 9; i++) {
        snprintf(name, sizeof(name), "2026-01-0%u/20260101-00000%u-0000", i / 3 + 1, i);
        make(&tree, name);
    }
    for (unsigned limit = 1; limit <= 10; limit++) {
        unsigned count = 0;
        struct archive_walk walk = { count_folder, &count, limit, false };
        CHECK_OK(archive_walk(&walk, tree.folder.path, &tree.err), &tree.err);
        assert_int_equal(count, limit < 9 ? limit : 9);
        assert_int_equal(walk.cut, limit < 9);
    }
    struct campaign_archive archive;
    CHECK_OK(campaign_archive_open(tree.folder.path, &archive, &tree.err), &tree.err);
    assert_int_equal(archive.count, 9);
    assert_false(archive.cut);
    assert_int_equal(archive.audits[0].state, CAMPAIGN_DAMAGED);
    check_contains("why", archive.audits[0].problem, "summary.json");
    campaign_archive_release(&archive);
    tree_release(&tree);
}

static void test_not_there(void **state)
{
    (void)state;
    struct campaign_archive archive;
    struct error err;
    CHECK_OK(campaign_archive_open("/nonexistent/archive", &archive, &err), &err);
    assert_int_equal(archive.count, 0);
    campaign_archive_release(&archive);
}

static void test_deep_folders_stay(void **state)
{
    (void)state;
    struct tree tree;
    struct campaign_archive archive;
    tree_init(&tree);
    make(&tree, "2026-01-01/20260101-000000-0001/a/b/c/d/e/f");
    CHECK_OK(campaign_archive_open(tree.folder.path, &archive, &tree.err), &tree.err);
    assert_int_equal(archive.count, 1);
    CHECK_FAILS(campaign_archive_remove(tree.folder.path, &archive.audits[0], &tree.err),
                STATUS_REFUSED, &tree.err);
    check_contains("why", tree.err.text, "deep");
    campaign_archive_release(&archive);
    tree_release(&tree);
}

/* Another process holds it: a lock of our own would not be seen. */
static void test_lock(void **state)
{
    (void)state;
    struct tree tree;
    struct folder_lock lock;
    struct campaign_archive archive;
    int ready[2];
    char byte = 0;
    tree_init(&tree);
    make(&tree, "2026-01-01/20260101-000000-0001");
    struct temp_path path = temp_folder_path(&tree.folder, "2026-01-01/20260101-000000-0001");
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct error err;
        byte = folder_lock_take(&lock, path.text, &err) ? 'n' : 'y';
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    CHECK_FAILS(folder_lock_take(&lock, path.text, &tree.err), STATUS_BUSY, &tree.err);
    CHECK_OK(campaign_archive_open(tree.folder.path, &archive, &tree.err), &tree.err);
    assert_int_equal(archive.audits[0].state, CAMPAIGN_RUNNING);
    assert_int_equal(archive.audits[0].process, child);
    CHECK_FAILS(campaign_archive_remove(tree.folder.path, &archive.audits[0], &tree.err),
                STATUS_BUSY, &tree.err);
    campaign_archive_release(&archive);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    CHECK_OK(folder_lock_take(&lock, path.text, &tree.err), &tree.err);
    folder_lock_release(&lock);
    assert_int_equal(
        access(temp_folder_path(&tree.folder, "2026-01-01/20260101-000000-0001/lock").text, F_OK),
        -1);
    close(ready[0]);
    close(ready[1]);
    tree_release(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),     cmocka_unit_test(test_prune),
        cmocka_unit_test(test_last),      cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_not_there), cmocka_unit_test(test_deep_folders_stay),
        cmocka_unit_test(test_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
