/* event_flight_create_test.c - a flight file as it is created: nothing but an older flight file
 * makes way for it, only its owner reads it, and its pages are made ready without changing it. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include "event_flight.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* Pages are made ready, and nothing in them changes: not what was written, nor what comes. The
 * pages that are ready cost their writers no fault. */
static void test_prepared(void **state)
{
    (void)state;
    enum { RECORDS = 64 }; /* eight pages */
    struct temp_folder folder;
    struct event found;
    struct rusage before, after;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, RECORDS);
    for (uint64_t id = 1; id <= 5; id++)
        flight_tell_call(flight, id, EVENT_LAUNCH);
    flight_prepare(flight, 6, RECORDS - 6);
    flight_prepare(flight, 40, RECORDS); /* to the end of the ring and on from its start */
    flight_prepare(flight, 3, 0);
    flight_prepare(flight, UINT64_MAX - 1, 8);
    flight_prepare(flight, 1, RECORDS + 1); /* more than there are: nothing */
    for (uint64_t id = 1; id <= 5; id++) {
        assert_int_equal(flight_peek(flight, id, &found), FLIGHT_WHOLE);
        struct event reported = make_event(id, EVENT_LAUNCH, EVENT_END);
        assert_memory_equal(&found, &reported, sizeof(found));
    }
    assert_int_equal(flight_peek(flight, 6, &found), FLIGHT_ABSENT);
    getrusage(RUSAGE_THREAD, &before);
    for (uint64_t id = 6; id < 6 + RECORDS; id++)
        flight_tell_call(flight, id, EVENT_LAUNCH);
    getrusage(RUSAGE_THREAD, &after);
    /* Where the system can have pages ready at all: one or two are the reader's own. */
    print_message("%ld faults for %d records\n", after.ru_minflt - before.ru_minflt, RECORDS);
    for (uint64_t id = 6; id < 6 + RECORDS; id++)
        assert_int_equal(flight_peek(flight, id, &found), FLIGHT_WHOLE);
    flight_close(flight);
    temp_folder_release(&folder);
}

static void test_cannot_create(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight_options options = { 0 };
    struct flight *flight;
    struct error err;
    assert_int_not_equal(flight_create("/nowhere/at/all", &options, &flight, &err), STATUS_OK);
    check_contains("missing folder", err.text, "/nowhere/at/all");
    /* No room: a limit on file size stands for a full disk. */
    struct rlimit before, small = { 1 << 20, 1 << 20 };
    getrlimit(RLIMIT_FSIZE, &before);
    small.rlim_max = before.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    enum status status = flight_create(temp_folder_path(&folder, "large").text, &options, &flight,
                                       &err);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_not_equal(status, STATUS_OK);
    check_contains("no room", err.text, "cannot allocate");
    assert_false(temp_folder_has(&folder, "large"));
    temp_folder_release(&folder);
}

/* What is there under the name goes only if it is a flight file, an empty file or a link. */
static void test_what_is_there(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight_options options = { .record_count = 16 };
    struct flight *flight;
    struct error err;
    struct temp_path path = temp_folder_path(&folder, "flight");
    temp_folder_write(&folder, "flight", "", 0);
    for (int i = 0; i < 2; i++) { /* over an empty file, then over a flight file */
        CHECK_OK(flight_create(path.text, &options, &flight, &err), &err);
        flight_close(flight);
    }
    temp_folder_write(&folder, "other", "precious", 8);
    assert_int_equal(unlink(path.text), 0);
    assert_int_equal(symlink(temp_folder_path(&folder, "other").text, path.text), 0);
    CHECK_OK(flight_create(path.text, &options, &flight, &err), &err);
    flight_close(flight);
    assert_int_equal(
        flight_create(temp_folder_path(&folder, "other").text, &options, &flight, &err),
        STATUS_EXISTS);
    check_contains("another file", err.text, "older flight file, found another file");
    struct text kept = { 0 };
    temp_folder_read(&folder, "other", &kept);
    assert_string_equal(text_get(&kept), "precious");
    text_release(&kept);
    assert_int_equal(mkfifo(temp_folder_path(&folder, "pipe").text, 0600), 0);
    assert_int_equal(flight_create(temp_folder_path(&folder, "pipe").text, &options, &flight, &err),
                     STATUS_EXISTS);
    assert_true(temp_folder_has(&folder, "pipe"));
    temp_folder_release(&folder);
}

/* Whatever the umask: a recording holds a command line and addresses. */
static void test_permissions(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct stat info;
    temp_folder_init(&folder);
    mode_t old = umask(0);
    flight_close(create_flight(&folder, 4));
    umask(old);
    assert_int_equal(stat(temp_folder_path(&folder, "flight").text, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    temp_folder_release(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prepared),
        cmocka_unit_test(test_cannot_create),
        cmocka_unit_test(test_what_is_there),
        cmocka_unit_test(test_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
