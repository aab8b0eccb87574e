/* gguf_value_test.c - metadata as numbers, flags and text: which types stand for which, and what is
 * said of those that do not. */
#include "gguf_open.h"
#include "test.h"

#include <math.h>

static struct opened open_specimen(void)
{
    struct gguf_build build;
    gguf_build_specimen(&build, 3);
    struct opened opened = open_bytes(text_get(&build.text), build.text.length);
    gguf_build_release(&build);
    CHECK_OK(opened.status, &opened.err);
    return opened;
}

/* One scalar entry "v" of that type. */
static struct opened open_scalar(uint32_t type, uint64_t bits)
{
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_number(&build, "v", type, bits);
    struct opened opened = open_built(&build);
    CHECK_OK(opened.status, &opened.err);
    return opened;
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t type;
        uint64_t bits;
        bool is_u64, is_i64;
        uint64_t as_u64;
        int64_t as_i64;
        double as_f64;
    } rows[] = {
        { "u8 at its largest", BUILD_U8, 0xFF, true, true, 255, 255, 255 },
        { "i8 at its least", BUILD_I8, 0x80, false, true, 0, -128, -128 },
        { "u16", BUILD_U16, 0xFFFF, true, true, 65535, 65535, 65535 },
        { "i16", BUILD_I16, 0x8000, false, true, 0, -32768, -32768 },
        { "u32", BUILD_U32, 0xFFFFFFFF, true, true, 4294967295u, 4294967295, 4294967295.0 },
        { "i32", BUILD_I32, 0x80000000, false, true, 0, INT32_MIN, -2147483648.0 },
        { "i32 above 0", BUILD_I32, 7, true, true, 7, 7, 7 },
        { "u64 that i64 cannot hold", BUILD_U64, 1ull << 63, true, false, 1ull << 63, 0, 0x1p63 },
        { "u64 that i64 can", BUILD_U64, INT64_MAX, true, true, INT64_MAX, INT64_MAX, 0x1p63 },
        { "i64 at its least", BUILD_I64, 1ull << 63, false, true, 0, INT64_MIN, -0x1p63 },
        { "i64 -1", BUILD_I64, UINT64_MAX, false, true, 0, -1, -1 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct opened opened = open_scalar(rows[i].type, rows[i].bits);
        const struct gguf_value *value = gguf_find(opened.file, "v");
        uint64_t u64 = 777, by_key = 777;
        int64_t i64 = 777;
        double f64 = 777;
        if (gguf_value_u64(value, 0, &u64) != rows[i].is_u64 ||
            gguf_value_i64(value, 0, &i64) != rows[i].is_i64 || !gguf_value_f64(value, 0, &f64))
            fail_msg("%s: read as the wrong kinds", rows[i].name);
        assert_int_equal(u64, rows[i].is_u64 ? rows[i].as_u64 : 777);
        assert_int_equal(i64, rows[i].is_i64 ? rows[i].as_i64 : 777);
        assert_true(f64 == rows[i].as_f64);
        enum status status = gguf_get_u64(opened.file, "v", &by_key, &opened.err);
        assert_int_equal(status, rows[i].is_u64 ? STATUS_OK : STATUS_BAD_FILE);
        assert_int_equal(by_key, u64);
        opened_release(&opened);
    }
}

static void test_floats(void **state)
{
    (void)state;
    struct opened opened = open_specimen();
    double number;
    CHECK_OK(gguf_get_f64(opened.file, "t.f32", &number, &opened.err), &opened.err);
    assert_true(number == 1.5);
    CHECK_OK(gguf_get_f64(opened.file, "t.f64", &number, &opened.err), &opened.err);
    assert_true(number == -2.25);
    /* An integer may stand for a float. */
    CHECK_OK(gguf_get_f64(opened.file, "t.i8", &number, &opened.err), &opened.err);
    assert_true(number == -100);
    opened_release(&opened);

    opened = open_scalar(BUILD_F32, 0x7FC00000u);
    CHECK_OK(gguf_get_f64(opened.file, "v", &number, &opened.err), &opened.err);
    assert_true(isnan(number)); /* what to think of it is the caller's business */
    opened_release(&opened);
}

static void test_flags_and_text(void **state)
{
    (void)state;
    struct opened opened = open_specimen();
    bool flag = false;
    struct text_view text;
    CHECK_OK(gguf_get_flag(opened.file, "t.bool", &flag, &opened.err), &opened.err);
    assert_true(flag);
    CHECK_OK(gguf_get_text(opened.file, "general.name", &text, &opened.err), &opened.err);
    assert_true(text_view_is(text, "last entry of the file"));
    opened_release(&opened);

    opened = open_scalar(BUILD_BOOL, 0);
    flag = true;
    CHECK_OK(gguf_get_flag(opened.file, "v", &flag, &opened.err), &opened.err);
    assert_false(flag);
    opened_release(&opened);
}

enum getter { GET_U64, GET_F64, GET_FLAG, GET_TEXT };

static enum status get(struct opened *opened, enum getter getter, const char *key)
{
    uint64_t number;
    double real;
    bool flag;
    struct text_view text;
    switch (getter) {
    case GET_U64:
        return gguf_get_u64(opened->file, key, &number, &opened->err);
    case GET_F64:
        return gguf_get_f64(opened->file, key, &real, &opened->err);
    case GET_FLAG:
        return gguf_get_flag(opened->file, key, &flag, &opened->err);
    default:
        return gguf_get_text(opened->file, key, &text, &opened->err);
    }
}

static void test_wrong_kinds_are_told(void **state)
{
    (void)state;
    static const struct {
        enum getter getter;
        const char *key;
        const char *words;
    } rows[] = {
        { GET_U64, "t.i8", "t.i8: expected a whole number from 0, found -100 (i8)" },
        { GET_U64, "t.f32", "t.f32: expected a whole number from 0, found f32" },
        { GET_U64, "t.bool", "t.bool: expected a whole number from 0, found bool" },
        { GET_U64, "general.name", "expected a whole number from 0, found string" },
        { GET_U64, "t.array.u8", "expected a whole number from 0, found an array of 3 u8" },
        { GET_F64, "t.bool", "t.bool: expected a number, found bool" },
        { GET_F64, "general.name", "expected a number, found string" },
        { GET_F64, "t.array.f32", "expected a number, found an array of 3 f32" },
        { GET_FLAG, "t.u8", "t.u8: expected a bool, found 200 (u8)" },
        { GET_FLAG, "t.array.bool", "expected a bool, found an array of 3 bool" },
        { GET_TEXT, "t.u64", "t.u64: expected a string, found u64" },
        { GET_TEXT, "t.array.string", "expected a string, found an array of 4 string" },
    };
    struct opened opened = open_specimen();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        CHECK_FAILS(get(&opened, rows[i].getter, rows[i].key), STATUS_BAD_FILE, &opened.err);
        check_contains(rows[i].key, opened.err.text, rows[i].words);
        check_contains(rows[i].key, opened.err.text, "built.gguf: byte ");
    }
    for (int getter = GET_U64; getter <= GET_TEXT; getter++) {
        CHECK_FAILS(get(&opened, (enum getter)getter, "no.such"), STATUS_NOT_FOUND, &opened.err);
        check_contains("absent", opened.err.text, "built.gguf: no.such: expected ");
    }
    opened_release(&opened);
}

static void test_elements_of_arrays(void **state)
{
    (void)state;
    struct opened opened = open_specimen();
    uint64_t u64 = 777;
    int64_t i64 = 777;
    double f64 = 777;
    const struct gguf_value *array = gguf_find(opened.file, "t.array.u16");
    assert_true(gguf_value_u64(array, 0, &u64) && u64 == 0xF7F8);
    assert_true(gguf_value_u64(array, 2, &u64) && u64 == 0xD7D8);
    assert_true(gguf_value_i64(array, 1, &i64) && i64 == 0xE7E8);
    assert_true(gguf_value_f64(array, 1, &f64) && f64 == 0xE7E8);
    assert_false(gguf_value_u64(array, 3, &u64));
    assert_false(gguf_value_i64(array, UINT64_MAX, &i64));
    assert_false(gguf_value_f64(array, 3, &f64));
    array = gguf_find(opened.file, "t.array.i16");
    assert_false(gguf_value_u64(array, 0, &u64)); /* negative */
    assert_true(gguf_value_i64(array, 0, &i64) && i64 == (int16_t)0xF7F8);
    array = gguf_find(opened.file, "t.array.string");
    assert_false(gguf_value_u64(array, 0, &u64));
    assert_false(gguf_value_i64(array, 1, &i64));
    assert_false(gguf_value_f64(array, 2, &f64));
    assert_int_equal(u64, 0xD7D8); /* a failing call leaves the result alone */
    opened_release(&opened);
}

static void test_walking_strings(void **state)
{
    (void)state;
    static const char *const words[] = { "first string", "second string", "", "fourth string" };
    struct opened opened = open_specimen();
    struct gguf_strings strings = gguf_strings_of(gguf_find(opened.file, "t.array.string"));
    struct text_view view;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        assert_true(gguf_strings_next(&strings, &view));
        assert_true(text_view_is(view, words[i]));
    }
    assert_false(gguf_strings_next(&strings, &view));
    assert_false(gguf_strings_next(&strings, &view));

    /* A single string is a walk of one; what is not a string is a walk of none. */
    strings = gguf_strings_of(gguf_find(opened.file, "general.name"));
    assert_true(gguf_strings_next(&strings, &view));
    assert_false(gguf_strings_next(&strings, &view));
    strings = gguf_strings_of(gguf_find(opened.file, "t.array.u8"));
    assert_false(gguf_strings_next(&strings, &view));
    opened_release(&opened);
}

/* A file can change under its mapping: a length that no longer fits ends the walk. */
static void test_strings_that_changed_since(void **state)
{
    (void)state;
    struct opened opened = open_specimen();
    const struct gguf_value *value = gguf_find(opened.file, "t.array.string");
    opened.bytes[value->offset_bytes + 7] = 0x80;
    struct gguf_strings strings = gguf_strings_of(value);
    struct text_view view;
    assert_false(gguf_strings_next(&strings, &view));
    opened_release(&opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_flags_and_text),
        cmocka_unit_test(test_wrong_kinds_are_told),
        cmocka_unit_test(test_elements_of_arrays),
        cmocka_unit_test(test_walking_strings),
        cmocka_unit_test(test_strings_that_changed_since),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
