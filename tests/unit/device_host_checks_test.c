/* device_host_checks_test.c - every check of the device interface: what it refuses, with which
 * numbers, and that the refusal is an event. */
#include "device_fixture.h"

struct refusal {
    const char *name;
    enum event_check check;
    uint64_t expected, found;
    uint32_t operand;
    const char *words;
};

static void check_refusal(struct fixture *fixture, enum status status, const struct event *event,
                          const struct refusal *wanted)
{
    if (!status)
        fail_msg("%s: expected a refusal, found success", wanted->name);
    if (!event || event->outcome != EVENT_REFUSED || event->check != wanted->check)
        fail_msg("%s: expected a refusal by %s, found %s by %s", wanted->name,
                 event_check_name(wanted->check),
                 event ? event_outcome_name(event->outcome) : "none",
                 event ? event_check_name(event->check) : "-");
    if (event->expected != wanted->expected || event->found != wanted->found ||
        event->operand != wanted->operand)
        fail_msg("%s: expected %llu, %llu of operand %u; found %llu, %llu of %u", wanted->name,
                 (unsigned long long)wanted->expected, (unsigned long long)wanted->found,
                 wanted->operand, (unsigned long long)event->expected,
                 (unsigned long long)event->found, event->operand);
    check_contains(wanted->name, fixture->err.text, wanted->words);
    assert_string_not_equal(event->file, "");
}

/* A destroy returns nothing: the event says that it was refused, and device_check which was the
 * first. */
static void check_destroy_refused(struct fixture *fixture, enum event_kind kind, const char *first)
{
    const struct event *event = recorder_last(&fixture->recorder, kind);
    assert_non_null(event);
    assert_int_equal(event->outcome, EVENT_REFUSED);
    CHECK_FAILS(device_check(fixture->device, &fixture->err), STATUS_NOT_FOUND, &fixture->err);
    check_contains("the first refusal", fixture->err.text, first);
}

#define NONE EVENT_NO_OPERAND

static struct device_view with_shape(struct device_view view, uint32_t rank, uint64_t d0,
                                     uint64_t d1)
{
    view.shape = shape_make(rank, (uint64_t[]){ d0, d1 });
    return view;
}

/* A buffer of 100 floats, and one view of it wrong in one way. */
static void test_views(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_view good = fixture_floats(&fixture, 100, "x"), dead = good;
    struct device_view past = good, wraps = good, odd = good, stride = good, overflow = good;
    struct device_view never = good, next = good;
    past.offset_bytes = 4;
    wraps.offset_bytes = UINT64_MAX - 3;
    odd.offset_bytes = 2;
    odd.shape.dims[0] = 1;
    stride = with_shape(stride, 2, 10, 2);
    stride.row_stride_bytes = 36;
    overflow = with_shape(overflow, 2, UINT64_C(1) << 40, UINT64_C(1) << 40);
    never.buffer = (struct device_buffer){ 4000, 1 };
    next.buffer.generation += 2;
    dead.buffer.generation = 1;
    const struct {
        struct device_view view;
        struct refusal wanted;
    } rows[] = {
        { past, { "past the end", EVENT_CHECK_VIEW_END, 400, 404, 0, "ends at byte 404" } },
        { wraps, { "offset wraps", EVENT_CHECK_VIEW_END, 400, UINT64_MAX, 0, "shape [100]" } },
        { odd, { "misaligned", EVENT_CHECK_ALIGNMENT, 4, 2, 0, "multiples of 4" } },
        { stride, { "rows overlap", EVENT_CHECK_STRIDE, 40, 36, 0, "at least 40 bytes apart" } },
        { overflow, { "2^80 values", EVENT_CHECK_VIEW_END, 400, UINT64_MAX, 0, "2^64" } },
        { never, { "never a buffer", EVENT_CHECK_HANDLE, 0, 4000, 0, "never was one" } },
        { next, { "from the future", EVENT_CHECK_GENERATION, 3, 1, 0, "generation 3, now 1" } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum status status = device_fill(fixture.device, fixture.stream, &rows[i].view, 0,
                                         DEVICE_HERE, &fixture.err);
        check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_FILL),
                      &rows[i].wanted);
    }
    device_buffer_destroy(fixture.device, good.buffer, DEVICE_HERE);
    enum status status = device_fill(fixture.device, fixture.stream, &dead, 0, DEVICE_HERE,
                                     &fixture.err);
    struct refusal after_free = { "after destroy",       EVENT_CHECK_GENERATION, 1, 2, 0,
                                  "destroyed, then used" };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_FILL), &after_free);
    /* The place is taken again; the old handle still does not fit. */
    fixture_floats(&fixture, 10, "y");
    status = device_fill(fixture.device, fixture.stream, &dead, 0, DEVICE_HERE, &fixture.err);
    struct refusal reused = { "place reused", EVENT_CHECK_GENERATION, 1, 3, 0, "found y" };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_FILL), &reused);
    fixture_close(&fixture);
}

static bool check_even(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    *expected = 2 * (device_contract_extent(call, 0, 0) / 2);
    *found = device_contract_extent(call, 0, 0);
    return *expected == *found;
}

static void test_contracts(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device_view x = fixture_floats(&fixture, 64, "x"), none = { 0 };
    struct device_view index = x, y = x, strided = with_shape(x, 2, 8, 2), matrix = strided;
    index.dtype = DTYPE_I32;
    y = with_shape(y, 1, 63, 1);
    strided.row_stride_bytes = 64;
    strided.shape.dims[1] = 1;
    struct device_contract limited = add_contract, even = add_contract;
    limited.name = "limited";
    limited.tile_limit = 3;
    even.name = "even";
    even.check = check_even;
    const struct device_kernel_entry more[] = { { .contract = &limited, .host = add_kernel },
                                                { .contract = &even, .host = add_kernel } };
    const struct device_image image = { more, COUNT_OF(more) };
    CHECK_OK(device_module_load(fixture.device, &image, DEVICE_HERE, &fixture.err), &fixture.err);
    struct add_params params = { 1 };
    const struct {
        struct device_launch launch;
        struct refusal wanted;
    } rows[] = {
        { { &gather_contract, NULL, { x, index }, 2, 1 },
          { "operand count", EVENT_CHECK_OPERANDS, 3, 2, NONE, "expected 3 operands" } },
        { { &gather_contract, NULL, { x, none, x }, 3, 1 },
          { "missing operand", EVENT_CHECK_OPERANDS, 1, 0, 1, "operand index" } },
        { { &gather_contract, NULL, { x, x, x }, 3, 1 },
          { "type", EVENT_CHECK_DTYPE, I32_BIT, DTYPE_F32, 1, "another type than F32" } },
        { { &gather_contract, NULL, { y, index, x }, 3, 1 },
          { "shapes disagree", EVENT_CHECK_SHAPE, 63, 64, 1, "expected rows = 63" } },
        { { &add_contract, &params, { matrix }, 1, 1 },
          { "rank", EVENT_CHECK_SHAPE, 1, 2, 0, "expected shape [n]" } },
        { { &add_contract, &params, { strided }, 1, 1 },
          { "stride", EVENT_CHECK_STRIDE, 32, 64, 0, "close together" } },
        { { &limited, &params, { x }, 1, 4 },
          { "geometry", EVENT_CHECK_GEOMETRY, 3, 4, NONE, "at most 3 tiles" } },
        { { &even, &params, { y }, 1, 1 },
          { "parameters", EVENT_CHECK_PARAMETER, 62, 63, NONE, "expected 62, found 63" } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        enum status status = device_launch(fixture.device, fixture.stream, &rows[i].launch,
                                           DEVICE_HERE, &fixture.err);
        check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_LAUNCH),
                      &rows[i].wanted);
        check_contains(rows[i].wanted.name, fixture.err.text, rows[i].launch.contract->name);
    }
    struct device_contract unknown = add_contract;
    unknown.name = "unheard_of";
    struct device_launch launch = { &unknown, &params, { x }, 1, 1 };
    CHECK_FAILS(device_launch(fixture.device, fixture.stream, &launch, DEVICE_HERE, &fixture.err),
                STATUS_UNSUPPORTED, &fixture.err);
    fixture_close(&fixture);
}

static void test_copies(void **state)
{
    (void)state;
    static const float values[16];
    struct fixture fixture;
    fixture_open(&fixture,
                 (struct device_options){ .staging_slot_count = 2, .staging_slot_bytes = 64 });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 16, "x"), large, imported;
    large = fixture_floats(&fixture, 17, "large");
    enum status status = device_copy_in(device, fixture.stream, &x, values, 60, DEVICE_HERE, err);
    struct refusal bytes = {
        "short source", EVENT_CHECK_BYTES, 64, 60, 0, "expected the 64 bytes"
    };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_COPY_IN), &bytes);

    struct device_ticket tickets[3];
    status = device_copy_out(device, fixture.stream, &large, DEVICE_HERE, &tickets[0], err);
    struct refusal too_large = { "past a slot", EVENT_CHECK_BYTES, 64, 68, 0, "device_read" };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_COPY_OUT), &too_large);

    for (size_t i = 0; i < 2; i++)
        CHECK_OK(device_copy_out(device, fixture.stream, &x, DEVICE_HERE, &tickets[i], err), err);
    status = device_copy_out(device, fixture.stream, &x, DEVICE_HERE, &tickets[2], err);
    struct refusal full = { "ring full", EVENT_CHECK_STAGING, 2, 2, NONE, "release one first" };
    assert_int_equal(status, STATUS_BUSY);
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_COPY_OUT), &full);
    CHECK_FAILS(device_copy_in(device, fixture.stream, &x, values, 64, DEVICE_HERE, err),
                STATUS_BUSY, err);
    device_ticket_release(device, tickets[0], DEVICE_HERE);
    CHECK_OK(device_copy_out(device, fixture.stream, &x, DEVICE_HERE, &tickets[2], err), err);

    const void *landed;
    uint64_t count;
    status = device_ticket_redeem(device, tickets[0], DEVICE_HERE, &landed, &count, err);
    struct refusal released = {
        "redeemed after release", EVENT_CHECK_TICKET, tickets[0].generation, 0, NONE, "not released"
    };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_TICKET_REDEEM),
                  &released);
    device_ticket_release(device, tickets[2], DEVICE_HERE);
    CHECK_OK(device_check(device, err), err);
    device_ticket_release(device, tickets[2], DEVICE_HERE);
    struct refusal twice = { "released twice", EVENT_CHECK_TICKET, tickets[2].generation, 0, NONE,
                             "not released" };
    status = device_check(device, err);
    assert_int_equal(status, STATUS_NOT_FOUND);
    check_refusal(&fixture, STATUS_REFUSED, recorder_last(&fixture.recorder, EVENT_TICKET_RELEASE),
                  &twice);

    imported = x;
    CHECK_OK(device_buffer_import(device, values, sizeof(values), "weights", DEVICE_HERE,
                                  &imported.buffer, err),
             err);
    status = device_fill(device, fixture.stream, &imported, 0, DEVICE_HERE, err);
    struct refusal read_only = { "write to weights", EVENT_CHECK_READ_ONLY, 0, 1, 0, "imported" };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_FILL), &read_only);
    fixture_close(&fixture);
}

static void test_graphs(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 16, "x");
    struct device_graph graph;
    CHECK_FAILS(device_graph_end(device, fixture.stream, DEVICE_HERE, &graph, err), STATUS_REFUSED,
                err);
    CHECK_OK(device_graph_begin(device, fixture.stream, DEVICE_HERE, err), err);
    enum status status = device_stream_sync(device, fixture.stream, DEVICE_HERE, err);
    struct refusal capture = { "sync in a graph", EVENT_CHECK_CAPTURE, 0, 1, NONE, "recorded" };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_STREAM_SYNC), &capture);
    fixture_fill(&fixture, &x, 1);
    CHECK_OK(device_graph_end(device, fixture.stream, DEVICE_HERE, &graph, err), err);
    CHECK_OK(device_graph_replay(device, fixture.stream, graph, DEVICE_HERE, err), err);
    CHECK_OK(device_stream_sync(device, fixture.stream, DEVICE_HERE, err), err);
    device_buffer_destroy(device, x.buffer, DEVICE_HERE);
    status = device_graph_replay(device, fixture.stream, graph, DEVICE_HERE, err);
    struct refusal stale = {
        "stale graph", EVENT_CHECK_STALE_GRAPH, 1, 2, NONE, "record the graph"
    };
    check_refusal(&fixture, status, recorder_last(&fixture.recorder, EVENT_GRAPH_REPLAY), &stale);
    device_graph_destroy(device, graph, DEVICE_HERE);
    CHECK_OK(device_check(device, err), err);
    device_graph_destroy(device, graph, DEVICE_HERE);
    check_destroy_refused(&fixture, EVENT_GRAPH_DESTROY, "graph: expected a live one");
    CHECK_FAILS(device_graph_replay(device, fixture.stream, graph, DEVICE_HERE, err),
                STATUS_NOT_FOUND, err);
    fixture_close(&fixture);
}

static void test_dead_handles(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 16, "x");
    struct device_stream other, never = { 60, 1 };
    struct device_mark mark, unborn = { 9, 1 };
    CHECK_OK(device_stream_create(device, DEVICE_HERE, &other, err), err);
    device_stream_destroy(device, other, DEVICE_HERE);
    CHECK_FAILS(device_fill(device, other, &x, 0, DEVICE_HERE, err), STATUS_NOT_FOUND, err);
    CHECK_FAILS(device_fill(device, never, &x, 0, DEVICE_HERE, err), STATUS_NOT_FOUND, err);
    CHECK_OK(device_check(device, err), err);
    device_stream_destroy(device, other, DEVICE_HERE);
    check_destroy_refused(&fixture, EVENT_STREAM_DESTROY, "stream: expected a live one");
    CHECK_OK(device_mark_create(device, &mark, err), err);
    device_mark_destroy(device, mark);
    CHECK_FAILS(device_mark_record(device, fixture.stream, mark, DEVICE_HERE, err),
                STATUS_NOT_FOUND, err);
    CHECK_FAILS(device_mark_sync(device, unborn, DEVICE_HERE, err), STATUS_NOT_FOUND, err);
    device_buffer_destroy(device, x.buffer, DEVICE_HERE);
    device_buffer_destroy(device, x.buffer, DEVICE_HERE);
    /* The first refusal is kept: it was the stream's. */
    check_destroy_refused(&fixture, EVENT_BUFFER_DESTROY, "stream: expected a live one");
    assert_int_equal(device_buffer_bytes(device, x.buffer), 0);
    assert_int_equal(device_used_bytes(device), 0);
    assert_int_equal(device_peak_bytes(device), 64);
    CHECK_FAILS(device_buffer_create(device, 0, "empty", DEVICE_HERE, &x.buffer, err),
                STATUS_REFUSED, err);
    assert_int_not_equal(
        device_buffer_create(device, UINT64_MAX - 5, "endless", DEVICE_HERE, &x.buffer, err),
        STATUS_OK);
    check_contains("endless", err->text, "endless");
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),        cmocka_unit_test(test_contracts),
        cmocka_unit_test(test_copies),       cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_dead_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
