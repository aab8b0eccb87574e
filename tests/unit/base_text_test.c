/* base_text_test.c - growable text, bytes made safe to show, numbers for people. */
#include "test.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define VIEW(literal) ((struct text_view){ literal, sizeof(literal) - 1 })

static void test_views(void **state)
{
    (void)state;
    assert_true(text_view_is(VIEW("abc"), "abc"));
    assert_false(text_view_is(VIEW("abc"), "abcd"));
    assert_false(text_view_is(VIEW("ab\0c"), "ab"));
    assert_true(text_view_equal(VIEW("a\0b"), VIEW("a\0b")));
    assert_false(text_view_equal(VIEW("a\0b"), VIEW("a\0c")));
    assert_true(text_view_is((struct text_view){ NULL, 0 }, ""));
    /* Length first, then bytes. */
    assert_true(text_view_compare(VIEW("z"), VIEW("aa")) < 0);
    assert_true(text_view_compare(VIEW("ab"), VIEW("aa")) > 0);
    assert_int_equal(text_view_compare(VIEW("ab"), VIEW("ab")), 0);
}

static void test_growth(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    assert_string_equal(text_get(&text), "");
    text_add_bytes(&text, NULL, 0);
    assert_string_equal(text_get(&text), "");
    /* Every length across the first two doublings. */
    for (size_t i = 0; i < 300; i++) {
        text_addf(&text, "%c", (int)('a' + i % 26));
        assert_int_equal(text.length, i + 1);
        assert_int_equal(strlen(text_get(&text)), i + 1);
        assert_int_equal(text_get(&text)[i], 'a' + i % 26);
    }
    text_clear(&text);
    assert_string_equal(text_get(&text), "");
    text_add(&text, "x");
    text_add_fill(&text, '-', 200);
    text_addf(&text, "%s|%d", "y", 7);
    assert_int_equal(text.length, 204);
    assert_int_equal(text_get(&text)[200], '-');
    assert_string_equal(text_get(&text) + 201, "y|7");
    assert_false(text.failed);
    text_release(&text);
    text_release(&text);
}

static void test_failure_is_remembered(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    text_add(&text, "kept");
    text_add_fill(&text, 'x', SIZE_MAX);
    assert_true(text.failed);
    text_add(&text, "ignored");
    text_addf(&text, "%d", 1);
    assert_string_equal(text_get(&text), "kept");
    text_release(&text);
}

static void test_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct text_view bytes;
        size_t length;
    } rows[] = {
        { "nothing", { "", 0 }, 0 },
        { "letter", { "a", 1 }, 1 },
        { "NUL", { "\0", 1 }, 1 },
        { "last of one byte", { "\x7F", 1 }, 1 },
        { "continuation alone", { "\x80", 1 }, 0 },
        { "overlong slash", { "\xC0\xAF", 2 }, 0 },
        { "overlong, C1", { "\xC1\xBF", 2 }, 0 },
        { "first of two", { "\xC2\x80", 2 }, 2 },
        { "two, cut", { "\xC3", 1 }, 0 },
        { "two, no continuation", { "\xC3(", 2 }, 0 },
        { "overlong of three", { "\xE0\x9F\xBF", 3 }, 0 },
        { "first of three", { "\xE0\xA0\x80", 3 }, 3 },
        { "before the surrogates", { "\xED\x9F\xBF", 3 }, 3 },
        { "first surrogate", { "\xED\xA0\x80", 3 }, 0 },
        { "after the surrogates", { "\xEE\x80\x80", 3 }, 3 },
        { "three, cut", { "\xE2\x82", 2 }, 0 },
        { "overlong of four", { "\xF0\x8F\xBF\xBF", 4 }, 0 },
        { "first of four", { "\xF0\x90\x80\x80", 4 }, 4 },
        { "U+10FFFF", { "\xF4\x8F\xBF\xBF", 4 }, 4 },
        { "past U+10FFFF", { "\xF4\x90\x80\x80", 4 }, 0 },
        { "four, cut", { "\xF0\x9F\x98", 3 }, 0 },
        { "F5", { "\xF5\x80\x80\x80", 4 }, 0 },
        { "FF", { "\xFF", 1 }, 0 },
        { "only the first counts", { "\xC3\xA9\xFF", 3 }, 2 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        /* On the heap, to the byte: a read past the end shows under ASan. */
        char *copy = malloc(rows[i].bytes.length + 1);
        memcpy(copy, rows[i].bytes.bytes, rows[i].bytes.length);
        copy = realloc(copy, rows[i].bytes.length ? rows[i].bytes.length : 1);
        size_t length = text_utf8_length(copy, rows[i].bytes.length);
        free(copy);
        if (length != rows[i].length)
            fail_msg("%s: expected %zu, found %zu", rows[i].name, rows[i].length, length);
    }
}

static void test_printable(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct text_view bytes;
        const char *shown;
    } rows[] = {
        { "plain", { "llama", 5 }, "llama" },
        { "UTF-8 stays",
          { "\xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80", 9 },
          "\xC3\xA9\xE2\x96\x81\xF0\x9F\x98\x80" },
        { "control characters", { "a\n\x1B[2J\x7F", 7 }, "a\\x0A\\x1B[2J\\x7F" },
        { "NUL in the middle", { "a\0b", 3 }, "a\\x00b" },
        { "C1 control", { "\xC2\x9B", 2 }, "\\xC2\\x9B" },
        { "first after C1", { "\xC2\xA0", 2 }, "\xC2\xA0" },
        { "zero width, direction",
          { "\xE2\x80\x8B\xE2\x80\x8F", 6 },
          "\\xE2\\x80\\x8B\\xE2\\x80\\x8F" },
        { "override of direction",
          { "a\xE2\x80\xAEz\xE2\x80\xAC", 8 },
          "a\\xE2\\x80\\xAEz\\xE2\\x80\\xAC" },
        { "isolates", { "\xE2\x81\xA6\xE2\x81\xA9", 6 }, "\\xE2\\x81\\xA6\\xE2\\x81\\xA9" },
        { "Arabic letter mark", { "\xD8\x9C", 2 }, "\\xD8\\x9C" },
        { "word joiner", { "\xE2\x81\xA0", 3 }, "\\xE2\\x81\\xA0" },
        { "byte order mark", { "\xEF\xBB\xBF", 3 }, "\\xEF\\xBB\\xBF" },
        { "tag", { "\xF3\xA0\x81\x81", 4 }, "\\xF3\\xA0\\x81\\x81" },
        { "next to those",
          { "\xE2\x80\x8A\xE2\x80\x90\xE2\x80\xA7\xE2\x80\xAF\xE2\x81\xB0\xD8\x9B", 17 },
          "\xE2\x80\x8A\xE2\x80\x90\xE2\x80\xA7\xE2\x80\xAF\xE2\x81\xB0\xD8\x9B" },
        { "invalid bytes", { "\xFFok\xC3", 4 }, "\\xFFok\\xC3" },
        { "empty", { "", 0 }, "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct text text;
        char buffer[64];
        text_init(&text);
        text_add_printable(&text, rows[i].bytes, SIZE_MAX);
        if (strcmp(text_get(&text), rows[i].shown) != 0)
            fail_msg("%s: text \"%s\"", rows[i].name, text_get(&text));
        if (strcmp(text_printable(rows[i].bytes, buffer, sizeof(buffer)), rows[i].shown) != 0)
            fail_msg("%s: buffer \"%s\"", rows[i].name, buffer);
        text_release(&text);
    }
}

static void test_printable_is_cut(void **state)
{
    (void)state;
    struct text text;
    text_init(&text);
    text_add_printable(&text, VIEW("abcdef"), 4);
    assert_string_equal(text_get(&text), "abcd...");
    text_clear(&text);
    text_add_printable(&text, VIEW("abcdef"), 6);
    assert_string_equal(text_get(&text), "abcdef");
    text_clear(&text);
    text_add_printable(&text, VIEW("abc\xC3\xA9z"), 4); /* a character is never split */
    assert_string_equal(text_get(&text), "abc\xC3\xA9...");
    text_release(&text);

    static const struct {
        struct text_view bytes;
        size_t room;
        const char *shown;
    } rows[] = {
        { { "abcdefghij", 10 }, 8, "abcd..." },
        { { "abc\n", 4 }, 8, "abc..." },
        { { "\n", 1 }, 8, "\\x0A" },
        { { "ab\xF0\x9F\x98\x80", 6 }, 9, "ab..." },
        { { "ab\xF0\x9F\x98\x80", 6 }, 10, "ab\xF0\x9F\x98\x80" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char buffer[17];
        memset(buffer, '#', sizeof(buffer));
        text_printable(rows[i].bytes, buffer, rows[i].room);
        assert_string_equal(buffer, rows[i].shown);
        for (size_t j = rows[i].room; j < sizeof(buffer); j++)
            assert_int_equal(buffer[j], '#');
    }
}

static void test_byte_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *shown;
    } rows[] = {
        { 0, "0 bytes" },
        { 1, "1 byte" },
        { 1023, "1023 bytes" },
        { 1024, "1.00 KiB" },
        { 1536, "1.50 KiB" },
        { 1048570, "1023.99 KiB" },
        { 1048575, "1.00 MiB" }, /* not "1024.00 KiB" */
        { 1048576, "1.00 MiB" },
        { 4921246720, "4.58 GiB" },
        { (1ull << 40) - 1, "1.00 TiB" },
        { 1ull << 50, "1.00 PiB" },
        { UINT64_MAX, "16.00 EiB" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char buffer[TEXT_BYTES_CAPACITY];
        assert_string_equal(text_bytes(rows[i].bytes, buffer), rows[i].shown);
    }
}

static void test_counts(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        const char *shown;
    } rows[] = {
        { 0, "0" },
        { 999, "999" },
        { 1000, "1.00K" },
        { 999994, "999.99K" },
        { 999995, "1.00M" }, /* not "1000.00K" */
        { 999999, "1.00M" },
        { 1000000, "1.00M" },
        { 999994999, "999.99M" },
        { 999995000, "1.00B" },
        { 6738415616, "6.74B" },
        { 8030261248, "8.03B" },
        { 999995000000, "1.00T" },
        { UINT64_MAX, "18446744.07T" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char buffer[TEXT_BYTES_CAPACITY];
        assert_string_equal(text_count(rows[i].count, buffer), rows[i].shown);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_growth),
        cmocka_unit_test(test_failure_is_remembered),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_printable_is_cut),
        cmocka_unit_test(test_byte_counts),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
