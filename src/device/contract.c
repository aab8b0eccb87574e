/* contract.c - a launch compared with the contract of its op, in 64-bit, before anything is queued.
 *
 * The shapes of a contract are lists of names, which op_table.c turned into numbers. The first
 * operand that has a name says what it stands for; every later one must agree. */
#include "device/device_core.h"

#include <inttypes.h>
#include <string.h>

/* What the names of a contract stand for in a launch. */
struct extents {
    uint64_t values[CONTRACT_EXTENT_LIMIT];
    uint32_t bound; /* a bit for each that has a value */
};
_Static_assert(CONTRACT_EXTENT_LIMIT <= 32, "a bit for each");

static bool is_absent(const struct device_view *view)
{
    return view->buffer.index == 0 && view->buffer.generation == 0;
}

uint64_t device_contract_extent(const struct device_contract_call *call, uint32_t operand,
                                uint32_t dimension)
{
    const struct device_view *view = &call->launch->operands[operand];
    ASSERT(operand < call->launch->operand_count && dimension < SHAPE_RANK_LIMIT);
    return is_absent(view) ? 0 : view->shape.dims[dimension];
}

const void *device_contract_params(const struct device_contract_call *call)
{
    return call->launch->params;
}

/* What a dimension must be; a name without a value gets what was found. */
static uint64_t bind(struct extents *extents, const struct contract_dimension *dimension,
                     uint64_t found)
{
    uint32_t extent = dimension->extent;
    if (extent == CONTRACT_NUMBER)
        return dimension->number;
    if (!(extents->bound >> extent & 1)) {
        extents->bound |= 1u << extent;
        extents->values[extent] = found;
    }
    return extents->values[extent];
}

static enum status check_shape(struct call *call, const struct op_row *op, struct extents *extents,
                               const struct device_view *view, uint32_t operand, struct error *err)
{
    const struct device_contract *contract = op->contract;
    const struct device_operand_rule *rule = &contract->operands[operand];
    const struct contract_shape *shape = &op->shapes[operand];
    for (uint32_t i = 0; i < shape->rank; i++) {
        uint64_t found = view->shape.dims[i];
        uint64_t expected = bind(extents, &shape->dimensions[i], found);
        if (expected == found)
            continue;
        int length;
        const char *name = contract_dimension_name(contract, operand, i, &length);
        return call_refuse(call, EVENT_CHECK_SHAPE, operand, expected, found, err, STATUS_REFUSED,
                           "%s: operand %s: expected %.*s = %" PRIu64 " in dimension %" PRIu32
                           ", found %" PRIu64,
                           contract->name, rule->name, length, name, expected, i, found);
    }
    for (uint32_t i = shape->rank; i < SHAPE_RANK_LIMIT; i++)
        if (view->shape.dims[i] != 1)
            return call_refuse(
                call, EVENT_CHECK_SHAPE, operand, 1, view->shape.dims[i], err, STATUS_REFUSED,
                "%s: operand %s: expected shape [%s], found %" PRIu64 " in dimension %" PRIu32,
                contract->name, rule->name, rule->shape, view->shape.dims[i], i);
    return STATUS_OK;
}

static enum status check_operand(struct call *call, const struct op_row *op,
                                 struct extents *extents, const struct device_view *view,
                                 uint32_t operand, struct error *err)
{
    const struct device_contract *contract = op->contract;
    const struct device_operand_rule *rule = &contract->operands[operand];
    bool absent = is_absent(view);
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
    return check_shape(call, op, extents, view, operand, err);
}

enum status contract_check(struct call *call, const struct op_row *op,
                           const struct device_launch *launch, struct error *err)
{
    const struct device_contract *contract = op->contract;
    struct device_contract_call contract_call = { .launch = launch };
    struct extents extents; /* not cleared: only bound ones are read */
    extents.bound = 0;
    ASSERT(contract->params_bytes == 0 || launch->params);
    if (launch->operand_count != contract->operand_count)
        return call_refuse(call, EVENT_CHECK_OPERANDS, EVENT_NO_OPERAND, contract->operand_count,
                           launch->operand_count, err, STATUS_REFUSED,
                           "%s: expected %u operands, found %u", contract->name,
                           contract->operand_count, launch->operand_count);
    for (uint32_t i = 0; i < launch->operand_count; i++)
        TRY(check_operand(call, op, &extents, &launch->operands[i], i, err));
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
