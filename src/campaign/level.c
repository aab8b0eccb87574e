/* level.c - what an audit level asks of a device. */
#include "campaign/campaign.h"

/* Freed memory is kept unusable up to this much: what an engine frees in one run, and more. */
#define QUARANTINE_BYTES ((uint64_t)256 << 20)
/* At level log, one launch of so many is scanned; a prime, so that every op has its turn. */
#define SCAN_INTERVAL_LOG 61u

void campaign_level_options(enum audit_level level, struct device_options *options)
{
    options->hash_results = level >= AUDIT_LOG;
    options->ask_errors = level >= AUDIT_LOG;
    options->copy_completions = level >= AUDIT_LOG; /* when a staging slot may be used again */
    options->scan_every = level >= AUDIT_GUARD ? 1 : level == AUDIT_LOG ? SCAN_INTERVAL_LOG : 0;
    options->guards = options->poison = options->ask_pointers = level >= AUDIT_GUARD;
    options->quarantine_bytes = level >= AUDIT_GUARD ? QUARANTINE_BYTES : 0;
    options->verify = level >= AUDIT_VERIFY;
}
