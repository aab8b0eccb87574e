/* gguf_reader_test.c - well-formed files: everything that was put in comes out, under its name,
 * with its type, from where it lies. */
#include "gguf_open.h"
#include "temp_folder.h"
#include "test.h"

#include <stdio.h>

static struct opened open_specimen(uint32_t version, struct gguf_build *build)
{
    gguf_build_specimen(build, version);
    struct opened opened = open_bytes(text_get(&build->text), build->text.length);
    if (opened.status)
        fail_msg("%s", opened.err.text);
    return opened;
}

static void test_header(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        struct gguf_build build;
        struct opened opened = open_specimen(version, &build);
        assert_int_equal(gguf_version(opened.file), version);
        assert_int_equal(gguf_alignment(opened.file), 32);
        assert_int_equal(gguf_entry_count(opened.file), build.entry_count);
        assert_int_equal(gguf_tensor_count(opened.file), build.tensor_count);
        assert_int_equal(gguf_size_bytes(opened.file), build.text.length);
        assert_int_equal(gguf_shard_count(opened.file), 1);
        assert_string_equal(gguf_path(opened.file), "built.gguf");
        opened_release(&opened);
        gguf_build_release(&build);
    }
}

/* The smallest file there is: a header. */
static void test_nothing_inside(void **state)
{
    (void)state;
    struct gguf_build build;
    gguf_build_init(&build, 3);
    struct opened opened = open_built(&build);
    assert_int_equal(opened.status, STATUS_OK);
    assert_int_equal(gguf_size_bytes(opened.file), 24);
    assert_int_equal(gguf_entry_count(opened.file), 0);
    assert_int_equal(gguf_tensor_count(opened.file), 0);
    assert_null(gguf_find(opened.file, "general.name"));
    assert_null(gguf_tensor_find(opened.file, "token_embd.weight"));
    opened_release(&opened);
}

static void test_scalars_and_arrays_of_every_type(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum gguf_type type;
        uint64_t element_bytes;
    } rows[] = {
        { "u8", GGUF_U8, 1 },   { "i8", GGUF_I8, 1 },     { "u16", GGUF_U16, 2 },
        { "i16", GGUF_I16, 2 }, { "u32", GGUF_U32, 4 },   { "i32", GGUF_I32, 4 },
        { "f32", GGUF_F32, 4 }, { "bool", GGUF_BOOL, 1 }, { "u64", GGUF_U64, 8 },
        { "i64", GGUF_I64, 8 }, { "f64", GGUF_F64, 8 },
    };
    struct gguf_build build;
    struct opened opened = open_specimen(3, &build);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char key[32];
        snprintf(key, sizeof(key), "t.%s", rows[i].name);
        const struct gguf_value *scalar = gguf_find(opened.file, key);
        const struct gguf_field *field = gguf_build_find(&build, key, "value");
        assert_non_null(scalar);
        assert_string_equal(gguf_type_name(scalar->type), rows[i].name);
        assert_int_equal(scalar->type, rows[i].type);
        assert_int_equal(scalar->element_type, rows[i].type);
        assert_int_equal(scalar->count, 1);
        assert_int_equal(scalar->bytes, rows[i].element_bytes);
        assert_int_equal(scalar->offset_bytes, field->offset);
        assert_ptr_equal(scalar->data, opened.bytes + field->offset);

        snprintf(key, sizeof(key), "t.array.%s", rows[i].name);
        const struct gguf_value *array = gguf_find(opened.file, key);
        assert_non_null(array);
        assert_int_equal(array->type, GGUF_ARRAY);
        assert_int_equal(array->element_type, rows[i].type);
        assert_int_equal(array->count, 3);
        assert_int_equal(array->bytes, 3 * rows[i].element_bytes);
        assert_int_equal(array->offset_bytes, gguf_build_find(&build, key, "value")->offset);
    }
    opened_release(&opened);
    gguf_build_release(&build);
}

static void test_type_names(void **state)
{
    (void)state;
    assert_string_equal(gguf_type_name(GGUF_STRING), "string");
    assert_string_equal(gguf_type_name(GGUF_ARRAY), "array");
    assert_string_equal(gguf_type_name(GGUF_TYPE_COUNT), "unknown");
}

static void test_empty_arrays(void **state)
{
    (void)state;
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_array(&build, "no.numbers", BUILD_F64, NULL, 0);
    gguf_build_strings(&build, "no.strings", NULL, 0);
    gguf_build_string(&build, "no.text", "");
    struct opened opened = open_built(&build);
    assert_int_equal(opened.status, STATUS_OK);
    assert_int_equal(gguf_find(opened.file, "no.numbers")->count, 0);
    assert_int_equal(gguf_find(opened.file, "no.numbers")->bytes, 0);
    assert_int_equal(gguf_find(opened.file, "no.strings")->element_type, GGUF_STRING);
    struct gguf_strings strings = gguf_strings_of(gguf_find(opened.file, "no.strings"));
    struct text_view view;
    assert_false(gguf_strings_next(&strings, &view));
    assert_int_equal(gguf_get_text(opened.file, "no.text", &view, &opened.err), STATUS_OK);
    assert_int_equal(view.length, 0);
    opened_release(&opened);
}

/* Entries and tensors keep the order of the file, whatever order look-ups use. */
static void test_order_and_look_ups(void **state)
{
    (void)state;
    struct gguf_build build;
    struct opened opened = open_specimen(3, &build);
    assert_true(text_view_is(gguf_entry_at(opened.file, 0)->key, "general.architecture"));
    assert_true(text_view_is(gguf_entry_at(opened.file, 1)->key, "t.u8"));
    size_t last = gguf_entry_count(opened.file) - 1;
    assert_true(text_view_is(gguf_entry_at(opened.file, last)->key, "general.name"));
    for (size_t i = 0; i < gguf_entry_count(opened.file); i++) {
        const struct gguf_entry *entry = gguf_entry_at(opened.file, i);
        char key[64];
        snprintf(key, sizeof(key), "%.*s", (int)entry->key.length, entry->key.bytes);
        assert_ptr_equal(gguf_find(opened.file, key), &entry->value);
    }
    for (size_t i = 0; i < gguf_tensor_count(opened.file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(opened.file, i);
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)tensor->name.length, tensor->name.bytes);
        assert_ptr_equal(gguf_tensor_find(opened.file, name), tensor);
    }
    static const char *const absent[] = { "", "t", "t.u", "t.u88", "t.zzz", "T.U8", "vector.f3" };
    for (size_t i = 0; i < COUNT_OF(absent); i++) {
        assert_null(gguf_find(opened.file, absent[i]));
        assert_null(gguf_tensor_find(opened.file, absent[i]));
    }
    opened_release(&opened);
    gguf_build_release(&build);
}

static void test_tensors(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t rank;
        uint64_t dims[4];
        enum dtype dtype;
        uint64_t bytes;
        uint64_t data_offset; /* from the start of the data */
    } rows[] = {
        { "scalar.f32", 0, { 1, 1, 1, 1 }, DTYPE_F32, 4, 0 },
        { "vector.f32", 1, { 100, 1, 1, 1 }, DTYPE_F32, 400, 32 },
        { "matrix.q8_0", 2, { 64, 3, 1, 1 }, DTYPE_Q8_0, 204, 448 },
        { "empty.f32", 2, { 64, 0, 1, 1 }, DTYPE_F32, 0, 672 },
        { "cube.f16", 3, { 5, 3, 2, 1 }, DTYPE_F16, 60, 672 },
        { "hyper.i8", 4, { 2, 3, 5, 7 }, DTYPE_I8, 210, 736 },
    };
    struct gguf_build build;
    struct opened opened = open_specimen(3, &build);
    uint64_t data_start = gguf_build_find(&build, "header", "data")->offset;
    assert_int_equal(data_start % 32, 0);
    assert_int_equal(gguf_tensor_count(opened.file), COUNT_OF(rows));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(opened.file, i);
        assert_true(text_view_is(tensor->name, rows[i].name));
        assert_int_equal(tensor->shape.rank, rows[i].rank);
        assert_memory_equal(tensor->shape.dims, rows[i].dims, sizeof(rows[i].dims));
        assert_int_equal(tensor->dtype, rows[i].dtype);
        assert_int_equal(tensor->bytes, rows[i].bytes);
        assert_int_equal(tensor->offset_bytes, data_start + rows[i].data_offset);
        assert_int_equal(tensor->shard_index, 0);
        for (uint64_t j = 0; j < tensor->bytes; j++)
            assert_int_equal(tensor->data[j], gguf_build_data(rows[i].data_offset + j));
        gguf_tensor_drop(opened.file, tensor); /* harmless where nothing is mapped */
    }
    opened_release(&opened);
    gguf_build_release(&build);
}

static void test_alignment_key(void **state)
{
    (void)state;
    static const struct {
        uint32_t alignment;
        uint64_t step; /* from a tensor of 3 bytes to the next */
    } rows[] = { { 1, 3 }, { 2, 4 }, { 4, 4 }, { 8, 8 }, { 32, 32 }, { 64, 64 }, { 4096, 4096 } };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        gguf_build_init(&build, 3);
        gguf_build_align(&build, rows[i].alignment);
        gguf_build_tensor(&build, "a", 1, (const uint64_t[]){ 3 }, BUILD_TENSOR_I8, 3);
        gguf_build_tensor(&build, "b", 1, (const uint64_t[]){ 5 }, BUILD_TENSOR_I8, 5);
        struct opened opened = open_built(&build);
        assert_int_equal(opened.status, STATUS_OK);
        assert_int_equal(gguf_alignment(opened.file), rows[i].alignment);
        const struct gguf_tensor *a = gguf_tensor_find(opened.file, "a");
        const struct gguf_tensor *b = gguf_tensor_find(opened.file, "b");
        assert_int_equal(a->offset_bytes % rows[i].alignment, 0);
        assert_int_equal(b->offset_bytes - a->offset_bytes, rows[i].step);
        assert_int_equal(a->data[0], gguf_build_data(0));
        opened_release(&opened);
    }
}

/* Not every writer packs tensors tightly or in order; the reader asks only that none overlap. */
static void test_loose_layouts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t first, second; /* offsets of two tensors of 32 bytes; the data has 96 */
    } rows[] = {
        { "in order", 0, 32 },
        { "in reverse", 32, 0 },
        { "gap between", 0, 64 },
        { "gap in front", 32, 64 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct gguf_build build;
        gguf_build_init(&build, 3);
        gguf_build_tensor(&build, "a", 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32, 32);
        gguf_build_tensor(&build, "b", 1, (const uint64_t[]){ 8 }, BUILD_TENSOR_F32, 64);
        gguf_build_patch(&build, "a", "offset", rows[i].first);
        gguf_build_patch(&build, "b", "offset", rows[i].second);
        struct opened opened = open_built(&build);
        if (opened.status)
            fail_msg("%s: %s", rows[i].name, opened.err.text);
        assert_int_equal(gguf_tensor_find(opened.file, "a")->data[0],
                         gguf_build_data(rows[i].first));
        assert_int_equal(gguf_tensor_find(opened.file, "b")->data[0],
                         gguf_build_data(rows[i].second));
        opened_release(&opened);
    }
}

/* Names at their longest, and any bytes but NUL in them. */
static void test_longest_names(void **state)
{
    (void)state;
    char name[64], key[65536];
    memset(name, 'n', 63);
    memset(key, 'k', 65535);
    name[63] = key[65535] = '\0';
    struct gguf_build build;
    gguf_build_init(&build, 3);
    gguf_build_raw_string(&build, text_view_of(key), text_view_of("v"));
    gguf_build_tensor(&build, name, 0, NULL, BUILD_TENSOR_F32, 4);
    gguf_build_tensor(&build, "caf\xC3\xA9 \xFF\x01", 0, NULL, BUILD_TENSOR_F32, 4);
    struct opened opened = open_built(&build);
    assert_int_equal(opened.status, STATUS_OK);
    assert_non_null(gguf_find(opened.file, key));
    assert_non_null(gguf_tensor_find(opened.file, name));
    assert_non_null(gguf_tensor_find(opened.file, "caf\xC3\xA9 \xFF\x01"));
    opened_release(&opened);
}

/* Through a mapping: the same, and the file is known again under another name. */
static void test_from_a_file(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct gguf_build build;
    gguf_build_specimen(&build, 3);
    temp_folder_write(&folder, "a.gguf", text_get(&build.text), build.text.length);
    temp_folder_write(&folder, "b.gguf", text_get(&build.text), build.text.length);
    struct temp_path path = temp_folder_path(&folder, "a.gguf");
    struct temp_path indirect = temp_folder_path(&folder, "./a.gguf");
    struct gguf_file *file;
    struct error err;
    assert_int_equal(gguf_open(path.text, &file, &err), STATUS_OK);
    assert_string_equal(gguf_path(file), path.text);
    assert_true(gguf_is_same_file(file, indirect.text));
    assert_false(gguf_is_same_file(file, temp_folder_path(&folder, "b.gguf").text));
    assert_false(gguf_is_same_file(file, temp_folder_path(&folder, "none.gguf").text));
    const struct gguf_tensor *tensor = gguf_tensor_find(file, "vector.f32");
    gguf_tensor_drop(file, tensor);
    assert_int_equal(tensor->data[399], gguf_build_data(32 + 399));
    gguf_close(file);
    gguf_close(NULL);
    gguf_build_release(&build);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_nothing_inside),
        cmocka_unit_test(test_scalars_and_arrays_of_every_type),
        cmocka_unit_test(test_type_names),
        cmocka_unit_test(test_empty_arrays),
        cmocka_unit_test(test_order_and_look_ups),
        cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_alignment_key),
        cmocka_unit_test(test_loose_layouts),
        cmocka_unit_test(test_longest_names),
        cmocka_unit_test(test_from_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
