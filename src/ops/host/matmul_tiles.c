/* matmul_tiles.c - act_pack and matmul cut into tiles; the arithmetic is in matmul_*.c.
 *
 * Tiles of a product are counted along the output rows first: neighbours read neighbouring weights
 * and the same tokens. */
#include "ops/host/matmul_tiles.h"

#include "base/status.h"
#include "ops/host/matmul.h"
#include "ops/host/rows.h"
#include "ops/params.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void host_pack_part(const struct params_act_pack *packing, const struct device_host_operand *rows,
                    const struct device_host_operand *packed, uint64_t row, uint64_t first,
                    uint64_t count)
{
    /* The bytes are the same on every path, so the fastest packs for all. */
    if (packed->data)
        host_act_pack_part(cpu_path_best(), (enum host_act_format)packing->format,
                           row_f32(rows, row), (size_t)first, (size_t)count,
                           (size_t)rows->shape.dims[0], row_bytes(packed, row));
}

void host_pack_row(const struct params_act_pack *packing, const struct device_host_operand *rows,
                   const struct device_host_operand *packed, uint64_t row)
{
    host_pack_part(packing, rows, packed, row, 0, rows->shape.dims[0]);
}

void host_act_pack_tile(const struct device_host_call *call, uint64_t tile)
{
    const struct device_host_operand *x = &call->operands[0];
    uint64_t end = smaller((tile + 1) * TILE_TOKENS, x->shape.dims[1]);
    for (uint64_t token = tile * TILE_TOKENS; token < end; token++)
        host_pack_row(call->params, x, &call->operands[1], token);
}

/* out[token][row] += bias[row] over a tile. */
static void add_bias(float *out, size_t out_stride, const float *bias, uint64_t rows,
                     uint64_t tokens)
{
    for (uint64_t token = 0; token < tokens; token++)
        for (uint64_t row = 0; row < rows; row++)
            out[token * out_stride + row] += bias[row];
}

/* One product: its operands, and how it is cut. */
struct product {
    const struct params_matmul *params;
    const struct device_host_operand *weights, *packed, *bias, *out;
};

static uint64_t row_tiles(const struct product *product)
{
    uint64_t rows = product->out->shape.dims[0], per_tile = product->params->tile_rows;
    return (rows + per_tile - 1) / per_tile;
}

static uint64_t token_tiles(const struct product *product)
{
    uint64_t tokens = product->out->shape.dims[1], per_tile = product->params->tile_tokens;
    return (tokens + per_tile - 1) / per_tile;
}

/* Tiles first .. end - 1: those of the same tokens, whose weights are neighbours, as one task. */
static void do_tiles(const struct product *product, uint64_t first, uint64_t end,
                     enum cpu_path path, void *scratch)
{
    const struct params_matmul *params = product->params;
    const struct device_host_operand *weights = product->weights, *packed = product->packed;
    const struct device_host_operand *out = product->out;
    const struct host_matmul_kernel *kernel = host_matmul_kernel(path, weights->dtype);
    uint64_t per_token_tile = row_tiles(product);
    for (uint64_t tile = first, next; tile < end; tile = next) {
        next = smaller(end, (tile / per_token_tile + 1) * per_token_tile);
        uint64_t first_row = tile % per_token_tile * params->tile_rows;
        uint64_t first_token = tile / per_token_tile * params->tile_tokens;
        uint64_t rows = smaller((next - tile) * params->tile_rows, out->shape.dims[0] - first_row);
        uint64_t tokens = smaller(params->tile_tokens, out->shape.dims[1] - first_token);
        float *tile_out = row_f32(out, first_token) + first_row;
        struct host_matmul_task task = {
            .dtype = weights->dtype,
            .k = (size_t)weights->shape.dims[0],
            .weights = row_bytes(weights, first_row),
            .weight_row_bytes = (size_t)weights->row_stride_bytes,
            .weight_rows = (size_t)rows,
            .activations = row_bytes(packed, first_token),
            .activation_row_bytes = (size_t)packed->row_stride_bytes,
            .activation_rows = (size_t)tokens,
            .output = tile_out,
            .output_stride = (size_t)(out->row_stride_bytes / sizeof(float)),
            .scratch = scratch,
        };
        host_matmul(kernel, &task);
        if (product->bias->data)
            add_bias(tile_out, task.output_stride, (const float *)product->bias->data + first_row,
                     rows, tokens);
    }
}

static void matmul_run(const struct device_host_call *call, uint64_t first, enum cpu_path path)
{
    const struct device_host_operand *operands = call->operands;
    struct product product = { call->params, &operands[0], &operands[1], &operands[2],
                               &operands[3] };
    do_tiles(&product, first, call->run_end, path, call->scratch);
}

/* The tiles of one product follow those of the one before. */
static void matmul_group_run(const struct device_host_call *call, uint64_t first,
                             enum cpu_path path)
{
    const struct params_matmul_group *params = call->params;
    const struct device_host_operand *operands = call->operands;
    uint64_t end = call->run_end, start = 0; /* start: the number of the product's first tile */
    for (size_t i = 0; i < COUNT_OF(params->parts) && params->parts[i].tile_rows; i++) {
        struct product product = { &params->parts[i], &operands[1 + i], &operands[0],
                                   &operands[4 + i], &operands[7 + i] };
        uint64_t next_start = start + row_tiles(&product) * token_tiles(&product);
        uint64_t part_end = smaller(end, next_start);
        if (first < part_end) {
            do_tiles(&product, first - start, part_end - start, path, call->scratch);
            first = part_end;
        }
        start = next_start;
    }
}

void host_matmul_run_portable(const struct device_host_call *call, uint64_t first)
{
    matmul_run(call, first, CPU_PATH_PORTABLE);
}

void host_matmul_run_avx2(const struct device_host_call *call, uint64_t first)
{
    matmul_run(call, first, CPU_PATH_AVX2);
}

void host_matmul_run_avx512(const struct device_host_call *call, uint64_t first)
{
    matmul_run(call, first, CPU_PATH_AVX512);
}

void host_matmul_group_run_portable(const struct device_host_call *call, uint64_t first)
{
    matmul_group_run(call, first, CPU_PATH_PORTABLE);
}

void host_matmul_group_run_avx2(const struct device_host_call *call, uint64_t first)
{
    matmul_group_run(call, first, CPU_PATH_AVX2);
}

void host_matmul_group_run_avx512(const struct device_host_call *call, uint64_t first)
{
    matmul_group_run(call, first, CPU_PATH_AVX512);
}
