/* table.c - the faults as rows. */
#include "inject/inject_impl.h"

#define CALL INJECT_IN_CALL
#define LAUNCH INJECT_IN_LAUNCH
#define COPY INJECT_IN_COPY

static const struct inject_row rows[] = {
    [INJECT_DTYPE_MISMATCH] = { "dtype-mismatch", "an operand of a launch says another type", CALL,
                                "", "", "" },
    [INJECT_WRONG_STRIDE] = { "wrong-stride", "an operand's rows are said to be too close", CALL,
                              "", "", "" },
    [INJECT_SHAPE_MISMATCH] = { "shape-mismatch", "an operand has one column more", CALL, "", "",
                                "" },
    [INJECT_GRID_LIMIT] = { "grid-limit", "a launch has more tiles than there can be", CALL, "", "",
                            "" },
    [INJECT_MISALIGNED_VIEW] = { "misaligned-view", "an operand starts one byte late", CALL, "", "",
                                 "" },
    [INJECT_OFFSET_PAST_END] = { "offset-past-end", "an operand starts at its buffer's end", CALL,
                                 "", "", "" },
    [INJECT_DEAD_HANDLE] = { "dead-handle", "a launch names a buffer that is gone", CALL, "", "",
                             "" },
    [INJECT_VIEW_PAST_END] = { "view-past-end", "a copy asks for more than the buffer holds", CALL,
                               "", "", "" },
    [INJECT_SIZE_BEYOND_VIEW] = { "size-beyond-view",
                                  "a copy in asks for more bytes than its view has", CALL,
                                  "copy-in", "", "" },
    [INJECT_EARLY_FREE] = { "early-free", "a buffer is destroyed, then a launch uses it", CALL, "",
                            "", "" },
    [INJECT_FREE_WHILE_QUEUED] = { "free-while-queued",
                                   "a buffer is destroyed while a launch that uses it waits", CALL,
                                   "", "", "" },
    [INJECT_DOUBLE_FREE] = { "double-free", "a buffer is destroyed twice", CALL, "buffer-destroy",
                             "", "" },
    [INJECT_FREED_STAGING] = { "freed-staging", "a ticket is released, then redeemed", CALL,
                               "copy-out", "", "" },
    [INJECT_DOUBLE_RELEASE] = { "double-release", "a ticket is released twice", CALL, "copy-out",
                                "", "" },
    [INJECT_SLOT_REWRITTEN] = { "slot-rewritten",
                                "a copy in's staging slot is filled again while it waits", CALL,
                                "copy-in", "", "" },
    [INJECT_OVERLAPPING_D2H] = { "overlapping-d2h",
                                 "two copies out on two streams land in one slot", CALL, "copy-out",
                                 "", "" },
    [INJECT_OVERLAPPING_COPIES] = { "overlapping-copies",
                                    "a copy in on another stream writes what a copy out reads",
                                    CALL, "copy-out", "", "" },
    [INJECT_SKIPPED_WAIT] = { "skipped-wait", "a stream's wait for a mark is left out", CALL,
                              "mark-wait", "", "" },
    [INJECT_TWO_STREAMS] = { "two-streams", "a launch goes to another stream, without a wait", CALL,
                             "", "", "" },
    [INJECT_SKIPPED_LAUNCH] = { "skipped-launch", "a launch is never made", CALL, "", "", "" },
    [INJECT_UNINITIALISED_READ] = { "uninitialised-read",
                                    "a launch reads a fresh buffer that was never written", CALL,
                                    "", "", "" },
    [INJECT_STALE_GRAPH] = { "stale-graph",
                             "a buffer of a graph is replaced between recording and replay", CALL,
                             "", "", "" },
    [INJECT_LOST_WAKEUP] = { "lost-wakeup", "a mark is recorded and never passed: a hang", CALL,
                             "copy-out", "", "" },
    [INJECT_BAD_INDEX] = { "bad-index", "a launch reads the index 0x7F7F7F7F", LAUNCH, "", "", "" },
    [INJECT_ROPE_POSITION] = { "rope-position", "RoPE reads a wrong position", LAUNCH, "rope",
                               "positions", "" },
    [INJECT_ROPE_PAST_TABLE] = { "rope-past-table",
                                 "RoPE reads a position just past the end of its table", LAUNCH,
                                 "rope", "positions", "table" },
    [INJECT_KV_POSITION] = { "kv-position", "the KV append reads a wrong position", LAUNCH,
                             "kv_append", "slots", "" },
    [INJECT_KV_SLOT_PAST_CACHE] = { "kv-slot-past-cache",
                                    "the KV append reads a slot just past the cache", LAUNCH,
                                    "kv_append", "slots", "keys" },
    [INJECT_TOKEN_PAST_VOCABULARY] = { "token-past-vocabulary",
                                       "the embedding reads a token just past the vocabulary",
                                       LAUNCH, "embed", "ids", "table" },
    [INJECT_WILD_POINTER] = { "wild-pointer", "an operand's address is an offset without its base",
                              LAUNCH, "", "", "" },
    [INJECT_WRAPPED_OFFSET] = { "wrapped-offset",
                                "an operand's address is off by 2^32: an int that wrapped", LAUNCH,
                                "", "", "" },
    [INJECT_MEMORY_VANISHED] = { "memory-vanished",
                                 "an operand's memory is unmapped although its buffer is alive",
                                 LAUNCH, "", "", "" },
    [INJECT_OVERRUN] = { "overrun", "a launch writes one byte past an operand's buffer", LAUNCH, "",
                         "", "" },
    [INJECT_UNDERRUN] = { "underrun", "a launch writes one byte before an operand's buffer", LAUNCH,
                          "", "", "" },
    [INJECT_NAN_OUTPUT] = { "nan-output", "an output of a launch is all NaN", LAUNCH, "", "", "" },
    [INJECT_UNEQUAL_RUNS] = { "unequal-runs",
                              "some values of an output are others, in one iteration", LAUNCH, "",
                              "", "" },
    [INJECT_WRONG_OUTPUT] = { "wrong-output", "some values of an output are far off, and finite",
                              LAUNCH, "", "", "" },
    [INJECT_FLIPPED_BIT] = { "flipped-bit", "one bit of a copy out is wrong when it has landed",
                             COPY, "copy-out", "", "" },
    [INJECT_SHORT_COPY] = { "short-copy", "a copy out stops half way", COPY, "copy-out", "", "" },
    [INJECT_STALE_COPY] = { "stale-copy", "a copy out does not happen: its slot keeps older bytes",
                            COPY, "copy-out", "", "" },
    [INJECT_FLIPPED_BIT_IN] = { "flipped-bit-in", "one bit of a copy in is wrong on the device",
                                COPY, "copy-in", "", "" },
    [INJECT_SHORT_COPY_IN] = { "short-copy-in", "a copy in stops half way", COPY, "copy-in", "",
                               "" },
    [INJECT_STALE_COPY_IN] = { "stale-copy-in",
                               "a copy in does not happen: the device keeps older bytes", COPY,
                               "copy-in", "", "" },
};
_Static_assert(COUNT_OF(rows) == INJECT_FAULT_COUNT, "every fault has a row");

const struct inject_row *inject_row(enum inject_fault fault)
{
    ASSERT((unsigned)fault < INJECT_FAULT_COUNT);
    return &rows[fault];
}

const char *inject_fault_name(enum inject_fault fault)
{
    return inject_row(fault)->name;
}

const char *inject_fault_summary(enum inject_fault fault)
{
    return inject_row(fault)->summary;
}
