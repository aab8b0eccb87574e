/* status.c - see status.h. */
#include "base/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_names[] = {
    [STATUS_OK] = "ok",
    [STATUS_USAGE] = "usage",
    [STATUS_IO] = "io",
    [STATUS_BAD_FILE] = "bad-file",
    [STATUS_UNSUPPORTED] = "unsupported",
    [STATUS_REFUSED] = "refused",
    [STATUS_NOT_FOUND] = "not-found",
    [STATUS_EXISTS] = "exists",
    [STATUS_NO_MEMORY] = "no-memory",
    [STATUS_LIMIT] = "limit",
    [STATUS_INTERRUPTED] = "interrupted",
    [STATUS_BUSY] = "busy",
    [STATUS_LOST] = "lost",
};
_Static_assert(COUNT_OF(status_names) == STATUS_COUNT, "every status has a name");

const char *status_name(enum status status)
{
    return (unsigned)status < STATUS_COUNT ? status_names[status] : "unknown";
}

/* A cut text must not look like a whole one. */
static void mark_cut(char *text, size_t capacity, int wanted)
{
    if (wanted >= 0 && (size_t)wanted >= capacity)
        memcpy(text + capacity - 4, "...", 4);
}

void error_set_va(struct error *err, enum status status, const char *file, int line,
                  const char *format, va_list arguments)
{
    ASSERT(err && status != STATUS_OK);
    *err = (struct error){ .status = status, .file = file, .line = line };
    int wanted = vsnprintf(err->text, sizeof(err->text), format, arguments);
    mark_cut(err->text, sizeof(err->text), wanted);
}

void error_set_at(struct error *err, enum status status, const char *file, int line,
                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_set_va(err, status, file, line, format, arguments);
    va_end(arguments);
}

static enum status status_of_os_code(int os_code)
{
    switch (os_code) {
    case ENOENT:
        return STATUS_NOT_FOUND;
    case EEXIST:
        return STATUS_EXISTS;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    default:
        return STATUS_IO;
    }
}

enum status error_set_os_at(struct error *err, int os_code, const char *file, int line,
                            const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    error_set_va(err, status_of_os_code(os_code), file, line, format, arguments);
    va_end(arguments);
    err->os_code = os_code;
    char words[128];
    /* The XSI strerror_r: no shared buffer, safe from any thread. */
    if (strerror_r(os_code, words, sizeof(words)) != 0)
        snprintf(words, sizeof(words), "error %d", os_code);
    size_t used = strlen(err->text);
    int wanted = snprintf(err->text + used, sizeof(err->text) - used, ": %s", words);
    mark_cut(err->text, sizeof(err->text), (int)used + wanted);
    return err->status;
}

enum status error_wrap(struct error *err, const char *format, ...)
{
    ASSERT(err && err->status != STATUS_OK);
    char inner[ERROR_TEXT_BYTES];
    memcpy(inner, err->text, sizeof(inner));
    va_list arguments;
    va_start(arguments, format);
    int used = vsnprintf(err->text, sizeof(err->text), format, arguments);
    va_end(arguments);
    mark_cut(err->text, sizeof(err->text), used);
    if (used >= 0 && (size_t)used < sizeof(err->text)) {
        size_t room = sizeof(err->text) - (size_t)used;
        int wanted = snprintf(err->text + used, room, ": %s", inner);
        mark_cut(err->text, sizeof(err->text), used + wanted);
    }
    return err->status;
}

_Noreturn void assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "greta: %s:%d: internal error: '%s' does not hold\n", file, line, condition);
    abort();
}
