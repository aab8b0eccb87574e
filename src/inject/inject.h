/* inject.h - plants faults where a real bug would be: in an argument, in the order of calls, in a
 * wait that is missing, in a free that comes too early, in the machine below all checks.
 *
 * A bug of the caller is planted around the public calls (struct device_tamper): what an observer
 * sees is what it would see of the real bug. A defect of the machine is planted in a decorator
 * before the device's methods. Everything else passes through as it is. What happens is real: a
 * kernel really reads a wrong index, memory is really gone. Off unless asked for; nothing of it is
 * in a device without a spec. docs/inject.md lists the faults. */
#ifndef GRETA_INJECT_INJECT_H
#define GRETA_INJECT_INJECT_H

#include "device/device.h"

struct device_contract; /* device/kernel.h */

enum inject_fault {
    /* In an argument, before it is checked. */
    INJECT_DTYPE_MISMATCH,
    INJECT_WRONG_STRIDE,
    INJECT_SHAPE_MISMATCH,
    INJECT_GRID_LIMIT,
    INJECT_MISALIGNED_VIEW,
    INJECT_OFFSET_PAST_END,
    INJECT_DEAD_HANDLE,
    INJECT_VIEW_PAST_END,
    INJECT_SIZE_BEYOND_VIEW,
    /* In which calls are made, and when. */
    INJECT_EARLY_FREE,
    INJECT_FREE_WHILE_QUEUED,
    INJECT_DOUBLE_FREE,
    INJECT_FREED_STAGING,
    INJECT_DOUBLE_RELEASE,
    INJECT_SLOT_REWRITTEN,
    INJECT_OVERLAPPING_D2H,
    INJECT_OVERLAPPING_COPIES,
    INJECT_SKIPPED_WAIT,
    INJECT_TWO_STREAMS,
    INJECT_SKIPPED_LAUNCH,
    INJECT_UNINITIALISED_READ,
    INJECT_STALE_GRAPH,
    INJECT_LOST_WAKEUP,
    /* In what a kernel does, below the checks. */
    INJECT_BAD_INDEX,
    INJECT_ROPE_POSITION,
    INJECT_ROPE_PAST_TABLE,
    INJECT_KV_POSITION,
    INJECT_KV_SLOT_PAST_CACHE,
    INJECT_TOKEN_PAST_VOCABULARY,
    INJECT_WILD_POINTER,
    INJECT_WRAPPED_OFFSET,
    INJECT_MEMORY_VANISHED,
    INJECT_OVERRUN,
    INJECT_UNDERRUN,
    INJECT_NAN_OUTPUT,
    INJECT_UNEQUAL_RUNS,
    INJECT_WRONG_OUTPUT,
    /* In a copy, below the checks. */
    INJECT_FLIPPED_BIT,
    INJECT_SHORT_COPY,
    INJECT_STALE_COPY,
    INJECT_FLIPPED_BIT_IN,
    INJECT_SHORT_COPY_IN,
    INJECT_STALE_COPY_IN,
    INJECT_FAULT_COUNT
};

const char *inject_fault_name(enum inject_fault fault); /* "bad-index": a stable slug */
const char *inject_fault_summary(enum inject_fault fault);

/* Which call carries the fault. -1 and "" mean any; it is the first call that fits. */
struct inject_spec {
    enum inject_fault fault;
    int32_t layer, step;
    int32_t run;                     /* iteration of the workload (device_run_begin) */
    uint32_t limit_ms;               /* lost wakeup: it comes after this time; 0: never */
    char op[EVENT_OP_BYTES];         /* contract's name, or "copy-out" and so on */
    char operand[EVENT_OP_BYTES];    /* its name in the contract; "": any that suits the fault */
    char tensor[EVENT_TENSOR_BYTES]; /* label of the scope; of a double free: name of the buffer */
};

/* "NAME@layer=L,step=S,run=R,op=OP,operand=X,tensor=T,ms=N", everything after NAME optional. */
MUST_CHECK enum status inject_parse(const char *text, struct inject_spec *ret_spec,
                                    struct error *err);

/* What a workload has that a spec can name; all borrowed. Numbers that are 0 are not known, and
 * what is not known is not checked. */
struct inject_stage {
    const struct device_contract *const *contracts; /* of the ops there are */
    size_t contract_count;
    const char *const *labels, *const *more_labels; /* of scopes */
    size_t label_count, more_label_count;
    bool (*is_weight)(void *context, const char *name); /* NULL: there are no weights */
    void *context;
    uint64_t layer_count;
    uint64_t step_limit; /* no iteration has more steps */
    uint64_t run_count;  /* iterations */
    bool no_runs;        /* iterations have no numbers here: a spec cannot name one */
};

/* STATUS_USAGE, listing what exists, if the spec names an op, operand, layer, step, run or tensor
 * that does not exist, or a combination that no call has: its fault would never be planted. */
MUST_CHECK enum status inject_check(const struct inject_spec *spec,
                                    const struct inject_stage *stage, struct error *err);

/* A call. */
struct inject_place {
    uint64_t event_id; /* 0: it was never made, or there was no observer */
    struct event_scope scope;
    char op[EVENT_OP_BYTES]; /* as in a spec */
    char operand[EVENT_OP_BYTES];
    uint8_t operand_index; /* EVENT_NO_OPERAND: none */
    uint32_t stream_index; /* EVENT_NO_STREAM: none */
};

/* What was planted, for comparison with what is found. */
struct inject_record {
    bool planted;
    struct inject_place place;
    /* The call that is affected, if it is another one: the first after a wait that was left out,
     * the next one of the stream whose launch went elsewhere, the recorded launch of a stale graph.
     * op "" where there is none (yet). */
    struct inject_place victim;
};

struct inject;

/* Plants the fault from now on. Call it before any buffer is created and while the device has no
 * work. Ends with the device. */
MUST_CHECK enum status inject_install(struct device *device, const struct inject_spec *spec,
                                      struct inject **ret_inject, struct error *err);
/* Borrowed until the device is closed; settled when no call is under way. */
const struct inject_record *inject_record(const struct inject *inject);

/* Ends the hang of a lost wakeup, from any thread: the wakeup comes now. Closing the device or
 * destroying a stream does that too. */
void inject_release(struct inject *inject);

#endif
