/* inject.h - plants faults where a real bug would be: in an argument, in what a buffer holds, in
 * the order of calls, in a wait that is missing, in a free that comes too early.
 *
 * A decorator before a device's methods: everything passes through to the device as it is, but for
 * the one call that the plan names. What happens then is real: a kernel really reads a wrong index,
 * memory is really gone. Off unless asked for; nothing of it is in a device without a plan. */
#ifndef GRETA_INJECT_INJECT_H
#define GRETA_INJECT_INJECT_H

#include "device/device.h"

enum inject_fault {
    /* In an argument, before it is checked. */
    INJECT_DTYPE_MISMATCH,  /* an operand of a launch says another type */
    INJECT_WRONG_STRIDE,    /* its rows are said to be closer than they are */
    INJECT_SHAPE_MISMATCH,  /* it has one column more */
    INJECT_GRID_LIMIT,      /* the launch has more tiles than there can be */
    INJECT_MISALIGNED_VIEW, /* it starts one byte late */
    INJECT_VIEW_PAST_END,   /* a copy asks for more than the buffer holds */
    INJECT_DEAD_HANDLE,     /* a launch names a buffer of an earlier generation */
    /* In the machine, after the checks. */
    INJECT_BAD_INDEX,         /* an index operand holds 0x7F7F7F7F */
    INJECT_WILD_POINTER,      /* an operand's address is past the end of its buffer */
    INJECT_WRAPPED_OFFSET,    /* an operand's address is off by 2^32: an int that wrapped */
    INJECT_EARLY_FREE,        /* an operand's memory is given back before the launch is queued */
    INJECT_FREE_WHILE_QUEUED, /* right after it is queued */
    INJECT_DROPPED_WAIT,      /* a stream does not wait for a mark */
    INJECT_SKIPPED_LAUNCH,    /* a launch is not queued: its output keeps what it held */
    INJECT_OVERRUN,           /* one byte behind an operand's buffer is written */
    INJECT_UNDERRUN,          /* one byte before it */
    INJECT_NAN_OUTPUT,        /* the last written operand is all ones after the launch */
    INJECT_FLIPPED_BIT,       /* one bit of a copy out is wrong when it has landed */
    INJECT_SHORT_COPY,        /* a copy out lacks its last byte */
    INJECT_STALE_COPY,        /* a copy out does not happen: the slot keeps older bytes */
    INJECT_FAULT_COUNT
};

const char *inject_fault_name(enum inject_fault fault); /* "bad-index" */
const char *inject_fault_summary(enum inject_fault fault);

/* Which call it is. -1 and "" mean any; the first that fits is the one. */
struct inject_plan {
    enum inject_fault fault;
    int32_t layer, step;
    char op[EVENT_OP_BYTES];      /* contract's name, or "copy-out" and so on */
    char operand[EVENT_OP_BYTES]; /* by name in the contract; "": one the fault makes sense for */
    char tensor[EVENT_TENSOR_BYTES]; /* label of the scope */
};

/* "NAME@layer=L,step=S,op=OP,operand=X,tensor=T", everything behind NAME optional. */
MUST_CHECK enum status inject_parse(const char *text, struct inject_plan *ret_plan,
                                    struct error *err);

/* What was planted, for comparison with what is found. */
struct inject_record {
    bool planted;
    uint64_t event_id; /* of the call; 0 where it was refused before it had one */
    struct event_scope scope;
    char op[EVENT_OP_BYTES];
    char operand[EVENT_OP_BYTES];
};

struct inject;

/* From now on; before any buffer is made. Ends with the device. The device must have no work. */
MUST_CHECK enum status inject_install(struct device *device, const struct inject_plan *plan,
                                      struct inject **ret_inject, struct error *err);
/* Borrowed until the device is closed. */
const struct inject_record *inject_record(const struct inject *inject);

#endif
