/* interpose_limits_test.c - what is kept of a foreign program is bounded, whatever it does: the
 * oldest is forgotten, or nothing more is said, and no table is left. */
#include "test.h"

#include "event/flight.h"
#include "interpose/interpose_impl.h"
#include "temp_folder.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_fatal(int32_t code)
{
    return code == 700;
}

static int32_t synchronise(void)
{
    return 0;
}

static const struct interpose_backend backend = { "test", INTERPOSE_CUDA, is_fatal, synchronise,
                                                  NULL };

struct fixture {
    struct temp_folder folder;
    struct interpose *door;
    struct interpose_call call;
};

static struct fixture begin(void)
{
    struct fixture fixture = { .door = NULL };
    temp_folder_init(&fixture.folder);
    fixture.door = interpose_open(&backend, fixture.folder.path, "test", 1024);
    assert_non_null(fixture.door);
    return fixture;
}

static void end(struct fixture *fixture)
{
    interpose_close(fixture->door);
    temp_folder_release(&fixture->folder);
}

static void alloc(struct fixture *fixture, uint64_t address)
{
    interpose_alloc_begin(fixture->door, &fixture->call, "make", INTERPOSE_DEVICE, 256, NULL);
    interpose_alloc_end(fixture->door, &fixture->call, address, 0);
}

/* What is said of giving it back. */
static enum event_check drop(struct fixture *fixture, uint64_t address)
{
    interpose_free_begin(fixture->door, &fixture->call, "drop", INTERPOSE_DEVICE, address, 0, NULL);
    enum event_check check = (enum event_check)fixture->call.event.check;
    interpose_end(fixture->door, &fixture->call, check != EVENT_CHECK_NONE);
    return check;
}

static uint32_t fill(struct fixture *fixture, uint64_t stream)
{
    const struct interpose_stream on = { 1, stream };
    struct interpose_fill request = { .target = 0x1000, .bytes = 16, .stream = &on };
    interpose_fill_begin(fixture->door, &fixture->call, "fill", &request);
    uint32_t index = fixture->call.event.stream_index;
    interpose_end(fixture->door, &fixture->call, 0);
    return index;
}

/* When there is too much freed memory the older half is forgotten; live memory never is. */
static void test_freed_memory(void **state)
{
    (void)state;
    enum { COUNT = 20000, STEP = 4096 };
    struct fixture fixture = begin();
    uint64_t kept = UINT64_C(1) << 40, first = UINT64_C(1) << 32, last = first + (COUNT - 1) * STEP;
    alloc(&fixture, kept);
    for (uint64_t i = 0; i < COUNT; i++) {
        alloc(&fixture, first + i * STEP);
        assert_int_equal(drop(&fixture, first + i * STEP), EVENT_CHECK_NONE);
    }
    assert_true(fixture.door->blocks.count < COUNT / 2);
    assert_int_equal(drop(&fixture, last), EVENT_CHECK_GENERATION); /* known to be freed */
    assert_int_equal(drop(&fixture, first), EVENT_CHECK_HANDLE);    /* forgotten */
    assert_int_equal(drop(&fixture, kept), EVENT_CHECK_NONE);
    end(&fixture);
}

/* Streams beyond the table have no number: nothing is said of their order. */
static void test_streams(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    for (uint64_t i = 0; i < STREAM_TRACKED_LIMIT; i++)
        assert_int_equal(fill(&fixture, 0x1000 + i), i);
    assert_int_equal(fill(&fixture, 0x1000 + STREAM_TRACKED_LIMIT), EVENT_NO_STREAM);
    assert_int_equal(fill(&fixture, 0x1000), 0);
    const struct interpose_stream unknown = { 1, 0x9999 };
    interpose_record_begin(fixture.door, &fixture.call, "record", 7, &unknown);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_sync_begin(fixture.door, &fixture.call, "wait", &unknown);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_hidden_order(fixture.door, "hidden", &unknown);
    interpose_capture_begin(fixture.door, &fixture.call, "capture", &unknown);
    interpose_end(fixture.door, &fixture.call, 0);
    interpose_stream_destroy_begin(fixture.door, &fixture.call, "destroy", &unknown);
    interpose_end(fixture.door, &fixture.call, 0);
    end(&fixture);
}

static void test_marks_and_graphs(void **state)
{
    (void)state;
    struct fixture fixture = begin();
    const struct interpose_stream on = { 1, 0x51 };
    for (uint64_t i = 1; i <= MARK_TRACKED_LIMIT + 1; i++) {
        interpose_record_begin(fixture.door, &fixture.call, "record", i, &on);
        interpose_end(fixture.door, &fixture.call, 0);
    }
    /* The first one's place was taken: a wait for it is recorded, and means nothing. */
    interpose_event_sync_begin(fixture.door, &fixture.call, "wait", 1);
    assert_int_equal(fixture.call.event.launch.graph_id, 1);
    assert_int_equal(fixture.call.argument[0], STREAM_TRACKED_LIMIT);
    interpose_end(fixture.door, &fixture.call, 0);

    for (uint64_t i = 1; i <= GRAPH_TRACKED_LIMIT + 1; i++)
        interpose_graph_changed(fixture.door, i);
    assert_int_equal(fixture.door->graph_count, GRAPH_TRACKED_LIMIT);
    interpose_graph_instantiated(fixture.door, 1, GRAPH_TRACKED_LIMIT + 2);
    interpose_graph_launch_begin(fixture.door, &fixture.call, "launch", GRAPH_TRACKED_LIMIT + 2,
                                 &on);
    assert_int_equal(fixture.call.event.cause_id, 0); /* which calls it stands for is not known */
    interpose_end(fixture.door, &fixture.call, 0);
    end(&fixture);
}

/* Without a place for the recording there is none, and the program goes on. */
static void test_no_recording(void **state)
{
    (void)state;
    struct temp_folder folder;
    char path[PATH_MAX + 64];
    temp_folder_init(&folder);
    snprintf(path, sizeof(path), "%s/missing", folder.path);
    assert_null(interpose_open(&backend, path, "test", 1024));
    memset(path, 'x', sizeof(path) - 1);
    path[0] = '/';
    path[sizeof(path) - 1] = '\0';
    assert_null(interpose_open(&backend, path, "test", 1024));
    setenv(INTERPOSE_VARIABLE_FOLDER, "relative/folder", 1);
    assert_null(interpose_start(&backend, "test"));
    interpose_note(&backend, INTERPOSE_NOTE_NO_CUPTI, "not written anywhere");
    unsetenv(INTERPOSE_VARIABLE_FOLDER);
    temp_folder_release(&folder);
}

/* The recording is of the process that began it: a child that it forks tells nothing into it. */
static void test_fork(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    setenv(INTERPOSE_VARIABLE_FOLDER, folder.path, 1);
    setenv(INTERPOSE_VARIABLE_RECORDS, "1024", 1);
    setenv(INTERPOSE_VARIABLE_NARROW, "nonsense", 1);
    struct fixture fixture = { .door = interpose_start(&backend, "test") };
    assert_non_null(fixture.door);
    assert_int_equal(fixture.door->narrow_first, 0);
    alloc(&fixture, 0x1000);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alloc(&fixture, 0x2000);
        interpose_graph_changed(fixture.door, 1);
        interpose_graph_instantiated(fixture.door, 1, 2);
        interpose_graph_destroyed(fixture.door, 1);
        interpose_stream_created(fixture.door, "make", &(struct interpose_stream){ 1, 2 }, true);
        interpose_stop(fixture.door);
        _exit(fixture.door->last_id == 1 ? 0 : 1);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_int_equal(result, 0);
    drop(&fixture, 0x1000);
    assert_int_equal(fixture.door->last_id, 2);
    char path[600];
    struct flight_reader *reader;
    struct error err;
    snprintf(path, sizeof(path), "%s/%ld.test.flight", folder.path, (long)getpid());
    CHECK_OK(flight_open(path, &reader, &err), &err);
    assert_false(flight_info(reader)->closed); /* the child's end was not its end */
    flight_reader_close(reader);
    interpose_stop(fixture.door);
    CHECK_OK(flight_open(path, &reader, &err), &err);
    assert_true(flight_info(reader)->closed);
    flight_reader_close(reader);
    interpose_close(fixture.door);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_freed_memory),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_marks_and_graphs),
        cmocka_unit_test(test_no_recording),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
