/* inject_host_test.c - every fault that shows in one call or command, on the host device: planted
 * at one layer and step, an observer sees there what it would see of the real bug, and nothing
 * before it. inject_order_test.c has those that are about several calls. */
#include "inject_scene.h"

/* ---- The table ------------------------------------------------------------------------------ */

enum sign {
    SIGN_REFUSED, /* a call was refused by `check` */
    SIGN_TRAP,
    SIGN_FAULT,
    SIGN_CANARY,
    SIGN_HASH,   /* the hashes of a copy differ */
    SIGN_SCAN,   /* values that are not finite */
    SIGN_RESULT, /* only the bytes are wrong */
};

static const struct {
    const char *spec;
    enum sign sign;
    enum event_kind kind; /* of the call that is refused, or carried it */
    enum event_check check;
    const char *op;
} rows[] = {
    { "dtype-mismatch@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_DTYPE, "add" },
    { "wrong-stride@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_STRIDE, "add" },
    { "shape-mismatch@op=gather,operand=index", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_SHAPE,
      "gather" },
    { "grid-limit@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GEOMETRY, "add" },
    { "misaligned-view@op=add", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_ALIGNMENT, "add" },
    { "offset-past-end@op=gather", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_VIEW_END, "gather" },
    { "dead-handle@op=gather,operand=source", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GENERATION,
      "gather" },
    { "view-past-end@op=copy-out", SIGN_REFUSED, EVENT_COPY_OUT, EVENT_CHECK_VIEW_END, "copy-out" },
    { "size-beyond-view", SIGN_REFUSED, EVENT_COPY_IN, EVENT_CHECK_BYTES, "copy-in" },
    { "early-free@op=gather,operand=source", SIGN_REFUSED, EVENT_LAUNCH, EVENT_CHECK_GENERATION,
      "gather" },
    { "freed-staging", SIGN_REFUSED, EVENT_TICKET_REDEEM, EVENT_CHECK_TICKET, "copy-out" },
    { "double-release", SIGN_REFUSED, EVENT_TICKET_RELEASE, EVENT_CHECK_TICKET, "copy-out" },
    { "bad-index@op=gather", SIGN_TRAP, EVENT_LAUNCH, 0, "gather" },
    { "wild-pointer@op=add", SIGN_FAULT, EVENT_LAUNCH, 0, "add" },
    { "wrapped-offset@op=gather", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "memory-vanished@op=gather,operand=source", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "memory-vanished@op=copy-out", SIGN_FAULT, EVENT_COPY_OUT, 0, "copy-out" },
    { "free-while-queued@op=gather,operand=source", SIGN_FAULT, EVENT_LAUNCH, 0, "gather" },
    { "overrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "underrun@op=add", SIGN_CANARY, EVENT_LAUNCH, 0, "add" },
    { "nan-output@op=add", SIGN_SCAN, EVENT_LAUNCH, 0, "add" },
    { "unequal-runs@op=add", SIGN_RESULT, EVENT_LAUNCH, 0, "add" },
    { "wrong-output@op=add", SIGN_RESULT, EVENT_LAUNCH, 0, "add" },
    { "flipped-bit", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "short-copy", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "stale-copy", SIGN_HASH, EVENT_COPY_OUT, 0, "copy-out" },
    { "flipped-bit-in", SIGN_HASH, EVENT_COPY_IN, 0, "copy-in" },
};

static void check_refusal(struct recorder *recorder, const struct inject_record *record, size_t row)
{
    const struct event *event = first_refusal(recorder);
    if (!event || event->kind != rows[row].kind || event->check != rows[row].check)
        fail_msg("%s: expected a refusal by %s, found %s of %s", rows[row].spec,
                 event_check_name(rows[row].check), event ? event_check_name(event->check) : "none",
                 event ? event_kind_name(event->kind) : "-");
    if (event->kind == EVENT_TICKET_REDEEM || event->kind == EVENT_TICKET_RELEASE)
        return; /* of no stream */
    assert_int_equal(event->scope.layer, PLANTED_LAYER);
    assert_int_equal(event->id, record->place.event_id);
}

static void check_row(size_t row, struct scene *scene)
{
    const char *name = rows[row].spec;
    struct recorder *recorder = &scene->fixture.recorder;
    const struct inject_record *record = inject_record(scene->inject);
    uint64_t id = record->place.event_id;
    const struct event *event = NULL;
    check_planted(record, name, rows[row].op);
    check_before(scene, name);
    assert_int_equal(record->place.stream_index, scene->fixture.stream.index);
    switch (rows[row].sign) {
    case SIGN_REFUSED:
        check_refusal(recorder, record, row);
        return;
    case SIGN_TRAP:
        event = caused_by(recorder, EVENT_TRAP, id);
        if (!event || event->trap.index != 0x7F7F7F7F || event->scope.layer != PLANTED_LAYER ||
            strcmp(event->op, rows[row].op) != 0)
            fail_msg("%s: no trap of that launch", name);
        break;
    case SIGN_FAULT:
        event = caused_by(recorder, EVENT_FAULT, id);
        if (!event || event->scope.layer != PLANTED_LAYER)
            fail_msg("%s: no fault of that launch", name);
        break;
    case SIGN_CANARY:
        event = caused_by(recorder, EVENT_CANARY, id);
        if (!event || event->accesses[0].buffer_index != scene->x.buffer.index ||
            event->canary.damaged_bytes != 1 || event->scope.layer != PLANTED_LAYER)
            fail_msg("%s: no damaged canary of x after that launch", name);
        assert_int_equal(count_kind(recorder, EVENT_CANARY), 1);
        break;
    case SIGN_HASH:
        event = caused_by(recorder, EVENT_TRANSFER_HASH, id);
        if (!event || is_whole(event))
            fail_msg("%s: the hashes are equal", name);
        break;
    case SIGN_SCAN:
        event = caused_by(recorder, EVENT_SCAN, id);
        if (!event || event->scan.bad_count != WIDTH || event->scan.value_count != WIDTH)
            fail_msg("%s: nothing was scanned", name);
        break;
    case SIGN_RESULT:
        if (is_right(scene, PLANTED_STEP, PLANTED_LAYER))
            fail_msg("%s: the result is right", name);
        break;
    }
    event = event_by_id(recorder, id);
    if (!event || event->kind != rows[row].kind || event->scope.layer != PLANTED_LAYER ||
        event->scope.step != PLANTED_STEP)
        fail_msg("%s: the record names another call", name);
    if (rows[row].sign != SIGN_FAULT)
        assert_int_equal(count_kind(recorder, EVENT_FAULT), 0);
}

static void test_faults(void **state)
{
    (void)state;
    static struct scene scene;
    for (size_t row = 0; row < COUNT_OF(rows); row++) {
        scene_plant(&scene, rows[row].spec);
        check_row(row, &scene);
        fixture_close(&scene.fixture);
    }
}

/* With a spec that fits no call nothing changes. */
static void test_passes_through(void **state)
{
    (void)state;
    static struct scene scene;
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++) {
        char spec[64];
        snprintf(spec, sizeof(spec), "%s@layer=77", inject_fault_name((enum inject_fault)fault));
        scene_open(&scene, spec);
        scene_run(&scene);
        scene_close(&scene);
        assert_int_equal(scene.first.status, STATUS_OK);
        for (int step = 0; step < STEPS; step++)
            for (int layer = 0; layer < LAYERS; layer++)
                assert_true(is_right(&scene, step, layer));
        struct recorder *recorder = &scene.fixture.recorder;
        assert_false(inject_record(scene.inject)->planted);
        assert_int_equal(count_kind(recorder, EVENT_CANARY) + count_kind(recorder, EVENT_TRAP), 0);
        for (size_t i = 0, kept = recorder_kept(recorder); i < kept; i++)
            if (recorder->events[i].kind == EVENT_TRANSFER_HASH)
                assert_true(is_whole(&recorder->events[i]));
        fixture_close(&scene.fixture);
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } bad[] = {
        { "", "expected one of" },
        { "nothing", "bad-index" },
        { "bad-index@", "'@', found nothing" },
        { "bad-index@layer", "KEY=VALUE" },
        { "bad-index@layer=", "KEY=VALUE" },
        { "bad-index@layer=x", "whole number" },
        { "bad-index@layer=-1", "whole number" },
        { "bad-index@step=99999999999", "whole number" },
        { "bad-index@where=3", "expected layer, step" },
        { "rope-position@layer=18446744073709551616", "from 0 to 2147483647, found '18446" },
        { "rope-position@layer=2147483648", "from 0 to 2147483647, found '2147483648'" },
        { "lost-wakeup@ms=99999999999999999999", "ms: expected a whole number from 0 to 2147" },
        { "bad-index@layer=1,layer=2", "'layer' twice" },
        { "lost-wakeup@ms=1,op=copy-out,ms=1", "'ms' twice" },
        { "bad-index@layer=1,", "after ','" },
        { "bad-index@layer=1,,step=2", "KEY=VALUE" },
        { "bad-index@op=a-name-that-is-far-too-long-for-an-op", "fewer than" },
    };
    struct inject_spec spec;
    struct error err;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        CHECK_FAILS(inject_parse(bad[i].text, &spec, &err), STATUS_USAGE, &err);
        check_contains(bad[i].text, err.text, bad[i].words);
    }
    CHECK_OK(
        inject_parse("wild-pointer@layer=17,step=3,run=2,op=rope,operand=x,tensor=q", &spec, &err),
        &err);
    assert_int_equal(spec.fault, INJECT_WILD_POINTER);
    assert_int_equal(spec.layer, 17);
    assert_int_equal(spec.step, 3);
    assert_int_equal(spec.run, 2);
    assert_string_equal(spec.op, "rope");
    assert_string_equal(spec.operand, "x");
    assert_string_equal(spec.tensor, "q");
    for (int fault = 0; fault < INJECT_FAULT_COUNT; fault++) {
        CHECK_OK(inject_parse(inject_fault_name((enum inject_fault)fault), &spec, &err), &err);
        assert_int_equal(spec.fault, fault);
        assert_string_not_equal(inject_fault_summary((enum inject_fault)fault), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_passes_through),
        cmocka_unit_test(test_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
