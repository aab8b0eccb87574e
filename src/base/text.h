/* text.h - growable text, and borrowed views of text that need not end in NUL. */
#ifndef GRETA_BASE_TEXT_H
#define GRETA_BASE_TEXT_H

#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed; may hold any bytes, NUL included. */
struct text_view {
    const char *bytes;
    size_t length;
};

struct text_view text_view_of(const char *zero_terminated);
bool text_view_equal(struct text_view a, struct text_view b);
bool text_view_is(struct text_view view, const char *zero_terminated);
/* Order by length first: cheap, and as good as any for look-ups. */
int text_view_compare(struct text_view a, struct text_view b);

/* An initialised text owns its bytes, which always end in NUL once anything was added. If memory
 * runs out, `failed` is set and later additions do nothing: callers that build a report check it
 * once, at the end. */
struct text {
    char *bytes;
    size_t length;
    size_t capacity;
    bool failed;
};

void text_init(struct text *text);
void text_release(struct text *text);
void text_clear(struct text *text);
void text_add(struct text *text, const char *zero_terminated);
void text_add_bytes(struct text *text, const void *bytes, size_t length);
void text_addf(struct text *text, const char *format, ...) PRINTF_LIKE(2, 3);
void text_addf_va(struct text *text, const char *format, va_list arguments) PRINTF_LIKE(2, 0);
/* Adds the byte `count` times. */
void text_add_fill(struct text *text, char byte, size_t count);
/* Characters of valid UTF-8: the columns of a text without wide or combining characters. */
size_t text_width(const char *zero_terminated);
/* "" if nothing was added. Borrowed until the next change. */
const char *text_get(const struct text *text);

/* Adds bytes from outside so that they are safe to show: valid UTF-8 stays; invalid bytes become
 * \xHH, and so do characters that a terminal would obey instead of showing: controls, what has no
 * width, what changes the direction of text. After limit bytes of input it stops with "...". */
void text_add_printable(struct text *text, struct text_view view, size_t limit);

/* The same into a fixed buffer, cut if necessary; returns buffer. For error messages. */
const char *text_printable(struct text_view view, char *buffer, size_t buffer_bytes);

/* Length of the valid UTF-8 character at bytes (1..4), or 0 if there is none. */
size_t text_utf8_length(const char *bytes, size_t available);

/* "4.58 GiB", "312 bytes": returns buffer, which has TEXT_BYTES_CAPACITY bytes. */
#define TEXT_BYTES_CAPACITY 32
const char *text_bytes(uint64_t bytes, char *buffer);

/* "6.74B", "1.10M", "512": returns buffer, which has TEXT_BYTES_CAPACITY bytes. */
const char *text_count(uint64_t count, char *buffer);

/* The word for this count: "row" for 1, "rows" for any other. */
const char *text_plural(uint64_t count, const char *one, const char *many);

#endif
