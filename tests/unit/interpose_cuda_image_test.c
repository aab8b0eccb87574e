/* interpose_cuda_image_test.c - the PTX texts of images: plain, in fat binaries, compressed; and
 * images of which nothing may be said. */
#include "test.h"

#include "interpose/cuda/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define BASE UINT64_C(0x7000)
static const char text[] = ".version 8.5\n.entry kernel() { ret; ret; ret; ret; ret; ret; }\n";

static struct {
    uint8_t bytes[1 << 14];
    size_t size;
} memory;

static char found_texts[4][256];
static size_t found_count;

static bool read_memory(void *context, uint64_t address, void *to, size_t bytes)
{
    (void)context;
    if (address < BASE || address - BASE > memory.size || bytes > memory.size - (address - BASE))
        return false;
    memcpy(to, memory.bytes + (address - BASE), bytes);
    return true;
}

static void found(void *context, const char *from, size_t bytes)
{
    (void)context;
    assert_true(found_count < 4);
    snprintf(found_texts[found_count++], 256, "%.*s", (int)bytes, from);
}

static bool look(void)
{
    const struct image_reader reader = { read_memory, NULL };
    found_count = 0;
    return image_read(&reader, BASE, found, NULL);
}

static void put(uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        memory.bytes[memory.size++] = (uint8_t)(number >> (8 * i));
}

static void begin_container(void)
{
    memory.size = 0;
    put(0xBA55ED50, 4);
    put(1, 2);
    put(16, 2);
    put(0, 8);
}

static void end_container(size_t from)
{
    size_t size = memory.size;
    memory.size = from + 8;
    put(size - from - 16, 8);
    memory.size = size;
}

static void put_entry(unsigned kind, unsigned chip, const void *payload, size_t bytes,
                      uint64_t flags, size_t expanded)
{
    put(kind, 2);
    put(0x101, 2);
    put(64, 4);
    put((bytes + 7) / 8 * 8, 8);
    put(bytes, 4);
    put(0, 8);
    put(chip, 4);
    put(0, 8);
    put(flags, 8);
    put(0, 8);
    put(expanded, 8);
    memcpy(memory.bytes + memory.size, payload, bytes);
    memory.size += bytes;
    put(0, (8 - bytes % 8) % 8);
}

/* Literals, then "ret; " again and again. */
static size_t compress_lz4(uint8_t *to)
{
    size_t first = (size_t)(strstr(text, "ret; ") - text) + 5, repeat = 5 * 5;
    size_t last = sizeof(text) - 1 - first - repeat, at = 0;
    to[at++] = (uint8_t)(15 << 4 | 15);
    to[at++] = (uint8_t)(first - 15);
    memcpy(to + at, text, first);
    at += first;
    to[at++] = 5; /* bytes back */
    to[at++] = 0;
    to[at++] = (uint8_t)(repeat - 4 - 15);
    to[at++] = (uint8_t)(last << 4);
    memcpy(to + at, text + first + repeat, last);
    return at + last;
}

static void texts_are_found(void **state)
{
    (void)state;
    uint8_t packed[256];
    memset(memory.bytes, 0, sizeof(memory.bytes));
    memcpy(memory.bytes, text, sizeof(text));
    memory.size = sizeof(memory.bytes); /* zeros after it */
    assert_true(look());
    assert_int_equal(found_count, 1);
    assert_string_equal(found_texts[0], text);
    memory.size = sizeof(text) - 1; /* no end, and then nothing */
    assert_false(look());

    begin_container();
    put_entry(1, 80, text, sizeof(text) - 1, 0x11, 0);
    put_entry(1, 90, packed, compress_lz4(packed), 0x2011, sizeof(text) - 1);
    put_entry(2, 90, "\177ELF", 4, 0x11, 0);
    end_container(0);
    assert_true(look());
    assert_int_equal(found_count, 2);
    assert_string_equal(found_texts[0], text);
    assert_string_equal(found_texts[1], text);

    memory.size = 0; /* as a program has it: a wrapper that points to it */
    put(0x466243B1, 4);
    put(1, 4);
    put(BASE + 24, 8);
    put(0, 8);
    size_t from = memory.size;
    put(0xBA55ED50, 4);
    put(1, 2);
    put(16, 2);
    put(0, 8);
    size_t bytes = ZSTD_compress(packed, sizeof(packed), text, sizeof(text) - 1, 3);
    put_entry(1, 90, packed, bytes, 0x8011, sizeof(text) - 1);
    end_container(from);
    assert_true(look());
    assert_int_equal(found_count, 1);
    assert_string_equal(found_texts[0], text);
    memory.bytes[4] = 2; /* parts that were compiled separately */
    assert_false(look());
}

/* Machine code for a chip whose PTX is not there, or that cannot be read. */
static void parts_say_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        unsigned kind, chip;
        uint64_t flags;
        size_t expanded;
    } rows[] = {
        { "machine code of another chip", 2, 80, 0x11, 0 },
        { "neither PTX nor machine code", 8, 90, 0x11, 0 },
        { "another compression", 1, 90, 0x1011, 0 },
        { "not what it says", 1, 90, 0x2011, 100 },
        { "not what it says", 1, 90, 0x8011, 100 },
        { "too large", 1, 90, 0x2011, IMAGE_TEXT_BYTES + 1 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin_container();
        put_entry(1, 90, text, sizeof(text) - 1, 0x11, 0);
        put_entry(rows[i].kind, rows[i].chip, "\177ELF", 4, rows[i].flags, rows[i].expanded);
        end_container(0);
        if (look() || found_count)
            fail_msg("%s", rows[i].name);
    }
    begin_container(); /* nothing but machine code */
    put_entry(2, 90, "\177ELF", 4, 0x11, 0);
    end_container(0);
    assert_false(look());
    memcpy(memory.bytes, "\177ELF", 4);
    assert_false(look());
}

/* Cut anywhere, or with any byte changed: nothing outside is read, and what is found is bounded. */
static void damage(void **state)
{
    (void)state;
    uint8_t packed[256], good[1 << 14];
    begin_container();
    put_entry(1, 90, packed, compress_lz4(packed), 0x2011, sizeof(text) - 1);
    end_container(0);
    size_t size = memory.size;
    memcpy(good, memory.bytes, size);
    for (size_t cut = 0; cut + 8 <= size; cut++) { /* the last ones only fill up */
        memory.size = cut;
        assert_false(look());
    }
    memory.size = size;
    size_t refused = 0;
    for (size_t i = 0; i < size * 8; i++) {
        memcpy(memory.bytes, good, size);
        memory.bytes[i / 8] ^= (uint8_t)(1u << i % 8);
        refused += !look();
        assert_true(found_count <= 1);
    }
    assert_true(refused > size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_found),
        cmocka_unit_test(parts_say_nothing),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
