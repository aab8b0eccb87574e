/* gguf_writer_test.c - what the writer leaves on disk, checked byte by byte with a parser of its
 * own and then with the reader. */
#include "gguf_write.h"

static uint8_t data_byte(size_t tensor, uint64_t index)
{
    return (uint8_t)(tensor * 40 + index + 1);
}

static void put_metadata(struct gguf_writer *writer)
{
    struct text strings;
    text_init(&strings);
    gguf_add_string(&strings, text_view_of("a"));
    gguf_add_string(&strings, text_view_of(""));
    gguf_add_string(&strings, (struct text_view){ "\0\xFF", 2 });
    gguf_writer_put_text(writer, "general.architecture", "llama");
    gguf_writer_put_u32(writer, "a.number", 1);
    gguf_writer_put_f32(writer, "a.float", 0.5f);
    gguf_writer_put_flag(writer, "a.flag", true);
    gguf_writer_put_strings(writer, "a.strings", &strings, 3);
    gguf_writer_put_array(writer, "an.array", GGUF_I32, "\1\0\0\0\xFF\xFF\xFF\xFF", 2);
    text_release(&strings);
}

/* In chunks of at most piece_bytes. */
static void append_planned(struct gguf_writer *writer, uint64_t piece_bytes)
{
    struct error err;
    for (size_t i = 0; i < COUNT_OF(planned); i++) {
        for (uint64_t at = 0; at < planned[i].bytes; at += piece_bytes) {
            uint8_t piece[512];
            uint64_t left = planned[i].bytes - at;
            size_t count = (size_t)(left < piece_bytes ? left : piece_bytes);
            for (size_t j = 0; j < count; j++)
                piece[j] = data_byte(i, at + j);
            CHECK_OK(gguf_writer_append(writer, piece, count, &err), &err);
        }
    }
}

static uint64_t padded(uint64_t bytes)
{
    return (bytes + 31) / 32 * 32;
}

static void check_layout(const struct text *file, const struct walked *walked)
{
    const uint8_t *bytes = (const uint8_t *)text_get(file);
    uint64_t data_start = padded(walked->infos_end), expected_offset = 0;
    assert_int_equal(walked->tensor_count, COUNT_OF(planned));
    for (uint64_t i = walked->infos_end; i < data_start; i++)
        assert_int_equal(bytes[i], 0);
    for (size_t i = 0; i < COUNT_OF(planned); i++) {
        const struct walked_tensor *tensor = &walked->tensors[i];
        assert_string_equal(tensor->name, planned[i].name);
        assert_int_equal(tensor->rank, planned[i].file_rank);
        assert_memory_equal(tensor->dims, planned[i].shape.dims, 8 * tensor->rank);
        assert_int_equal(tensor->type, planned[i].file_type);
        assert_int_equal(tensor->offset, expected_offset);
        const uint8_t *data = bytes + data_start + tensor->offset;
        for (uint64_t j = 0; j < padded(planned[i].bytes); j++)
            assert_int_equal(data[j], j < planned[i].bytes ? data_byte(i, j) : 0);
        expected_offset += padded(planned[i].bytes);
    }
    assert_int_equal(file->length, data_start + expected_offset);
}

static void check_read_back(const char *path)
{
    struct gguf_file *file;
    struct error err;
    CHECK_OK(gguf_open(path, &file, &err), &err);
    assert_int_equal(gguf_version(file), 3);
    double real;
    bool flag;
    int64_t element;
    CHECK_OK(gguf_get_f64(file, "a.float", &real, &err), &err);
    CHECK_OK(gguf_get_flag(file, "a.flag", &flag, &err), &err);
    assert_true(real == 0.5 && flag);
    assert_true(gguf_value_i64(gguf_find(file, "an.array"), 1, &element) && element == -1);
    struct gguf_strings strings = gguf_strings_of(gguf_find(file, "a.strings"));
    struct text_view view;
    for (size_t i = 0; i < 3; i++)
        assert_true(gguf_strings_next(&strings, &view));
    assert_true(view.length == 2 && memcmp(view.bytes, "\0\xFF", 2) == 0);
    for (size_t i = 0; i < COUNT_OF(planned); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_find(file, planned[i].name);
        assert_non_null(tensor);
        assert_int_equal(tensor->dtype, planned[i].dtype);
        assert_true(shape_equal(&tensor->shape, &planned[i].shape));
        assert_int_equal(tensor->bytes, planned[i].bytes);
    }
    gguf_close(file);
}

static void test_layout(void **state)
{
    (void)state;
    static const uint64_t piece_bytes[] = { 1, 7, 512 };
    for (size_t i = 0; i < COUNT_OF(piece_bytes); i++) {
        struct temp_folder folder;
        temp_folder_init(&folder);
        struct temp_path path = temp_folder_path(&folder, "out.gguf");
        struct gguf_writer *writer = create_writer();
        put_metadata(writer);
        add_planned(writer);
        struct error err;
        CHECK_OK(gguf_writer_begin_data(writer, path.text, false, &err), &err);
        uint64_t size = gguf_writer_size_bytes(writer);
        append_planned(writer, piece_bytes[i]);
        assert_false(temp_folder_has(&folder, "out.gguf")); /* not before it is complete */
        CHECK_OK(gguf_writer_finish(writer, &err), &err);
        gguf_writer_destroy(writer);

        struct text file;
        struct walked walked;
        text_init(&file);
        temp_folder_read(&folder, "out.gguf", &file);
        assert_int_equal(file.length, size);
        walk(&file, &walked);
        assert_string_equal(walked.keys, "general.architecture a.number a.float a.flag a.strings "
                                         "an.array general.alignment");
        check_layout(&file, &walked);
        check_read_back(path.text);
        assert_int_equal(temp_folder_count(&folder), 1);
        text_release(&file);
        temp_folder_release(&folder);
    }
}

static void test_a_key_again_replaces_its_value(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_writer *writer = create_writer();
    gguf_writer_put_u32(writer, "general.alignment", 4096); /* copied; the layout has its own */
    gguf_writer_put_text(writer, "a", "a long text that will be a number");
    gguf_writer_put_u32(writer, "b", 1);
    gguf_writer_put_u32(writer, "a", 7);
    gguf_writer_put_text(writer, "b", "now a text");
    finish_empty(writer, &folder);

    struct text bytes;
    struct walked walked;
    text_init(&bytes);
    temp_folder_read(&folder, "out.gguf", &bytes);
    walk(&bytes, &walked);
    assert_string_equal(walked.keys, "general.alignment a b");
    text_release(&bytes);

    struct gguf_file *file;
    struct error err;
    uint64_t number;
    struct text_view text;
    CHECK_OK(gguf_open(temp_folder_path(&folder, "out.gguf").text, &file, &err), &err);
    CHECK_OK(gguf_get_u64(file, "a", &number, &err), &err);
    assert_int_equal(number, 7);
    CHECK_OK(gguf_get_text(file, "b", &text, &err), &err);
    assert_true(text_view_is(text, "now a text"));
    assert_int_equal(gguf_alignment(file), 32);
    gguf_close(file);
    temp_folder_release(&folder);
}

/* Every type goes from one file to another as it is. */
static void test_copied_values(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_build build;
    gguf_build_specimen(&build, 2);
    struct opened source = open_bytes(text_get(&build.text), build.text.length);
    gguf_build_release(&build);
    struct gguf_writer *writer = create_writer();
    for (size_t i = 0; i < gguf_entry_count(source.file); i++) {
        const struct gguf_entry *entry = gguf_entry_at(source.file, i);
        gguf_writer_put_value(writer, entry->key, &entry->value);
    }
    finish_empty(writer, &folder);

    struct gguf_file *copy;
    struct error err;
    CHECK_OK(gguf_open(temp_folder_path(&folder, "out.gguf").text, &copy, &err), &err);
    for (size_t i = 0; i < gguf_entry_count(source.file); i++) {
        const struct gguf_entry *a = gguf_entry_at(source.file, i), *b = gguf_entry_at(copy, i);
        assert_true(text_view_equal(a->key, b->key));
        assert_int_equal(a->value.type, b->value.type);
        assert_int_equal(a->value.element_type, b->value.element_type);
        assert_int_equal(a->value.count, b->value.count);
        assert_int_equal(a->value.bytes, b->value.bytes);
        assert_memory_equal(a->value.data, b->value.data, (size_t)a->value.bytes);
    }
    gguf_close(copy);
    opened_release(&source);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_a_key_again_replaces_its_value),
        cmocka_unit_test(test_copied_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
