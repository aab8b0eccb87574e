/* contract.c - a launch held against the contract of its op, in 64-bit, before anything is queued.
 *
 * The shapes of a contract are lists of names. The first operand that has a name says what it
 * stands for; every later one must agree. */
#include "device/device_core.h"

#include <inttypes.h>
#include <string.h>

uint64_t device_contract_extent(const struct device_contract_call *call, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < call->extent_count; i++)
        if (call->extents[i].length == length && memcmp(call->extents[i].name, name, length) == 0)
            return call->extents[i].extent;
    return 0;
}

const void *device_contract_params(const struct device_contract_call *call)
{
    return call->params;
}

/* Names are of a few letters: compared one by one, without a call. */
static bool same_name(const char *one, const char *other, size_t length)
{
    size_t i = 0;
    while (i < length && one[i] == other[i])
        i++;
    return i == length;
}

/* Up to the comma or the end. */
static size_t name_length(const char *name)
{
    size_t length = 0;
    while (name[length] && name[length] != ',')
        length++;
    return length;
}

/* What a name or number of a shape stands for; binds a name that is new. */
static uint64_t bind(struct device_contract_call *call, const char *name, size_t length,
                     uint64_t extent)
{
    if (name[0] >= '0' && name[0] <= '9') {
        uint64_t number = 0;
        for (size_t i = 0; i < length; i++)
            number = number * 10 + (uint64_t)(name[i] - '0');
        return number;
    }
    for (size_t i = 0; i < call->extent_count; i++)
        if (call->extents[i].length == length && same_name(call->extents[i].name, name, length))
            return call->extents[i].extent;
    ASSERT(call->extent_count < CONTRACT_EXTENT_LIMIT);
    call->extents[call->extent_count].name = name;
    call->extents[call->extent_count].length = length;
    call->extents[call->extent_count++].extent = extent;
    return extent;
}

static enum status check_shape(struct call *call, struct device_contract_call *contract_call,
                               const struct device_view *view, uint32_t operand, struct error *err)
{
    const struct device_contract *contract = contract_call->contract;
    const struct device_operand_rule *rule = &contract->operands[operand];
    const char *name = rule->shape;
    uint32_t dimension = 0;
    while (*name) {
        size_t length = name_length(name);
        uint64_t found = view->shape.dims[dimension];
        uint64_t expected = bind(contract_call, name, length, found);
        if (expected != found)
            return call_refuse(
                call, EVENT_CHECK_SHAPE, operand, expected, found, err, STATUS_REFUSED,
                "%s: operand %s: expected %.*s = %" PRIu64 " in dimension %" PRIu32
                ", found %" PRIu64,
                contract->name, rule->name, (int)length, name, expected, dimension, found);
        dimension++;
        name += length + (name[length] == ',');
    }
    for (; dimension < SHAPE_RANK_LIMIT; dimension++)
        if (view->shape.dims[dimension] != 1)
            return call_refuse(
                call, EVENT_CHECK_SHAPE, operand, 1, view->shape.dims[dimension], err,
                STATUS_REFUSED,
                "%s: operand %s: expected shape [%s], found %" PRIu64 " in dimension %" PRIu32,
                contract->name, rule->name, rule->shape, view->shape.dims[dimension], dimension);
    return STATUS_OK;
}

static enum status check_operand(struct call *call, struct device_contract_call *contract_call,
                                 const struct device_view *view, uint32_t operand,
                                 struct error *err)
{
    const struct device_contract *contract = contract_call->contract;
    const struct device_operand_rule *rule = &contract->operands[operand];
    bool absent = view->buffer.index == 0 && view->buffer.generation == 0;
    if (absent && rule->optional)
        return STATUS_OK;
    if (absent)
        return call_refuse(call, EVENT_CHECK_OPERANDS, operand, 1, 0, err, STATUS_REFUSED,
                           "%s: operand %s: expected a buffer, found none", contract->name,
                           rule->name);
    if ((unsigned)view->dtype >= DTYPE_COUNT || !(rule->dtype_bits >> view->dtype & 1))
        return call_refuse(
            call, EVENT_CHECK_DTYPE, operand, rule->dtype_bits & ~DEVICE_ROWS_ALIGNED, view->dtype,
            err, STATUS_REFUSED, "%s: operand %s: expected another type than %s", contract->name,
            rule->name, (unsigned)view->dtype < DTYPE_COUNT ? dtype_name(view->dtype) : "unknown");
    uint64_t row_bytes;
    if (!rule->strided && view->row_stride_bytes &&
        dtype_row_bytes(view->dtype, view->shape.dims[0], &row_bytes) &&
        view->row_stride_bytes != row_bytes)
        return call_refuse(call, EVENT_CHECK_STRIDE, operand, row_bytes, view->row_stride_bytes,
                           err, STATUS_REFUSED,
                           "%s: operand %s: expected rows close together (%" PRIu64
                           " bytes), found %" PRIu64,
                           contract->name, rule->name, row_bytes, view->row_stride_bytes);
    if ((rule->dtype_bits & DEVICE_ROWS_ALIGNED) &&
        (view->offset_bytes % DEVICE_ROW_ALIGNMENT ||
         (view->shape.dims[1] > 1 && view->row_stride_bytes % DEVICE_ROW_ALIGNMENT)))
        return call_refuse(call, EVENT_CHECK_ALIGNMENT, operand, DEVICE_ROW_ALIGNMENT,
                           view->offset_bytes, err, STATUS_REFUSED,
                           "%s: operand %s: expected an offset and stride that are multiples of "
                           "%u, found %" PRIu64 " and %" PRIu64,
                           contract->name, rule->name, DEVICE_ROW_ALIGNMENT, view->offset_bytes,
                           view->row_stride_bytes);
    return check_shape(call, contract_call, view, operand, err);
}

enum status contract_check(struct call *call, const struct device_launch *launch, struct error *err)
{
    const struct device_contract *contract = launch->contract;
    struct device_contract_call contract_call = { .contract = contract,
                                                  .params = launch->params,
                                                  .tile_count = launch->tile_count };
    ASSERT(contract->params_bytes <= DEVICE_PARAMS_LIMIT_BYTES);
    ASSERT(contract->params_bytes == 0 || launch->params);
    if (launch->operand_count != contract->operand_count)
        return call_refuse(call, EVENT_CHECK_OPERANDS, EVENT_NO_OPERAND, contract->operand_count,
                           launch->operand_count, err, STATUS_REFUSED,
                           "%s: expected %u operands, found %u", contract->name,
                           contract->operand_count, launch->operand_count);
    for (uint32_t i = 0; i < launch->operand_count; i++)
        TRY(check_operand(call, &contract_call, &launch->operands[i], i, err));
    uint64_t tile_limit = contract->tile_limit ? contract->tile_limit : DEVICE_TILE_LIMIT;
    if (launch->tile_count > tile_limit)
        return call_refuse(call, EVENT_CHECK_GEOMETRY, EVENT_NO_OPERAND, tile_limit,
                           launch->tile_count, err, STATUS_REFUSED,
                           "%s: expected at most %" PRIu64 " tiles, found %" PRIu64, contract->name,
                           tile_limit, launch->tile_count);
    uint64_t expected = 0, found = 0;
    if (contract->check && !contract->check(&contract_call, &expected, &found))
        return call_refuse(call, EVENT_CHECK_PARAMETER, EVENT_NO_OPERAND, expected, found, err,
                           STATUS_REFUSED, "%s: parameters: expected %" PRIu64 ", found %" PRIu64,
                           contract->name, expected, found);
    return STATUS_OK;
}
