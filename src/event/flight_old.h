/* flight_old.h - events of flight files of versions 2 and 3, as they were written: shared by the
 * files that convert them. */
#ifndef GRETA_EVENT_FLIGHT_OLD_H
#define GRETA_EVENT_FLIGHT_OLD_H

#include "event/event.h"

struct old_event {
    uint64_t id, cause_id, begin_ns;
    uint64_t object, bytes, host_address;
    uint32_t stream_index, thread_index;
    uint8_t kind, access_count;
    uint16_t epoch;
    uint32_t line;
    struct event_scope scope;
    char op[EVENT_OP_BYTES];
    char file[EVENT_FILE_BYTES];
    uint16_t flags;
    uint8_t begin_check, begin_operand;
    uint32_t stack_index, name_index;
    struct event_access accesses[EVENT_ACCESS_LIMIT];
    uint64_t end_ns, expected, found;
    int32_t code;
    uint8_t phase_and_domain; /* halves of the byte */
    uint8_t outcome, check, operand;
};
_Static_assert(sizeof(struct old_event) == 496, "as it was written");

/* What the file says of all its events. */
struct flight_old_file {
    uint32_t process_id;
    enum event_error_domain runtime; /* whose codes version 3 calls "the runtime's" */
};

/* The error domain of the device that an EVENT_DEVICE_OPEN names; EVENT_ERROR_NONE if it has none.
 */
enum event_error_domain flight_old_domain(const struct old_event *old);

/* The event converted to the current struct. */
struct event flight_old_event(const struct flight_old_file *file, const struct old_event *old);

#endif
