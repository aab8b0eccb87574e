/* interpose_launch_test.c - launches of a foreign program: the memory that a kernel's pointers lead
 * to, its name, and reruns that wait after the launches of a window. */
#include "interpose_translate.h"

#include <stdlib.h>
#include <string.h>

static struct event launch_with(struct fixture *fixture, const void *bytes, size_t count,
                                const struct kernel_uses *uses)
{
    struct interpose_parameter parameter = { bytes, count, 0 };
    struct interpose_launch asked = { .kernel = "kernel",
                                      .function = 78,
                                      .parameters = &parameter,
                                      .parameter_count = 1,
                                      .uses = uses,
                                      .stream = &one };
    interpose_launch_begin(fixture->door, &fixture->call, "cuLaunchKernel", &asked);
    struct event event = fixture->call.event;
    interpose_end(fixture->door, &fixture->call, 0);
    return event;
}

static void test_pointers(void **state)
{
    (void)state;
    struct fixture fixture = fixture_begin();
    fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 65536);
    struct {
        uint32_t number, other;
        uint64_t pointer, nothing, inside;
        uint32_t tail, unused; /* each too short for a pointer */
    } parameters = { 1, 2, DEVICE, 12345, DEVICE + 4096, 3, 0 };
    struct event event = fixture_launch(&fixture, &parameters, sizeof(parameters) - 4);
    assert_int_equal(event.access_count, 2);
    assert_int_equal(event.accesses[0].address, DEVICE);
    assert_int_equal(event.accesses[0].bytes, 65536);
    assert_int_equal(event.accesses[0].mode, EVENT_UPDATE | EVENT_MAYBE);
    /* From now on it is known that the allocation is cut into parts. */
    assert_int_equal(event.accesses[1].address, DEVICE + 4096);
    assert_int_equal(event.accesses[1].bytes, 256);
    event = fixture_launch(&fixture, &parameters, sizeof(parameters));
    assert_int_equal(event.accesses[0].bytes, 256);
    assert_string_equal(event.op, "elementwise_kernel");
    assert_int_equal(event.launch.ordinal, 2);
    uint64_t many[20];
    for (size_t i = 0; i < COUNT_OF(many); i++)
        many[i] = DEVICE + 512 * i;
    event = fixture_launch(&fixture, many, sizeof(many));
    assert_int_equal(event.access_count, EVENT_ACCESS_LIMIT);
    assert_true(event.flags & EVENT_PARTIAL);
    fixture_stop(&fixture);
    char name[FLIGHT_NAME_BYTES];
    assert_true(flight_name(fixture.reader, event.launch.name_index, name));
    assert_string_equal(name, "_ZN2at6native18elementwise_kernelILi4EEEvi");
    fixture_end(&fixture);
}

/* What the code of a kernel proves: a word that it does nothing with is no access, one that it only
 * reads through is a read; the same pointer twice is what both are. */
static void test_uses(void **state)
{
    (void)state;
    enum { W = KERNEL_WRITES, R = KERNEL_READS };
    static const struct {
        uint8_t uses[3];
        uint16_t size; /* of the struct, as the code has it */
        int modes[3];  /* of the block's first, second and third pointer; -1: no access */
    } rows[] = {
        { { R, W, 0 }, 24, { EVENT_READ | EVENT_MAYBE, EVENT_UPDATE | EVENT_MAYBE, -1 } },
        { { 0, 0, R | W }, 24, { -1, -1, EVENT_UPDATE | EVENT_MAYBE } },
        { { R, R, 0 },
          16, /* another kernel's */
          { EVENT_UPDATE | EVENT_MAYBE, EVENT_UPDATE | EVENT_MAYBE, EVENT_UPDATE | EVENT_MAYBE } },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct fixture fixture = fixture_begin();
        fixture_alloc(&fixture, INTERPOSE_DEVICE, DEVICE, 65536);
        struct kernel_uses uses = { .parameter_count = 1, .sizes = { rows[i].size } };
        memcpy(uses.uses, rows[i].uses, sizeof(rows[i].uses));
        uint64_t pack[] = { DEVICE, DEVICE + 4096, DEVICE + 8192 };
        struct event event = launch_with(&fixture, pack, sizeof(pack), &uses);
        uint8_t at = 0;
        for (size_t j = 0; j < 3; j++) {
            if (rows[i].modes[j] < 0)
                continue;
            assert_int_equal(event.accesses[at].address, pack[j]);
            assert_int_equal(event.accesses[at++].mode, rows[i].modes[j]);
        }
        assert_int_equal(event.access_count, at);
        pack[2] = pack[1] = DEVICE; /* read, and written through another word */
        event = launch_with(&fixture, pack, sizeof(pack), &uses);
        assert_int_equal(event.access_count, 1);
        assert_int_equal(event.accesses[0].mode, EVENT_UPDATE | EVENT_MAYBE);
        fixture_stop(&fixture);
        fixture_end(&fixture);
    }
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *shown;
    } rows[] = {
        { "plain", "plain" },
        { "_Z3addPfPKfi", "add" },
        { "_ZN2at6native18elementwise_kernelILi4EEEvi", "elementwise_kernel" },
        { "_ZN12_GLOBAL__N_13runEv", "run" },
        { "_Z", "_Z" },
        { "_Z99999999999999999999x", "_Z99999999999999999999x" },
        { "_Z5ab", "_Z5ab" },
        { "_ZN5ab", "_ZN5ab" },
        { "a_name_that_is_far_longer_than_the_field_it_goes_to", "a_name_that_is_far_long" },
        { "", "" },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char op[EVENT_OP_BYTES];
        name_shorten(rows[i].name, op);
        assert_string_equal(op, rows[i].shown);
    }
}

/* A rerun waits after the launches of its window, and knows whose fault it is. */
static void test_narrow(void **state)
{
    (void)state;
    setenv(INTERPOSE_VARIABLE_NARROW, "2-3", 1);
    struct fixture fixture = fixture_begin();
    unsetenv(INTERPOSE_VARIABLE_NARROW);
    uint64_t nothing = 0;
    sync_count = 0;
    sync_code = 0;
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    sync_code = 700;
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    assert_int_equal(sync_count, 2);
    fixture_stop(&fixture);
    struct event fault = fixture_event(&fixture, 4);
    assert_int_equal(fault.kind, EVENT_FAULT);
    assert_int_equal(fault.cause_id, 3);
    assert_true(fault.flags & EVENT_CAUGHT);
    fixture_end(&fixture);
}

/* With the launch of another thread in between it may be either's. */
static void test_narrow_with_threads(void **state)
{
    (void)state;
    setenv(INTERPOSE_VARIABLE_NARROW, "1-3", 1);
    struct fixture fixture = fixture_begin();
    unsetenv(INTERPOSE_VARIABLE_NARROW);
    uint64_t nothing = 0;
    struct interpose_call other;
    struct interpose_launch asked = { .kernel = "other", .function = 9, .stream = &one };
    sync_code = 0;
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    interpose_launch_begin(fixture.door, &other, "cuLaunchKernel", &asked);
    sync_code = 700;
    fixture_launch(&fixture, &nothing, sizeof(nothing));
    fixture_stop(&fixture);
    struct event fault = fixture_event(&fixture, 4);
    assert_int_equal(fault.kind, EVENT_FAULT);
    assert_int_equal(fault.cause_id, 0);
    assert_false(fault.flags & EVENT_CAUGHT);
    fixture_end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pointers),
        cmocka_unit_test(test_uses),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_narrow_with_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
