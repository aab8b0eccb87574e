/* table.c - the hypotheses, in the order of the enum. */
#include "analyze/analyze_impl.h"

#include <string.h>

static const struct hypothesis_detector *const detectors[] = {
    [HYPOTHESIS_SIZE_MISMATCH] = &detector_size_mismatch,
    [HYPOTHESIS_USE_AFTER_FREE] = &detector_use_after_free,
    [HYPOTHESIS_MISSING_SYNC] = &detector_missing_sync,
    [HYPOTHESIS_BAD_POINTER] = &detector_bad_pointer,
    [HYPOTHESIS_STAGING_REUSE] = &detector_staging_reuse,
    [HYPOTHESIS_OVERLAPPING_COPIES] = &detector_overlapping_copies,
    [HYPOTHESIS_KERNEL_FAULT] = &detector_kernel_fault,
    [HYPOTHESIS_CONTRACT_BREACH] = &detector_contract_breach,
    [HYPOTHESIS_STALE_GRAPH] = &detector_stale_graph,
    [HYPOTHESIS_UNINITIALISED_READ] = &detector_uninitialised_read,
    [HYPOTHESIS_SILENT_CORRUPTION] = &detector_silent_corruption,
    [HYPOTHESIS_RUNTIME_DEFECT] = &detector_runtime_defect,
    [HYPOTHESIS_NON_DETERMINISM] = &detector_non_determinism,
    [HYPOTHESIS_HANG] = &detector_hang,
    [HYPOTHESIS_NUMERIC] = &detector_numeric,
    [HYPOTHESIS_LEAK] = &detector_leak,
};
_Static_assert(COUNT_OF(detectors) == HYPOTHESIS_COUNT, "every hypothesis has a detector");

const struct hypothesis_detector *hypothesis_detector(enum hypothesis hypothesis)
{
    return detectors[hypothesis];
}

const struct hypothesis_info *hypothesis_info(enum hypothesis hypothesis)
{
    ASSERT((unsigned)hypothesis < HYPOTHESIS_COUNT);
    return &detectors[hypothesis]->info;
}

bool hypothesis_from_slug(const char *slug, enum hypothesis *ret_hypothesis)
{
    for (unsigned i = 0; i < HYPOTHESIS_COUNT; i++)
        if (strcmp(detectors[i]->info.slug, slug) == 0) {
            *ret_hypothesis = (enum hypothesis)i;
            return true;
        }
    return false;
}
