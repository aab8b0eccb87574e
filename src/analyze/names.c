/* names.c - levels, verdicts and outcomes as words that scripts may rely on. */
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
