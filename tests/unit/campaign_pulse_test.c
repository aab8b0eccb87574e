/* What counts as a sign of life of a worker: crumbs while its device works, the processor and what
 * is read while the host works by itself, and that not for ever. */
#include "test.h"

#include "campaign/pulse.h"

#include <string.h>

#define MS UINT64_C(1000000)
#define PATIENCE_NS (2000 * MS)

struct scene {
    struct pulse_watch watch;
    struct pulse_sight sight;
};

static struct crumb_page page;

static struct scene open_scene(bool on_device)
{
    memset(&page, 0, sizeof(page));
    struct scene scene = { .watch = { .patience_ns = PATIENCE_NS },
                           .sight = { .on_device = on_device, .crumbs = &page } };
    return scene;
}

/* 100 ms on, of which so many were used of a processor. */
static bool look(struct scene *scene, uint64_t processor_ms)
{
    scene->sight.now_ns += 100 * MS;
    scene->sight.processor_ns += processor_ms * MS;
    return pulse_is_alive(&scene->watch, &scene->sight);
}

static void a_device_that_works_moves_its_crumbs(void **state)
{
    (void)state;
    struct scene scene = open_scene(true);
    for (uint64_t i = 1; i < 100; i++) {
        crumb_enter(&page.streams[1], i);
        assert_true(look(&scene, 0));
    }
    /* A wait that spins is no progress. */
    assert_false(look(&scene, 100));
    scene.sight.reads++;
    assert_false(look(&scene, 100));
}

static void a_host_that_works_uses_the_processor_or_reads(void **state)
{
    (void)state;
    struct scene scene = open_scene(false);
    look(&scene, 0);
    assert_true(look(&scene, 50));
    assert_false(look(&scene, 1)); /* what looking takes */
    scene.sight.reads++;
    assert_true(look(&scene, 0));
    assert_false(look(&scene, 0));
    scene.sight.crumbs = NULL; /* before a device is open */
    assert_true(look(&scene, 50));
}

static void its_own_work_is_not_taken_for_life_for_ever(void **state)
{
    (void)state;
    struct scene scene = open_scene(false);
    look(&scene, 100);
    for (uint64_t i = 0; i < PATIENCE_NS / (100 * MS); i++)
        assert_true(look(&scene, 100));
    assert_false(look(&scene, 100));
    /* Weights that arrive are progress again. */
    crumb_enter(&page.streams[1], 5);
    assert_true(look(&scene, 100));
    assert_true(look(&scene, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_that_works_moves_its_crumbs),
        cmocka_unit_test(a_host_that_works_uses_the_processor_or_reads),
        cmocka_unit_test(its_own_work_is_not_taken_for_life_for_ever),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
