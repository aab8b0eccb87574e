/* plan.c - names of faults, and the text form of a plan. */
#include "inject/inject.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *summary;
} faults[] = {
    [INJECT_DTYPE_MISMATCH] = { "dtype-mismatch", "an operand of a launch says another type" },
    [INJECT_WRONG_STRIDE] = { "wrong-stride", "an operand's rows are said to be too close" },
    [INJECT_SHAPE_MISMATCH] = { "shape-mismatch", "an operand has one column more" },
    [INJECT_GRID_LIMIT] = { "grid-limit", "a launch has more tiles than there can be" },
    [INJECT_MISALIGNED_VIEW] = { "misaligned-view", "an operand starts one byte late" },
    [INJECT_VIEW_PAST_END] = { "view-past-end", "a copy asks for more than the buffer holds" },
    [INJECT_DEAD_HANDLE] = { "dead-handle", "a launch names a buffer of an earlier generation" },
    [INJECT_BAD_INDEX] = { "bad-index", "an index operand holds 0x7F7F7F7F" },
    [INJECT_WILD_POINTER] = { "wild-pointer", "an operand's address is past its buffer's end" },
    [INJECT_WRAPPED_OFFSET] = { "wrapped-offset", "an operand's address is off by 2^32" },
    [INJECT_EARLY_FREE] = { "early-free", "an operand's memory is gone before the launch" },
    [INJECT_FREE_WHILE_QUEUED] = { "free-while-queued", "it is gone right after queueing" },
    [INJECT_DROPPED_WAIT] = { "dropped-wait", "a stream does not wait for a mark" },
    [INJECT_SKIPPED_LAUNCH] = { "skipped-launch", "a launch is not queued" },
    [INJECT_OVERRUN] = { "overrun", "one byte behind an operand's buffer is written" },
    [INJECT_UNDERRUN] = { "underrun", "one byte before an operand's buffer is written" },
    [INJECT_NAN_OUTPUT] = { "nan-output", "an output is all ones after the launch" },
    [INJECT_FLIPPED_BIT] = { "flipped-bit", "one bit of a copy out is wrong when it has landed" },
    [INJECT_SHORT_COPY] = { "short-copy", "a copy out lacks its last byte" },
    [INJECT_STALE_COPY] = { "stale-copy", "a copy out does not happen" },
};
_Static_assert(COUNT_OF(faults) == INJECT_FAULT_COUNT, "every fault has a row");

const char *inject_fault_name(enum inject_fault fault)
{
    ASSERT((unsigned)fault < INJECT_FAULT_COUNT);
    return faults[fault].name;
}

const char *inject_fault_summary(enum inject_fault fault)
{
    ASSERT((unsigned)fault < INJECT_FAULT_COUNT);
    return faults[fault].summary;
}

static enum status find_fault(const char *text, size_t length, enum inject_fault *ret,
                              struct error *err)
{
    for (size_t i = 0; i < INJECT_FAULT_COUNT; i++) {
        if (strlen(faults[i].name) == length && memcmp(faults[i].name, text, length) == 0) {
            *ret = (enum inject_fault)i;
            return STATUS_OK;
        }
    }
    char list[512] = "";
    for (size_t i = 0; i < INJECT_FAULT_COUNT; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, " %s", faults[i].name);
    }
    return error_set(err, STATUS_USAGE, "inject: expected one of:%s; found '%.*s'", list,
                     (int)length, text);
}

static enum status set_number(const char *key, const char *value, int32_t *ret, struct error *err)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || number > INT32_MAX)
        return error_set(err, STATUS_USAGE,
                         "inject: %s: expected a whole number from 0, found '%s'", key, value);
    *ret = (int32_t)number;
    return STATUS_OK;
}

static enum status set_text(const char *key, const char *value, char *field, size_t field_bytes,
                            struct error *err)
{
    if (strlen(value) >= field_bytes)
        return error_set(err, STATUS_USAGE, "inject: %s: expected fewer than %zu bytes, found '%s'",
                         key, field_bytes, value);
    event_set_text(field, field_bytes, value);
    return STATUS_OK;
}

/* "key=value", ended by NUL. */
static enum status set_key(struct inject_plan *plan, char *pair, struct error *err)
{
    char *equals = strchr(pair, '=');
    if (!equals || equals[1] == '\0')
        return error_set(err, STATUS_USAGE, "inject: expected KEY=VALUE, found '%s'", pair);
    *equals = '\0';
    const char *value = equals + 1;
    if (strcmp(pair, "layer") == 0)
        return set_number(pair, value, &plan->layer, err);
    if (strcmp(pair, "step") == 0)
        return set_number(pair, value, &plan->step, err);
    if (strcmp(pair, "op") == 0)
        return set_text(pair, value, plan->op, sizeof(plan->op), err);
    if (strcmp(pair, "operand") == 0)
        return set_text(pair, value, plan->operand, sizeof(plan->operand), err);
    if (strcmp(pair, "tensor") == 0)
        return set_text(pair, value, plan->tensor, sizeof(plan->tensor), err);
    return error_set(err, STATUS_USAGE,
                     "inject: expected layer, step, op, operand or tensor, found '%s'", pair);
}

enum status inject_parse(const char *text, struct inject_plan *ret_plan, struct error *err)
{
    struct inject_plan plan = { .layer = -1, .step = -1 };
    size_t length = strcspn(text, "@");
    TRY(find_fault(text, length, &plan.fault, err));
    const char *at = text[length] ? text + length + 1 : text + length;
    if (text[length] && !*at)
        return error_set(err, STATUS_USAGE, "inject: expected KEY=VALUE behind '@', found nothing");
    while (*at) {
        char pair[128];
        size_t pair_length = strcspn(at, ",");
        if (pair_length >= sizeof(pair))
            return error_set(err, STATUS_USAGE,
                             "inject: expected a short KEY=VALUE, found '%.40s...'", at);
        memcpy(pair, at, pair_length);
        pair[pair_length] = '\0';
        TRY(set_key(&plan, pair, err));
        at += pair_length + (at[pair_length] == ',');
    }
    *ret_plan = plan;
    return STATUS_OK;
}
