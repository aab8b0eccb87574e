/* interpose_digest_test.c - a few bytes of a large pinned buffer rewritten while a copy from it is
 * queued: found wherever they are, up to a size and a cost; beyond that the copy says that only
 * samples are watched. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "test.h"

#include "event/flight.h"
#include "interpose/interpose.h"
#include "temp_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_BYTES (UINT64_C(8) << 20)
#define DEVICE_BASE UINT64_C(0x700000000000)

static bool never_fatal(int32_t code)
{
    (void)code;
    return false;
}

static int32_t nothing_to_wait_for(void)
{
    return 0;
}

static const struct interpose_backend backend = { "test", INTERPOSE_CUDA, never_fatal,
                                                  nothing_to_wait_for, NULL };
static const struct interpose_stream stream = { 0, 0x100 };

static struct temp_folder folder;
static struct interpose *trace;
static uint8_t *pinned;

static void begin(enum interpose_memory kind)
{
    struct interpose_call call;
    temp_folder_init(&folder);
    trace = interpose_open(&backend, folder.path, "a device", 4096);
    assert_non_null(trace);
    pinned = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pinned != MAP_FAILED);
    interpose_stream_created(trace, "create", &stream, false);
    interpose_alloc_begin(trace, &call, "alloc", kind, LARGE_BYTES, NULL);
    interpose_alloc_end(trace, &call, (uintptr_t)pinned, 0);
    interpose_alloc_begin(trace, &call, "alloc", INTERPOSE_DEVICE, LARGE_BYTES, NULL);
    interpose_alloc_end(trace, &call, DEVICE_BASE, 0);
}

static void upload(uint64_t bytes, uint64_t rows)
{
    struct interpose_call call;
    struct interpose_copy what = { .direction = INTERPOSE_TO_DEVICE,
                                   .source = (uintptr_t)pinned,
                                   .target = DEVICE_BASE,
                                   .bytes = bytes / rows,
                                   .rows = rows,
                                   .source_pitch = bytes / rows,
                                   .target_pitch = bytes / rows,
                                   .async = true,
                                   .stream = &stream };
    interpose_copy_begin(trace, &call, "copy", &what);
    interpose_end(trace, &call, 0);
}

static void synchronise(void)
{
    struct interpose_call call;
    interpose_sync_begin(trace, &call, "sync", &stream);
    interpose_end(trace, &call, 0);
}

struct seen {
    size_t copies, sampled, changed;
};

static struct seen end(void)
{
    char name[64];
    struct flight_reader *reader;
    struct error err;
    struct event event;
    struct seen seen = { 0 };
    uint64_t id = 0;
    interpose_close(trace);
    snprintf(name, sizeof(name), "%ld.test.flight", (long)getpid());
    CHECK_OK(flight_open(temp_folder_path(&folder, name).text, &reader, &err), &err);
    while (flight_next(reader, &id, &event)) {
        seen.copies += event.kind == EVENT_COPY_IN;
        seen.sampled += event.kind == EVENT_COPY_IN && (event.flags & EVENT_SAMPLED);
        seen.changed += event.kind == EVENT_SOURCE_CHANGED;
    }
    flight_reader_close(reader);
    munmap(pinned, LARGE_BYTES);
    temp_folder_release(&folder);
    return seen;
}

/* 32 bytes of 65,536, at every 512th byte, where samples would miss most of them; and of 4 MiB. */
static void a_few_bytes_are_found_anywhere(void **state)
{
    (void)state;
    static const enum interpose_memory kinds[] = { INTERPOSE_PINNED, INTERPOSE_REGISTERED };
    static const uint64_t sizes[] = { 16385, 65536, 4 << 20 };
    for (size_t i = 0; i < 2 * sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t bytes = sizes[i / 2], step = bytes > 65536 ? 262144 : 512, count = 0;
        begin(kinds[i % 2]);
        for (uint64_t at = 300; at + 32 <= bytes; at += step, count++) {
            upload(bytes, 1);
            memset(pinned + at, (int)(count % 255) + 1, 32);
            synchronise();
        }
        memset(pinned + bytes, 1, 32); /* what comes after it is not the copy's */
        struct seen seen = end();
        assert_int_equal(seen.copies, count);
        assert_int_equal(seen.sampled, 0);
        assert_int_equal(seen.changed, count);
    }
}

static void unchanged_is_not_reported(void **state)
{
    (void)state;
    begin(INTERPOSE_PINNED);
    for (uint64_t bytes = 1; bytes <= LARGE_BYTES; bytes *= 2) {
        upload(bytes, 1);
        synchronise();
        memset(pinned, (int)(bytes % 251), bytes);
    }
    assert_int_equal(end().changed, 0);
}

/* Beyond the size, where the host reads slowly, and of rows: said of the copy. Samples still find
 * what changes everything. */
static void what_is_sampled_says_so(void **state)
{
    (void)state;
    static const struct {
        int kind;
        uint64_t bytes, rows;
        size_t changed;
    } rows[] = {
        { INTERPOSE_PINNED, LARGE_BYTES, 1, 1 },
        { INTERPOSE_PINNED | INTERPOSE_SLOW_TO_READ, 65536, 1, 1 },
        { INTERPOSE_PINNED, 65536, 16, 0 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin((enum interpose_memory)rows[i].kind);
        upload(rows[i].bytes, rows[i].rows);
        memset(pinned, 7, LARGE_BYTES);
        synchronise();
        struct seen seen = end();
        assert_int_equal(seen.sampled, 1);
        assert_int_equal(seen.changed, rows[i].changed);
    }
}

/* A program that copies without end pays for samples only. */
static void the_cost_is_bounded(void **state)
{
    (void)state;
    begin(INTERPOSE_PINNED);
    for (int i = 0; i < 200; i++) {
        upload(4 << 20, 1);
        synchronise();
    }
    struct seen seen = end();
    assert_int_equal(seen.copies, 200);
    assert_true(seen.sampled > 0);
    assert_true(seen.sampled < 200);
    assert_int_equal(seen.changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_few_bytes_are_found_anywhere),
        cmocka_unit_test(unchanged_is_not_reported),
        cmocka_unit_test(what_is_sampled_says_so),
        cmocka_unit_test(the_cost_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
