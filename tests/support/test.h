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

/* The analyzer of clang-tidy does not know that a check which fails ends the test. */
#if defined(__clang_analyzer__)
#include <stdlib.h>
#undef assert_true
#undef assert_false
#undef assert_non_null
#undef assert_null
#undef fail_msg
#undef fail
#undef skip
#define assert_true(condition) ((condition) ? (void)0 : abort())
#define assert_false(condition) ((condition) ? abort() : (void)0)
#define assert_non_null(pointer) ((pointer) ? (void)0 : abort())
#define assert_null(pointer) ((pointer) ? abort() : (void)0)
#define fail_msg(...) (print_error(__VA_ARGS__), abort())
#define fail() abort()
#define skip() abort()
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
