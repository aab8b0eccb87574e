/* host_inspect.c - memory looked at for the audit, on the thread of its stream. Whatever cannot be
 * read is reported as that: the command it belongs to has its own fault, or none. */
#include "device/host/host_impl.h"

#include <math.h>
#include <string.h>

struct inspection_run {
    const struct device_command *command;
    struct device_inspection_result result;
};

static void digest(struct inspection_run *run)
{
    const struct device_rows *rows = &run->command->source;
    run->result.digest = run->command->staging
                             ? device_digest(run->command->staging, rows->row_bytes,
                                             rows->row_count, rows->row_bytes)
                             : device_digest((const void *)(uintptr_t)rows->address,
                                             rows->row_bytes, rows->row_count, rows->stride_bytes);
}

static void scan(struct inspection_run *run)
{
    const struct device_rows *rows = &run->command->source;
    uint64_t columns = rows->row_bytes / sizeof(float);
    struct device_inspection_result *result = &run->result;
    for (uint64_t row = 0; row < rows->row_count; row++) {
        const float *values = (const float *)(uintptr_t)(rows->address + row * rows->stride_bytes);
        uint64_t bad = 0;
        for (uint64_t i = 0; i < columns; i++)
            bad += !isfinite(values[i]);
        for (uint64_t i = 0; bad && !result->found && i < columns; i++) {
            if (!isfinite(values[i])) {
                result->first = row * columns + i;
                break;
            }
        }
        result->found += bad;
    }
    result->count = rows->row_count * columns;
}

static void check_canary(struct inspection_run *run, const struct device_rows *rows)
{
    uint8_t *bytes = (uint8_t *)(uintptr_t)rows->address, canary = run->command->byte;
    for (uint64_t i = 0; i < rows->row_bytes; i++) {
        if (bytes[i] == canary)
            continue;
        if (!run->result.found)
            run->result.first = rows->address + i;
        run->result.found++;
        bytes[i] = canary; /* so that the next to damage it is seen as well */
    }
}

static void inspect(void *context)
{
    struct inspection_run *run = context;
    switch (run->command->inspection.what) {
    case DEVICE_INSPECT_DIGEST:
        digest(run);
        break;
    case DEVICE_INSPECT_SCAN:
        scan(run);
        break;
    case DEVICE_INSPECT_CANARY:
        check_canary(run, &run->command->source);
        check_canary(run, &run->command->target);
        break;
    }
}

void host_inspect(struct device *device, uint32_t stream_index,
                  const struct device_command *command, uint64_t event_id)
{
    struct inspection_run run = { .command = command };
    struct fault_info unused;
    bool read = fault_run(inspect, &run, &unused);
    if (!read)
        run.result = (struct device_inspection_result){ .failed = true };
    device_report_inspection(device, stream_index, command, event_id, &run.result);
}
