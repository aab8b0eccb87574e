/* names.c - words of the matrix that scripts may rely on. */
#include "report/report.h"

const char *report_row_mode_name(enum report_row_mode mode)
{
    static const char *const names[] = {
        [REPORT_BASELINE] = "baseline",
        [REPORT_AUDIT] = "audit",
        [REPORT_STRESS] = "stress",
    };
    _Static_assert(COUNT_OF(names) == REPORT_ROW_MODE_COUNT, "every mode has a name");
    ASSERT((unsigned)mode < REPORT_ROW_MODE_COUNT);
    return names[mode];
}
