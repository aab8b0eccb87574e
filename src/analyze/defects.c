/* defects.c - what exactly a finding found: its kind, what its two numbers are, and where a fault's
 * address lies. report/ has a sentence for each kind. */
#include "analyze/analyze.h"

static const struct finding_defect_info infos[] = {
    [DEFECT_FREED_TWICE] = { .slug = "freed-twice" },
    [DEFECT_FREED_BEFORE] = { .slug = "freed-before" },
    [DEFECT_STALE_HANDLE] = { "stale-handle",
                              { "generation", PARAMETER_COUNT },
                              { "generation_now", PARAMETER_COUNT } },
    [DEFECT_FREED_ACCESSED] = { .slug = "freed-memory-accessed" },
    [DEFECT_FREED_IN_USE] = { .slug = "freed-in-use" },
    [DEFECT_WORK_ABANDONED] = { .slug = "work-abandoned" },
    [DEFECT_SOURCE_CHANGED] = { "source-changed",
                                { "hash_before", PARAMETER_HASH },
                                { "hash_after", PARAMETER_HASH } },
    [DEFECT_READ_EARLY] = { .slug = "read-before-copied" },
    [DEFECT_UNORDERED_WRITE] = { .slug = "unordered-write" },
    [DEFECT_UNORDERED_READ] = { .slug = "unordered-read" },
    [DEFECT_SOURCE_REWRITTEN] = { "source-rewritten",
                                  { "hash_before", PARAMETER_HASH },
                                  { "hash_after", PARAMETER_HASH } },
    [DEFECT_TICKET_RELEASED] = { .slug = "ticket-after-release" },
    [DEFECT_SLOT_IN_USE] = { .slug = "slot-in-use" },
    [DEFECT_ILLEGAL_ACCESS] = { "illegal-access",
                                { "buffer_address", PARAMETER_ADDRESS },
                                { "buffer_bytes", PARAMETER_BYTES } },
    [DEFECT_MAYBE_ILLEGAL_ACCESS] = { "illegal-access-possible",
                                      { "buffer_address", PARAMETER_ADDRESS },
                                      { "buffer_bytes", PARAMETER_BYTES } },
    [DEFECT_PROCESS_ENDED] = { .slug = "process-ended" },
    [DEFECT_GRAPH_BUFFER_DESTROYED] = { .slug = "graph-buffer-destroyed" },
    [DEFECT_UNWRITTEN_READ] = { "unwritten-read",
                                { "range_bytes", PARAMETER_BYTES },
                                { "unwritten_bytes", PARAMETER_BYTES } },
    [DEFECT_TRANSFER_CHANGED] = { "transfer-changed",
                                  { "hash_taken", PARAMETER_HASH },
                                  { "hash_landed", PARAMETER_HASH } },
    [DEFECT_WRITE_OUTSIDE] = { "write-outside-buffer",
                               { "buffer_bytes", PARAMETER_BYTES },
                               { "offset", PARAMETER_OFFSET } },
    [DEFECT_RESULT_DIFFERS] = { "result-differs",
                                { "hash_earlier", PARAMETER_HASH },
                                { "hash", PARAMETER_HASH } },
    [DEFECT_OPERAND_DIFFERS] = { "operand-differs",
                                 { "hash_earlier", PARAMETER_HASH },
                                 { "hash", PARAMETER_HASH } },
    [DEFECT_NO_PROGRESS] = { "no-progress",
                             { "limit_ns", PARAMETER_DURATION },
                             { "waited_ns", PARAMETER_DURATION } },
    [DEFECT_NOT_RETURNED] = { "not-returned",
                              { "limit_ns", PARAMETER_DURATION },
                              { "waited_ns", PARAMETER_DURATION } },
    [DEFECT_NEVER_FREED] = { "never-freed",
                             { "allocations", PARAMETER_COUNT },
                             { "bytes", PARAMETER_BYTES } },
    [DEFECT_INDEX_PAST_BOUND] = { "index-past-bound",
                                  { "bound", PARAMETER_COUNT },
                                  { "index", PARAMETER_OFFSET } },
    [DEFECT_NOT_FINITE] = { "not-finite",
                            { "values", PARAMETER_COUNT },
                            { "not_finite", PARAMETER_COUNT } },
    [DEFECT_DEVICE_LIMIT] = { .slug = "device-limit" },
    [DEFECT_PAST_ALLOCATION] = { "past-allocation",
                                 { "allocation_bytes", PARAMETER_BYTES },
                                 { "last_byte", PARAMETER_COUNT } },
    [DEFECT_INSIDE_ALLOCATION] = { "inside-allocation",
                                   { "allocation_address", PARAMETER_ADDRESS },
                                   { "given_address", PARAMETER_ADDRESS } },
    [DEFECT_WRONG_DIRECTION] = { .slug = "wrong-direction" },
    [DEFECT_STREAM_DESTROYED] = { .slug = "stream-destroyed",
                                  .found = { "stream", PARAMETER_ADDRESS } },
    [DEFECT_UNKNOWN_ADDRESS] = { .slug = "unknown-address",
                                 .found = { "given_address", PARAMETER_ADDRESS } },
    [DEFECT_VIEW_PAST_BUFFER] = { "view-past-buffer",
                                  { "buffer_bytes", PARAMETER_BYTES },
                                  { "last_byte", PARAMETER_COUNT } },
    [DEFECT_BYTES_PAST_VIEW] = { "bytes-past-view",
                                 { "view_bytes", PARAMETER_BYTES },
                                 { "wanted_bytes", PARAMETER_BYTES } },
    [DEFECT_TOO_FEW_BYTES] = { "too-few-bytes",
                               { "least_bytes", PARAMETER_BYTES },
                               { "wanted_bytes", PARAMETER_BYTES } },
    [DEFECT_MISALIGNED] = { "misaligned",
                            { "alignment", PARAMETER_BYTES },
                            { "offset", PARAMETER_COUNT } },
    [DEFECT_READ_ONLY] = { .slug = "read-only-written" },
    [DEFECT_OPERAND_COUNT] = { "operand-count",
                               { "operands_wanted", PARAMETER_COUNT },
                               { "operands", PARAMETER_COUNT } },
    [DEFECT_OPERAND_MISSING] = { .slug = "operand-missing" },
    [DEFECT_WRONG_DTYPE] = { "wrong-dtype",
                             { "dtypes_allowed", PARAMETER_COUNT },
                             { "dtype", PARAMETER_COUNT } },
    [DEFECT_WRONG_SHAPE] = { "wrong-shape",
                             { "extent_wanted", PARAMETER_COUNT },
                             { "extent", PARAMETER_COUNT } },
    [DEFECT_WRONG_STRIDE] = { "wrong-stride",
                              { "least_stride", PARAMETER_BYTES },
                              { "stride", PARAMETER_BYTES } },
    [DEFECT_WRONG_PARAMETER] = { "wrong-parameter",
                                 { "value_wanted", PARAMETER_COUNT },
                                 { "value", PARAMETER_COUNT } },
    [DEFECT_TOO_MANY_TILES] = { "too-many-tiles",
                                { "limit", PARAMETER_COUNT },
                                { "tiles", PARAMETER_COUNT } },
    [DEFECT_UNKNOWN_TO_RUNTIME] = { "unknown-to-runtime",
                                    { "wanted_bytes", PARAMETER_BYTES },
                                    { "known_bytes", PARAMETER_BYTES } },
    [DEFECT_REFUSED] = { "refused", { "expected", PARAMETER_COUNT }, { "found", PARAMETER_COUNT } },
    [DEFECT_HOST_READ_EARLY] = { "host-read-early",
                                 { "byte", PARAMETER_COUNT },
                                 { "used_bytes", PARAMETER_BYTES } },
    [DEFECT_HOST_WRITE_EARLY] = { "host-write-early",
                                  { "byte", PARAMETER_COUNT },
                                  { "used_bytes", PARAMETER_BYTES } },
    [DEFECT_HOST_READ_CHANGED] = { "host-read-changed",
                                   { "byte", PARAMETER_COUNT },
                                   { "used_bytes", PARAMETER_BYTES } },
    [DEFECT_HOST_READ_RELEASED] = { "host-read-released",
                                    { "byte", PARAMETER_COUNT },
                                    { "used_bytes", PARAMETER_BYTES } },
    [DEFECT_HOST_REWRITE] = { "host-rewrite",
                              { "byte", PARAMETER_COUNT },
                              { "used_bytes", PARAMETER_BYTES } },
};
_Static_assert(COUNT_OF(infos) == DEFECT_COUNT, "every kind of defect has a name");

const struct finding_defect_info *finding_defect_info(enum finding_defect defect)
{
    ASSERT((unsigned)defect < DEFECT_COUNT);
    return &infos[defect];
}

/* ---- Kinds ---------------------------------------------------------------------------------- */

static enum finding_defect use_after_free_of(const struct finding *finding)
{
    if (finding->check && finding->cause.foreign)
        return finding->cause.kind == EVENT_BUFFER_DESTROY ? DEFECT_FREED_TWICE
                                                           : DEFECT_FREED_BEFORE;
    return finding->check        ? DEFECT_STALE_HANDLE
           : finding->near.known ? DEFECT_FREED_ACCESSED
                                 : DEFECT_FREED_IN_USE;
}

static enum finding_defect unordered_of(const struct finding *finding)
{
    if (finding->cause.kind == EVENT_STREAM_DESTROY)
        return DEFECT_WORK_ABANDONED;
    if (finding->cause.kind == EVENT_HOST_ACCESS && finding->other.kind == EVENT_LAUNCH)
        return DEFECT_HOST_READ_CHANGED;
    if (finding->cause.kind == EVENT_HOST_ACCESS)
        return finding->cause.mode & EVENT_WRITE ? DEFECT_HOST_WRITE_EARLY : DEFECT_HOST_READ_EARLY;
    if (finding->other.event_id == 0)
        return finding->certainty == FINDING_POSSIBLE ? DEFECT_SOURCE_CHANGED : DEFECT_READ_EARLY;
    return finding->cause.mode & EVENT_WRITE ? DEFECT_UNORDERED_WRITE : DEFECT_UNORDERED_READ;
}

static enum finding_defect staging_of(const struct finding *finding)
{
    if (finding->cause.kind == EVENT_HOST_ACCESS)
        return finding->check ? DEFECT_HOST_READ_RELEASED : DEFECT_HOST_REWRITE;
    if (finding->other.kind == EVENT_SOURCE_CHANGED && finding->other.event_id)
        return DEFECT_SOURCE_REWRITTEN;
    return finding->check ? DEFECT_TICKET_RELEASED : DEFECT_SLOT_IN_USE;
}

static enum finding_defect fault_of(const struct finding *finding)
{
    if (finding->certainty == FINDING_DIRECT || finding->near.known)
        return DEFECT_ILLEGAL_ACCESS;
    return finding->cause.ordinal || finding->candidate_count > 1 ? DEFECT_MAYBE_ILLEGAL_ACCESS
                                                                  : DEFECT_PROCESS_ENDED;
}

/* A foreign call that a check would have refused: it was made all the same. */
static enum finding_defect violation_of(const struct finding *finding)
{
    switch (finding->check) {
    case EVENT_CHECK_VIEW_END:
        return DEFECT_PAST_ALLOCATION;
    case EVENT_CHECK_ALIGNMENT:
        return DEFECT_INSIDE_ALLOCATION;
    case EVENT_CHECK_DIRECTION:
        return DEFECT_WRONG_DIRECTION;
    default:
        return finding->cause.operand == EVENT_NO_OPERAND ? DEFECT_STREAM_DESTROYED
                                                          : DEFECT_UNKNOWN_ADDRESS;
    }
}

/* A call that greta itself refused; the device was not asked. */
static enum finding_defect refusal_of(const struct finding *finding)
{
    static const struct {
        enum event_check check;
        bool operand; /* for calls that name one; else for those that do not */
        enum finding_defect defect;
    } rows[] = {
        { EVENT_CHECK_VIEW_END, true, DEFECT_VIEW_PAST_BUFFER },
        { EVENT_CHECK_BYTES, true, DEFECT_BYTES_PAST_VIEW },
        { EVENT_CHECK_BYTES, false, DEFECT_TOO_FEW_BYTES },
        { EVENT_CHECK_ALIGNMENT, true, DEFECT_MISALIGNED },
        { EVENT_CHECK_READ_ONLY, true, DEFECT_READ_ONLY },
        { EVENT_CHECK_OPERANDS, false, DEFECT_OPERAND_COUNT },
        { EVENT_CHECK_OPERANDS, true, DEFECT_OPERAND_MISSING },
        { EVENT_CHECK_DTYPE, true, DEFECT_WRONG_DTYPE },
        { EVENT_CHECK_SHAPE, true, DEFECT_WRONG_SHAPE },
        { EVENT_CHECK_STRIDE, true, DEFECT_WRONG_STRIDE },
        { EVENT_CHECK_PARAMETER, false, DEFECT_WRONG_PARAMETER },
        { EVENT_CHECK_GEOMETRY, false, DEFECT_TOO_MANY_TILES },
        { EVENT_CHECK_POINTER, true, DEFECT_UNKNOWN_TO_RUNTIME },
    };
    bool operand = finding->cause.operand != EVENT_NO_OPERAND;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (rows[i].check == finding->check && rows[i].operand == operand)
            return rows[i].defect;
    return DEFECT_REFUSED;
}

static enum finding_defect check_of(const struct finding *finding)
{
    if (!finding->check)
        return DEFECT_DEVICE_LIMIT;
    return finding->cause.foreign ? violation_of(finding) : refusal_of(finding);
}

enum finding_defect finding_defect(const struct finding *finding)
{
    switch (finding->hypothesis) {
    case HYPOTHESIS_USE_AFTER_FREE:
        return use_after_free_of(finding);
    case HYPOTHESIS_MISSING_SYNC:
    case HYPOTHESIS_OVERLAPPING_COPIES:
        return unordered_of(finding);
    case HYPOTHESIS_STAGING_REUSE:
        return staging_of(finding);
    case HYPOTHESIS_KERNEL_FAULT:
        return fault_of(finding);
    case HYPOTHESIS_STALE_GRAPH:
        return DEFECT_GRAPH_BUFFER_DESTROYED;
    case HYPOTHESIS_UNINITIALISED_READ:
        return DEFECT_UNWRITTEN_READ;
    case HYPOTHESIS_SILENT_CORRUPTION:
    case HYPOTHESIS_RUNTIME_DEFECT:
        return finding->near.known ? DEFECT_WRITE_OUTSIDE : DEFECT_TRANSFER_CHANGED;
    case HYPOTHESIS_NON_DETERMINISM:
        return finding->cause.kind == EVENT_LAUNCH ? DEFECT_OPERAND_DIFFERS : DEFECT_RESULT_DIFFERS;
    case HYPOTHESIS_HANG:
        return finding->reason == REASON_UNWATCHED ? DEFECT_NOT_RETURNED : DEFECT_NO_PROGRESS;
    case HYPOTHESIS_NUMERIC:
        return DEFECT_NOT_FINITE;
    case HYPOTHESIS_LEAK:
        return DEFECT_NEVER_FREED;
    case HYPOTHESIS_BAD_POINTER:
        return finding->check ? check_of(finding) : DEFECT_INDEX_PAST_BOUND;
    case HYPOTHESIS_SIZE_MISMATCH:
    case HYPOTHESIS_CONTRACT_BREACH:
    case HYPOTHESIS_COUNT:
        break;
    }
    return check_of(finding);
}

/* ---- Where a fault's address lies ----------------------------------------------------------- */

struct finding_miss finding_miss(const struct finding *finding)
{
    uint64_t address = finding->near.address, begin = finding->expected, bytes = finding->found;
    struct finding_miss miss = { .side = MISS_UNKNOWN };
    /* With several candidates it would be an operand of only one of them. */
    if (finding->hypothesis != HYPOTHESIS_KERNEL_FAULT || finding->candidate_count > 1 ||
        !finding->near.known || !begin || !bytes || address - begin < bytes)
        return miss;
    for (uint32_t wraps = 1; wraps <= FINDING_WRAP_LIMIT; wraps++) {
        uint64_t apart = (uint64_t)wraps << 32;
        bool below = address + apart - begin < bytes;
        if (below || address - apart - begin < bytes)
            return (struct finding_miss){ .side = below ? MISS_WRAPPED_BELOW : MISS_WRAPPED_ABOVE,
                                          .wraps = wraps };
    }
    /* The first byte outside is one byte past the end, or before the start. */
    bool before = address < begin;
    miss.side = before ? MISS_BEFORE_START : MISS_PAST_END;
    miss.bytes = before ? begin - address : address - begin - bytes + 1;
    return miss;
}

const char *finding_miss_name(enum finding_miss_side side)
{
    static const char *const names[] = {
        [MISS_UNKNOWN] = NULL,
        [MISS_BEFORE_START] = "before-start",
        [MISS_PAST_END] = "past-end",
        [MISS_WRAPPED_BELOW] = "wrapped-below",
        [MISS_WRAPPED_ABOVE] = "wrapped-above",
    };
    ASSERT((unsigned)side < COUNT_OF(names));
    return names[side];
}

/* ---- Candidates ----------------------------------------------------------------------------- */

enum finding_ranking finding_ranking(const struct finding *finding)
{
    if (finding->candidate_count < 2)
        return RANKING_NONE;
    switch (finding->reason) {
    case REASON_NEAR_ADDRESS:
        return RANKING_NEAR_ADDRESS;
    case REASON_SEVERAL_LAUNCHES:
        return RANKING_BEGUN_FIRST;
    case REASON_INPUT_NOT_SCANNED:
        return RANKING_DATA_FLOW;
    case REASON_CANARY_WINDOW:
        return RANKING_NEAR_DAMAGE;
    default:
        return RANKING_CALL_ORDER;
    }
}

const char *finding_ranking_name(enum finding_ranking ranking)
{
    static const char *const names[] = {
        [RANKING_NONE] = NULL,
        [RANKING_NEAR_ADDRESS] = "near-address",
        [RANKING_BEGUN_FIRST] = "begun-first",
        [RANKING_CALL_ORDER] = "call-order",
        [RANKING_DATA_FLOW] = "data-flow",
        [RANKING_NEAR_DAMAGE] = "near-damage",
    };
    _Static_assert(COUNT_OF(names) == RANKING_COUNT, "every ranking has a name");
    ASSERT((unsigned)ranking < RANKING_COUNT);
    return names[ranking];
}
