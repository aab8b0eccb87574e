/* message.h - MessagePack, as far as code objects use it: a value's head is read, or the whole
 * value is passed over. Nothing is recursive: depth costs no stack. */
#ifndef GRETA_INTERPOSE_HIP_MESSAGE_H
#define GRETA_INTERPOSE_HIP_MESSAGE_H

#include "base/bytes.h"

#include <stdbool.h>

/* count: pairs that follow. */
MUST_CHECK enum status message_map(struct bytes *in, const char *field, uint64_t *ret_count,
                                   struct error *err);
MUST_CHECK enum status message_array(struct bytes *in, const char *field, uint64_t *ret_count,
                                     struct error *err);
MUST_CHECK enum status message_number(struct bytes *in, const char *field, uint64_t *ret,
                                      struct error *err);
/* Borrowed from the bytes; not terminated. */
MUST_CHECK enum status message_text(struct bytes *in, const char *field, struct text_view *ret,
                                    struct error *err);
MUST_CHECK enum status message_skip(struct bytes *in, struct error *err);

#endif
