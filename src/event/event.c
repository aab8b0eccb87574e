/* event.c - names of the schema. */
#include "event/event.h"
#include "event/crumb.h"

#include "base/status.h"

#include <string.h>

/* Whoever renumbers a value breaks every file that was written before. */
#define FROZEN(value, number, name)                                                                \
    _Static_assert((value) == (number), "the number of " name " is frozen");
#define KIND FROZEN
#define PHASE FROZEN
#define OUTCOME FROZEN
#define CHECK FROZEN
#define CODE_OF FROZEN
#define FLAG FROZEN
#define MODE FROZEN
#define ADDRESS FROZEN
#define STATE FROZEN
#define SIDE FROZEN
#define ORDER FROZEN
#include "event/numbers.def"

static const char *const kind_names[] = {
#define KIND(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(kind_names) == EVENT_KIND_COUNT, "every kind has a name");

static const char *const outcome_names[] = {
#define OUTCOME(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(outcome_names) == EVENT_OUTCOME_COUNT, "every outcome has a name");

static const char *const check_names[] = {
#define CHECK(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(check_names) == EVENT_CHECK_COUNT, "every check has a name");

static const char *const code_of_names[] = {
#define CODE_OF(value, number, name) [value] = name,
#include "event/numbers.def"
};
_Static_assert(COUNT_OF(code_of_names) == EVENT_CODE_OF_COUNT, "every origin has a name");

const char *event_code_of_name(enum event_code_of of)
{
    return (unsigned)of < EVENT_CODE_OF_COUNT ? code_of_names[of] : "unknown";
}

const char *event_kind_name(enum event_kind kind)
{
    return (unsigned)kind < EVENT_KIND_COUNT ? kind_names[kind] : "unknown";
}

const char *event_outcome_name(enum event_outcome outcome)
{
    return (unsigned)outcome < EVENT_OUTCOME_COUNT ? outcome_names[outcome] : "unknown";
}

const char *event_check_name(enum event_check check)
{
    return (unsigned)check < EVENT_CHECK_COUNT ? check_names[check] : "unknown";
}

void event_set_text(char *field, size_t field_bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= field_bytes)
        length = field_bytes - 1;
    memcpy(field, text, length);
    memset(field + length, 0, field_bytes - length);
}
