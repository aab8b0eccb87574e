/* faults.c - what each fault does. Device memory is changed only by commands of the device itself,
 * so that this works on any backend. */
#include "inject/inject_impl.h"

#include <string.h>

bool inject_is_copy_fault(enum inject_fault fault)
{
    return fault == INJECT_FLIPPED_BIT || fault == INJECT_SHORT_COPY || fault == INJECT_STALE_COPY;
}

bool inject_is_launch_fault(enum inject_fault fault)
{
    return fault >= INJECT_BAD_INDEX && fault <= INJECT_NAN_OUTPUT && fault != INJECT_DROPPED_WAIT;
}

/* ---- Which operand -------------------------------------------------------------------------- */

/* Does this operand suit the fault? */
static bool suits(enum inject_fault fault, const struct device_operand_rule *rule)
{
    switch (fault) {
    case INJECT_BAD_INDEX:
        return rule->dtype_bits == UINT64_C(1) << DTYPE_I32 && rule->mode == EVENT_READ;
    case INJECT_NAN_OUTPUT:
    case INJECT_OVERRUN:
    case INJECT_UNDERRUN:
        return (rule->mode & EVENT_WRITE) != 0;
    case INJECT_EARLY_FREE:
    case INJECT_FREE_WHILE_QUEUED:
    case INJECT_WILD_POINTER:
    case INJECT_WRAPPED_OFFSET:
        return rule->dtype_bits != UINT64_C(1) << DTYPE_I32;
    default:
        return true;
    }
}

/* The operand the plan names, or the first that suits and is there; -1 if none. */
static int find_operand(const struct inject *inject, const struct device_contract *contract,
                        const bool *present)
{
    for (int i = 0; i < contract->operand_count; i++) {
        const struct device_operand_rule *rule = &contract->operands[i];
        if (!present[i])
            continue;
        if (inject->plan.operand[0] ? strcmp(inject->plan.operand, rule->name) == 0
                                    : suits(inject->plan.fault, rule))
            return i;
    }
    return -1;
}

/* ---- Arguments ------------------------------------------------------------------------------ */

static void spoil_operand(struct inject *inject, struct device_launch *launch, int operand)
{
    struct device_view *view = &launch->operands[operand];
    uint64_t row_bytes = 0;
    switch (inject->plan.fault) {
    case INJECT_DTYPE_MISMATCH:
        view->dtype = view->dtype == DTYPE_I64 ? DTYPE_I8 : DTYPE_I64;
        break;
    case INJECT_WRONG_STRIDE:
        if (dtype_row_bytes(view->dtype, view->shape.dims[0], &row_bytes))
            view->row_stride_bytes = row_bytes / 2;
        break;
    case INJECT_SHAPE_MISMATCH:
        view->shape.dims[0]++;
        break;
    case INJECT_MISALIGNED_VIEW:
        view->offset_bytes++;
        break;
    case INJECT_DEAD_HANDLE:
        view->buffer.generation -= 2;
        break;
    default:
        break;
    }
}

void inject_tamper_launch(void *context, struct device_launch *launch,
                          const struct event_scope *scope)
{
    struct inject *inject = context;
    bool present[DEVICE_OPERAND_LIMIT];
    for (int i = 0; i < launch->operand_count; i++)
        present[i] = launch->operands[i].buffer.index != 0;
    pthread_mutex_lock(&inject->lock);
    int operand = find_operand(inject, launch->contract, present);
    if (inject->plan.fault <= INJECT_DEAD_HANDLE && inject->plan.fault != INJECT_VIEW_PAST_END &&
        operand >= 0 && inject_hits(inject, launch->contract->name, scope)) {
        event_set_text(inject->record.operand, sizeof(inject->record.operand),
                       launch->contract->operands[operand].name);
        if (inject->plan.fault == INJECT_GRID_LIMIT)
            launch->tile_count = UINT64_MAX;
        else
            spoil_operand(inject, launch, operand);
    }
    pthread_mutex_unlock(&inject->lock);
}

void inject_tamper_view(void *context, const char *op, struct device_view *view,
                        const struct event_scope *scope)
{
    struct inject *inject = context;
    pthread_mutex_lock(&inject->lock);
    if (inject->plan.fault == INJECT_VIEW_PAST_END && inject_hits(inject, op, scope)) {
        /* As a wrong count would: the buffer's size in elements, not in this view's. */
        uint64_t bytes = device_buffer_bytes(inject->device, view->buffer);
        view->shape.dims[0] += bytes + dtype_info(view->dtype)->block_elements;
        view->shape.dims[0] -= view->shape.dims[0] % dtype_info(view->dtype)->block_elements;
    }
    pthread_mutex_unlock(&inject->lock);
}

/* ---- Launches ------------------------------------------------------------------------------- */

static struct inject_memory *find_memory(struct inject *inject, uint64_t address)
{
    for (size_t i = 0; i < inject->memory_count; i++) {
        struct inject_memory *memory = &inject->memories[i];
        if (!memory->gone && address >= memory->memory.address &&
            address - memory->memory.address < memory->memory.bytes)
            return memory;
    }
    return NULL;
}

/* Fills bytes of device memory in stream order, as part of the same call. */
static enum status fill(struct inject *inject, void *stream, const struct device_command *like,
                        uint64_t address, uint64_t bytes, uint8_t byte, struct error *err)
{
    struct device_command command = { .kind = DEVICE_COMMAND_FILL,
                                      .event_id = like->event_id,
                                      .scope = like->scope,
                                      .target = { address, bytes, 1, bytes },
                                      .byte = byte };
    return inject->real->submit(inject->device, stream, &command, err);
}

static uint64_t operand_bytes(const struct device_host_operand *operand)
{
    uint64_t rows, row_bytes = 0;
    if (!shape_row_count(&operand->shape, &rows) || rows == 0 ||
        !dtype_row_bytes(operand->dtype, operand->shape.dims[0], &row_bytes))
        return 0;
    return (rows - 1) * operand->row_stride_bytes + row_bytes;
}

static void give_back(struct inject *inject, struct inject_memory *memory)
{
    if (!memory)
        return;
    memory->gone = true;
    struct device_memory copy = memory->memory;
    inject->real->memory_destroy(inject->device, &copy);
}

enum status inject_submit_launch(struct inject *inject, void *stream,
                                 const struct device_command *command, struct error *err)
{
    struct device_command spoilt = *command;
    bool present[DEVICE_OPERAND_LIMIT];
    for (int i = 0; i < command->operand_count; i++)
        present[i] = command->operands[i].data != NULL;
    int operand = find_operand(inject, command->contract, present);
    if (operand < 0 || !inject_hits(inject, command->contract->name, &command->scope))
        return inject->real->submit(inject->device, stream, command, err);
    inject->record.event_id = command->event_id;
    event_set_text(inject->record.operand, sizeof(inject->record.operand),
                   command->contract->operands[operand].name);
    struct device_host_operand *chosen = &spoilt.operands[operand];
    uint64_t address = (uint64_t)(uintptr_t)chosen->data;
    struct inject_memory *memory = find_memory(inject, address);
    uint64_t start = memory ? memory->memory.address : address;
    uint64_t end = memory ? start + memory->memory.bytes : address + operand_bytes(chosen);
    switch (inject->plan.fault) {
    case INJECT_SKIPPED_LAUNCH:
        return STATUS_OK;
    case INJECT_BAD_INDEX:
        TRY(fill(inject, stream, command, address, operand_bytes(chosen), 0x7F, err));
        break;
    case INJECT_WILD_POINTER:
        chosen->data = (void *)(uintptr_t)end;
        break;
    case INJECT_WRAPPED_OFFSET:
        chosen->data = (void *)(uintptr_t)(address - (UINT64_C(1) << 32));
        break;
    case INJECT_EARLY_FREE:
        /* What was queued before may still use it; the bug to plant is that this launch does. */
        TRY(inject->real->stream_sync(inject->device, stream, err));
        give_back(inject, memory);
        break;
    default:
        break;
    }
    TRY(inject->real->submit(inject->device, stream, &spoilt, err));
    switch (inject->plan.fault) {
    case INJECT_FREE_WHILE_QUEUED:
        give_back(inject, memory);
        return STATUS_OK;
    case INJECT_OVERRUN:
        return fill(inject, stream, command, end, 1, 0, err);
    case INJECT_UNDERRUN:
        return fill(inject, stream, command, start - 1, 1, 0, err);
    case INJECT_NAN_OUTPUT:
        return fill(inject, stream, command, address, operand_bytes(chosen), 0xFF, err);
    default:
        return STATUS_OK;
    }
}

/* ---- Copies out ----------------------------------------------------------------------------- */

enum status inject_submit_copy_out(struct inject *inject, void *stream,
                                   const struct device_command *command, struct error *err)
{
    struct device_command spoilt = *command;
    if (!inject_hits(inject, "copy-out", &command->scope))
        return inject->real->submit(inject->device, stream, command, err);
    inject->record.event_id = command->event_id;
    if (inject->plan.fault == INJECT_STALE_COPY)
        return STATUS_OK;
    if (inject->plan.fault == INJECT_SHORT_COPY) {
        struct device_rows *rows = &spoilt.source;
        if (rows->row_count > 1)
            rows->row_count--;
        else if (rows->row_bytes)
            rows->row_bytes--;
    } else {
        inject->landing = command->staging;
        inject->landing_bytes = command->source.row_bytes * command->source.row_count;
        inject->landing_stream = stream;
        inject->landing_mark = NULL;
    }
    return inject->real->submit(inject->device, stream, &spoilt, err);
}
