/* session_stop_test.c - stop strings in text that comes in parts: nothing of them is shown, and
 * nothing else is kept. */
#include "test.h"

#include "session/stop.h"

#include <string.h>

static const char *const stops[] = { "###", "END", "\n\n" };

static void test_parts(void **state)
{
    (void)state;
    static const struct {
        const char *name, *parts, *shown; /* parts are separated by | */
        bool stopped;
    } rows[] = {
        { "no stop", "Hello| world", "Hello world", false },
        { "in one part", "one ### two", "one ", true },
        { "over three parts", "one #|#|# two", "one ", true },
        { "letter by letter", "a|E|N|D|b", "a", true },
        { "a false start", "a #|# b", "a ## b", false },
        { "a false start inside a true one", "#|##", "", true },
        { "four of three", "a####", "a", true },
        { "the first of two", "x END y ### z", "x ", true },
        { "two kinds at once", "EN|###", "EN", true },
        { "held back to the end", "wait E|N", "wait EN", false },
        { "empty parts", "||a||", "a", false },
        { "newlines", "a\n|b\n|\nc", "a\nb", true },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct stop_scan scan;
        struct text shown;
        bool stopped = false;
        stop_scan_init(&scan, stops, COUNT_OF(stops));
        text_init(&shown);
        for (const char *at = rows[i].parts; !stopped;) {
            size_t length = strcspn(at, "|");
            stopped = stop_scan_add(&scan, (struct text_view){ at, length }, &shown);
            if (at[length] == '\0')
                break;
            at += length + 1;
        }
        if (!stopped)
            stop_scan_finish(&scan, &shown);
        if (stopped != rows[i].stopped || strcmp(text_get(&shown), rows[i].shown) != 0)
            fail_msg("%s: %s, shown '%s'", rows[i].name, stopped ? "stopped" : "went on",
                     text_get(&shown));
        stop_scan_release(&scan);
        text_release(&shown);
    }
}

/* What can be shown is shown at once: only the possible beginning of a stop string waits. */
static void test_nothing_waits_without_reason(void **state)
{
    (void)state;
    struct stop_scan scan;
    struct text shown;
    stop_scan_init(&scan, stops, COUNT_OF(stops));
    text_init(&shown);
    assert_false(stop_scan_add(&scan, text_view_of("abc E"), &shown));
    assert_string_equal(text_get(&shown), "abc ");
    assert_false(stop_scan_add(&scan, text_view_of("x"), &shown));
    assert_string_equal(text_get(&shown), "abc Ex");
    stop_scan_release(&scan);
    text_release(&shown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_nothing_waits_without_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
