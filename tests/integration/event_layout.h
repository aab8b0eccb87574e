/* event_layout.h - the parts of the section that event_layout_test compares. */
#ifndef GRETA_TESTS_EVENT_LAYOUT_H
#define GRETA_TESTS_EVENT_LAYOUT_H

#include "base/text.h"

#include <stddef.h>

struct layout_field {
    const char *name;
    size_t offset, bytes;
};

void event_layout_add_payloads(struct text *out);

#endif
