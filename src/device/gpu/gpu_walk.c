/* gpu_walk.c - a graph as one kernel: the calls of its launches lie in a table in device memory,
 * and the kernel walks through them (device_gpu_walk). Every row has the number of its launch, so
 * that crumbs, traps and faults name what they always named.
 *
 * A graph with anything but launches in it (copies, inspections) is not walked. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>
#include <string.h>

/* What goes to the device: counters, then the rows. */
struct walk_table {
    uint64_t counters[DEVICE_GPU_WALK_COUNTERS];
    struct gpu_call calls[];
};

/* What is asked of the image, and what it says. */
struct walk_plan {
    struct device_gpu_request *requests;
    device_gpu_plan *plans;
    struct device_gpu_walk_row *rows;
    uint32_t row_count, taken;
    struct device_gpu_step step;
};

static void release_plan(struct walk_plan *plan)
{
    free(plan->requests);
    free(plan->plans);
    free(plan->rows);
}

static bool is_walkable(const struct gpu_device *gpu, const struct gpu_graph *graph)
{
    if (!gpu->device.options.walk || graph->command_count == 0)
        return false;
    uint32_t module_index = graph->commands[0].kernel.module_index;
    for (size_t i = 0; i < graph->command_count; i++)
        if (graph->commands[i].kind != DEVICE_COMMAND_LAUNCH ||
            graph->commands[i].kernel.module_index != module_index)
            return false;
    return gpu->modules[module_index].walk != NULL;
}

/* Leaves row_count 0 where the graph cannot be walked, or there is no memory to find out. */
static void make_plan(const struct gpu_device *gpu, const struct gpu_graph *graph,
                      struct walk_plan *plan)
{
    size_t count = graph->command_count;
    plan->requests = calloc(count, sizeof(*plan->requests));
    plan->plans = calloc(count, sizeof(*plan->plans));
    plan->rows = calloc(count, sizeof(*plan->rows));
    if (!plan->requests || !plan->plans || !plan->rows)
        return;
    for (size_t i = 0; i < count; i++) {
        plan->requests[i] = gpu_request(gpu, &graph->commands[i]);
        plan->plans[i] = graph->commands[i].kernel.gpu;
    }
    device_gpu_walk walk = gpu->modules[graph->commands[0].kernel.module_index].walk;
    plan->row_count = walk(plan->requests, plan->plans, (uint32_t)count, plan->rows, &plan->step,
                           &plan->taken);
    ASSERT(plan->row_count <= count && plan->taken <= count);
}

/* Fills the table and gives it to the device at `address`. */
static enum status upload(struct gpu_device *gpu, const struct gpu_stream *stream,
                          const struct gpu_graph *graph, const struct walk_plan *plan,
                          struct walk_table *table, uint64_t bytes, uint64_t address,
                          struct error *err)
{
    struct gpu_prepared prepared; /* large: only what is used is written */
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct device_gpu_walk_row *row = &plan->rows[i];
        gpu_prepare_steps(gpu, stream, graph->commands + row->first, row->count, row->first + 1,
                          &row->step, 1, &prepared);
        table->calls[i] = prepared.calls[0];
    }
    return gpu_upload(gpu, address, table, bytes, err);
}

/* The one launch. */
static void prepare(struct gpu_device *gpu, const struct gpu_stream *stream,
                    const struct gpu_graph *graph, const struct walk_plan *plan, uint64_t address,
                    struct gpu_prepared *ret_prepared)
{
    gpu_prepare_steps(gpu, stream, graph->commands, 1, 1, &plan->step, 1, ret_prepared);
    struct gpu_operand *operands = ret_prepared->calls[0].operands;
    memset(operands, 0, sizeof(ret_prepared->calls[0].operands));
    operands[0] = (struct gpu_operand){ .address = address + offsetof(struct walk_table, calls),
                                        .row_stride_bytes = sizeof(struct gpu_call),
                                        .width = sizeof(struct gpu_call),
                                        .rows = plan->row_count };
    operands[1] = (struct gpu_operand){ .address = address, .rows = 1 };
}

enum status gpu_walk_create(struct gpu_device *gpu, const struct gpu_stream *stream,
                            const struct gpu_graph *graph, struct gpu_recording *recording,
                            struct gpu_prepared *ret_prepared, struct error *err)
{
    struct walk_plan plan = { 0 };
    struct walk_table *table = NULL;
    enum status status = STATUS_OK;
    uint64_t address = 0;
    if (!is_walkable(gpu, graph))
        return STATUS_OK;
    make_plan(gpu, graph, &plan);
    uint64_t bytes = sizeof(*table) + plan.row_count * sizeof(table->calls[0]);
    if (plan.row_count)
        table = calloc(1, bytes);
    /* Where there is no memory for it there is another way. */
    if (table && gpu->runtime.memory_create(gpu->runtime.self, bytes, &address) == 0) {
        recording->walk = address;
        recording->walked = plan.taken;
        status = upload(gpu, stream, graph, &plan, table, bytes, address, err);
        prepare(gpu, stream, graph, &plan, address, ret_prepared);
    }
    free(table);
    release_plan(&plan);
    return status;
}

void gpu_walk_destroy(struct gpu_device *gpu, struct gpu_recording *recording)
{
    if (recording->walk)
        gpu->runtime.memory_destroy(gpu->runtime.self, recording->walk);
    recording->walk = 0;
}
