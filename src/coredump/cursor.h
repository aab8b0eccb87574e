/* cursor.h - reads the numbers of debug information, without an error for each: a read past the end
 * gives 0 and marks the cursor. Whoever reads in a loop looks at `bad`. */
#ifndef GRETA_COREDUMP_CURSOR_H
#define GRETA_COREDUMP_CURSOR_H

#include "base/bytes.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct cursor {
    const uint8_t *data; /* borrowed */
    uint64_t at, end;    /* at <= end */
    bool bad;            /* something was read that is not there */
};

/* count: 1, 2, 4 or 8. */
uint64_t cursor_number(struct cursor *cursor, uint64_t count);
uint64_t cursor_unsigned(struct cursor *cursor); /* LEB128 */
int64_t cursor_signed(struct cursor *cursor);
void cursor_skip(struct cursor *cursor, uint64_t count);
/* Up to a NUL, which has to be there. */
struct text_view cursor_string(struct cursor *cursor);

#endif
