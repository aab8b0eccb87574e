/* report_write_test.c - the files of an audit: all of them, whole, or an error. With a folder as
 * its argument it writes the specimen's files there instead, for tests/tools/report_files_test.py.
 */
#include "test.h"

#include "base/text.h"
#include "report_facts.h"
#include "report_recording.h"
#include "temp_folder.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const names[] = { "manifest.json",  "summary.json", "report.en.md",
                                     "report.es.md",   "report.html",  "timeline.json",
                                     "findings.sarif", "junit.xml" };

static void test_all_files(void **state)
{
    (void)state;
    struct temp_folder folder, recording;
    struct report_specimen *specimen = specimen_create(false);
    struct error err;
    temp_folder_init(&folder);
    temp_folder_init(&recording);
    struct temp_path flight = temp_folder_path(&recording, "A.flight");
    specimen_flight(flight.text);
    specimen->facts.flight_path = flight.text;
    /* Twice: the second time replaces, as a resumed audit does. */
    for (size_t i = 0; i < 2; i++) {
        CHECK_OK(report_write(&specimen->facts, folder.path, REPORT_SPANISH, &err), &err);
        assert_int_equal(temp_folder_count(&folder), COUNT_OF(names));
    }
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_true(temp_folder_has(&folder, names[i]));
    struct text text;
    text_init(&text);
    temp_folder_read(&folder, "report.html", &text);
    check_contains("html", text_get(&text), "<html lang=\"es\">");
    check_contains("timeline drawn", text_get(&text), "class=\"work cause\"");
    check_contains("memory drawn", text_get(&text), "class=\"buffer named freed\"");
    temp_folder_read(&folder, "timeline.json", &text);
    check_contains("timeline", text_get(&text), "\"name\":\"rope\"");
    text_release(&text);
    temp_folder_release(&folder);
    temp_folder_release(&recording);
    free(specimen);
}

/* A recording that is not there, or no recording, holds nothing up. */
static void test_no_recording(void **state)
{
    (void)state;
    static const char *const paths[] = { NULL, "/nonexistent/flight", "/dev/null" };
    for (size_t i = 0; i < COUNT_OF(paths); i++) {
        struct temp_folder folder;
        struct report_specimen *specimen = specimen_create(i == 0);
        struct error err;
        struct text text;
        temp_folder_init(&folder);
        specimen->facts.flight_path = paths[i];
        CHECK_OK(report_write(&specimen->facts, folder.path, REPORT_ENGLISH, &err), &err);
        text_init(&text);
        temp_folder_read(&folder, "timeline.json", &text);
        check_contains("timeline", text_get(&text), "\"traceEvents\":[]");
        text_release(&text);
        temp_folder_release(&folder);
        free(specimen);
    }
}

static void test_no_folder(void **state)
{
    (void)state;
    struct report_specimen *specimen = specimen_create(true);
    struct error err;
    CHECK_FAILS(report_write(&specimen->facts, "/nonexistent/folder", REPORT_ENGLISH, &err),
                STATUS_NOT_FOUND, &err);
    free(specimen);
}

static int write_specimen(const char *folder)
{
    struct report_specimen *specimen = specimen_create(false);
    struct error err;
    char path[1024];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, i ? "empty" : "rich");
        if (mkdir(path, 0777))
            return 1;
        if (i)
            specimen_init_empty(specimen);
        snprintf(path, sizeof(path), "%s/flight", folder);
        if (!i)
            specimen_flight(path);
        specimen->facts.flight_path = i ? NULL : path;
        char target[1024];
        snprintf(target, sizeof(target), "%s/%s", folder, i ? "empty" : "rich");
        if (report_write(&specimen->facts, target, i ? REPORT_SPANISH : REPORT_ENGLISH, &err)) {
            fprintf(stderr, "%s\n", err.text);
            return 1;
        }
    }
    free(specimen);
    return 0;
}

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_files),
        cmocka_unit_test(test_no_recording),
        cmocka_unit_test(test_no_folder),
    };
    if (argument_count == 2)
        return write_specimen(arguments[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
