/* interpose_launch_facts_test.c - what is kept of a launch to be compared with a core dump: shape,
 * arguments without their gaps, and between which numbers the driver's number of it lies. */
#include "interpose_translate.h"

struct launched {
    struct interpose_call call;
    struct event event;
};

static struct launched begin_on(struct fixture *fixture, uint64_t context,
                                const struct interpose_parameter *parameters, size_t count)
{
    struct launched launched;
    struct interpose_launch asked = { .kernel = "kernel",
                                      .function = 77,
                                      .grid = { 5, 6, 7 },
                                      .block = { 8, 9, 10 },
                                      .parameters = parameters,
                                      .parameter_count = count,
                                      .context = context,
                                      .stream = &one };
    interpose_launch_begin(fixture->door, &launched.call, "cuLaunchKernel", &asked);
    launched.event = launched.call.event;
    return launched;
}

static struct event launch_on(struct fixture *fixture, uint64_t context)
{
    struct launched launched = begin_on(fixture, context, NULL, 0);
    interpose_end(fixture->door, &launched.call, 0);
    return launched.event;
}

static struct flight_launch facts_of(const struct fixture *fixture, const struct event *event)
{
    struct flight_launch facts = { 0 };
    assert_true(flight_launch_at(fixture->reader, event->launch.facts_index, event->id, &facts));
    return facts;
}

static void expect_numbers(const struct fixture *fixture, const struct event *event, uint64_t least,
                           uint64_t most)
{
    struct flight_launch facts = facts_of(fixture, event);
    assert_int_equal(facts.number_least, least);
    assert_int_equal(facts.number_most, most);
}

static void test_arguments(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    uint64_t pointer = 0x1234, second = 0x5678;
    uint32_t number = 7;
    /* A pointer, an int, a gap of 4 bytes, a pointer. */
    const struct interpose_parameter list[] = { { &pointer, 8, 0 },
                                                { &number, 4, 8 },
                                                { &second, 8, 16 } };
    struct launched launched = begin_on(&fixture, 1, list, COUNT_OF(list));
    interpose_end(fixture.door, &launched.call, 0);
    const struct interpose_parameter turned[] = { { &pointer, 8, 8 }, { &number, 4, 0 } };
    struct launched odd = begin_on(&fixture, 1, turned, COUNT_OF(turned));
    interpose_end(fixture.door, &odd.call, 0);
    fixture_stop(&fixture);
    struct flight_launch facts = facts_of(&fixture, &launched.event);
    const struct flight_piece pieces[] = { { &pointer, 8 }, { &number, 4 }, { &second, 8 } };
    assert_int_equal(facts.argument_hash, flight_hash_pieces(pieces, COUNT_OF(pieces)));
    assert_int_equal(facts.range_count, 2);
    assert_int_equal(facts.ranges[0].bytes, 12);
    assert_int_equal(facts.ranges[1].offset, 16);
    assert_int_equal(facts.argument_bytes, 24);
    assert_int_equal(facts.grid[2], 7);
    assert_int_equal(facts.block[0], 8);
    assert_int_equal(facts_of(&fixture, &odd.event).range_count, FLIGHT_RANGES_UNKNOWN);
    fixture_end(&fixture);
}

/* Each context counts for itself; what may be a kernel of the driver's widens the range. */
static void test_numbers(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    struct interpose_fill fill = { .target = DEVICE, .bytes = 64, .stream = &one };
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 65536);
    struct event first = launch_on(&fixture, 1), other = launch_on(&fixture, 2),
                 second = launch_on(&fixture, 1), unknown = launch_on(&fixture, 0);
    interpose_fill_begin(fixture.door, &fixture.call, "cuMemsetD8Async", &fill);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event third = launch_on(&fixture, 1);
    struct launched failed = begin_on(&fixture, 1, NULL, 0);
    interpose_end(fixture.door, &failed.call, 1);
    struct event fourth = launch_on(&fixture, 1);
    interpose_graph_launch_begin(fixture.door, &fixture.call, "cuGraphLaunch", 7, &one);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event after_graph = launch_on(&fixture, 1);
    fixture_stop(&fixture);
    expect_numbers(&fixture, &first, 1, 1);
    expect_numbers(&fixture, &other, 1, 1);
    expect_numbers(&fixture, &second, 2, 2);
    expect_numbers(&fixture, &unknown, 0, 0);
    expect_numbers(&fixture, &third, 3, 4);
    expect_numbers(&fixture, &fourth, 4, 6); /* the failed one took one, or not */
    assert_int_equal(facts_of(&fixture, &after_graph).number_least, 5);
    assert_true(facts_of(&fixture, &after_graph).number_most > 1000000);
    fixture_end(&fixture);
}

/* Two threads launch at the same time: which one was first is not known. A process that dies in the
 * call leaves no upper bound. */
static void test_together(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    struct launched first = begin_on(&fixture, 1, NULL, 0), second = begin_on(&fixture, 1, NULL, 0);
    interpose_end(fixture.door, &second.call, 0);
    interpose_end(fixture.door, &first.call, 0);
    struct launched dies = begin_on(&fixture, 1, NULL, 0);
    fixture_stop(&fixture);
    expect_numbers(&fixture, &first.event, 1, 2);
    expect_numbers(&fixture, &second.event, 1, 2);
    expect_numbers(&fixture, &dies.event, 3, UINT64_MAX);
    fixture_end(&fixture);
}

/* Copies of many at once, and launches that are not recorded, take as many as they like. */
static void test_unseen(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    struct event before = launch_on(&fixture, 1);
    interpose_unseen_launches(fixture.door);
    struct event after = launch_on(&fixture, 1);
    fixture_stop(&fixture);
    expect_numbers(&fixture, &before, 1, 1);
    assert_int_equal(facts_of(&fixture, &after).number_least, 2);
    assert_true(facts_of(&fixture, &after).number_most > 1000000);
    fixture_end(&fixture);
}

/* A node of a graph is kept, without a number. */
static void test_graphs(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    interpose_capture_begin(fixture.door, &fixture.call, "cuStreamBeginCapture", &one);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event captured = launch_on(&fixture, 1);
    interpose_capture_end(fixture.door, &fixture.call, "cuStreamEndCapture", &one);
    interpose_end(fixture.door, &fixture.call, 0);
    struct event run = launch_on(&fixture, 1);
    fixture_stop(&fixture);
    assert_int_not_equal(captured.launch.graph_id, 0);
    expect_numbers(&fixture, &captured, 0, 0);
    expect_numbers(&fixture, &run, 1, 1);
    fixture_end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_together),  cmocka_unit_test(test_unseen),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
