/* test.h - cmocka with the headers it wants before it, and checks that say what was there. */
#ifndef GRETA_TESTS_TEST_H
#define GRETA_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/status.h"

/* ThreadSanitizer finds planted races too: tests that plant one are left out. */
#if defined(__SANITIZE_THREAD__)
#define RACES_ARE_REPORTED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACES_ARE_REPORTED 1
#endif
#endif

/* A call that must succeed: shows the error if it does not. */
#define CHECK_OK(expression, err)                                                                  \
    do {                                                                                           \
        enum status check_status = (expression);                                                   \
        if (check_status)                                                                          \
            fail_msg("%s: %s: %s", #expression, status_name(check_status), (err)->text);           \
    } while (0)

/* A call that must fail with this status, which the error repeats. */
#define CHECK_FAILS(expression, wanted, err)                                                       \
    do {                                                                                           \
        enum status check_status = (expression);                                                   \
        if (check_status != (wanted))                                                              \
            fail_msg("%s: expected %s, found %s", #expression, status_name(wanted),                \
                     status_name(check_status));                                                   \
        if ((err)->status != check_status)                                                         \
            fail_msg("%s: the error says %s", #expression, status_name((err)->status));            \
    } while (0)

/* The text holds the words; `what` names the row of a table. */
void check_contains(const char *what, const char *text, const char *words);

/* Sum of squared differences by sum of squares. */
double normalised_error(const float *found, const double *wanted, size_t count);

/* Processor time of this process: for tests of how work grows, which other processes must not
 * disturb. */
uint64_t processor_ns(void);

#endif
