/* event_flight_test.c - what is written to a flight file is there afterwards: after a close, after
 * kill -9 in the middle of a call, after the ring has wrapped, with several writers at once. */
#include "event_flight.h"

#include "base/clock.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct flight_reader *open_flight(const struct temp_folder *folder)
{
    struct flight_reader *reader;
    struct error err;
    CHECK_OK(flight_open(temp_folder_path(folder, "flight").text, &reader, &err), &err);
    return reader;
}

static void test_round_trip(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 16);
    for (uint64_t id = 1; id <= 5; id++)
        flight_tell_call(flight, id, EVENT_LAUNCH);
    struct event pending = make_event(6, EVENT_COPY_OUT, EVENT_BEGIN);
    flight_tell(flight, &pending);
    flight_close(flight);

    struct flight_reader *reader = open_flight(&folder);
    const struct flight_info *info = flight_info(reader);
    assert_true(info->closed);
    assert_string_equal(info->device, "a device");
    assert_string_equal(info->command, "a command");
    assert_int_equal(info->first_id, 1);
    assert_int_equal(info->last_id, 6);
    assert_int_equal(info->lost_count + info->dropped_count + info->damaged_count, 0);
    uint64_t next = 0;
    struct event event;
    for (uint64_t id = 1; id <= 5; id++) {
        struct event wanted = make_event(id, EVENT_LAUNCH, EVENT_END);
        assert_true(flight_next(reader, &next, &event));
        assert_memory_equal(&event, &wanted, sizeof(event));
    }
    assert_true(flight_next(reader, &next, &event));
    assert_int_equal(event.outcome, EVENT_PENDING);
    assert_int_equal(event.kind, EVENT_COPY_OUT);
    assert_false(flight_next(reader, &next, &event));
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void test_wrapped_ring(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 8);
    for (uint64_t id = 1; id <= 30; id++)
        flight_tell_call(flight, id, EVENT_LAUNCH);
    flight_checkpoint(flight, 20, "seen", 4);
    flight_close(flight);
    struct flight_reader *reader = open_flight(&folder);
    const struct flight_info *info = flight_info(reader);
    assert_int_equal(info->first_id, 23);
    assert_int_equal(info->last_id, 30);
    /* 21 and 22 were overwritten before anybody had analysed them; 1 to 20 had been. */
    assert_int_equal(info->lost_count, 2);
    const void *bytes;
    size_t count;
    assert_true(flight_last_checkpoint(reader, &bytes, &count));
    assert_int_equal(count, 4);
    assert_memory_equal(bytes, "seen", 4);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* The end of a call whose record was taken by a later event must not damage that event. */
static void test_late_end(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 8);
    struct event slow = make_event(1, EVENT_COPY_OUT, EVENT_BEGIN);
    flight_tell(flight, &slow);
    for (uint64_t id = 2; id <= 9; id++)
        flight_tell_call(flight, id, EVENT_LAUNCH);
    slow = make_event(1, EVENT_COPY_OUT, EVENT_END);
    flight_tell(flight, &slow);
    flight_close(flight);
    struct flight_reader *reader = open_flight(&folder);
    assert_int_equal(flight_info(reader)->damaged_count, 0);
    assert_int_equal(flight_info(reader)->dropped_count, 1);
    assert_int_equal(flight_info(reader)->last_id, 9);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* What is known only at the end of a call (the memory of a new buffer) is in the ring as well. */
static void test_known_at_the_end(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 8);
    struct event event = make_event(1, EVENT_BUFFER_CREATE, EVENT_BEGIN), found;
    event.access_count = 0;
    flight_tell(flight, &event);
    struct event end = make_event(1, EVENT_BUFFER_CREATE, EVENT_END);
    end.access_count = 1;
    end.accesses[0] = (struct event_access){ .address = 0x5000, .bytes = 77, .buffer_index = 3 };
    flight_tell(flight, &end);
    flight_close(flight);
    struct flight_reader *reader = open_flight(&folder);
    uint64_t next = 0;
    assert_int_equal(flight_info(reader)->damaged_count, 0);
    assert_true(flight_next(reader, &next, &found));
    assert_memory_equal(&found, &end, sizeof(found));
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static struct event buffer_event(uint64_t id, enum event_kind kind, uint32_t index,
                                 uint16_t generation)
{
    struct event event = make_event(id, kind, EVENT_END);
    event.access_count = 1;
    event.accesses[0] = (struct event_access){ .address = 0x10000u * index,
                                               .bytes = 100 + index,
                                               .buffer_index = index,
                                               .generation = generation };
    event_set_text(event.scope.tensor, sizeof(event.scope.tensor), "kv.keys");
    return event;
}

static void test_allocations(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 64);
    /* Four places: 1 and 2 are destroyed, so 5 and 6 take them; 7 finds none. */
    uint64_t id = 1;
    for (uint32_t index = 1; index <= 4; index++) {
        struct event event = buffer_event(id++, EVENT_BUFFER_CREATE, index, 1);
        flight_tell(flight, &event);
    }
    for (uint32_t index = 1; index <= 2; index++) {
        struct event event = buffer_event(id++, EVENT_BUFFER_DESTROY, index, 1);
        flight_tell(flight, &event);
    }
    for (uint32_t index = 5; index <= 7; index++) {
        struct event event = buffer_event(id++, EVENT_BUFFER_CREATE, index, 1);
        flight_tell(flight, &event);
    }
    struct event graph_launch = make_event(id++, EVENT_LAUNCH, EVENT_END);
    graph_launch.launch.graph_id = 77;
    flight_tell(flight, &graph_launch);
    flight_close(flight);

    struct flight_reader *reader = open_flight(&folder);
    assert_int_equal(flight_allocation_count(reader), 4);
    assert_int_equal(flight_info(reader)->dropped_count, 1);
    uint32_t seen = 0;
    for (size_t i = 0; i < 4; i++) {
        const struct flight_allocation *allocation = flight_allocation_at(reader, i);
        seen |= 1u << allocation->buffer_index;
        assert_int_equal(allocation->bytes, 100 + allocation->buffer_index);
        assert_int_equal(allocation->destroyed_id, 0);
        assert_string_equal(allocation->name, "kv.keys");
    }
    assert_int_equal(seen, 1u << 3 | 1u << 4 | 1u << 5 | 1u << 6);
    struct event event;
    assert_true(flight_graph_launch(reader, 0, &event));
    assert_int_equal(event_graph_id(&event), 77);
    assert_false(flight_graph_launch(reader, 1, &event));
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

/* A child tells events for ever; it is killed while it does. Everything up to then is there. */
static void test_kill(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct flight *flight = create_flight(&folder, 4096);
        crumb_enter(&flight_crumbs(flight)->streams[1], 99);
        for (uint64_t id = 1;; id++) {
            flight_tell_call(flight, id, EVENT_LAUNCH);
            if (id == 20000 && write(ready[1], "x", 1) != 1)
                _exit(1);
        }
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    kill(child, SIGKILL);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    struct flight_reader *reader = open_flight(&folder);
    const struct flight_info *info = flight_info(reader);
    assert_false(info->closed);
    assert_true(info->last_id >= 20000);
    assert_int_equal(info->last_id - info->first_id, 4095);
    assert_true(info->damaged_count <= 1); /* the one it was writing */
    assert_int_equal(crumb_entered(&flight_reader_crumbs(reader)->streams[1]), 99);
    flight_reader_close(reader);
    close(ready[0]);
    close(ready[1]);
    temp_folder_release(&folder);
}

struct writer {
    struct flight *flight;
    uint64_t *next_id;
    uint64_t count;
};

static void *write_many(void *argument)
{
    struct writer *writer = argument;
    for (uint64_t i = 0; i < writer->count; i++)
        flight_tell_call(writer->flight, __atomic_add_fetch(writer->next_id, 1, __ATOMIC_RELAXED),
                         EVENT_LAUNCH);
    return NULL;
}

static void test_several_writers(void **state)
{
    (void)state;
    struct temp_folder folder;
    temp_folder_init(&folder);
    struct flight *flight = create_flight(&folder, 1024);
    uint64_t next_id = 0;
    struct writer writer = { flight, &next_id, 20000 };
    pthread_t threads[4];
    uint64_t start_ns = clock_ns();
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_many, &writer), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        pthread_join(threads[i], NULL);
    double seconds = (double)(clock_ns() - start_ns) / 1e9;
    print_message("%.2f million events a second\n", 80000 / seconds / 1e6);
    flight_close(flight);
    struct flight_reader *reader = open_flight(&folder);
    const struct flight_info *info = flight_info(reader);
    assert_int_equal(info->last_id, 80000);
    /* A writer pushed aside for a whole ring drops its event; none is torn. */
    assert_true(info->damaged_count <= info->dropped_count);
    flight_reader_close(reader);
    temp_folder_release(&folder);
}

static void count_event(void *context, const struct event *event)
{
    *(uint64_t *)context = *(uint64_t *)context * 10 + event->id;
}

static void test_fan(void **state)
{
    (void)state;
    uint64_t first = 0, second = 0;
    struct event_fan fan = { 0 };
    struct event event = make_event(3, EVENT_LAUNCH, EVENT_END);
    assert_null(event_fan_observer(&fan).notify);
    event_fan_add(&fan, (struct event_observer){ 0 });
    event_fan_add(&fan, (struct event_observer){ count_event, &first });
    assert_true(event_fan_observer(&fan).context == &first); /* alone: no detour */
    event_fan_add(&fan, (struct event_observer){ count_event, &second });
    struct event_observer both = event_fan_observer(&fan);
    both.notify(both.context, &event);
    event.id = 4;
    both.notify(both.context, &event);
    assert_int_equal(first, 34);
    assert_int_equal(second, 34);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_wrapped_ring),
        cmocka_unit_test(test_late_end),
        cmocka_unit_test(test_allocations),
        cmocka_unit_test(test_kill),
        cmocka_unit_test(test_several_writers),
        cmocka_unit_test(test_known_at_the_end),
        cmocka_unit_test(test_fan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
