/* matmul_experts.c - matmul_experts, cut into tiles; the arithmetic is in matmul_*.c.
 *
 * A launch is cut in one of two ways. By slot: a tile is some rows of the one expert that a slot
 * chose; each slot reads its expert. By expert: a tile is some rows of one expert, for all slots
 * that chose it; their packed rows are brought together in the scratch, so that the expert is read
 * once for many of them. Every output element is one fixed sequence of operations (matmul.h), so
 * both ways, and any batch, give the same bits.
 *
 * A bad id is trapped once: by the tile with the slot's first rows, or by the launch's first tile.
 */
#include "ops/host/matmul_tiles.h"

#include "base/status.h"
#include "ops/host/matmul.h"
#include "ops/host/rows.h"

#include <string.h>

struct launch {
    const struct device_host_call *call;
    const struct params_matmul *cut;
    const struct device_host_operand *packed, *weights, *ids, *out;
    const float *bias; /* [rows, experts] or NULL */
    const struct host_matmul_kernel *kernel;
    uint64_t rows, slots, experts, slots_per_input;
    uint64_t row_tiles; /* of an expert */
};

static struct launch launch_of(const struct device_host_call *call, enum cpu_path path)
{
    const struct params_matmul_experts *params = call->params;
    const struct device_host_operand *operands = call->operands;
    struct launch launch = { .call = call,
                             .cut = &params->cut,
                             .packed = &operands[MATMUL_EXPERTS_PACKED],
                             .weights = &operands[MATMUL_EXPERTS_WEIGHTS],
                             .ids = &operands[MATMUL_EXPERTS_IDS],
                             .out = &operands[MATMUL_EXPERTS_OUT],
                             .bias = operands[MATMUL_EXPERTS_BIAS].data };
    launch.kernel = host_matmul_kernel(path, launch.weights->dtype);
    launch.rows = launch.out->shape.dims[0];
    launch.slots = launch.out->shape.dims[1];
    launch.experts = launch.weights->shape.dims[1] / launch.rows;
    launch.slots_per_input = launch.slots / launch.packed->shape.dims[1];
    launch.row_tiles = (launch.rows + launch.cut->tile_rows - 1) / launch.cut->tile_rows;
    return launch;
}

static const uint8_t *input_of(const struct launch *launch, uint64_t slot)
{
    return row_bytes(launch->packed, slot / launch->slots_per_input);
}

/* Rows first .. first + count - 1 of an expert. */
static struct host_matmul_task task_of(const struct launch *launch, uint64_t expert, uint64_t first,
                                       uint64_t count)
{
    return (struct host_matmul_task){
        .dtype = launch->weights->dtype,
        .k = (size_t)launch->weights->shape.dims[0],
        .weights = row_bytes(launch->weights, expert * launch->rows + first),
        .weight_row_bytes = (size_t)launch->weights->row_stride_bytes,
        .weight_rows = (size_t)count,
        .activation_row_bytes = (size_t)launch->packed->row_stride_bytes,
        .scratch = launch->call->scratch,
    };
}

static void add_bias(const struct launch *launch, uint64_t expert, uint64_t first, uint64_t count,
                     float *out)
{
    const float *bias = launch->bias ? launch->bias + expert * launch->rows + first : NULL;
    for (uint64_t row = 0; bias && row < count; row++)
        out[row] += bias[row];
}

/* ---- By slot -------------------------------------------------------------------------------- */

static void do_slots(const struct launch *launch, uint64_t tile)
{
    while (tile < launch->call->run_end) {
        uint64_t slot = tile / launch->row_tiles, own = tile % launch->row_tiles;
        uint64_t end = (slot + 1) * launch->row_tiles;
        end = end < launch->call->run_end ? end : launch->call->run_end;
        uint64_t expert = list_index(launch->ids, slot);
        uint64_t first = own * launch->cut->tile_rows,
                 last = (own + end - tile) * launch->cut->tile_rows;
        last = last < launch->rows ? last : launch->rows;
        tile = end;
        bool good = first == 0
                        ? device_index_ok(launch->call, MATMUL_EXPERTS_IDS, expert, launch->experts)
                        : expert < launch->experts;
        if (!good)
            continue;
        struct host_matmul_task task = task_of(launch, expert, first, last - first);
        task.activations = input_of(launch, slot);
        task.activation_rows = 1;
        task.output = row_f32(launch->out, slot) + first;
        task.output_stride = (size_t)launch->rows;
        host_matmul(launch->kernel, &task);
        add_bias(launch, expert, first, last - first, task.output);
    }
}

/* ---- By expert ------------------------------------------------------------------------------ */

#define GATHER_LIMIT 256u

/* Slots of an expert, in the scratch after what the kernel needs. */
struct gathered {
    uint64_t slots[GATHER_LIMIT];
    uint64_t count, limit;
    uint8_t *inputs; /* [count] packed rows */
    float *outputs;  /* [count][tile_rows] */
};

static struct gathered gathered_of(const struct launch *launch)
{
    size_t kernel_bytes = host_matmul_scratch_bytes(launch->kernel,
                                                    (size_t)launch->weights->shape.dims[0]);
    size_t input_bytes = (size_t)launch->packed->row_stride_bytes;
    size_t slot_bytes = input_bytes + launch->cut->tile_rows * sizeof(float);
    size_t room = kernel_bytes < DEVICE_SCRATCH_BYTES ? DEVICE_SCRATCH_BYTES - kernel_bytes : 0;
    struct gathered gathered = { .limit = room / slot_bytes };
    gathered.limit = gathered.limit < GATHER_LIMIT ? gathered.limit : GATHER_LIMIT;
    gathered.inputs = (uint8_t *)launch->call->scratch + kernel_bytes;
    gathered.outputs = (float *)(void *)(gathered.inputs + gathered.limit * input_bytes);
    return gathered;
}

/* The next slots that chose the expert, from `slot` on. Returns where to go on. */
static uint64_t gather(const struct launch *launch, uint64_t expert, uint64_t slot,
                       struct gathered *gathered)
{
    size_t bytes = (size_t)launch->packed->row_stride_bytes;
    gathered->count = 0;
    for (; slot < launch->slots && gathered->count < gathered->limit; slot++) {
        if (list_index(launch->ids, slot) != expert)
            continue;
        memcpy(gathered->inputs + gathered->count * bytes, input_of(launch, slot),
               (size_t)launch->packed->shape.dims[0]);
        gathered->slots[gathered->count++] = slot;
    }
    return slot;
}

static void do_rows(const struct launch *launch, uint64_t expert, uint64_t first, uint64_t count,
                    const struct gathered *gathered)
{
    struct host_matmul_task task = task_of(launch, expert, first, count);
    task.activations = gathered->inputs;
    task.activation_rows = (size_t)gathered->count;
    task.output = gathered->outputs;
    task.output_stride = (size_t)count;
    host_matmul(launch->kernel, &task);
    for (uint64_t i = 0; i < gathered->count; i++) {
        float *out = row_f32(launch->out, gathered->slots[i]) + first;
        memcpy(out, gathered->outputs + i * count, count * sizeof(float));
        add_bias(launch, expert, first, count, out);
    }
}

/* Without room for a row: one slot at a time, which needs none. */
static void do_alone(const struct launch *launch, uint64_t expert, uint64_t first, uint64_t count)
{
    for (uint64_t slot = 0; slot < launch->slots; slot++) {
        if (list_index(launch->ids, slot) != expert)
            continue;
        struct host_matmul_task task = task_of(launch, expert, first, count);
        task.activations = input_of(launch, slot);
        task.activation_rows = 1;
        task.output = row_f32(launch->out, slot) + first;
        task.output_stride = (size_t)launch->rows;
        host_matmul(launch->kernel, &task);
        add_bias(launch, expert, first, count, task.output);
    }
}

/* Tiles first_tile to end_tile - 1 of an expert. */
static void do_expert(const struct launch *launch, uint64_t expert, uint64_t first_tile,
                      uint64_t end_tile)
{
    struct gathered gathered = gathered_of(launch);
    uint64_t slot = 0, tile_rows = launch->cut->tile_rows;
    do {
        if (gathered.limit)
            slot = gather(launch, expert, slot, &gathered);
        for (uint64_t tile = first_tile; tile < end_tile; tile++) {
            uint64_t first = tile * tile_rows, left = launch->rows - first;
            uint64_t count = left < tile_rows ? left : tile_rows;
            if (!gathered.limit)
                do_alone(launch, expert, first, count);
            else if (gathered.count)
                do_rows(launch, expert, first, count, &gathered);
        }
    } while (gathered.limit && slot < launch->slots);
}

static void do_experts(const struct launch *launch, uint64_t tile)
{
    if (tile == 0)
        for (uint64_t slot = 0; slot < launch->slots; slot++)
            device_index_ok(launch->call, MATMUL_EXPERTS_IDS, list_index(launch->ids, slot),
                            launch->experts);
    while (tile < launch->call->run_end) {
        uint64_t expert = tile / launch->row_tiles, own = tile % launch->row_tiles;
        uint64_t left = launch->call->run_end - tile, rest = launch->row_tiles - own;
        uint64_t count = left < rest ? left : rest;
        do_expert(launch, expert, own, own + count);
        tile += count;
    }
}

/* ---- Both ----------------------------------------------------------------------------------- */

static void matmul_experts_run(const struct device_host_call *call, uint64_t first,
                               enum cpu_path path)
{
    const struct params_matmul_experts *params = call->params;
    struct launch launch = launch_of(call, path);
    if (params->by_expert)
        do_experts(&launch, first);
    else
        do_slots(&launch, first);
}

void host_matmul_experts_run_portable(const struct device_host_call *call, uint64_t tile)
{
    matmul_experts_run(call, tile, CPU_PATH_PORTABLE);
}

void host_matmul_experts_run_avx2(const struct device_host_call *call, uint64_t tile)
{
    matmul_experts_run(call, tile, CPU_PATH_AVX2);
}

void host_matmul_experts_run_avx512(const struct device_host_call *call, uint64_t tile)
{
    matmul_experts_run(call, tile, CPU_PATH_AVX512);
}
