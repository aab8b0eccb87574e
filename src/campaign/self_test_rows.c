/* self_test_rows.c - what is planted, where, and what must be found.
 *
 * Places are those of the small synthetic model (4 layers; a prompt of 6 tokens is step 0, each
 * token written is one more), of the streams workload (work_streams.c: its steps and labels) and of
 * busy streams (work_busy.c). The model with experts has the same places but for its feed-forward.
 */
#include "campaign/self_test.h"

#define INFER JOB_INFER
#define STREAMS JOB_STREAMS

/* A fault in one of `count` busy streams (work_busy.c), in the first or in the last; in a call of the
 * second round, or in the first replay of a graph. */
#define BUSY_ROW(count, name, stream, step, replays)                                               \
    { name, "wild-pointer@op=swiglu,step=" #step ",tensor=busy." stream, JOB_BUSY, AUDIT_LOG,      \
      HYPOTHESIS_KERNEL_FAULT, "swiglu", 1, step, "busy." stream, 0,                               \
      SELF_TEST_STREAMS(count) | (replays) }
#define BUSY_ROWS(count, last)                                                                     \
    BUSY_ROW(count, "fault-first-of-" #count, "0", 1, 0),                                          \
        BUSY_ROW(count, "fault-last-of-" #count, last, 1, 0),                                      \
        BUSY_ROW(count, "replay-first-of-" #count, "0", 0, SELF_TEST_REPLAYS),                     \
        BUSY_ROW(count, "replay-last-of-" #count, last, 0, SELF_TEST_REPLAYS)

const struct self_test_row self_test_rows[] = {
    /* Sizes. */
    { "view-past-end", "view-past-end@op=copy-out,step=1", INFER, AUDIT_LOG,
      HYPOTHESIS_SIZE_MISMATCH, "copy-out", -1, 1, "logits", 0, 0 },
    { "size-beyond-view", "size-beyond-view@tensor=streams.table", STREAMS, AUDIT_LOG,
      HYPOTHESIS_SIZE_MISMATCH, "copy-in", -1, 0, "streams.table", 0, 0 },
    /* Lifetime. */
    { "freed-weight", "early-free@op=matmul_group,operand=weights_0,layer=2,step=1,tensor=ffn_down",
      INFER, AUDIT_LOG, HYPOTHESIS_USE_AFTER_FREE, "matmul_group", 2, 1, "ffn_down", 0, 0 },
    { "dead-handle", "dead-handle@op=rms_norm,layer=1,step=2,tensor=ffn_norm", INFER, AUDIT_LOG,
      HYPOTHESIS_USE_AFTER_FREE, "rms_norm", 1, 2, "ffn_norm", 0, 0 },
    { "free-while-queued", "free-while-queued@op=gather_rows", STREAMS, AUDIT_GUARD,
      HYPOTHESIS_USE_AFTER_FREE, "gather_rows", -1, 1, "streams.picked", 0, 0 },
    { "double-free", "double-free@tensor=streams.guest", STREAMS, AUDIT_LOG,
      HYPOTHESIS_USE_AFTER_FREE, "buffer-destroy", -1, -1, "streams.guest", 0, 0 },
    /* Order. */
    { "skipped-wait", "skipped-wait@tensor=streams.total", STREAMS, AUDIT_LOG,
      HYPOTHESIS_MISSING_SYNC, "add", -1, 2, "streams.total", 0, 0 },
    { "two-streams", "two-streams@op=gather_rows", STREAMS, AUDIT_LOG, HYPOTHESIS_MISSING_SYNC,
      "gather_rows", -1, 1, "streams.picked", 0, 0 },
    { "two-streams-engine", "two-streams@op=rope,layer=1,step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_MISSING_SYNC, "rope", 1, 2, "rope_qk", 0, 0 },
    /* Pointers and indices. */
    { "misaligned-view", "misaligned-view@op=rope,layer=3,step=1", INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "rope", 3, 1, "rope_qk", 0, 0 },
    { "offset-past-end", "offset-past-end@op=kv_append,layer=0,step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "kv_append", 0, 2, "kv_append", 0, 0 },
    { "rope-position", "rope-position@layer=2,step=3", INFER, AUDIT_LOG, HYPOTHESIS_BAD_POINTER,
      "rope", 2, 3, "rope_qk", 0, 0 },
    { "context-past-rope-table", "rope-past-table@layer=0,step=4", INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "rope", 0, 4, "rope_qk", 0, 0 },
    { "kv-position", "kv-position@layer=1,step=1", INFER, AUDIT_LOG, HYPOTHESIS_BAD_POINTER,
      "kv_append", 1, 1, "kv_append", 0, 0 },
    { "kv-slot-past-cache", "kv-slot-past-cache@layer=3,step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "kv_append", 3, 2, "kv_append", 0, 0 },
    { "token-past-vocabulary", "token-past-vocabulary@step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_BAD_POINTER, "embed", -1, 2, "token_embd", 0, 0 },
    { "bad-index", "bad-index@op=gather_rows", STREAMS, AUDIT_LOG, HYPOTHESIS_BAD_POINTER,
      "gather_rows", -1, 1, "streams.picked", 0, 0 },
    { "bad-expert", "bad-index@op=matmul_experts,layer=2,step=1,tensor=ffn_experts_down", INFER,
      AUDIT_LOG, HYPOTHESIS_BAD_POINTER, "matmul_experts", 2, 1, "ffn_experts_down", 0,
      SELF_TEST_EXPERTS },
    /* Staging. */
    { "freed-staging", "freed-staging@step=1", INFER, AUDIT_LOG, HYPOTHESIS_STAGING_REUSE,
      "ticket-redeem", -1, 1, "logits", 0, 0 },
    { "double-release", "double-release@tensor=streams.best", STREAMS, AUDIT_LOG,
      HYPOTHESIS_STAGING_REUSE, "ticket-release", -1, 3, "streams.best", 0, 0 },
    { "slot-rewritten", "slot-rewritten@tensor=streams.table", STREAMS, AUDIT_LOG,
      HYPOTHESIS_STAGING_REUSE, "copy-in", -1, 0, "streams.table", 0, 0 },
    /* Copies. */
    { "overlapping-d2h", "overlapping-d2h@tensor=streams.shadow", STREAMS, AUDIT_LOG,
      HYPOTHESIS_OVERLAPPING_COPIES, "copy-out", -1, 3, "streams.shadow", 0, 0 },
    { "overlapping-copies", "overlapping-copies@tensor=streams.shadow", STREAMS, AUDIT_LOG,
      HYPOTHESIS_OVERLAPPING_COPIES, "copy-in", -1, 3, "streams.shadow", 0, 0 },
    /* Kernels. */
    { "wild-pointer", "wild-pointer@op=rope,layer=1,step=3", INFER, AUDIT_GUARD,
      HYPOTHESIS_KERNEL_FAULT, "rope", 1, 3, "rope_qk", 0, 0 },
    { "wrapped-offset", "wrapped-offset@op=attention,layer=2,step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_KERNEL_FAULT, "attention", 2, 2, "attention", 0, 0 },
    { "memory-vanished", "memory-vanished@op=swiglu,layer=0,step=1", INFER, AUDIT_GUARD,
      HYPOTHESIS_KERNEL_FAULT, "swiglu", 0, 1, "ffn_swiglu", 0, SELF_TEST_FAULTING_GUARDS },
    { "overrun-into-guard", "overrun@op=swiglu,layer=2,step=2", INFER, AUDIT_GUARD,
      HYPOTHESIS_KERNEL_FAULT, "swiglu", 2, 2, "ffn_swiglu", 0, SELF_TEST_FAULTING_GUARDS },
    /* The same with other streams at work, of which none is waited for. */
    BUSY_ROWS(2, "1"),
    BUSY_ROWS(4, "3"),
    BUSY_ROWS(8, "7"),
    /* Contracts. */
    { "dtype-mismatch", "dtype-mismatch@op=rope,layer=0,step=1", INFER, AUDIT_LOG,
      HYPOTHESIS_CONTRACT_BREACH, "rope", 0, 1, "rope_qk", 0, 0 },
    { "wrong-stride", "wrong-stride@op=rms_norm,layer=2,step=0,tensor=attn_norm", INFER, AUDIT_LOG,
      HYPOTHESIS_CONTRACT_BREACH, "rms_norm", 2, 0, "attn_norm", 0, 0 },
    { "shape-mismatch", "shape-mismatch@op=swiglu,layer=3,step=2", INFER, AUDIT_LOG,
      HYPOTHESIS_CONTRACT_BREACH, "swiglu", 3, 2, "ffn_swiglu", 0, 0 },
    { "grid-limit", "grid-limit@op=rope,layer=1,step=1", INFER, AUDIT_LOG,
      HYPOTHESIS_CONTRACT_BREACH, "rope", 1, 1, "rope_qk", 0, 0 },
    /* Graphs. */
    { "stale-graph", "stale-graph@operand=x,tensor=streams.graph", STREAMS, AUDIT_LOG,
      HYPOTHESIS_STALE_GRAPH, "fill", -1, 2, "streams.graph", 0, 0 },
    /* Contents. */
    { "uninitialised-activation", "uninitialised-read@op=swiglu,layer=1,step=1", INFER, AUDIT_LOG,
      HYPOTHESIS_UNINITIALISED_READ, "swiglu", 1, 1, "ffn_swiglu", 0, 0 },
    { "overrun", "overrun@op=add,tensor=streams.total", STREAMS, AUDIT_GUARD,
      HYPOTHESIS_SILENT_CORRUPTION, "add", -1, 2, "streams.total", 0, 0 },
    { "underrun", "underrun@op=add,tensor=streams.total", STREAMS, AUDIT_GUARD,
      HYPOTHESIS_SILENT_CORRUPTION, "add", -1, 2, "streams.total", 0, 0 },
    { "flipped-bit", "flipped-bit@step=1", INFER, AUDIT_VERIFY, HYPOTHESIS_SILENT_CORRUPTION,
      "copy-out", -1, 1, "logits", 0, 0 },
    { "short-copy", "short-copy@tensor=streams.shadow", STREAMS, AUDIT_VERIFY,
      HYPOTHESIS_SILENT_CORRUPTION, "copy-out", -1, 3, "streams.shadow", 0, 0 },
    { "flipped-bit-in", "flipped-bit-in@tensor=streams.table", STREAMS, AUDIT_VERIFY,
      HYPOTHESIS_SILENT_CORRUPTION, "copy-in", -1, 0, "streams.table", 0, 0 },
    { "stale-copy", "stale-copy@tensor=streams.best", STREAMS, AUDIT_VERIFY,
      HYPOTHESIS_SILENT_CORRUPTION, "copy-out", -1, 3, "streams.best", 0, 0 },
    { "runtime-stale-copy", "stale-copy@tensor=streams.shadow", STREAMS, AUDIT_VERIFY,
      HYPOTHESIS_RUNTIME_DEFECT, "copy-out", -1, 3, "streams.shadow", 0, SELF_TEST_COMPARED },
    /* Results. */
    { "unequal-logits", "unequal-runs@op=matmul_group,tensor=logits,step=0,run=2", INFER, AUDIT_LOG,
      HYPOTHESIS_NON_DETERMINISM, "copy-out", -1, 0, "logits", 3,
      SELF_TEST_ONLY_SEEN },
    { "unequal-matmul",
      "unequal-runs@op=matmul_group,layer=2,step=0,tensor=ffn_down,run=2", INFER, AUDIT_LOG,
      HYPOTHESIS_NON_DETERMINISM, "matmul_group", 2, 0, "ffn_down", 3, SELF_TEST_SEARCHED },
    { "lost-wakeup", "lost-wakeup@tensor=streams.best", STREAMS, AUDIT_LOG, HYPOTHESIS_HANG,
      "copy-out", -1, 3, "streams.best", 0, SELF_TEST_ONLY_SEEN },
    { "nan-output", "nan-output@op=rms_norm,layer=1,step=2,tensor=ffn_norm", INFER, AUDIT_GUARD,
      HYPOTHESIS_NUMERIC, "rms_norm", 1, 2, "ffn_norm", 0, 0 },
    { "nan-searched", "nan-output@op=rope,layer=2,step=1", INFER, AUDIT_LOG, HYPOTHESIS_NUMERIC,
      "rope", 2, 1, "rope_qk", 0, SELF_TEST_SEARCHED },
};
const size_t self_test_row_count = COUNT_OF(self_test_rows);
