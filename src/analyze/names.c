/* names.c - names of levels, reasons, verdicts and outcomes, which scripts may rely on. */
#include "analyze/analyze.h"

#include <string.h>

static const char *const level_names[] = {
    [AUDIT_OFF] = "off",
    [AUDIT_LOG] = "log",
    [AUDIT_GUARD] = "guard",
    [AUDIT_VERIFY] = "verify",
};
_Static_assert(COUNT_OF(level_names) == AUDIT_LEVEL_COUNT, "every level has a name");

const char *audit_level_name(enum audit_level level)
{
    ASSERT((unsigned)level < AUDIT_LEVEL_COUNT);
    return level_names[level];
}

bool audit_level_from_name(const char *name, enum audit_level *ret_level)
{
    for (size_t i = 0; i < COUNT_OF(level_names); i++)
        if (strcmp(level_names[i], name) == 0) {
            *ret_level = (enum audit_level)i;
            return true;
        }
    return false;
}

const char *finding_attribution_name(enum finding_attribution attribution)
{
    static const char *const names[] = {
        [FINDING_SEEN_AT] = "seen-at",
        [FINDING_CULPRIT] = "culprit",
    };
    _Static_assert(COUNT_OF(names) == FINDING_ATTRIBUTION_COUNT, "every attribution has a name");
    ASSERT((unsigned)attribution < FINDING_ATTRIBUTION_COUNT);
    return names[attribution];
}

static const char *const reason_names[] = {
    [REASON_NONE] = "",
    [REASON_NO_LAUNCH_KNOWN] = "no-launch-known",
    [REASON_SEVERAL_LAUNCHES] = "several-launches",
    [REASON_NEAR_ADDRESS] = "near-address",
    [REASON_GAPS] = "gaps",
    [REASON_REPLAY_UNKNOWN] = "replay-unknown",
    [REASON_STREAM_BEGAN] = "stream-began",
    [REASON_CANARY_WINDOW] = "canary-window",
    [REASON_CANARY_LATE] = "canary-late",
    [REASON_NEEDS_COMPARISON] = "needs-comparison",
    [REASON_SOURCE_CHANGED] = "source-changed",
    [REASON_INPUT_NOT_SCANNED] = "input-not-scanned",
    [REASON_STREAM_INSIDE] = "stream-inside",
    [REASON_LOST_WAKEUP] = "lost-wakeup",
    [REASON_WAITS_FOR_MARK] = "waits-for-mark",
    [REASON_NOT_STARTED] = "not-started",
    [REASON_KERNEL_ACCESS] = "kernel-access",
    [REASON_HIDDEN_ORDER] = "hidden-order",
    [REASON_ABANDONED] = "abandoned",
    [REASON_WINDOW] = "window",
    [REASON_ROW_GAPS] = "row-gaps",
    [REASON_RUNTIME_ACCEPTED] = "runtime-accepted",
    [REASON_MAY_WAIT] = "may-wait",
    [REASON_UNSEEN_ORDER] = "unseen-order",
    [REASON_HELD_BACK] = "held-back",
    [REASON_ADDRESS_REUSED] = "address-reused",
    [REASON_STREAM_ACCEPTED] = "stream-accepted",
    [REASON_KEPT] = "kept",
    [REASON_INPUT_DIFFERS] = "input-differs",
    [REASON_BETWEEN_HASHES] = "between-hashes",
    [REASON_BEFORE_HASHES] = "before-hashes",
    [REASON_UNWATCHED] = "unwatched",
    [REASON_PARTLY_WRITTEN] = "partly-written",
    [REASON_UNSEEN_WRITER] = "unseen-writer",
    [REASON_KERNEL_READS] = "kernel-reads",
    [REASON_FLAG] = "maybe-flag",
    [REASON_DUMP_DIFFERS] = "dump-differs",
    [REASON_DUMP_PARTLY] = "dump-partly",
    [REASON_DUMP_SEVERAL] = "dump-several",
    [REASON_DUMP_GRIDS] = "dump-grids",
};
_Static_assert(COUNT_OF(reason_names) == REASON_COUNT, "every reason has a name");

const char *finding_reason_name(enum finding_reason reason)
{
    ASSERT((unsigned)reason < REASON_COUNT);
    return reason_names[reason];
}

enum finding_reason finding_reason_from_name(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(reason_names); i++)
        if (strcmp(reason_names[i], name) == 0)
            return (enum finding_reason)i;
    return REASON_NONE;
}

const char *verdict_name(enum verdict verdict)
{
    static const char *const names[] = {
        [VERDICT_CONFIRMED] = "CONFIRMED",       [VERDICT_REFUTED] = "REFUTED",
        [VERDICT_NOT_SEEN] = "NOT_SEEN",         [VERDICT_EXCLUDED] = "EXCLUDED",
        [VERDICT_INCONCLUSIVE] = "INCONCLUSIVE",
    };
    _Static_assert(COUNT_OF(names) == VERDICT_COUNT, "every verdict has a name");
    ASSERT((size_t)verdict < COUNT_OF(names));
    return names[verdict];
}

const char *verdict_missing_name(enum verdict_missing missing)
{
    static const char *const names[] = {
        [VERDICT_MISSING_NOTHING] = NULL,
        [VERDICT_MISSING_DETECTOR] = "detector",
        [VERDICT_MISSING_LEVEL] = "level",
        [VERDICT_MISSING_SELF_TEST] = "self-test",
        [VERDICT_MISSING_SELF_TEST_PASS] = "self-test-pass",
        [VERDICT_MISSING_RECORDING] = "recording",
        [VERDICT_MISSING_RECORDS] = "records",
        [VERDICT_MISSING_COVERAGE] = "coverage",
        [VERDICT_MISSING_EXERCISE] = "exercise",
        [VERDICT_MISSING_EQUAL_RUNS] = "equal-runs",
        [VERDICT_MISSING_CERTAINTY] = "certainty",
        [VERDICT_MISSING_COMPARISON] = "comparison",
        [VERDICT_MISSING_END] = "end",
    };
    _Static_assert(COUNT_OF(names) == VERDICT_MISSING_COUNT, "everything missing has a name");
    ASSERT((unsigned)missing < VERDICT_MISSING_COUNT);
    return names[missing];
}

const char *audit_outcome_name(enum audit_outcome outcome)
{
    static const char *const names[] = {
        [AUDIT_CLEAN] = "CLEAN",
        [AUDIT_ROOT_CAUSE] = "ROOT_CAUSE",
        [AUDIT_DEFECT_SEEN] = "DEFECT_SEEN",
        [AUDIT_NOT_SEEN] = "NOT_SEEN",
        [AUDIT_NOT_REPRODUCED] = "NOT_REPRODUCED",
        [AUDIT_INCONCLUSIVE] = "INCONCLUSIVE",
    };
    _Static_assert(COUNT_OF(names) == AUDIT_OUTCOME_COUNT, "every outcome has a name");
    ASSERT((unsigned)outcome < AUDIT_OUTCOME_COUNT);
    return names[outcome];
}
