/* device_host_view_test.c - with guards, what callers see of staging is closed but between
 * redeeming and release: an access at another time is reported, and goes on. */
#include "device_audit.h"

static size_t accesses(struct fixture *fixture)
{
    size_t count = 0;
    while (fixture_event(fixture, EVENT_HOST_ACCESS, count))
        count++;
    return count;
}

static struct device_ticket copy_out(struct fixture *fixture, const struct device_view *view)
{
    struct device_ticket ticket;
    CHECK_OK(device_copy_out(fixture->device, fixture->stream, view, DEVICE_HERE, &ticket,
                             &fixture->err),
             &fixture->err);
    return ticket;
}

static const volatile uint8_t *redeem(struct fixture *fixture, struct device_ticket ticket)
{
    const void *bytes = NULL;
    uint64_t count;
    CHECK_OK(
        device_ticket_redeem(fixture->device, ticket, DEVICE_HERE, &bytes, &count, &fixture->err),
        &fixture->err);
    return bytes;
}

static void right_use_is_silent(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true });
    struct device_view x = fixture_floats(&fixture, 100, "x");
    for (uint8_t round = 1; round < 40; round++) { /* more than there are slots */
        fixture_fill(&fixture, &x, round);
        struct device_ticket ticket = copy_out(&fixture, &x);
        const volatile uint8_t *bytes = redeem(&fixture, ticket);
        assert_int_equal(bytes[0], round);
        assert_int_equal(bytes[399], round);
        assert_ptr_equal(redeem(&fixture, ticket), bytes);
        device_ticket_release(fixture.device, ticket, DEVICE_HERE);
    }
    assert_int_equal(accesses(&fixture), 0);
    fixture_close(&fixture);
}

/* A pointer that was kept from an earlier ticket: first after its release, then while the next copy
 * lands in the same slot. */
static void kept_pointers_are_reported(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .guards = true, .staging_slot_count = 1 });
    struct device_view x = fixture_floats(&fixture, 100, "x");
    fixture_fill(&fixture, &x, 1);
    struct device_ticket first = copy_out(&fixture, &x);
    const volatile uint8_t *kept = redeem(&fixture, first);
    uint64_t first_id = recorder_last(&fixture.recorder, EVENT_COPY_OUT)->id;
    device_ticket_release(fixture.device, first, DEVICE_HERE);
    assert_int_equal(kept[16], 1); /* what was there before */
    assert_int_equal(accesses(&fixture), 1);
    const struct event *access = recorder_last(&fixture.recorder, EVENT_HOST_ACCESS);
    assert_int_equal(access->check, EVENT_CHECK_TICKET);
    assert_int_equal(access->cause_id, first_id);
    assert_int_equal(access->host_access.address - access->host_access.copy_address, 16);

    struct device_ticket second = copy_out(&fixture, &x);
    uint64_t second_id = recorder_last(&fixture.recorder, EVENT_COPY_OUT)->id;
    (void)kept[399];
    assert_int_equal(accesses(&fixture), 2);
    access = recorder_last(&fixture.recorder, EVENT_HOST_ACCESS);
    assert_int_equal(access->check, EVENT_CHECK_NONE);
    assert_int_equal(access->cause_id, second_id);
    assert_int_equal(access->host_access.copy_bytes, 400);
    assert_int_equal(redeem(&fixture, second)[399], 1);
    device_ticket_release(fixture.device, second, DEVICE_HERE);
    assert_int_equal(accesses(&fixture), 2);
    fixture_close(&fixture);
}

static void without_guards_nothing_is_closed(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_open(&fixture, (struct device_options){ .staging_slot_count = 1 });
    struct device_view x = fixture_floats(&fixture, 100, "x");
    fixture_fill(&fixture, &x, 1);
    struct device_ticket first = copy_out(&fixture, &x);
    const volatile uint8_t *kept = redeem(&fixture, first);
    device_ticket_release(fixture.device, first, DEVICE_HERE);
    assert_int_equal(kept[16], 1);
    assert_int_equal(accesses(&fixture), 0);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_use_is_silent),
        cmocka_unit_test(kept_pointers_are_reported),
        cmocka_unit_test(without_guards_nothing_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
