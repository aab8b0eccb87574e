/* machine.c - defects of the machine: commands spoilt after the checks have passed them. Device
 * memory is changed only by commands and methods of the device itself, so that this works on any
 * backend. */
#include "inject/inject_impl.h"

#include "base/size.h"

#include <stdlib.h>
#include <string.h>

/* What an index is that no table is large enough for. */
#define WRONG_INDEX 0x7F7F7F7F
/* An offset without its base. */
#define WILD_ADDRESS 0x10000u
/* Bytes that a staging slot may hold from earlier. */
#define STALE_BYTE 0xA5
/* What ops call their output in the form that the next matmul reads (docs/ops.md). */
#define PACKED "packed"

/* ---- Launches ------------------------------------------------------------------------------- */

/* A fill of device memory as part of the same call. */
static struct device_command fill(const struct device_command *like, uint64_t address,
                                  uint64_t bytes, uint8_t byte)
{
    return (struct device_command){ .kind = DEVICE_COMMAND_FILL,
                                    .event_id = like->event_id,
                                    .scope = like->scope,
                                    .contract = like->contract,
                                    .target = { address, bytes, 1, bytes },
                                    .byte = byte };
}

static uint64_t operand_bytes(const struct device_host_operand *operand)
{
    uint64_t rows, row_bytes = 0;
    if (!shape_row_count(&operand->shape, &rows) || rows == 0 ||
        !dtype_row_bytes(operand->dtype, operand->shape.dims[0], &row_bytes))
        return 0;
    return (rows - 1) * operand->row_stride_bytes + row_bytes;
}

/* The first index that is too large for the operand of that name. */
static int32_t bound_of(const struct device_command *command, const char *name)
{
    for (int i = 0; i < command->operand_count; i++) {
        uint64_t rows;
        if (strcmp(command->contract->operands[i].name, name) == 0 &&
            shape_row_count(&command->operands[i].shape, &rows) && rows <= INT32_MAX)
            return (int32_t)rows;
    }
    return WRONG_INDEX;
}

/* The operand that holds the same output for a matmul to read, packed: -1 if there is none, or the
 * spec says which operand it means. Only one of the two may be read. */
static int packed_of(const struct inject *inject, const struct device_command *command, int operand)
{
    for (int i = 0; i < command->operand_count && !inject->spec.operand[0]; i++)
        if (i != operand && command->operands[i].data &&
            (command->contract->operands[i].mode & EVENT_WRITE) &&
            strcmp(command->contract->operands[i].name, PACKED) == 0)
            return i;
    return -1;
}

/* What the launch has written is overwritten: all of it, or a few values. */
static void spoil_output(const struct inject *inject, const struct device_command *command,
                         int operand, struct inject_spoilt *spoilt)
{
    const struct device_host_operand *output = &command->operands[operand];
    uint64_t address = (uint64_t)(uintptr_t)output->data, row_bytes = 0;
    struct device_command *added = &spoilt->commands[spoilt->count++];
    if (!dtype_row_bytes(output->dtype, output->shape.dims[0], &row_bytes))
        row_bytes = 0;
    switch (inject->spec.fault) {
    case INJECT_NAN_OUTPUT:
        *added = fill(command, address, operand_bytes(output), 0xFF);
        break;
    case INJECT_WRONG_OUTPUT: /* 195.3 as F32, which no activation is */
        *added = fill(command, address, min_u64(row_bytes, 32), 0x43);
        break;
    default: /* a few finite values, as a race would leave them */
        *added = fill(command, address, min_u64(row_bytes, 32), 0x3C);
        break;
    }
}

/* The launch reads its indices from memory of our own, where all are wrong: no other call sees
 * them. */
static enum status spoil_index(struct inject *inject, struct device_host_operand *operand,
                               int32_t index, struct error *err)
{
    uint64_t bytes = operand_bytes(operand), count = bytes / sizeof(int32_t);
    inject->index_values = count ? calloc((size_t)count, sizeof(int32_t)) : NULL;
    if (!inject->index_values)
        return error_set(err, STATUS_NO_MEMORY, "no memory to plant a wrong index");
    for (uint64_t i = 0; i < count; i++)
        inject->index_values[i] = index;
    TRY(inject->real->memory_import(inject->device, inject->index_values, bytes, &inject->indices,
                                    err));
    operand->data = (void *)(uintptr_t)inject->indices.address;
    return STATUS_OK;
}

static enum status spoil_launch(struct inject *inject, const struct device_command *command,
                                int operand, struct inject_spoilt *spoilt, struct error *err)
{
    const char *bound = inject_row(inject->spec.fault)->bound;
    struct device_host_operand *chosen = &spoilt->commands[0].operands[operand];
    uint64_t address = (uint64_t)(uintptr_t)chosen->data;
    struct inject_memory *memory = inject_find_memory(inject, address);
    uint64_t start = memory ? memory->memory.address : address;
    uint64_t end = memory ? start + memory->memory.bytes : address + operand_bytes(chosen);
    int packed = packed_of(inject, command, operand);
    spoilt->count = 1;
    switch (inject->spec.fault) {
    case INJECT_BAD_INDEX:
    case INJECT_ROPE_POSITION:
    case INJECT_ROPE_PAST_TABLE:
    case INJECT_KV_POSITION:
    case INJECT_KV_SLOT_PAST_CACHE:
    case INJECT_TOKEN_PAST_VOCABULARY:
        return spoil_index(inject, chosen, bound[0] ? bound_of(command, bound) : WRONG_INDEX, err);
    case INJECT_WILD_POINTER:
        chosen->data = (void *)(uintptr_t)WILD_ADDRESS;
        break;
    case INJECT_WRAPPED_OFFSET:
        chosen->data = (void *)(uintptr_t)(address - (UINT64_C(1) << 32));
        break;
    case INJECT_MEMORY_VANISHED:
        spoilt->vanishes = memory;
        break;
    case INJECT_OVERRUN:
        spoilt->commands[spoilt->count++] = fill(command, end, 1, 0);
        break;
    case INJECT_UNDERRUN:
        spoilt->commands[spoilt->count++] = fill(command, start - 1, 1, 0);
        break;
    case INJECT_NAN_OUTPUT:
    case INJECT_UNEQUAL_RUNS:
    case INJECT_WRONG_OUTPUT:
        spoil_output(inject, command, operand, spoilt);
        if (packed >= 0)
            spoil_output(inject, command, packed, spoilt);
        break;
    default:
        break;
    }
    return STATUS_OK;
}

/* ---- Copies --------------------------------------------------------------------------------- */

/* The first half of it. */
static void halve(struct device_rows *rows)
{
    if (rows->row_count > 1)
        rows->row_count /= 2;
    else
        rows->row_bytes /= 2;
}

static void spoil_copy(struct inject *inject, void *stream, const struct device_command *command,
                       struct inject_spoilt *spoilt)
{
    const struct device_rows *rows = command->kind == DEVICE_COMMAND_COPY_OUT ? &command->source
                                                                              : &command->target;
    uint64_t bytes = rows->row_bytes * rows->row_count, middle = bytes / 2;
    const uint8_t *staging = command->staging;
    spoilt->count = 1;
    switch (inject->spec.fault) {
    case INJECT_FLIPPED_BIT:
        inject->landing = command->staging;
        inject->landing_bytes = bytes;
        inject->landing_stream = stream;
        inject->landing_mark = NULL;
        break;
    case INJECT_SHORT_COPY: /* until the copy runs nothing else writes the slot */
        memset(command->staging, STALE_BYTE, (size_t)bytes);
        halve(&spoilt->commands[0].source);
        break;
    case INJECT_STALE_COPY: /* it is done, they say */
        memset(command->staging, STALE_BYTE, (size_t)bytes);
        spoilt->commands[0].source.row_count = 0;
        break;
    case INJECT_FLIPPED_BIT_IN:
        if (bytes)
            spoilt->commands[spoilt->count++] = fill(command, rows->address + middle, 1,
                                                     staging[middle] ^ 0x10);
        break;
    case INJECT_SHORT_COPY_IN:
        halve(&spoilt->commands[0].target);
        break;
    case INJECT_STALE_COPY_IN:
        spoilt->commands[0].target.row_count = 0;
        break;
    default:
        break;
    }
}

/* ---- Which command -------------------------------------------------------------------------- */

static const char *copy_op(enum device_command_kind kind)
{
    return kind == DEVICE_COMMAND_COPY_OUT  ? "copy-out"
           : kind == DEVICE_COMMAND_COPY_IN ? "copy-in"
                                            : "";
}

enum status inject_spoil(struct inject *inject, void *stream, const struct device_command *command,
                         struct inject_spoilt *ret_spoilt, struct error *err)
{
    enum inject_where where = inject_row(inject->spec.fault)->where;
    const char *op = copy_op(command->kind);
    ret_spoilt->hit = false;
    if (where == INJECT_IN_LAUNCH && command->kind == DEVICE_COMMAND_LAUNCH) {
        bool present[DEVICE_OPERAND_LIMIT];
        for (int i = 0; i < command->operand_count; i++)
            present[i] = command->operands[i].data != NULL;
        int operand = inject_operand(inject, command->contract, present);
        if (operand < 0 || !inject_fits(inject, command->contract->name, &command->scope))
            return STATUS_OK;
        inject_note(inject, command->contract->name, &command->scope, command->contract, operand,
                    command->event_id);
        *ret_spoilt = (struct inject_spoilt){ .hit = true, .commands = { *command } };
        return spoil_launch(inject, command, operand, ret_spoilt, err);
    }
    /* What a copy reads can vanish too, where the spec says so. */
    if (inject->spec.fault == INJECT_MEMORY_VANISHED && strcmp(inject->spec.op, "copy-out") == 0 &&
        command->kind == DEVICE_COMMAND_COPY_OUT && inject_fits(inject, op, &command->scope)) {
        inject_note(inject, op, &command->scope, NULL, -1, command->event_id);
        *ret_spoilt = (struct inject_spoilt){
            .hit = true,
            .count = 1,
            .commands = { *command },
            .vanishes = inject_find_memory(inject, command->source.address),
        };
        return STATUS_OK;
    }
    if (where == INJECT_IN_COPY && op[0] && strcmp(op, inject_row(inject->spec.fault)->op) == 0 &&
        inject_fits(inject, op, &command->scope)) {
        inject_note(inject, op, &command->scope, NULL, -1, command->event_id);
        *ret_spoilt = (struct inject_spoilt){ .hit = true, .commands = { *command } };
        spoil_copy(inject, stream, command, ret_spoilt);
    }
    return STATUS_OK;
}
