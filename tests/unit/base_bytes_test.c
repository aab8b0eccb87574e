/* base_bytes_test.c - every read of foreign bytes, at and past the end, and what it says then. */
#include "test.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t counting[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };

static void test_little_endian(void **state)
{
    (void)state;
    struct bytes in;
    struct error err;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    bytes_init(&in, counting, sizeof(counting), "f");
    CHECK_OK(bytes_u8(&in, "a", &u8, &err), &err);
    CHECK_OK(bytes_u16(&in, "b", &u16, &err), &err);
    CHECK_OK(bytes_u32(&in, "c", &u32, &err), &err);
    CHECK_OK(bytes_u64(&in, "d", &u64, &err), &err);
    assert_int_equal(u8, 0x01);
    assert_int_equal(u16, 0x0302);
    assert_int_equal(u32, 0x07060504);
    assert_true(u64 == 0x0F0E0D0C0B0A0908u);
    assert_int_equal(bytes_left(&in), 0);
    static const uint8_t high[] = { 0xF1, 0xF2, 0xF3, 0xF4, 0xF5, 0xF6, 0xF7, 0xF8 };
    assert_int_equal(bytes_load_u16(high), 0xF2F1);
    assert_true(bytes_load_u32(high) == 0xF4F3F2F1u);
    assert_true(bytes_load_u64(high) == 0xF8F7F6F5F4F3F2F1u);
}

/* Reads a number of width bytes; true if that went well. */
static bool read_number(struct bytes *in, size_t width, struct error *err)
{
    union {
        uint8_t u8;
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } value;
    memset(&value, 0xEE, sizeof(value));
    uint64_t untouched = value.u64;
    enum status status = width == 1   ? bytes_u8(in, "field", &value.u8, err)
                         : width == 2 ? bytes_u16(in, "field", &value.u16, err)
                         : width == 4 ? bytes_u32(in, "field", &value.u32, err)
                                      : bytes_u64(in, "field", &value.u64, err);
    if (status && value.u64 != untouched)
        fail_msg("a failed read of %zu bytes changed its result", width);
    return !status;
}

static void test_numbers_at_the_end(void **state)
{
    (void)state;
    static const size_t widths[] = { 1, 2, 4, 8 };
    for (size_t i = 0; i < COUNT_OF(widths); i++) {
        for (size_t available = 0; available <= 8; available++) {
            /* On the heap, to the byte: a read past the end shows under ASan. */
            uint8_t *data = malloc(available ? available : 1);
            memset(data, 7, available ? available : 1);
            struct bytes in;
            struct error err = { 0 };
            bytes_init(&in, data, available, "m.gguf");
            bool good = read_number(&in, widths[i], &err);
            if (good != (available >= widths[i]))
                fail_msg("%zu bytes of %zu: %s", widths[i], available, err.text);
            assert_int_equal(in.at, good ? widths[i] : 0);
            if (!good)
                assert_int_equal(err.status, STATUS_BAD_FILE);
            free(data);
        }
    }
}

static void test_messages(void **state)
{
    (void)state;
    struct bytes in;
    struct error err;
    uint32_t value;
    bytes_init(&in, counting, 6, "m.gguf");
    CHECK_OK(bytes_u32(&in, "magic", &value, &err), &err);
    CHECK_FAILS(bytes_u32(&in, "version", &value, &err), STATUS_BAD_FILE, &err);
    assert_string_equal(err.text, "m.gguf: byte 4: version: expected 4 bytes, found 2 before the "
                                  "end of the file");
    bytes_set_context(&in, "metadata entry %d (%s)", 12, "llama.block_count");
    CHECK_FAILS(bytes_u32(&in, "value", &value, &err), STATUS_BAD_FILE, &err);
    assert_string_equal(err.text, "m.gguf: byte 4: metadata entry 12 (llama.block_count): value: "
                                  "expected 4 bytes, found 2 before the end of the file");
    /* Where it was discovered, not where the message is made. */
    int line = __LINE__ + 1;
    assert_int_equal(bytes_fail(&in, 9, "type", &err, "found %d", 77), STATUS_BAD_FILE);
    assert_int_equal(err.line, line);
    check_contains("offset", err.text, "byte 9: ");
    check_contains("words", err.text, "type: found 77");
    /* A long context is cut, not overrun. */
    char name[400];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    bytes_set_context(&in, "%s", name);
    assert_int_equal(strlen(in.context), sizeof(in.context) - 1);
}

static void test_take(void **state)
{
    (void)state;
    struct bytes in;
    struct error err;
    const uint8_t *data = NULL;
    bytes_init(&in, counting, 8, "f");
    CHECK_OK(bytes_take(&in, "a", 0, &data, &err), &err);
    assert_ptr_equal(data, counting);
    CHECK_OK(bytes_take(&in, "b", 8, &data, &err), &err);
    CHECK_OK(bytes_take(&in, "c", 0, &data, &err), &err);
    assert_ptr_equal(data, counting + 8);
    CHECK_FAILS(bytes_take(&in, "d", 1, &data, &err), STATUS_BAD_FILE, &err);
    CHECK_FAILS(bytes_take(&in, "d", UINT64_MAX, &data, &err), STATUS_BAD_FILE, &err);
    assert_ptr_equal(data, counting + 8);
}

static void test_strings(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint8_t bytes[12];
        uint64_t size, limit;
        bool good;
        const char *words; /* the string, or what the error says */
    } rows[] = {
        { "whole", { 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' }, 11, 99, true, "abc" },
        { "empty", { 0 }, 8, 0, true, "" },
        { "limit reached", { 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' }, 11, 3, true, "abc" },
        { "past the limit",
          { 3, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' },
          11,
          2,
          false,
          "byte 0: key: expected a length of at most 2, found 3" },
        { "past the end",
          { 4, 0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c' },
          11,
          99,
          false,
          "byte 0: key: expected a length of at most the 3 bytes left in the file, found 4" },
        { "wraps",
          { 255, 255, 255, 255, 255, 255, 255, 255 },
          8,
          UINT64_MAX,
          false,
          "found 18446744073709551615" },
        { "length cut", { 1, 0, 0 }, 3, 99, false, "expected 8 bytes, found 3" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t *data = malloc((size_t)rows[i].size);
        memcpy(data, rows[i].bytes, (size_t)rows[i].size);
        struct bytes in;
        struct error err = { 0 };
        struct text_view view = { "untouched", 9 };
        bytes_init(&in, data, rows[i].size, "f");
        enum status status = bytes_string(&in, "key", rows[i].limit, &view, &err);
        if (rows[i].good != !status)
            fail_msg("%s: %s", rows[i].name, err.text);
        if (status)
            check_contains(rows[i].name, err.text, rows[i].words);
        if (!text_view_is(view, status ? "untouched" : rows[i].words))
            fail_msg("%s: wrong string", rows[i].name);
        free(data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_endian), cmocka_unit_test(test_numbers_at_the_end),
        cmocka_unit_test(test_messages),      cmocka_unit_test(test_take),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
