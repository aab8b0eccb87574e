/* tensor_npy_test.c - arrays in NumPy's format, written and read; damaged ones are refused. */
#include "test.h"

#include "temp_folder.h"
#include "tensor/npy.h"

#include <stdio.h>
#include <string.h>

static void test_round_trip(void **state)
{
    (void)state;
    static const float values[] = { 1, -2.5f, 3e30f, 0, -0.0f, 6 };
    static const struct {
        uint32_t rank;
        uint64_t dims[4];
    } rows[] = { { 2, { 3, 2 } }, { 1, { 6 } }, { 4, { 1, 2, 3, 1 } }, { 2, { 6, 1 } } };
    struct temp_folder folder;
    struct error err;
    temp_folder_init(&folder);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char name[16];
        snprintf(name, sizeof(name), "%zu.npy", i);
        struct temp_path path = temp_folder_path(&folder, name);
        struct shape shape = shape_make(rows[i].rank, rows[i].dims);
        struct npy npy;
        CHECK_OK(npy_write(path.text, &shape, values, &err), &err);
        CHECK_OK(npy_open(&npy, path.text, &err), &err);
        assert_int_equal(npy.shape.rank, rows[i].rank);
        assert_true(shape_equal(&npy.shape, &shape));
        assert_int_equal(npy.count, 6);
        assert_memory_equal(npy.values, values, sizeof(values));
        npy_release(&npy);
        CHECK_FAILS(npy_write(path.text, &shape, values, &err), STATUS_EXISTS, &err);
    }
    temp_folder_release(&folder);
}

/* The bytes as NumPy's format has them: slowest dimension first. */
static void test_header(void **state)
{
    (void)state;
    uint8_t header[NPY_HEADER_BYTES];
    struct shape shape = shape_make(2, (uint64_t[]){ 4096, 5 });
    npy_header(&shape, header);
    assert_memory_equal(header,
                        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, "
                        "'shape': (5, 4096), }",
                        10 + 58);
    assert_int_equal(header[NPY_HEADER_BYTES - 1], '\n');
    shape = shape_make(1, (uint64_t[]){ 7 });
    npy_header(&shape, header);
    assert_non_null(strstr((char *)header + 10, "'shape': (7, ), }"));
}

/* A file of a header text and some bytes of data. */
static void write_file(const struct temp_folder *folder, const char *prefix, size_t prefix_bytes,
                       const char *text, size_t data_bytes)
{
    char bytes[512];
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, prefix, prefix_bytes);
    memcpy(bytes + prefix_bytes, text, strlen(text));
    temp_folder_write(folder, "x.npy", bytes, prefix_bytes + strlen(text) + data_bytes);
}

static void test_damaged(void **state)
{
    (void)state;
    /* Header texts of 54 characters and the like; length in the prefix is set by the row. */
    static const struct {
        const char *name, *text;
        size_t data_bytes;
        enum status status;
        const char *words;
    } rows[] = {
        { "good", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}  ", 8, STATUS_OK, "" },
        { "other order of keys", "{\"shape\":(2,),'fortran_order':False,'descr':'<f4',}  ", 8,
          STATUS_OK, "" },
        { "scalar", "{'descr': '<f4', 'fortran_order': False, 'shape': ()}   ", 4, STATUS_OK, "" },
        { "empty", "{'descr': '<f4', 'fortran_order': False, 'shape': (0,)}   ", 0, STATUS_OK, "" },
        { "too short", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}  ", 7,
          STATUS_BAD_FILE, "expected the values of shape [2], found 7 bytes" },
        { "too long", "{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}  ", 12,
          STATUS_BAD_FILE, "found 12 bytes" },
        { "product wraps",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}  ", 0,
          STATUS_BAD_FILE, "expected the values" },
        { "number wraps",
          "{'descr': '<f4', 'fortran_order': False, 'shape': (18446744073709551617,)}  ", 4,
          STATUS_BAD_FILE, "expected a dictionary" },
        { "doubles", "{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}  ", 8,
          STATUS_UNSUPPORTED, "found '<f8'" },
        { "big endian", "{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}  ", 4,
          STATUS_UNSUPPORTED, "found '>f4'" },
        { "Fortran", "{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}  ", 4,
          STATUS_UNSUPPORTED, "Fortran order" },
        { "five dimensions", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1)}", 4,
          STATUS_UNSUPPORTED, "with 5" },
        { "key missing", "{'descr': '<f4', 'fortran_order': False}  ", 4, STATUS_BAD_FILE,
          "expected a dictionary" },
        { "unknown key", "{'descr': '<f4', 'fortran_order': False, 'other': (1,)}", 4,
          STATUS_BAD_FILE, "expected a dictionary" },
        { "negative", "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", 4,
          STATUS_BAD_FILE, "expected a dictionary" },
        { "not closed", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)", 4,
          STATUS_BAD_FILE, "expected a dictionary" },
        { "quote not closed", "{'descr': '<f4", 4, STATUS_BAD_FILE, "expected a dictionary" },
        { "more after the end", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x", 4,
          STATUS_BAD_FILE, "expected a dictionary" },
        { "nothing", "", 0, STATUS_BAD_FILE, "expected a dictionary" },
    };
    struct temp_folder folder;
    struct error err;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "x.npy");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char prefix[10] = "\x93NUMPY\x01", text[160];
        /* Data must be aligned. */
        snprintf(text, sizeof(text), "%s", rows[i].text);
        while ((sizeof(prefix) + strlen(text)) % 4)
            memcpy(text + strlen(text), " ", 2);
        prefix[8] = (char)strlen(text);
        write_file(&folder, prefix, sizeof(prefix), text, rows[i].data_bytes);
        struct npy npy;
        enum status status = npy_open(&npy, path.text, &err);
        if (status != rows[i].status)
            fail_msg("%s: %s: %s", rows[i].name, status_name(status), status ? err.text : "");
        if (status)
            check_contains(rows[i].name, err.text, rows[i].words);
        npy_release(&npy);
    }
    temp_folder_release(&folder);
}

static void test_damaged_beginnings(void **state)
{
    (void)state;
    static const struct {
        const char *name, *bytes;
        size_t count;
        const char *words;
    } rows[] = {
        { "empty", "", 0, "magic" },
        { "other file", "GGUF\3\0\0\0", 8, "expected \\x93NUMPY" },
        { "version 0", "\x93NUMPY\0\0\0\0", 10, "expected 1, 2 or 3, found 0" },
        { "version 9", "\x93NUMPY\x09\0\0\0", 10, "found 9" },
        { "no length", "\x93NUMPY\x01\0\x10", 9, "header length" },
        { "long header", "\x93NUMPY\x01\0\xFF\xFF{}", 12, "header" },
        { "very long header", "\x93NUMPY\x02\0\xFF\xFF\xFF\xFF{}", 14, "header" },
    };
    struct temp_folder folder;
    struct error err;
    temp_folder_init(&folder);
    struct temp_path path = temp_folder_path(&folder, "x.npy");
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct npy npy;
        temp_folder_write(&folder, "x.npy", rows[i].bytes, rows[i].count);
        CHECK_FAILS(npy_open(&npy, path.text, &err), STATUS_BAD_FILE, &err);
        check_contains(rows[i].name, err.text, rows[i].words);
    }
    temp_folder_release(&folder);
    struct npy npy;
    CHECK_FAILS(npy_open(&npy, path.text, &err), STATUS_NOT_FOUND, &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_damaged_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
