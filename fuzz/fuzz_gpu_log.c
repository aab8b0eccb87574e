/* fuzz_gpu_log.c - any text as the kernel's log: lines of it, one after the other. */
#include "base/status.h"
#include "device/gpu/gpu_log.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gpu_log log = { 0 };
    const char *at = (const char *)data, *end = at + size;
    uint64_t lines = 0;
    while (at < end) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        line_end = line_end ? line_end : end;
        gpu_log_feed(&log, at, (size_t)(line_end - at));
        lines++;
        ASSERT(log.fault_count <= lines);
        ASSERT(memchr(log.fault.engine, '\0', sizeof(log.fault.engine)));
        ASSERT(log.fault.process_id >= -1);
        at = line_end + 1;
    }
    return 0;
}
