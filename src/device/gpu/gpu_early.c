/* gpu_early.c - whether a kernel of a graph may read before the kernels before it have ended. */
#include "device/gpu/gpu_impl.h"

/* From the first byte to one past the last; both 0 if empty. */
struct span {
    uint64_t first, end;
};

static struct span span_of_rows(uint64_t address, uint64_t row_count, uint64_t stride_bytes,
                                uint64_t row_bytes)
{
    if (address == 0 || row_count == 0 || row_bytes == 0)
        return (struct span){ 0 };
    return (struct span){ address, address + (row_count - 1) * stride_bytes + row_bytes };
}

static struct span span_of_operand(const struct device_host_operand *operand)
{
    uint64_t rows = 0, row_bytes = 0;
    if (!operand->data || !shape_row_count(&operand->shape, &rows) ||
        !dtype_row_bytes(operand->dtype, operand->shape.dims[0], &row_bytes))
        return (struct span){ 0 };
    return span_of_rows((uint64_t)(uintptr_t)operand->data, rows, operand->row_stride_bytes,
                        row_bytes);
}

static bool overlaps(struct span one, struct span other)
{
    return one.first < other.end && other.first < one.end;
}

static bool writes(const struct device_command *command, struct span span)
{
    const struct device_rows *target = &command->target;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
    case DEVICE_COMMAND_COPY_WITHIN:
    case DEVICE_COMMAND_FILL:
        return overlaps(span, span_of_rows(target->address, target->row_count, target->stride_bytes,
                                           target->row_bytes));
    case DEVICE_COMMAND_LAUNCH:
        for (uint32_t i = 0; i < command->operand_count; i++)
            if (command->contract->operands[i].mode & EVENT_WRITE &&
                overlaps(span, span_of_operand(&command->operands[i])))
                return true;
        return false;
    case DEVICE_COMMAND_COPY_OUT:
    case DEVICE_COMMAND_INSPECT:
        break;
    }
    return false;
}

bool gpu_is_written(const struct device_command *commands, size_t count,
                    const struct device_host_operand *operand)
{
    struct span span = span_of_operand(operand);
    for (size_t i = 0; i < count; i++)
        if (writes(&commands[i], span))
            return true;
    return false;
}
