/* contract_checks.c - the parameters of ops compared with the extents of their operands. A check
 * sets the two numbers that it compared and returns false if they disagree. */
#include "ops/contract.h"
#include "ops/params.h"

/* Whole heads, of a size attention's kernels can read. */
static bool check_heads(uint64_t head_dim, uint64_t width, uint64_t *expected, uint64_t *found)
{
    *found = width;
    *expected = head_dim && head_dim % 8 == 0 ? width / head_dim * head_dim : 0;
    if (width == 0)
        *expected = head_dim ? head_dim : 8;
    return *expected == width;
}

bool ops_check_head_norm(const struct device_contract_call *call, uint64_t *expected,
                         uint64_t *found)
{
    return check_heads(device_contract_extent(call, HEAD_NORM_WEIGHT, 0),
                       device_contract_extent(call, HEAD_NORM_X, 0), expected, found);
}

/* Packed rows are as long as their format needs. */
bool ops_check_act_pack(const struct device_contract_call *call, uint64_t *expected,
                        uint64_t *found)
{
    const struct params_act_pack *params = device_contract_params(call);
    *expected = params->packed_row_bytes;
    *found = device_contract_extent(call, ACT_PACK_PACKED, 0);
    return *expected == *found;
}

/* The same of an operand that may be absent: its extent is 0 then. */
static bool check_packing(const struct device_contract_call *call,
                          const struct params_act_pack *packing, uint32_t packed,
                          uint64_t *expected, uint64_t *found)
{
    *expected = packing->packed_row_bytes;
    *found = device_contract_extent(call, packed, 0);
    return *found == 0 || *expected == *found;
}

bool ops_check_rms_norm(const struct device_contract_call *call, uint64_t *expected,
                        uint64_t *found)
{
    const struct params_norm *params = device_contract_params(call);
    return check_packing(call, &params->packing, RMS_NORM_PACKED, expected, found);
}

/* Rows are whole groups, and what is packed is one. */
bool ops_check_layer_norm(const struct device_contract_call *call, uint64_t *expected,
                          uint64_t *found)
{
    const struct params_layer_norm *params = device_contract_params(call);
    uint64_t width = device_contract_extent(call, LAYER_NORM_X, 0);
    *found = params->group;
    *expected = device_contract_extent(call, LAYER_NORM_PACKED, 0) ? 0 : params->group;
    if (params->group && width % params->group)
        *expected = width;
    return *expected == *found &&
           check_packing(call, &params->packing, LAYER_NORM_PACKED, expected, found);
}

static bool check_columns(uint32_t tile_columns, uint64_t *expected, uint64_t *found)
{
    *found = tile_columns;
    *expected = tile_columns / TILE_COLUMN_UNIT * TILE_COLUMN_UNIT;
    return *expected == *found;
}

/* This serves gelu too, whose operands stand in the same order. */
_Static_assert((int)GELU_PACKED == (int)SWIGLU_PACKED, "one check serves both");
bool ops_check_swiglu(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    const struct params_swiglu *params = device_contract_params(call);
    return check_columns(params->tile_columns, expected, found) &&
           check_packing(call, &params->packing, SWIGLU_PACKED, expected, found);
}

bool ops_check_scale(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    const struct params_scale *params = device_contract_params(call);
    return check_columns(params->tile_columns, expected, found);
}

/* Tiles have rows and tokens; what is there says 0 otherwise. */
static bool check_tiles(const struct params_matmul *params, uint64_t *expected, uint64_t *found)
{
    if (params->tile_rows > 0 && params->tile_tokens > 0)
        return true;
    *expected = 1;
    *found = 0;
    return false;
}

bool ops_check_matmul(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    const struct params_matmul *params = device_contract_params(call);
    *expected = params->packed_row_bytes;
    *found = device_contract_extent(call, MATMUL_PACKED, 0);
    return *expected == *found && check_tiles(params, expected, found);
}

bool ops_check_matmul_group(const struct device_contract_call *call, uint64_t *expected,
                            uint64_t *found)
{
    const struct params_matmul_group *params = device_contract_params(call);
    for (size_t i = 0; i < COUNT_OF(params->parts); i++) {
        const struct params_matmul *part = &params->parts[i];
        if (i > 0 && part->tile_rows == 0)
            continue; /* there is no such part */
        *expected = part->packed_row_bytes;
        *found = device_contract_extent(call, MATMUL_GROUP_PACKED, 0);
        if (*expected != *found || !check_tiles(part, expected, found))
            return false;
    }
    return true;
}

/* The table has whole pairs, and no more than a head has. */
bool ops_check_rope(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    const struct params_rope *params = device_contract_params(call);
    uint64_t dimensions = device_contract_extent(call, ROPE_TABLE, 0);
    if (dimensions % 2 || dimensions > params->head_dim) {
        *expected = dimensions % 2 ? dimensions - 1 : params->head_dim;
        *found = dimensions;
        return false;
    }
    uint64_t also_width = device_contract_extent(call, ROPE_ALSO, 0);
    if (also_width && !check_heads(params->head_dim, also_width, expected, found))
        return false;
    return check_heads(params->head_dim, device_contract_extent(call, ROPE_X, 0), expected, found);
}

bool ops_check_rope_table(const struct device_contract_call *call, uint64_t *expected,
                          uint64_t *found)
{
    const struct params_rope_table *params = device_contract_params(call);
    uint64_t pairs = device_contract_extent(call, ROPE_TABLE_FACTORS, 0);
    if (params->temperature_scale != 0 && params->temperature_length == 0) {
        *expected = 1;
        *found = 0;
        return false;
    }
    *found = device_contract_extent(call, ROPE_TABLE_TABLE, 0);
    *expected = pairs ? 2 * pairs : *found / 2 * 2;
    if (*found == 0)
        *expected = 2;
    return *expected == *found;
}

/* Query heads are a multiple of key heads. */
bool ops_check_attention(const struct device_contract_call *call, uint64_t *expected,
                         uint64_t *found)
{
    const struct params_attention *params = device_contract_params(call);
    uint64_t width = device_contract_extent(call, ATTENTION_Q, 0);
    uint64_t kv_dim = device_contract_extent(call, ATTENTION_KEYS, 0);
    if (!check_heads(params->head_dim, width, expected, found) ||
        !check_heads(params->head_dim, kv_dim, expected, found))
        return false;
    *expected = width / kv_dim * kv_dim;
    *found = width;
    if (*expected != *found)
        return false;
    *expected = width / params->head_dim;
    *found = device_contract_extent(call, ATTENTION_SINKS, 0);
    return (*found == 0 || *expected == *found) &&
           check_packing(call, &params->packing, ATTENTION_PACKED, expected, found);
}

bool ops_check_top_k(const struct device_contract_call *call, uint64_t *expected, uint64_t *found)
{
    *expected = device_contract_extent(call, TOP_K_LOGITS, 0);
    *found = device_contract_extent(call, TOP_K_VALUES, 0);
    bool fits = *found > 0 && *found <= *expected;
    if (!fits && *expected == *found)
        *expected = 1; /* of no tokens none can be chosen */
    return fits;
}
