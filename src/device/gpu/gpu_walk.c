/* gpu_walk.c - a graph as one kernel: the calls of its launches lie in a table in device memory,
 * and the kernel walks through them (device_gpu_walk). Every row has the number of its launch, so
 * that crumbs, traps and faults name what they always named.
 *
 * A graph with copies in it is not walked, nor one that is inspected between its launches; one that
 * is swept at its end is. */
#include "device/gpu/gpu_impl.h"

#include <stdlib.h>
#include <string.h>

/* What is asked of the image, and what it says. */
struct walk_plan {
    const struct device_command **launches;
    uint32_t count;
    struct device_gpu_request *requests;
    device_gpu_plan *plans;
    struct device_gpu_walk_row *rows;
    uint32_t row_count, taken;
    uint64_t words; /* before the table, a multiple of WORDS_ROUND */
    struct device_gpu_step step;
};

#define WORDS_ROUND 16u

static void release_plan(struct walk_plan *plan)
{
    free(plan->launches);
    free(plan->requests);
    free(plan->plans);
    free(plan->rows);
}

static bool is_walkable(const struct gpu_device *gpu, const struct gpu_graph *graph, bool sweep)
{
    if (!gpu->device.options.walk || graph->command_count == 0)
        return false;
    uint32_t module_index = graph->commands[0].kernel.module_index;
    for (size_t i = 0; i < graph->command_count; i++) {
        const struct device_command *command = &graph->commands[i];
        bool is_launch = command->kind == DEVICE_COMMAND_LAUNCH &&
                         command->kernel.module_index == module_index;
        if (!is_launch && !(sweep && command->kind == DEVICE_COMMAND_INSPECT))
            return false;
    }
    return graph->commands[0].kind == DEVICE_COMMAND_LAUNCH &&
           gpu->modules[module_index].walk != NULL;
}

/* Leaves row_count 0 where the graph cannot be walked, or there is no memory to find out. */
static void make_plan(const struct gpu_device *gpu, const struct gpu_graph *graph,
                      struct walk_plan *plan)
{
    size_t count = graph->command_count;
    plan->launches = calloc(count, sizeof(*plan->launches));
    plan->requests = calloc(count, sizeof(*plan->requests));
    plan->plans = calloc(count, sizeof(*plan->plans));
    plan->rows = calloc(count, sizeof(*plan->rows));
    if (!plan->launches || !plan->requests || !plan->plans || !plan->rows)
        return;
    for (size_t i = 0; i < count; i++) {
        const struct device_command *command = &graph->commands[i];
        if (command->kind != DEVICE_COMMAND_LAUNCH)
            continue;
        plan->launches[plan->count] = command;
        plan->requests[plan->count] = gpu_request(gpu, command);
        plan->plans[plan->count++] = command->kernel.gpu;
    }
    device_gpu_walk walk = gpu->modules[graph->commands[0].kernel.module_index].walk;
    plan->row_count = walk(plan->requests, plan->plans, plan->count, plan->rows, &plan->step,
                           &plan->taken, &plan->words);
    plan->words += (WORDS_ROUND - plan->words % WORDS_ROUND) % WORDS_ROUND;
    ASSERT(plan->row_count <= plan->count && plan->taken <= plan->count);
}

/* Fills the table, behind the words, and gives both to the device at `address`. */
static enum status upload(struct gpu_device *gpu, const struct gpu_stream *stream,
                          const struct walk_plan *plan, uint8_t *memory, uint64_t bytes,
                          uint64_t address, struct error *err)
{
    struct gpu_call *calls = (struct gpu_call *)(void *)(memory + plan->words * sizeof(uint64_t));
    struct gpu_prepared prepared; /* large: only what is used is written */
    for (uint32_t i = 0; i < plan->row_count; i++) {
        const struct device_gpu_walk_row *row = &plan->rows[i];
        struct device_command commands[DEVICE_GPU_JOIN_LIMIT];
        for (uint32_t n = 0; n < row->count; n++)
            commands[n] = *plan->launches[row->first + n];
        gpu_prepare_steps(gpu, stream, commands, row->count, row->first + 1, &row->step, 1,
                          &prepared);
        calls[i] = prepared.calls[0];
    }
    return gpu_upload(gpu, address, memory, bytes, err);
}

/* The one launch. */
static void prepare(struct gpu_device *gpu, const struct gpu_stream *stream,
                    const struct walk_plan *plan, uint64_t address,
                    struct gpu_prepared *ret_prepared)
{
    gpu_prepare_steps(gpu, stream, plan->launches[0], 1, 1, &plan->step, 1, ret_prepared);
    struct gpu_operand *operands = ret_prepared->calls[0].operands;
    memset(operands, 0, sizeof(ret_prepared->calls[0].operands));
    operands[0] = (struct gpu_operand){ .address = address + plan->words * sizeof(uint64_t),
                                        .row_stride_bytes = sizeof(struct gpu_call),
                                        .width = sizeof(struct gpu_call),
                                        .rows = plan->row_count };
    operands[1] = (struct gpu_operand){ .address = address, .width = plan->words, .rows = 1 };
}

enum status gpu_walk_create(struct gpu_device *gpu, const struct gpu_stream *stream,
                            const struct gpu_graph *graph, bool sweep,
                            struct gpu_recording *recording, struct gpu_prepared *ret_prepared,
                            struct error *err)
{
    struct walk_plan plan = { 0 };
    uint8_t *memory = NULL;
    enum status status = STATUS_OK;
    uint64_t address = 0;
    if (!is_walkable(gpu, graph, sweep))
        return STATUS_OK;
    make_plan(gpu, graph, &plan);
    uint64_t bytes = plan.words * sizeof(uint64_t) + plan.row_count * sizeof(struct gpu_call);
    if (plan.row_count)
        memory = calloc(1, bytes);
    /* Where there is no memory for it there is another way. */
    if (memory && gpu->runtime.memory_create(gpu->runtime.self, bytes, &address) == 0) {
        recording->walk = address;
        recording->walked = plan.taken;
        recording->walked_commands = (size_t)(plan.launches[plan.taken - 1] - graph->commands) + 1;
        status = upload(gpu, stream, &plan, memory, bytes, address, err);
        prepare(gpu, stream, &plan, address, ret_prepared);
    }
    free(memory);
    release_plan(&plan);
    return status;
}

void gpu_walk_destroy(struct gpu_device *gpu, struct gpu_recording *recording)
{
    if (recording->walk)
        gpu->runtime.memory_destroy(gpu->runtime.self, recording->walk);
    recording->walk = 0;
}
