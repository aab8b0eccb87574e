/* staging_view_test.c - with guards, the bytes of a ticket can be read between its redeeming and
 * its release, and an access at another time is reported with the copy it met. The device is the
 * first argument; the host, without one. */
#include "ops_lab.h"

struct watch {
    volatile uint64_t accesses; /* counted in a signal handler */
    uint64_t copies;
    struct event access, copy; /* the last of each */
};

static void notify(void *context, const struct event *event)
{
    struct watch *watch = context;
    if (event->kind == EVENT_HOST_ACCESS) {
        watch->access = *event;
        watch->accesses++;
    } else if (event->kind == EVENT_COPY_OUT && event->phase == EVENT_BEGIN) {
        watch->copy = *event;
        watch->copies++;
    }
}

static const volatile float *redeem(struct lab *lab, struct device_ticket ticket)
{
    const void *bytes = NULL;
    uint64_t count = 0;
    LAB_OK(lab, device_ticket_redeem(lab->device, ticket, DEVICE_HERE, &bytes, &count, &lab->err));
    return bytes;
}

static void kept_pointers_are_reported(void **state)
{
    (void)state;
    struct lab lab;
    struct watch watch = { 0 };
    struct device_options options = { .observer = { notify, &watch },
                                      .guards = true,
                                      .staging_slot_count = 2 };
    lab_open_with(&lab, CPU_PATH_PORTABLE, &options);
    const float values[] = { 1.5f, 2.5f, 3.5f, 4.5f };
    struct device_view x = lab_view(&lab, DTYPE_F32, 4, 1);
    struct device_ticket ticket;
    const volatile float *kept[2];
    LAB_OK(&lab, device_copy_in(lab.device, lab.target.stream, &x, values, sizeof(values),
                                DEVICE_HERE, &lab.err));
    for (int i = 0; i < 2; i++) { /* each slot once, or one of them twice */
        LAB_OK(&lab,
               device_copy_out(lab.device, lab.target.stream, &x, DEVICE_HERE, &ticket, &lab.err));
        kept[i] = redeem(&lab, ticket);
        assert_true(kept[i][3] == 4.5f);
        device_ticket_release(lab.device, ticket, DEVICE_HERE);
    }
    assert_int_equal(watch.accesses, 0);
    (void)kept[1][2];
    assert_int_equal(watch.accesses, 1);
    assert_int_equal(watch.access.check, EVENT_CHECK_TICKET);
    assert_true(watch.access.cause_id == watch.copy.id);
    assert_int_equal(watch.access.host_access.address - watch.access.host_access.copy_address,
                     2 * sizeof(float));
    /* Taken again: what the pointer shows is not there yet. */
    LAB_OK(&lab,
           device_copy_out(lab.device, lab.target.stream, &x, DEVICE_HERE, &ticket, &lab.err));
    struct device_ticket second;
    LAB_OK(&lab,
           device_copy_out(lab.device, lab.target.stream, &x, DEVICE_HERE, &second, &lab.err));
    (void)kept[1][0];
    assert_int_equal(watch.accesses, 2);
    assert_int_equal(watch.access.check, EVENT_CHECK_NONE);
    assert_true(redeem(&lab, ticket)[1] == 2.5f);
    assert_true(redeem(&lab, second)[1] == 2.5f);
    assert_int_equal(watch.accesses, 2);
    device_ticket_release(lab.device, ticket, DEVICE_HERE);
    device_ticket_release(lab.device, second, DEVICE_HERE);
    lab_close(&lab);
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(kept_pointers_are_reported) };
    if (!lab_choose(argument_count, arguments))
        return LAB_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
