/* copy_behaviour.h - the table of copy_behaviour.def: does a call wait for its copy? */
#ifndef GRETA_INTERPOSE_COPY_BEHAVIOUR_H
#define GRETA_INTERPOSE_COPY_BEHAVIOUR_H

#include "interpose/interpose.h"

enum copy_behaviour { COPY_WAITS, COPY_STAGED, COPY_RETURNS, COPY_OPEN, COPY_BEHAVIOUR_COUNT };
const char *copy_behaviour_name(enum copy_behaviour behaviour); /* "waits": a stable slug */

/* Whether the call's name contains "Async". */
enum copy_form { COPY_SYNC, COPY_ASYNC, COPY_FORM_COUNT };

enum copy_memory {
    COPY_PAGEABLE,
    COPY_PINNED,
    COPY_REGISTERED,
    COPY_MANAGED,
    COPY_DEVICE,
    COPY_MEMORY_COUNT,
    /* An address in no memory that was seen, if the call does not say whether it is host or device
     * memory. */
    COPY_UNKNOWN = COPY_MEMORY_COUNT
};
const char *copy_memory_name(enum copy_memory memory); /* "pageable": a stable slug */

/* The kind of a block's memory, for a copy. */
enum copy_memory copy_memory_of(enum interpose_memory memory);

/* Either side may be COPY_UNKNOWN: COPY_OPEN unless it makes no difference what it is. */
enum copy_behaviour copy_behaviour_of(enum interpose_runtime runtime, enum copy_form form,
                                      enum copy_memory source, enum copy_memory target);
enum copy_behaviour memset_behaviour_of(enum interpose_runtime runtime, enum copy_form form,
                                        enum copy_memory target);
/* The behaviour of a free that is not in stream order. */
enum copy_behaviour free_behaviour_of(enum interpose_runtime runtime, enum interpose_memory memory);

#endif
