/* device_host_fault_test.c - illegal accesses on the host device: they end the work, not the
 * process; the device is lost and says where it first went wrong; crumbs and events name the
 * launch. */
#include "device_fixture.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct device_options guarded = { .guards = true,
                                               .poison = true,
                                               .quarantine_bytes = 1 << 24 };

#define NON_CANONICAL INT64_MIN

/* Pokes and waits; returns the status of the wait. */
static enum status poke(struct fixture *fixture, struct device_view view, int64_t offset)
{
    struct poke_params params = { offset };
    struct device_launch launch = launch_poke(view, &params);
    struct event_scope scope = { .step = 3, .layer = 17, .tensor = "q" };
    device_scope_set(fixture->device, fixture->stream, &scope);
    CHECK_OK(device_launch(fixture->device, fixture->stream, &launch, DEVICE_HERE, &fixture->err),
             &fixture->err);
    return device_stream_sync(fixture->device, fixture->stream, DEVICE_HERE, &fixture->err);
}

static void test_guard_pages(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t offset;
        bool faults;
    } rows[] = {
        { "first byte", 0, false },         { "last byte", 4095, false },
        { "one past the end", 4096, true }, { "a page past the end", 8191, true },
        { "one before", -1, true },         { "a page before", -4096, true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture fixture;
        fixture_open(&fixture, guarded);
        /* Fills its page, so both guards are one byte away. */
        struct device_view x = fixture_floats(&fixture, 1024, "x");
        enum status status = poke(&fixture, x, rows[i].offset);
        if ((status == STATUS_LOST) != rows[i].faults)
            fail_msg("%s: %s", rows[i].name, status_name(status));
        const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
        if ((fault != NULL) != rows[i].faults)
            fail_msg("%s: %s", rows[i].name, fault ? "a fault was reported" : "no fault was reported");
        const struct event *launch = recorder_last(&fixture.recorder, EVENT_LAUNCH);
        if (fault) {
            assert_int_equal(fault->cause_id, launch->id);
            assert_int_equal(fault->scope.layer, 17);
            assert_int_equal(fault->scope.step, 3);
            assert_string_equal(fault->op, "poke");
            assert_int_equal(fault->fault.address,
                             launch->accesses[0].address + (uint64_t)rows[i].offset);
            check_contains(rows[i].name, fixture.err.text,
                           "an illegal memory access was encountered");
            check_contains(rows[i].name, fixture.err.text, "poke, layer 17, step 3, tensor q");
        }
        fixture_close(&fixture);
    }
}

static void test_lost_for_good(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x"), other;
    struct device_ticket ticket;
    assert_int_equal(poke(&fixture, x, 4096), STATUS_LOST);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    uint64_t fault_id = fault->id;
    CHECK_FAILS(device_fill(device, fixture.stream, &x, 0, DEVICE_HERE, err), STATUS_LOST, err);
    check_contains("fill", err->text, "first fault: poke");
    assert_int_equal(recorder_last(&fixture.recorder, EVENT_FILL)->cause_id, fault_id);
    CHECK_FAILS(device_copy_out(device, fixture.stream, &x, DEVICE_HERE, &ticket, err), STATUS_LOST,
                err);
    check_contains("copy out", err->text, "copy out failed: an illegal memory access");
    CHECK_FAILS(device_buffer_create(device, 64, "y", DEVICE_HERE, &other.buffer, err), STATUS_LOST,
                err);
    CHECK_FAILS(device_check(device, err), STATUS_LOST, err);
    /* What is on the host can still be given back. */
    device_buffer_destroy(device, x.buffer, DEVICE_HERE);
    fixture_close(&fixture);
}

/* The seeds' case: a kernel goes wrong, and the error shows at the copy of the logits. */
static void test_seen_at_the_copy(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct device_view logits = fixture_floats(&fixture, 16, "logits");
    fixture_fill(&fixture, &logits, 0);
    uint32_t gate = 0; /* closed until the copy is queued: the fault is seen there */
    struct gate_params queued = { .wait = &gate };
    struct device_launch held = launch_gate(&queued);
    struct poke_params past = { 4096 };
    struct device_launch wrong = launch_poke(x, &past);
    struct device_ticket ticket;
    const void *bytes;
    uint64_t count;
    CHECK_OK(device_launch(device, fixture.stream, &held, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, fixture.stream, &wrong, DEVICE_HERE, err), err);
    CHECK_OK(device_copy_out(device, fixture.stream, &logits, DEVICE_HERE, &ticket, err), err);
    open_gate(&gate);
    CHECK_FAILS(device_ticket_redeem(device, ticket, DEVICE_HERE, &bytes, &count, err), STATUS_LOST,
                err);
    check_contains("redeem", err->text,
                   "copy out failed: an illegal memory access was encountered");
    check_contains("redeem", err->text, "first fault: poke");
    device_ticket_release(device, ticket, DEVICE_HERE);
    fixture_close(&fixture);
}

/* A ticket that is released unread waits for its copy: that it failed, and whose code that is,
 * stands in the event, although the release itself worked. */
static void test_released_unread(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    struct device_view logits = fixture_floats(&fixture, 16, "logits");
    fixture_fill(&fixture, &logits, 0);
    struct device_ticket ticket;
    CHECK_OK(device_copy_out(device, fixture.stream, &logits, DEVICE_HERE, &ticket, err), err);
    device_ticket_release(device, ticket, DEVICE_HERE);
    const struct event *release = recorder_last(&fixture.recorder, EVENT_TICKET_RELEASE);
    assert_int_equal(release->outcome, EVENT_DONE);
    assert_int_equal(release->code, 0);
    assert_int_equal(release->domain, EVENT_ERROR_NONE);
    uint32_t gate = 0; /* closed until the copy is queued */
    struct gate_params queued = { .wait = &gate };
    struct device_launch held = launch_gate(&queued);
    struct poke_params past = { 4096 };
    struct device_launch wrong = launch_poke(x, &past);
    CHECK_OK(device_launch(device, fixture.stream, &held, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, fixture.stream, &wrong, DEVICE_HERE, err), err);
    CHECK_OK(device_copy_out(device, fixture.stream, &logits, DEVICE_HERE, &ticket, err), err);
    open_gate(&gate);
    device_ticket_release(device, ticket, DEVICE_HERE);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    release = recorder_last(&fixture.recorder, EVENT_TICKET_RELEASE);
    assert_int_equal(fault->code, 0); /* there is no runtime that could give one */
    assert_int_equal(release->outcome, EVENT_FAILED);
    assert_int_equal(release->code, STATUS_LOST);
    assert_int_equal(release->domain, EVENT_ERROR_GRETA);
    assert_int_equal(release->cause_id, fault->id);
    fixture_close(&fixture);
}

static void test_no_address(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device_view x = fixture_floats(&fixture, 16, "x");
    assert_int_equal(poke(&fixture, x, NON_CANONICAL), STATUS_LOST);
    const struct event *fault = recorder_last(&fixture.recorder, EVENT_FAULT);
    assert_non_null(fault);
    assert_int_equal(fault->fault.address_known, 0);
    assert_int_equal(fault->fault.address, 0);
    check_contains("non-canonical", fixture.err.text, "address not known");
    fixture_close(&fixture);
}

/* Freed memory stays unmapped in effect: a queued kernel that comes too late faults. */
static void test_use_after_free(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view x = fixture_floats(&fixture, 1024, "x");
    uint32_t gate = 0; /* closed until the memory is freed */
    struct gate_params freed = { .wait = &gate };
    struct device_launch held = launch_gate(&freed);
    struct add_params one = { 1 };
    struct device_launch late = launch_add(x, &one);
    CHECK_OK(device_launch(device, fixture.stream, &held, DEVICE_HERE, err), err);
    CHECK_OK(device_launch(device, fixture.stream, &late, DEVICE_HERE, err), err);
    device_buffer_destroy(device, x.buffer, DEVICE_HERE);
    open_gate(&gate);
    CHECK_FAILS(device_stream_sync(device, fixture.stream, DEVICE_HERE, err), STATUS_LOST, err);
    check_contains("late", err->text, "first fault: add");
    fixture_close(&fixture);
}

static void test_canary(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    /* 40 bytes: 24 of slack up to the guard page. */
    struct device_view x = fixture_floats(&fixture, 10, "x");
    CHECK_OK(poke(&fixture, x, 43), &fixture.err);
    device_buffer_destroy(fixture.device, x.buffer, DEVICE_HERE);
    const struct event *canary = recorder_last(&fixture.recorder, EVENT_CANARY);
    assert_non_null(canary);
    assert_int_equal(canary->canary.offset, 43);
    assert_int_equal(canary->canary.damaged_bytes, 1);
    assert_int_equal(canary->accesses[0].buffer_index, x.buffer.index);
    fixture_close(&fixture);
}

static void test_poison(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, guarded);
    struct device_view x = fixture_floats(&fixture, 4, "x");
    uint8_t bytes[16];
    CHECK_OK(device_read(fixture.device, fixture.stream, &x, bytes, DEVICE_HERE, &fixture.err),
             &fixture.err);
    for (size_t i = 0; i < sizeof(bytes); i++)
        assert_int_equal(bytes[i], DEVICE_POISON);
    fixture_close(&fixture);
}

static void test_traps(void **state)
{
    (void)state;
    static const int32_t index[4] = { 1, -1, 8, 7 };
    static const float source[8] = { 0, 10, 20, 30, 40, 50, 60, 70 };
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ 0 });
    struct device *device = fixture.device;
    struct error *err = &fixture.err;
    struct device_view target = fixture_floats(&fixture, 4, "target");
    struct device_view indices = fixture_floats(&fixture, 4, "index");
    struct device_view values = fixture_floats(&fixture, 8, "source");
    indices.dtype = DTYPE_I32;
    CHECK_OK(device_copy_in(device, fixture.stream, &indices, index, 16, DEVICE_HERE, err), err);
    CHECK_OK(device_copy_in(device, fixture.stream, &values, source, 32, DEVICE_HERE, err), err);
    struct device_launch launch = { &gather_contract, NULL, { target, indices, values }, 3, 1 };
    CHECK_OK(device_launch(device, fixture.stream, &launch, DEVICE_HERE, err), err);
    float result[4];
    CHECK_OK(device_read(device, fixture.stream, &target, result, DEVICE_HERE, err), err);
    assert_true(result[0] == 10 && result[1] == 0 && result[2] == 0 && result[3] == 70);
    const struct event *trap = recorder_last(&fixture.recorder, EVENT_TRAP);
    assert_non_null(trap);
    assert_int_equal(trap->trap.index, 8);
    assert_int_equal(trap->trap.bound, 8);
    assert_int_equal(trap->operand, 1);
    assert_int_equal(trap->cause_id, recorder_last(&fixture.recorder, EVENT_LAUNCH)->id);
    fixture_close(&fixture);
}

/* A fault outside a kernel is not ours: it goes where it would have gone without us. */
static void test_chains(void **state)
{
    (void)state;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct fixture fixture;
        signal(SIGSEGV, SIG_DFL);
        fixture_open(&fixture, (struct device_options){ 0 });
        /* It goes to the handler from before the device (a sanitizer's, or none). */
        fclose(stderr);
        volatile uint8_t *nowhere = (volatile uint8_t *)(uintptr_t)(volatile uintptr_t){ 64 };
        *nowhere = 1;
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guard_pages),      cmocka_unit_test(test_lost_for_good),
        cmocka_unit_test(test_seen_at_the_copy), cmocka_unit_test(test_no_address),
        cmocka_unit_test(test_use_after_free),   cmocka_unit_test(test_canary),
        cmocka_unit_test(test_poison),           cmocka_unit_test(test_traps),
        cmocka_unit_test(test_chains),           cmocka_unit_test(test_released_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
