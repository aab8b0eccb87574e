/* audit_sink_words.c - see audit_sink_words.h. */
#include "cli/audit_sink_words.h"

#include "base/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Codes that a copy or a wait may return; CUDA and HIP use the same numbers. */
static const struct {
    int32_t code;
    const char *cuda, *hip, *words;
} runtime_codes[] = {
    { 1, "CUDA_ERROR_INVALID_VALUE", "hipErrorInvalidValue", "invalid argument" },
    { 2, "CUDA_ERROR_OUT_OF_MEMORY", "hipErrorOutOfMemory", "out of memory" },
    { 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "hipErrorIllegalAddress",
      "an illegal memory access was encountered" },
    { 702, "CUDA_ERROR_LAUNCH_TIMEOUT", "hipErrorLaunchTimeOut",
      "the launch timed out and was terminated" },
    { 710, "CUDA_ERROR_ASSERT", "hipErrorAssert", "device-side assert triggered" },
    { 719, "CUDA_ERROR_LAUNCH_FAILED", "hipErrorLaunchFailure", "unspecified launch failure" },
    { 999, "CUDA_ERROR_UNKNOWN", "hipErrorUnknown", "unknown error" },
};

static bool is_of_runtime(const struct event *event)
{
    return event->domain == EVENT_ERROR_CUDA || event->domain == EVENT_ERROR_HIP ||
           event->domain == EVENT_ERROR_RUNTIME;
}

const char *audit_sink_result(const char *kind, const struct event *event,
                              char words[AUDIT_SINK_WORDS_BYTES])
{
    if (event->outcome == EVENT_DONE)
        return strcmp(kind, "cuda") == 0  ? "CUDA_SUCCESS"
               : strcmp(kind, "hip") == 0 ? "hipSuccess"
                                          : "success";
    if (is_of_runtime(event)) {
        for (size_t i = 0; i < COUNT_OF(runtime_codes); i++)
            if (runtime_codes[i].code == event->code)
                return event->domain == EVENT_ERROR_HIP ? runtime_codes[i].hip
                                                        : runtime_codes[i].cuda;
        snprintf(words, AUDIT_SINK_WORDS_BYTES, "%s_error_%" PRId32, kind, event->code);
    } else if (event->outcome == EVENT_REFUSED) {
        snprintf(words, AUDIT_SINK_WORDS_BYTES, "refused_by_greta(%s)",
                 event_check_name(event->check));
    } else if (event->domain == EVENT_ERROR_ERRNO) {
        snprintf(words, AUDIT_SINK_WORDS_BYTES, "errno_%" PRId32, event->code);
    } else {
        return status_name((enum status)event->code);
    }
    return words;
}

const char *audit_sink_error(const char *kind, const struct event *event,
                             char words[AUDIT_SINK_WORDS_BYTES])
{
    char name[AUDIT_SINK_WORDS_BYTES];
    if (is_of_runtime(event)) {
        for (size_t i = 0; i < COUNT_OF(runtime_codes); i++)
            if (runtime_codes[i].code == event->code)
                return runtime_codes[i].words;
        snprintf(words, AUDIT_SINK_WORDS_BYTES, "%s", audit_sink_result(kind, event, name));
    } else if (event->check == EVENT_CHECK_LOST) {
        snprintf(words, AUDIT_SINK_WORDS_BYTES,
                 "refused by greta: the device was already lost (event %" PRIu64
                 "); the runtime was not called",
                 event->cause_id);
    } else if (event->outcome == EVENT_REFUSED) {
        snprintf(words, AUDIT_SINK_WORDS_BYTES,
                 "refused by greta: %s: expected %" PRIu64 ", found %" PRIu64
                 "; the runtime was not called",
                 event_check_name(event->check), event->expected, event->found);
    } else if (event->domain == EVENT_ERROR_GRETA && event->code == STATUS_LOST) {
        return "an illegal memory access was encountered";
    } else {
        snprintf(words, AUDIT_SINK_WORDS_BYTES, "failed in greta: %s",
                 audit_sink_result(kind, event, name));
    }
    return words;
}

const char *audit_sink_error_key(const char *kind)
{
    return strcmp(kind, "hip") == 0    ? "hipError"
           : strcmp(kind, "cuda") == 0 ? "cudaError"
                                       : "error";
}
