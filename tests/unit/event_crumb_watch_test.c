/* Whether the crumb page moves, and for how long it was watched without a movement. */
#include "test.h"

#include "event/crumb_watch.h"

#include <string.h>

#define MS UINT64_C(1000000)

static struct crumb_page page;

static struct crumb_watch fresh(void)
{
    memset(&page, 0, sizeof(page));
    return (struct crumb_watch){ 0 };
}

static void every_word_that_changes_is_a_movement(void **state)
{
    (void)state;
    struct crumb_watch watch = fresh();
    assert_false(crumb_watch_look(&watch, &page, false, 1 * MS));
    crumb_enter(&page.streams[3], 7);
    assert_true(crumb_watch_look(&watch, &page, false, 2 * MS));
    assert_int_equal(watch.moved_stream, 3);
    assert_int_equal(watch.moved_ns, 2 * MS);
    crumb_finish(&page.streams[5], 7);
    assert_true(crumb_watch_look(&watch, &page, false, 3 * MS));
    assert_int_equal(watch.moved_stream, 5);
    page.streams[CRUMB_STREAM_LIMIT - 1].node = crumb_node_of(2, 1);
    assert_true(crumb_watch_look(&watch, &page, false, 4 * MS));
    assert_int_equal(watch.moved_stream, CRUMB_STREAM_LIMIT - 1);
    crumb_trap_add(&page, 7, 0, 9, 8);
    assert_true(crumb_watch_look(&watch, &page, false, 5 * MS));
    assert_false(crumb_watch_look(&watch, &page, false, 6 * MS));
    assert_true(crumb_watch_look(&watch, &page, true, 7 * MS));
    assert_int_equal(watch.moved_ns, 4 * MS); /* of crumbs alone */
}

static void stillness_is_what_was_watched(void **state)
{
    (void)state;
    struct crumb_watch watch = fresh();
    for (uint64_t i = 1; i <= 11; i++)
        crumb_watch_look(&watch, &page, false, i * 100 * MS);
    assert_int_equal(watch.stall.still_ns, 1000 * MS);
    /* The watching thread did not run for an hour: nor, perhaps, did what it watches. */
    crumb_watch_look(&watch, &page, false, 1100 * MS + 3600000 * MS);
    assert_int_equal(watch.stall.still_ns, 1000 * MS + STALL_GAP_NS);
    crumb_watch_look(&watch, &page, true, 1200 * MS + 3600000 * MS);
    assert_int_equal(watch.stall.still_ns, 0);
}

static void what_was_seen_stays_on_the_page(void **state)
{
    (void)state;
    struct crumb_watch watch = fresh();
    assert_false(crumb_is_watched(&page));
    crumb_enter(&page.streams[2], 40);
    crumb_watch_look(&watch, &page, false, 10 * MS);
    crumb_watch_look(&watch, &page, false, 60 * MS);
    crumb_watch_note(&watch, &page);
    assert_int_equal(page.watched_ns, 60 * MS);
    assert_int_equal(page.still_ns, 50 * MS);
    assert_int_equal(page.moved_ns, 10 * MS);
    assert_int_equal(page.moved_stream, 2);
    /* A page that no device says the meaning of, or that shows crumbs only when a wait is over. */
    assert_false(crumb_is_watched(&page));
    crumb_set_order(&page, CRUMB_ORDER_NEXT);
    assert_true(crumb_is_watched(&page));
    crumb_set_late(&page, true);
    assert_false(crumb_is_watched(&page));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_that_changes_is_a_movement),
        cmocka_unit_test(stillness_is_what_was_watched),
        cmocka_unit_test(what_was_seen_stays_on_the_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
