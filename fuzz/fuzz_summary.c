/* fuzz_summary.c - any bytes as the summary.json of an earlier audit: a summary whose texts all
 * end, or an error with words. */
#include "report/earlier.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (!holds)
        assert_failed(what, __FILE__, __LINE__);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct report_summary summary;
    struct error err;
    if (report_summary_parse(data, size, "fuzz", &summary, &err)) {
        require(strncmp(err.text, "fuzz: ", 6) == 0, "an error names the file");
        return 0;
    }
    require(summary.id && summary.date, "a summary has a name and a date");
    require((unsigned)summary.outcome < AUDIT_OUTCOME_COUNT, "an outcome is in range");
    for (size_t i = 0; i < summary.finding_count; i++)
        require(summary.findings[i].slug && summary.findings[i].key && summary.findings[i].text,
                "a finding is whole");
    for (size_t i = 0; i < summary.timing_count; i++)
        require(summary.timings[i].what != NULL, "a figure has a name");
    report_summary_release(&summary);
    return 0;
}
