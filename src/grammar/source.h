/* source.h - the text of a grammar or a pattern while it is read: where it is, and errors that say
 * so. */
#ifndef GRETA_GRAMMAR_SOURCE_H
#define GRETA_GRAMMAR_SOURCE_H

#include "base/status.h"
#include "base/text.h"

#include <stdint.h>

#define SOURCE_END UINT32_MAX /* no character is left */

struct source {
    struct text_view text;
    const char *name; /* in errors */
    size_t at;
};

/* The next character, which is not taken; SOURCE_END at the end, the byte itself if it is no UTF-8
 * (source_check makes sure that it is). */
uint32_t source_peek(const struct source *source);
uint32_t source_take(struct source *source);
/* True if the text goes on with these bytes, which are taken. */
bool source_skip(struct source *source, const char *zero_terminated);
/* Fails if the text is too long or not UTF-8. */
MUST_CHECK enum status source_check(struct source *source, struct error *err);
/* A number in decimal; fails if there is none or it is above the limit. */
MUST_CHECK enum status source_number(struct source *source, uint32_t limit, uint32_t *ret,
                                     struct error *err);
/* `digits` hexadecimal digits. */
MUST_CHECK enum status source_hex(struct source *source, unsigned digits, uint32_t *ret,
                                  struct error *err);
/* STATUS_USAGE with "NAME:LINE:COLUMN: " in front, and ", found ..." at the end. */
#define source_fail(source, at, err, ...)                                                          \
    (source_fail_at((source), (at), (err), __FILE__, __LINE__, __VA_ARGS__), STATUS_USAGE)
void source_fail_at(const struct source *source, size_t at, struct error *err, const char *file,
                    int line, const char *format, ...) PRINTF_LIKE(6, 7);
/* Puts "NAME:LINE:COLUMN: " in front of an error. */
enum status source_wrap(const struct source *source, size_t at, struct error *err);

#endif
