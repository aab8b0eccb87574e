/* base_compress_test.c - what is compressed comes back; a frame that lies, or that somebody made to
 * fill the memory, is refused. */
#include "test.h"

#include "base/compress.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define LIMIT ((uint64_t)1 << 20)

/* A file with `count` bytes compressed in writes of `each`, read into text. */
static void make_frame(const uint8_t *bytes, size_t count, size_t each, struct text *text)
{
    struct temp_folder folder;
    struct outfile out;
    struct compress compress;
    struct error err;
    temp_folder_init(&folder);
    CHECK_OK(outfile_open(&out, temp_folder_path(&folder, "frame").text, false, 0, &err), &err);
    CHECK_OK(compress_begin(&compress, &out, count, &err), &err);
    for (size_t at = 0; at < count; at += each)
        CHECK_OK(compress_write(&compress, bytes + at, count - at < each ? count - at : each, &err),
                 &err);
    CHECK_OK(compress_end(&compress, &err), &err);
    CHECK_OK(outfile_commit(&out, &err), &err);
    compress_release(&compress);
    temp_folder_read(&folder, "frame", text);
    temp_folder_release(&folder);
}

static void check_round_trip(size_t count, size_t each, bool random)
{
    struct text frame;
    struct error err;
    uint8_t *bytes = calloc(1, count + 1), *found = NULL;
    uint64_t found_count;
    assert_non_null(bytes);
    uint32_t state = 1;
    for (size_t i = 0; random && i < count; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(state >> 24);
    }
    text_init(&frame);
    make_frame(bytes, count, each, &frame);
    assert_true(compress_is_frame(text_get(&frame), frame.length));
    CHECK_OK(
        compress_expand(text_get(&frame), frame.length, count, "x", &found, &found_count, &err),
        &err);
    assert_int_equal(found_count, count);
    assert_memory_equal(found, bytes, count);
    free(found);
    if (count)
        CHECK_FAILS(compress_expand(text_get(&frame), frame.length, count - 1, "x", &found,
                                    &found_count, &err),
                    STATUS_LIMIT, &err);
    /* Every shorter beginning of it. */
    for (size_t cut = 0; cut < frame.length; cut += 1 + cut / 16)
        assert_true(compress_expand(text_get(&frame), cut, LIMIT, "x", &found, &found_count,
                                    &err) != STATUS_OK);
    text_release(&frame);
    free(bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    check_round_trip(0, 1, false);
    check_round_trip(1, 1, true);
    check_round_trip(1000, 7, true);
    check_round_trip(300000, 4096, true);
    check_round_trip(1000000, 1000000, false);
}

/* Frames by other hands. */
static void test_refused(void **state)
{
    (void)state;
    static const char text[] = "some words, some words, some words";
    uint8_t frame[256], twice[512], *found;
    uint64_t count;
    struct error err;
    size_t size = ZSTD_compress(frame, sizeof(frame), text, sizeof(text), 1);
    assert_false(ZSTD_isError(size));
    CHECK_OK(compress_expand(frame, size, LIMIT, "x", &found, &count, &err), &err);
    assert_string_equal((char *)found, text);
    free(found);
    /* Two frames, of which only the first says its size. */
    memcpy(twice, frame, size);
    memcpy(twice + size, frame, size);
    CHECK_FAILS(compress_expand(twice, 2 * size, LIMIT, "x", &found, &count, &err), STATUS_BAD_FILE,
                &err);
    /* Without a size. */
    ZSTD_CCtx *context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, 0);
    size = ZSTD_compress2(context, frame, sizeof(frame), text, sizeof(text));
    assert_false(ZSTD_isError(size));
    ZSTD_freeCCtx(context);
    CHECK_FAILS(compress_expand(frame, size, LIMIT, "x", &found, &count, &err), STATUS_UNSUPPORTED,
                &err);
    check_contains("what to do", err.text, "zstd -d");
    CHECK_FAILS(compress_expand("no frame at all", 15, LIMIT, "x", &found, &count, &err),
                STATUS_BAD_FILE, &err);
    assert_false(compress_is_frame("\x28\xB5\x2F", 3));
}

/* 64 MiB of zeros are a few kilobytes; the size they state is enough to refuse them. */
static void test_bomb(void **state)
{
    (void)state;
    const size_t zeros = (size_t)64 << 20;
    uint8_t *bytes = calloc(1, zeros), *found;
    struct text frame;
    uint64_t count;
    struct error err;
    assert_non_null(bytes);
    text_init(&frame);
    make_frame(bytes, zeros, zeros, &frame);
    assert_true(frame.length < 65536);
    CHECK_FAILS(
        compress_expand(text_get(&frame), frame.length, LIMIT, "bomb", &found, &count, &err),
        STATUS_LIMIT, &err);
    check_contains("the limit", err.text, "1.00 MiB");
    /* The size it states made small: it holds more than it says, and no more than that is written.
     */
    uint8_t *lying = (uint8_t *)frame.bytes;
    assert_int_equal(ZSTD_getFrameContentSize(lying, frame.length), zeros);
    for (size_t i = 5; i < 14; i++)
        if (memcmp(lying + i, &(uint32_t){ (uint32_t)zeros }, 4) == 0)
            memcpy(lying + i, &(uint32_t){ 1000 }, 4);
    assert_int_equal(ZSTD_getFrameContentSize(lying, frame.length), 1000);
    CHECK_FAILS(compress_expand(lying, frame.length, LIMIT, "bomb", &found, &count, &err),
                STATUS_BAD_FILE, &err);
    text_release(&frame);
    free(bytes);
}

/* A byte changed anywhere is found: by the frame's rules or its checksum. */
static void test_damaged(void **state)
{
    (void)state;
    uint8_t bytes[2000], *found;
    struct text frame;
    uint64_t count;
    struct error err;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * i / 7);
    text_init(&frame);
    make_frame(bytes, sizeof(bytes), sizeof(bytes), &frame);
    for (size_t i = 0; i < frame.length; i++) {
        frame.bytes[i] ^= 0x41;
        if (compress_expand(frame.bytes, frame.length, LIMIT, "x", &found, &count, &err) ==
            STATUS_OK) {
            /* A bit that says nothing: the content must be the same. */
            assert_int_equal(count, sizeof(bytes));
            assert_memory_equal(found, bytes, sizeof(bytes));
            free(found);
        }
        frame.bytes[i] ^= 0x41;
    }
    text_release(&frame);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_bomb),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
