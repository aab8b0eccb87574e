/* names.c - words of the matrix that scripts may rely on. */
#include "report/report.h"

const char *report_row_mode_name(enum report_row_mode mode)
{
    static const char *const names[] = {
        [REPORT_BARE] = "bare",
        [REPORT_AUDIT] = "audit",
        [REPORT_STRESS] = "stress",
    };
    _Static_assert(COUNT_OF(names) == REPORT_ROW_MODE_COUNT, "every mode has a name");
    ASSERT((unsigned)mode < REPORT_ROW_MODE_COUNT);
    return names[mode];
}

const char *report_search_result_name(enum report_search_result result)
{
    static const char *const names[] = {
        [REPORT_SEARCH_CULPRIT] = "culprit",
        [REPORT_SEARCH_INTERVAL] = "interval",
        [REPORT_SEARCH_SEEN] = "seen",
        [REPORT_SEARCH_NOT_SEEN] = "not-seen",
    };
    _Static_assert(COUNT_OF(names) == REPORT_SEARCH_RESULT_COUNT, "every result has a name");
    ASSERT((unsigned)result < REPORT_SEARCH_RESULT_COUNT);
    return names[result];
}

const char *report_looked_at_name(enum report_looked_at looked_at)
{
    static const char *const names[] = {
        [REPORT_LOOKED_AT_ALL] = "all",
        [REPORT_LOOKED_AT_PART] = "part",
        [REPORT_LOOKED_AT_NOTHING] = "nothing",
    };
    _Static_assert(COUNT_OF(names) == REPORT_LOOKED_AT_COUNT, "every answer has a name");
    ASSERT((unsigned)looked_at < REPORT_LOOKED_AT_COUNT);
    return names[looked_at];
}

const char *report_severity_name(enum report_severity severity)
{
    static const char *const names[] = {
        [REPORT_SEVERITY_NONE] = "none",
        [REPORT_SEVERITY_MEDIUM] = "medium",
        [REPORT_SEVERITY_HIGH] = "high",
        [REPORT_SEVERITY_CRITICAL] = "critical",
    };
    _Static_assert(COUNT_OF(names) == REPORT_SEVERITY_COUNT, "every severity has a name");
    ASSERT((unsigned)severity < REPORT_SEVERITY_COUNT);
    return names[severity];
}
