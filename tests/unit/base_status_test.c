/* base_status_test.c - what an error remembers, and what happens to texts that are too long. */
#include "test.h"

#include "base/progress.h"
#include "base/size.h"

#include <errno.h>
#include <string.h>

static void test_set_keeps_origin_and_text(void **state)
{
    (void)state;
    struct error err;
    memset(&err, 0x5A, sizeof(err));
    int line = __LINE__ + 1;
    enum status status = error_set(&err, STATUS_LIMIT, "expected %d, found %s", 4, "five");
    assert_int_equal(status, STATUS_LIMIT);
    assert_int_equal(err.status, STATUS_LIMIT);
    assert_int_equal(err.line, line);
    assert_int_equal(err.os_code, 0);
    assert_string_equal(err.text, "expected 4, found five");
    check_contains("file", err.file, "base_status_test.c");
    assert_true(err.file[0] != '/');
}

static void test_wrap_goes_in_front(void **state)
{
    (void)state;
    struct error err;
    (void)error_set(&err, STATUS_BAD_FILE, "found 3");
    int line = err.line;
    assert_int_equal(error_wrap(&err, "tensor %s", "a"), STATUS_BAD_FILE);
    assert_int_equal(error_wrap(&err, "loading %s", "m.gguf"), STATUS_BAD_FILE);
    assert_string_equal(err.text, "loading m.gguf: tensor a: found 3");
    assert_int_equal(err.line, line);
}

static void check_cut(const struct error *err)
{
    assert_int_equal(strlen(err->text), ERROR_TEXT_BYTES - 1);
    assert_string_equal(err->text + ERROR_TEXT_BYTES - 4, "...");
}

static void test_long_texts_end_in_dots(void **state)
{
    (void)state;
    char words[ERROR_TEXT_BYTES + 1];
    memset(words, 'w', sizeof(words));
    words[ERROR_TEXT_BYTES] = '\0';
    struct error err;

    (void)error_set(&err, STATUS_IO, "%s", words);
    check_cut(&err);
    (void)error_set(&err, STATUS_IO, "%s", words + 1); /* fits to the byte: not cut */
    assert_string_equal(err.text, words + 1);

    (void)error_wrap(&err, "context");
    assert_memory_equal(err.text, "context: www", 12);
    check_cut(&err);
    (void)error_set(&err, STATUS_IO, "inner");
    (void)error_wrap(&err, "%s", words);
    check_cut(&err);
    (void)error_set(&err, STATUS_IO, "inner");
    (void)error_wrap(&err, "%s", words + 1); /* no room even for ": " */
    check_cut(&err);

    (void)error_set_os(&err, ENOSPC, "%s", words + 4);
    check_cut(&err);
    assert_int_equal(err.os_code, ENOSPC);
}

static void test_os_codes(void **state)
{
    (void)state;
    static const struct {
        int code;
        enum status status;
        const char *text;
    } rows[] = {
        { ENOENT, STATUS_NOT_FOUND, "x: No such file or directory" },
        { EEXIST, STATUS_EXISTS, "x: File exists" },
        { ENOMEM, STATUS_NO_MEMORY, "x: Cannot allocate memory" },
        { ENOSPC, STATUS_IO, "x: No space left on device" },
        { EACCES, STATUS_IO, "x: Permission denied" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error err;
        assert_int_equal(error_set_os(&err, rows[i].code, "x"), rows[i].status);
        assert_int_equal(err.status, rows[i].status);
        assert_int_equal(err.os_code, rows[i].code);
        assert_string_equal(err.text, rows[i].text);
    }
    struct error err;
    assert_int_equal(error_set_os(&err, 99999, "x"), STATUS_IO);
    check_contains("unknown code", err.text, "99999");
}

static void test_names(void **state)
{
    (void)state;
    for (int i = 0; i < STATUS_COUNT; i++) {
        const char *name = status_name((enum status)i);
        assert_true(name && name[0]);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(name, status_name((enum status)j));
    }
    assert_string_equal(status_name(STATUS_BAD_FILE), "bad-file");
    assert_string_equal(status_name(STATUS_COUNT), "unknown");
    assert_string_equal(status_name((enum status) - 1), "unknown");
}

static enum status fail_in_the_middle(int *steps, struct error *err)
{
    (*steps)++;
    TRY(STATUS_OK);
    (*steps)++;
    TRY(error_set(err, STATUS_BAD_FILE, "here"));
    (*steps)++;
    return STATUS_OK;
}

static void test_try_returns_the_first_failure(void **state)
{
    (void)state;
    struct error err;
    int steps = 0;
    CHECK_FAILS(fail_in_the_middle(&steps, &err), STATUS_BAD_FILE, &err);
    assert_int_equal(steps, 2);
}

/* ---- size.h --------------------------------------------------------------------------------- */

#define MAX UINT64_MAX

static void test_sizes_do_not_wrap(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool (*function)(uint64_t, uint64_t, uint64_t *);
        uint64_t a, b;
        bool fits;
        uint64_t result;
    } rows[] = {
        { "add", size_add, 2, 3, true, 5 },
        { "add to the end", size_add, MAX - 1, 1, true, MAX },
        { "add past the end", size_add, MAX, 1, false, 0 },
        { "mul", size_mul, 6, 7, true, 42 },
        { "mul by zero", size_mul, MAX, 0, true, 0 },
        { "mul to the end", size_mul, MAX / 5, 5, true, MAX },
        { "mul past the end", size_mul, 1ull << 32, 1ull << 32, false, 0 },
        { "align", size_align_up, 33, 32, true, 64 },
        { "align what is aligned", size_align_up, 64, 32, true, 64 },
        { "align zero", size_align_up, 0, 32, true, 0 },
        { "align to one", size_align_up, 7, 1, true, 7 },
        { "align up to the last", size_align_up, MAX - 31, 32, true, MAX - 31 },
        { "align past the end", size_align_up, MAX - 30, 32, false, 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t result = 777;
        bool fits = rows[i].function(rows[i].a, rows[i].b, &result);
        if (fits != rows[i].fits || result != (fits ? rows[i].result : 777))
            fail_msg("%s: fits %d, %llu", rows[i].name, fits, (unsigned long long)result);
    }
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t offset, bytes, whole;
        bool inside;
    } rows[] = {
        { "whole buffer", 0, 16, 16, true },          { "empty at the end", 16, 0, 16, true },
        { "empty past the end", 17, 0, 16, false },   { "one past the end", 0, 17, 16, false },
        { "offset + size wraps", MAX, 2, 16, false },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (size_range_inside(rows[i].offset, rows[i].bytes, rows[i].whole) != rows[i].inside)
            fail_msg("%s", rows[i].name);
    assert_false(size_is_power_of_two(0));
    assert_true(size_is_power_of_two(1));
    assert_false(size_is_power_of_two(24));
    assert_true(size_is_power_of_two(1ull << 63));
}

/* ---- progress.h ----------------------------------------------------------------------------- */

static bool stop_at_limit(void *context, uint64_t done, uint64_t total)
{
    assert_int_equal(total, 9);
    return done < *(const uint64_t *)context;
}

static void test_progress_may_stop(void **state)
{
    (void)state;
    struct error err;
    uint64_t limit = 5;
    struct progress progress = { stop_at_limit, &limit };
    CHECK_OK(progress_step(NULL, 1, 9, &err), &err);
    CHECK_OK(progress_step(&(struct progress){ 0 }, 1, 9, &err), &err);
    CHECK_OK(progress_step(&progress, 4, 9, &err), &err);
    CHECK_FAILS(progress_step(&progress, 5, 9, &err), STATUS_INTERRUPTED, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set_keeps_origin_and_text),
        cmocka_unit_test(test_wrap_goes_in_front),
        cmocka_unit_test(test_long_texts_end_in_dots),
        cmocka_unit_test(test_os_codes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_try_returns_the_first_failure),
        cmocka_unit_test(test_sizes_do_not_wrap),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_progress_may_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
