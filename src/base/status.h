/* status.h - how a function says that it failed, and why.
 *
 * A function that can fail returns enum status, takes struct error *err last and is MUST_CHECK. The
 * caller owns the error, which has a fixed size and allocates nothing. It is set once, where the
 * failure is discovered, with what was expected and what was found; callers that know more put it
 * in front with error_wrap. A programmer's mistake is an ASSERT, which is on in every build. */
#ifndef GRETA_BASE_STATUS_H
#define GRETA_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#define MUST_CHECK __attribute__((warn_unused_result))
#define PRINTF_LIKE(format_index, first_argument)                                                  \
    __attribute__((format(printf, format_index, first_argument)))
#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

enum status {
    STATUS_OK = 0,
    STATUS_USAGE,       /* the request itself makes no sense */
    STATUS_IO,          /* the operating system said no */
    STATUS_BAD_FILE,    /* bytes from outside break their own format */
    STATUS_UNSUPPORTED, /* well-formed, but not something greta knows */
    STATUS_REFUSED,     /* a check said no: the guard rail, a contract, a bound */
    STATUS_NOT_FOUND,
    STATUS_EXISTS,
    STATUS_NO_MEMORY,
    STATUS_LIMIT, /* past a limit that greta sets, named in the text */
    STATUS_INTERRUPTED,
    STATUS_BUSY, /* not now: something must be released first */
    STATUS_LOST, /* the device faulted; nothing on it can be used again */
    STATUS_COUNT
};

/* Room for a path, a field and two values; longer texts are cut and end in "...". */
#define ERROR_TEXT_BYTES 768

struct error {
    enum status status;
    const char *file; /* where it was discovered; static storage */
    int line;
    int os_code;      /* errno; 0 if no system call failed */
    int runtime_code; /* the GPU runtime's code, 0 if it gave none; set after error_set */
    char text[ERROR_TEXT_BYTES];
};

/* "bad-file", "no-memory": stable slugs for logs and JSON. */
const char *status_name(enum status status);

/* The value is the status, so that `return error_set(...)` reads as one step and the compiler sees
 * that it is not STATUS_OK. err must not be NULL. */
#define error_set(err, status, ...)                                                                \
    (error_set_at((err), (status), __FILE__, __LINE__, __VA_ARGS__), (status))
void error_set_at(struct error *err, enum status status, const char *file, int line,
                  const char *format, ...) PRINTF_LIKE(5, 6);
void error_set_va(struct error *err, enum status status, const char *file, int line,
                  const char *format, va_list arguments) PRINTF_LIKE(5, 0);

/* As error_set with STATUS_IO (STATUS_NO_MEMORY, _NOT_FOUND, _EXISTS where errno says so); appends
 * ": " and the words of os_code. */
#define error_set_os(err, os_code, ...)                                                            \
    error_set_os_at((err), (os_code), __FILE__, __LINE__, __VA_ARGS__)
enum status error_set_os_at(struct error *err, int os_code, const char *file, int line,
                            const char *format, ...) PRINTF_LIKE(5, 6);

/* Puts "context: " in front of the text; keeps status and origin. */
enum status error_wrap(struct error *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* Only for functions that hold nothing they would have to release. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status = (expression);                                                     \
        if (try_status)                                                                            \
            return try_status;                                                                     \
    } while (0)

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            assert_failed(#condition, __FILE__, __LINE__);                                         \
    } while (0)
_Noreturn void assert_failed(const char *condition, const char *file, int line);

#endif
