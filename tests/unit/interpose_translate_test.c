/* interpose_translate_test.c - calls of a foreign program become events: which ranges of which
 * memory are copied and freed, and what is said of a call that is wrong. */
#include "interpose_translate.h"

#include <stdlib.h>

static void test_copy(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    static unsigned char host[64];
    uint64_t address = (uint64_t)(uintptr_t)host;
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    fixture_alloc(&fixture, INTERPOSE_PINNED, address, sizeof(host));
    struct interpose_copy asked = { .direction = INTERPOSE_TO_DEVICE,
                                    .source = address,
                                    .target = DEVICE + 16,
                                    .bytes = 64,
                                    .async = true,
                                    .stream = &one };
    fixture_copy(&fixture, &asked, 0);
    asked.source = 0x7000; /* in no allocation: pageable */
    fixture_copy(&fixture, &asked, 0);
    fixture_stop(&fixture);
    struct event event = fixture_event(&fixture, 1);
    assert_int_equal(event.kind, EVENT_BUFFER_CREATE);
    assert_string_equal(event.op, "cuMemAlloc");
    assert_string_equal(event.scope.tensor, "cuMemAlloc#1");
    assert_int_equal(event.accesses[0].address, DEVICE);
    event = fixture_event(&fixture, 3);
    assert_int_equal(event.kind, EVENT_COPY_IN);
    assert_string_equal(event.op, "cuMemcpyHtoDAsync");
    assert_int_equal(event.flags, EVENT_FOREIGN | EVENT_BLOCKING);
    assert_int_equal(event.access_count, 2);
    assert_int_equal(event.accesses[0].buffer_index, 1);
    assert_int_equal(event.accesses[0].address, DEVICE + 16);
    assert_int_equal(event.accesses[0].mode, EVENT_WRITE);
    assert_int_equal(event.accesses[1].buffer_index, 2);
    assert_int_equal(event.accesses[1].mode, EVENT_READ);
    assert_int_equal(event.check, EVENT_CHECK_NONE);
    event = fixture_event(&fixture, 4);
    assert_true(event.flags & EVENT_PAGEABLE);
    assert_int_equal(event.access_count, 1);
    fixture_end(&fixture);
}

struct wrong_row {
    struct interpose_copy copy;
    enum event_check check;
    uint64_t expected, found;
};

static void test_wrong_copies(void **state)
{
    (void)state;
    static const struct wrong_row rows[] = {
        { { .direction = INTERPOSE_TO_HOST, .source = DEVICE + 100, .target = 1, .bytes = 4096 },
          EVENT_CHECK_VIEW_END,
          4096,
          4196 },
        { { .direction = INTERPOSE_TO_HOST, .source = DEVICE, .target = 1, .bytes = UINT64_MAX },
          EVENT_CHECK_VIEW_END,
          4096,
          UINT64_MAX },
        { { .direction = INTERPOSE_WITHIN, .source = DEVICE, .target = MORE, .bytes = 1 },
          EVENT_CHECK_GENERATION,
          1,
          2 },
        { { .direction = INTERPOSE_TO_DEVICE, .source = DEVICE, .target = 0x9000, .bytes = 8 },
          EVENT_CHECK_DIRECTION,
          EVENT_SIDE_HOST,
          EVENT_SIDE_DEVICE },
        { { .direction = INTERPOSE_TO_HOST, .source = 0x9000, .target = DEVICE, .bytes = 8 },
          EVENT_CHECK_DIRECTION,
          EVENT_SIDE_HOST,
          EVENT_SIDE_DEVICE },
        /* Rows with a pitch: the last byte of the last one. */
        { { .direction = INTERPOSE_TO_HOST,
            .source = DEVICE,
            .target = 1,
            .bytes = 10,
            .rows = 9,
            .source_pitch = 512,
            .target_pitch = 10 },
          EVENT_CHECK_VIEW_END,
          4096,
          4106 },
        { { .direction = INTERPOSE_TO_HOST,
            .source = DEVICE,
            .target = 1,
            .bytes = 10,
            .rows = 8,
            .source_pitch = 512,
            .target_pitch = 10 },
          EVENT_CHECK_NONE,
          0,
          0 },
        { { .direction = INTERPOSE_ANY, .source = DEVICE, .target = 0x9000, .bytes = 4096 },
          EVENT_CHECK_NONE,
          0,
          0 },
    };
    struct fixture fixture = fixture_begin();
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    fixture_alloc(&fixture, INTERPOSE_DEVICE, MORE, 4096);
    interpose_free_begin(fixture.door, &fixture.call, "cuMemFree_v2", INTERPOSE_DEVICE, MORE, 0,
                         NULL);
    interpose_end(fixture.door, &fixture.call, 0);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        fixture_copy(&fixture, &rows[i].copy, 1);
    fixture_stop(&fixture);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct event event = fixture_event(&fixture, 4 + i);
        assert_int_equal(event.check, rows[i].check);
        assert_int_equal(event.expected, rows[i].expected);
        assert_int_equal(event.found, rows[i].found);
        assert_int_equal(event.outcome, EVENT_FAILED);
    }
    assert_int_equal(fixture_event(&fixture, 4 + COUNT_OF(rows) - 1).kind, EVENT_COPY_OUT);
    fixture_end(&fixture);
}

static void test_frees(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 4096);
    static const struct {
        uint64_t address;
        int32_t code;
        enum event_check check;
    } rows[] = {
        { DEVICE + 8, 1, EVENT_CHECK_ALIGNMENT }, { 0x5000, 1, EVENT_CHECK_HANDLE },
        { DEVICE, 1, EVENT_CHECK_NONE }, /* the runtime refused: it is still there */
        { DEVICE, 0, EVENT_CHECK_NONE },          { DEVICE, 1, EVENT_CHECK_GENERATION },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        interpose_free_begin(fixture.door, &fixture.call, "cuMemFree_v2", INTERPOSE_DEVICE,
                             rows[i].address, 0, NULL);
        interpose_end(fixture.door, &fixture.call, rows[i].code);
    }
    /* Allocated again over memory whose free was not seen: that is recorded. */
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 64);
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE - 32, 64);
    fixture_stop(&fixture);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_int_equal(fixture_event(&fixture, 2 + i).check, rows[i].check);
    struct event unseen = fixture_event(&fixture, 9);
    assert_int_equal(unseen.kind, EVENT_BUFFER_DESTROY);
    assert_int_equal(unseen.accesses[0].buffer_index, 2);
    fixture_end(&fixture);
}

/* Mappings side by side are one range of memory; allocations are not. */
static void test_neighbours(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    fixture_alloc(&fixture, INTERPOSE_MAPPED, DEVICE, 4096);
    fixture_alloc(&fixture, INTERPOSE_MAPPED, DEVICE + 4096, 4096);
    fixture_alloc(&fixture, INTERPOSE_DEVICE, MORE, 4096);
    fixture_alloc(&fixture, INTERPOSE_DEVICE, MORE + 4096, 4096);
    struct interpose_copy asked = {
        .direction = INTERPOSE_TO_HOST, .source = DEVICE, .target = 1, .bytes = 8192
    };
    fixture_copy(&fixture, &asked, 0);
    asked.bytes++;
    fixture_copy(&fixture, &asked, 0);
    asked = (struct interpose_copy){
        .direction = INTERPOSE_TO_HOST, .source = MORE, .target = 1, .bytes = 4097
    };
    fixture_copy(&fixture, &asked, 0);
    /* One unmap of both. */
    interpose_free_begin(fixture.door, &fixture.call, "cuMemUnmap", INTERPOSE_MAPPED, DEVICE, 8192,
                         NULL);
    interpose_end(fixture.door, &fixture.call, 0);
    asked.source = DEVICE + 4096;
    asked.bytes = 1;
    fixture_copy(&fixture, &asked, 0);
    fixture_stop(&fixture);
    assert_int_equal(fixture_event(&fixture, 5).check, EVENT_CHECK_NONE);
    assert_int_equal(fixture_event(&fixture, 6).check, EVENT_CHECK_VIEW_END);
    assert_int_equal(fixture_event(&fixture, 7).check, EVENT_CHECK_VIEW_END);
    uint64_t last = flight_info(fixture.reader)->last_id;
    assert_int_equal(fixture_event(&fixture, last).check, EVENT_CHECK_GENERATION);
    fixture_end(&fixture);
}

static void test_nobody(void **state)
{
    (void)state;
    struct interpose_call call;
    struct interpose_copy asked = { .bytes = 1 };
    interpose_copy_begin(NULL, &call, "cuMemcpy", &asked);
    interpose_end(NULL, &call, 0);
    interpose_stop(NULL);
    unsetenv(INTERPOSE_VARIABLE_FOLDER);
    assert_null(interpose_start(&backend, "test"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copy),   cmocka_unit_test(test_wrong_copies),
        cmocka_unit_test(test_frees),  cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
