/* tap_folder_test.c - taps written to a folder, read back, compared; hostile indexes are refused.
 */
#include "test.h"

#include "tap/tap.h"
#include "temp_folder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tap_record record_of(const char *tensor, int32_t layer, int32_t step,
                                   const float *values, uint64_t width, uint64_t rows)
{
    struct tap_record record = {
        .place = { .layer = layer, .step = step, .sequence = -1, .head = -1 },
        .shape = shape_make(2, (uint64_t[]){ width, rows }),
        .stats = tap_stats_of(values, width * rows)
    };
    snprintf(record.place.tensor, sizeof(record.place.tensor), "%s", tensor);
    return record;
}

static void test_stats(void **state)
{
    (void)state;
    static const float values[] = { 2, NAN, -4, INFINITY, -INFINITY, 5, NAN };
    struct tap_stats stats = tap_stats_of(values, 7);
    assert_true(stats.least == -4 && stats.most == 5 && stats.mean == 1);
    assert_int_equal(stats.nan_count, 2);
    assert_int_equal(stats.infinite_count, 2);
    assert_int_equal(stats.first_bad, 1);
    assert_int_equal(tap_stats_of(values, 1).first_bad, 1); /* none */
    assert_int_equal(tap_stats_of(values, 0).first_bad, 0);
    struct error err;
    struct tap_record record = record_of("ffn_down", 3, 2, values, 3, 2);
    CHECK_FAILS(tap_check_finite(&record, &err), STATUS_BAD_FILE, &err);
    check_contains("place", err.text, "layer 3, step 2, ffn_down");
    check_contains("numbers", err.text,
                   "found 1 NaN and 2 infinite of 6, the first at row 0, column 1");
    record = record_of("x", -1, 0, values, 1, 1);
    CHECK_OK(tap_check_finite(&record, &err), &err);
}

/* ---- Two folders ---------------------------------------------------------------------------- */

/* A folder within the folder; files of an earlier one are removed. */
static struct temp_path write_taps(const struct temp_folder *folder, const char *name,
                                   const float values[4][4], size_t count, const char *last)
{
    struct temp_path path = temp_folder_path(folder, name);
    struct tap_writer *writer;
    struct error err;
    CHECK_OK(tap_writer_create(path.text, &writer, &err), &err);
    for (size_t i = 0; i < count; i++) {
        struct tap_record record = record_of(i == 3 ? last : "wo", (int32_t)i, 0, values[i], 2, 2);
        CHECK_OK(tap_writer_add(writer, &record, values[i], &err), &err);
    }
    assert_int_equal(tap_writer_count(writer), count);
    assert_false(tap_writer_is_truncated(writer));
    CHECK_OK(tap_writer_finish(writer, &err), &err);
    tap_writer_destroy(writer);
    return path;
}

static void remove_taps(const struct temp_path *path)
{
    char command[512];
    static const char *const names[] = { "index.json",           "step0.layer0.wo.npy",
                                         "step0.layer1.wo.npy",  "step0.layer2.wo.npy",
                                         "step0.layer3.one.npy", "step0.layer3.two.npy" };
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(command, sizeof(command), "%s/%s", path->text, names[i]);
        remove(command);
    }
    assert_int_equal(rmdir(path->text), 0);
}

static struct tap_comparison compare(const struct temp_path *left, const struct temp_path *right,
                                     double tolerance)
{
    struct tap_index a, b;
    struct tap_comparison comparison;
    struct error err;
    CHECK_OK(tap_index_read(&a, left->text, &err), &err);
    CHECK_OK(tap_index_read(&b, right->text, &err), &err);
    CHECK_OK(tap_compare(&a, &b, tolerance, &comparison, &err), &err);
    tap_index_release(&a);
    tap_index_release(&b);
    return comparison;
}

static void test_compare(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    const float one[4][4] = { { 1, 2, 3, 4 }, { 1, NAN, 3, 4 }, { 3, 0, 4, 0 }, { 5, 5, 5, 5 } };
    float other[4][4];
    memcpy(other, one, sizeof(one));
    struct temp_path a = write_taps(&folder, "a", one, 4, "one");
    struct temp_path b = write_taps(&folder, "b", one, 4, "one");
    struct tap_comparison comparison = compare(&a, &b, 0);
    assert_int_equal(comparison.count, 4);
    assert_int_equal(comparison.different_count, 0);
    assert_int_equal(comparison.first, 4);
    tap_comparison_release(&comparison);

    /* Layer 2 differs by 0.5 at one place: 0.25 over 25. The last is another tensor. */
    other[2][2] = 4.5f;
    struct temp_path c = write_taps(&folder, "c", (const float(*)[4])other, 4, "two");
    comparison = compare(&a, &c, 0);
    assert_int_equal(comparison.count, 5);
    assert_int_equal(comparison.different_count, 3);
    assert_int_equal(comparison.first, 2);
    const struct tap_difference *difference = &comparison.differences[2];
    assert_int_equal(difference->verdict, TAP_DIFFERS);
    assert_true(difference->largest == 0.5 && difference->error == 0.01);
    assert_int_equal(difference->at, 2);
    assert_true(difference->left == 4 && difference->right == 4.5f);
    assert_int_equal(comparison.differences[1].verdict, TAP_SAME); /* NaN and NaN */
    assert_int_equal(comparison.differences[3].verdict, TAP_ONLY_LEFT);
    assert_int_equal(comparison.differences[4].verdict, TAP_ONLY_RIGHT);
    tap_comparison_release(&comparison);
    comparison = compare(&a, &c, 0.011);
    assert_int_equal(comparison.differences[2].verdict, TAP_SAME);
    assert_int_equal(comparison.first, 3); /* what only one has */
    tap_comparison_release(&comparison);

    /* NaN against a number differs whatever the tolerance. */
    other[1][1] = 2;
    struct temp_path d = write_taps(&folder, "d", (const float(*)[4])other, 3, "");
    comparison = compare(&a, &d, 1e30);
    assert_int_equal(comparison.first, 1);
    assert_true(isinf(comparison.differences[1].largest));
    tap_comparison_release(&comparison);
    remove_taps(&a);
    remove_taps(&b);
    remove_taps(&c);
    remove_taps(&d);
    temp_folder_release(&folder);
}

static void test_folders(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct error err;
    struct tap_writer *writer;
    temp_folder_init(&folder);
    /* Not empty: refused, and nothing changed. */
    temp_folder_write(&folder, "file", "x", 1);
    CHECK_FAILS(tap_writer_create(folder.path, &writer, &err), STATUS_EXISTS, &err);
    check_contains("full", err.text, "expected a new or an empty folder");
    assert_int_equal(temp_folder_count(&folder), 1);
    CHECK_FAILS(tap_writer_create("", &writer, &err), STATUS_USAGE, &err);
    struct temp_path below = temp_folder_path(&folder, "file/taps");
    CHECK_FAILS(tap_writer_create(below.text, &writer, &err), STATUS_IO, &err);
    /* Given up before anything was written: no folder is left. */
    struct temp_path path = temp_folder_path(&folder, "taps");
    CHECK_OK(tap_writer_create(path.text, &writer, &err), &err);
    tap_writer_destroy(writer);
    assert_int_equal(access(path.text, F_OK), -1);
    struct tap_index index;
    CHECK_FAILS(tap_index_read(&index, path.text, &err), STATUS_NOT_FOUND, &err);
    temp_folder_release(&folder);
}

static void test_hostile_index(void **state)
{
    (void)state;
#define FRONT "{\"format\":\"greta-taps\",\"version\":1,\"taps\":["
    static const struct {
        const char *name, *text;
        enum status status;
        const char *words;
    } rows[] = {
        { "empty", "", STATUS_BAD_FILE, "expected JSON" },
        { "cut", FRONT, STATUS_BAD_FILE, "expected JSON" },
        { "not ours", "{}", STATUS_BAD_FILE, "expected \"format\"" },
        { "a list", "[]", STATUS_BAD_FILE, "expected \"format\"" },
        { "another version", "{\"format\":\"greta-taps\",\"version\":2,\"taps\":[]}",
          STATUS_UNSUPPORTED, "version 1" },
        { "taps are no list", "{\"format\":\"greta-taps\",\"version\":1,\"taps\":{}}",
          STATUS_BAD_FILE, "expected \"format\"" },
        { "a tap is a number", FRONT "7]}", STATUS_BAD_FILE, "tap 0: expected \"file\"" },
        { "path upwards", FRONT "{\"file\":\"../x\",\"tensor\":\"a\",\"layer\":0,\"step\":0}]}",
          STATUS_BAD_FILE, "a plain file name" },
        { "absolute path",
          FRONT "{\"file\":\"/etc/passwd\",\"tensor\":\"a\",\"layer\":0,\"step\":0}]}",
          STATUS_BAD_FILE, "a plain file name" },
        { "hidden", FRONT "{\"file\":\".x\",\"tensor\":\"a\",\"layer\":0,\"step\":0}]}",
          STATUS_BAD_FILE, "a plain file name" },
        { "long tensor",
          FRONT "{\"file\":\"x\",\"tensor\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"layer\":0,"
                "\"step\":0}]}",
          STATUS_BAD_FILE, "a short plain name" },
        { "no layer", FRONT "{\"file\":\"x\",\"tensor\":\"a\",\"step\":0}]}", STATUS_BAD_FILE,
          "numbers from -1" },
        { "layer past 32 bits",
          FRONT "{\"file\":\"x\",\"tensor\":\"a\",\"layer\":99999999999,\"step\":0}]}",
          STATUS_BAD_FILE, "numbers from -1" },
        { "layer is text", FRONT "{\"file\":\"x\",\"tensor\":\"a\",\"layer\":\"0\",\"step\":0}]}",
          STATUS_BAD_FILE, "numbers from -1" },
        { "good", FRONT "{\"file\":\"x\",\"tensor\":\"a\",\"layer\":0,\"step\":0}]}", STATUS_OK,
          "" },
    };
    struct temp_folder folder;
    struct error err;
    temp_folder_init(&folder);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct tap_index index;
        temp_folder_write(&folder, "index.json", rows[i].text, strlen(rows[i].text));
        enum status status = tap_index_read(&index, folder.path, &err);
        if (status != rows[i].status)
            fail_msg("%s: %s: %s", rows[i].name, status_name(status), status ? err.text : "");
        if (status)
            check_contains(rows[i].name, err.text, rows[i].words);
        else
            tap_index_release(&index);
    }
    /* The file it names is not there; the same place twice. */
    struct tap_index index;
    struct tap_comparison comparison;
    CHECK_OK(tap_index_read(&index, folder.path, &err), &err);
    CHECK_FAILS(tap_compare(&index, &index, 0, &comparison, &err), STATUS_NOT_FOUND, &err);
    tap_index_release(&index);
    static const char twice[] = FRONT "{\"file\":\"x\",\"tensor\":\"a\",\"layer\":0,\"step\":0},"
                                      "{\"file\":\"y\",\"tensor\":\"a\",\"layer\":0,\"step\":0}]}";
    temp_folder_write(&folder, "index.json", twice, strlen(twice));
    CHECK_OK(tap_index_read(&index, folder.path, &err), &err);
    CHECK_FAILS(tap_compare(&index, &index, 0, &comparison, &err), STATUS_BAD_FILE, &err);
    check_contains("twice", err.text, "found layer 0, step 0, a twice");
    tap_index_release(&index);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_hostile_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
