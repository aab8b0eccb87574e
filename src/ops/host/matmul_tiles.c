/* matmul_tiles.c - act_pack and matmul, cut into tiles; the arithmetic is in matmul_*.c.
 *
 * Tiles of a matmul are counted along the output rows first: neighbours read neighbouring weights
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
    const struct device_host_operand *x = &call->operands[ACT_PACK_X];
    uint64_t end = smaller((tile + 1) * TILE_TOKENS, x->shape.dims[1]);
    for (uint64_t token = tile * TILE_TOKENS; token < end; token++)
        host_pack_row(call->params, x, &call->operands[ACT_PACK_PACKED], token);
}

/* out[token][row] += bias[row] over a tile. */
static void add_bias(float *out, size_t out_stride, const float *bias, uint64_t rows,
                     uint64_t tokens)
{
    for (uint64_t token = 0; token < tokens; token++)
        for (uint64_t row = 0; row < rows; row++)
            out[token * out_stride + row] += bias[row];
}

/* One matmul: its operands, and how it is cut. */
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

/* The matmuls of a launch; the tiles of one follow those of the one before. */
struct products {
    struct product of[3];
    size_t count;
};

/* Neighbouring tiles of one matmul and the same tokens; their weights are neighbours too. */
struct segment {
    const struct product *product;
    uint64_t end; /* the tile after the last, in the launch's count */
    uint64_t first_row, rows, first_token, tokens;
};

/* From a tile on, up to `end` at most. */
static struct segment segment_at(const struct products *products, uint64_t tile, uint64_t end)
{
    const struct product *product = products->of;
    uint64_t start = 0, count = row_tiles(product) * token_tiles(product);
    while (tile - start >= count) {
        start += count;
        product++;
        count = row_tiles(product) * token_tiles(product);
    }
    const struct params_matmul *params = product->params;
    uint64_t per_token_tile = row_tiles(product), own = tile - start;
    uint64_t token_tile = own / per_token_tile;
    struct segment segment = { .product = product,
                               .end = smaller(end, start + (token_tile + 1) * per_token_tile),
                               .first_row = own % per_token_tile * params->tile_rows,
                               .first_token = token_tile * params->tile_tokens };
    const struct shape *out = &product->out->shape;
    segment.rows = smaller((segment.end - tile) * params->tile_rows,
                           out->dims[0] - segment.first_row);
    segment.tokens = smaller(params->tile_tokens, out->dims[1] - segment.first_token);
    return segment;
}

static void do_segment(const struct segment *segment, struct host_matmul_task *task,
                       enum cpu_path path)
{
    const struct product *product = segment->product;
    float *out = row_f32(product->out, segment->first_token) + segment->first_row;
    task->dtype = product->weights->dtype;
    task->k = (size_t)product->weights->shape.dims[0];
    task->weights = row_bytes(product->weights, segment->first_row);
    task->weight_row_bytes = (size_t)product->weights->row_stride_bytes;
    task->weight_rows = (size_t)segment->rows;
    task->activations = row_bytes(product->packed, segment->first_token);
    task->activation_row_bytes = (size_t)product->packed->row_stride_bytes;
    task->activation_rows = (size_t)segment->tokens;
    task->output = out;
    task->output_stride = (size_t)(product->out->row_stride_bytes / sizeof(float));
    host_matmul(host_matmul_kernel(path, task->dtype), task);
    if (product->bias->data)
        add_bias(out, task->output_stride, (const float *)product->bias->data + segment->first_row,
                 segment->rows, segment->tokens);
}

/* One task per segment; each knows where the next begins, and what the one before left. */
static void do_run(const struct products *products, const struct device_host_call *call,
                   uint64_t first, enum cpu_path path)
{
    const struct product *before = NULL;
    if (call->previous_end)
        before = segment_at(products, call->previous_end - 1, call->previous_end).product;
    for (uint64_t tile = first; tile < call->run_end;) {
        struct host_matmul_task task = { .scratch = call->scratch };
        struct segment segment = segment_at(products, tile, call->run_end);
        uint64_t next = segment.end < call->run_end ? segment.end : call->next_run;
        if (next != DEVICE_NO_TILE) {
            struct segment behind = segment_at(products, next, next + 1);
            task.next_weights = row_bytes(behind.product->weights, behind.first_row);
        }
        task.weights_are_coming = before != NULL;
        task.scratch_is_ready = before &&
                                before->weights->dtype == segment.product->weights->dtype &&
                                token_tiles(segment.product) == 1;
        do_segment(&segment, &task, path);
        before = segment.product;
        tile = segment.end;
    }
}

static struct products products_of_matmul(const struct device_host_call *call)
{
    const struct device_host_operand *operands = call->operands;
    return (struct products){ { { call->params, &operands[MATMUL_WEIGHTS], &operands[MATMUL_PACKED],
                                  &operands[MATMUL_BIAS], &operands[MATMUL_OUT] } },
                              1 };
}

static struct products products_of_group(const struct device_host_call *call)
{
    const struct params_matmul_group *params = call->params;
    const struct device_host_operand *operands = call->operands;
    struct products products = { .count = 0 };
    for (size_t i = 0; i < COUNT_OF(params->parts) && params->parts[i].tile_rows; i++)
        products.of[products.count++] = (struct product){
            &params->parts[i], &operands[MATMUL_GROUP_WEIGHTS + i], &operands[MATMUL_GROUP_PACKED],
            &operands[MATMUL_GROUP_BIASES + i], &operands[MATMUL_GROUP_OUTS + i]
        };
    ASSERT(products.count > 0); /* its contract asks for the first */
    return products;
}

static void matmul_run(const struct device_host_call *call, uint64_t first, enum cpu_path path)
{
    struct products products = products_of_matmul(call);
    do_run(&products, call, first, path);
}

static void matmul_group_run(const struct device_host_call *call, uint64_t first,
                             enum cpu_path path)
{
    struct products products = products_of_group(call);
    do_run(&products, call, first, path);
}

/* The weights from a tile on. Many tokens take so long that the beginning does not matter. */
static const void *weights_from(const struct products *products, uint64_t tile, uint64_t *ret_bytes)
{
    struct segment segment = segment_at(products, tile, DEVICE_NO_TILE);
    const struct device_host_operand *weights = segment.product->weights;
    *ret_bytes = segment.rows * weights->row_stride_bytes;
    return row_bytes(weights, segment.first_row);
}

const void *host_matmul_reads(const struct device_host_call *call, uint64_t tile,
                              uint64_t *ret_bytes)
{
    struct products products = products_of_matmul(call);
    return weights_from(&products, tile, ret_bytes);
}

const void *host_matmul_group_reads(const struct device_host_call *call, uint64_t tile,
                                    uint64_t *ret_bytes)
{
    struct products products = products_of_group(call);
    return weights_from(&products, tile, ret_bytes);
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
