/* gguf_writer_refused_test.c - what the writer refuses, and that it leaves no file that is not
 * complete. */
#include "gguf_write.h"

static void test_refused_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        struct text_view name;
        enum dtype dtype;
        struct shape shape;
        const char *words;
    } rows[] = {
        { "no name", { "", 0 }, DTYPE_F32, { 1, { 4, 1, 1, 1 } }, "expected a name of 1 to 63" },
        { "64 bytes of name",
          { "0123456789012345678901234567890123456789012345678901234567890123", 64 },
          DTYPE_F32,
          { 1, { 4, 1, 1, 1 } },
          "expected a name of 1 to 63 bytes" },
        { "NUL in the name", { "a\0b", 3 }, DTYPE_F32, { 1, { 4, 1, 1, 1 } }, "without NUL" },
        { "part of a block",
          { "t", 1 },
          DTYPE_Q8_0,
          { 1, { 33, 1, 1, 1 } },
          "whole blocks of Q8_0" },
        { "wraps", { "t", 1 }, DTYPE_F32, { 2, { 1ull << 32, 1ull << 31, 1, 1 } }, "fits a file" },
        { "2^63", { "t", 1 }, DTYPE_I8, { 1, { 1ull << 63, 1, 1, 1 } }, "fits a file" },
    };
    struct gguf_writer *writer = create_writer();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct error err;
        CHECK_FAILS(
            gguf_writer_add_tensor(writer, rows[i].name, rows[i].dtype, &rows[i].shape, &err),
            STATUS_USAGE, &err);
        check_contains(rows[i].what, err.text, rows[i].words);
    }
    gguf_writer_destroy(writer);
}

static void test_tensor_twice(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_writer *writer = create_writer();
    struct shape shape = shape_make(1, (const uint64_t[]){ 4 });
    struct error err;
    static const char *const names[] = { "b", "a", "c", "a" };
    for (size_t i = 0; i < COUNT_OF(names); i++)
        CHECK_OK(gguf_writer_add_tensor(writer, text_view_of(names[i]), DTYPE_F32, &shape, &err),
                 &err);
    struct temp_path path = temp_folder_path(&folder, "out.gguf");
    CHECK_FAILS(gguf_writer_begin_data(writer, path.text, false, &err), STATUS_USAGE, &err);
    check_contains("twice", err.text, "tensor 'a'");
    gguf_writer_destroy(writer);
    assert_int_equal(temp_folder_count(&folder), 0);
    temp_folder_release(&folder);
}

static void test_unfinished_leaves_nothing(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_writer *writer = create_writer();
    add_planned(writer);
    struct error err;
    struct temp_path path = temp_folder_path(&folder, "out.gguf");
    CHECK_OK(gguf_writer_begin_data(writer, path.text, false, &err), &err);
    CHECK_OK(gguf_writer_append(writer, "0123456789", 10, &err), &err);
    assert_int_equal(temp_folder_count(&folder), 1); /* under another name */
    assert_false(temp_folder_has(&folder, "out.gguf"));
    gguf_writer_destroy(writer);
    assert_int_equal(temp_folder_count(&folder), 0);
    gguf_writer_destroy(NULL);
    temp_folder_release(&folder);
}

static void test_existing_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    temp_folder_write(&folder, "out.gguf", "precious", 8);
    struct temp_path path = temp_folder_path(&folder, "out.gguf");
    struct gguf_writer *writer = create_writer();
    struct error err;
    CHECK_FAILS(gguf_writer_begin_data(writer, path.text, false, &err), STATUS_EXISTS, &err);
    check_contains("exists", err.text, path.text);
    gguf_writer_destroy(writer);
    struct text kept;
    text_init(&kept);
    temp_folder_read(&folder, "out.gguf", &kept);
    assert_string_equal(text_get(&kept), "precious");
    text_release(&kept);

    finish_empty(create_writer(), &folder); /* with replace */
    struct gguf_file *file;
    CHECK_OK(gguf_open(path.text, &file, &err), &err);
    gguf_close(file);
    assert_int_equal(temp_folder_count(&folder), 1);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_tensors),
        cmocka_unit_test(test_tensor_twice),
        cmocka_unit_test(test_unfinished_leaves_nothing),
        cmocka_unit_test(test_existing_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
