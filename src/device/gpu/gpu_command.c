/* gpu_command.c - what a command is to the runtime: a launch some kernels and what they are called
 * with, alone or as one with others of a graph; a copy or fill one call, or one for each row. */
#include "device/gpu/gpu_impl.h"

#include <string.h>

/* ---- Launches ------------------------------------------------------------------------------- */

static void fill_operand(const struct device_host_operand *from, struct gpu_operand *to)
{
    uint64_t rows = 0;
    if (!from->data || !shape_row_count(&from->shape, &rows))
        return;
    *to = (struct gpu_operand){ .address = (uint64_t)(uintptr_t)from->data,
                                .row_stride_bytes = from->row_stride_bytes,
                                .width = from->shape.dims[0],
                                .rows = rows,
                                .dtype = (uint32_t)from->dtype };
}

/* What all kernels of a launch are given. */
static struct gpu_call make_call(const struct gpu_device *gpu, const struct gpu_stream *stream,
                                 const struct device_command *command, uint64_t node)
{
    struct gpu_call call = { .crumbs = stream->crumbs,
                             .entered = node ? 0 : command->event_id,
                             .finished = stream->last_id,
                             .node = node,
                             .page = gpu->page_address,
                             .trap_counter = gpu->trap_counter,
                             .trap_id = command->event_id,
                             .workspace = stream->workspace };
    return call;
}

enum status gpu_make_workspace(struct gpu_device *gpu, struct gpu_stream *stream, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint64_t address;
    if (stream->workspace)
        return STATUS_OK;
    int made = runtime->memory_create(runtime->self, GPU_WORKSPACE_BYTES, &address);
    if (made) {
        gpu_no_room(gpu, made, GPU_WORKSPACE_BYTES, err);
        return error_wrap(err, "scratch of a stream");
    }
    stream->workspace = address;
    pthread_mutex_lock(&gpu->lock);
    int code = runtime->fill(runtime->self, address, 0, GPU_WORKSPACE_BYTES, gpu->internal_stream);
    if (!code)
        code = runtime->stream_sync(runtime->self, gpu->internal_stream);
    pthread_mutex_unlock(&gpu->lock);
    GPU_TRY(gpu, code, "workspace", err);
    return STATUS_OK;
}

static struct device_gpu_request request_of(const struct gpu_device *gpu,
                                            const struct device_command *command)
{
    return (struct device_gpu_request){ .params = command->params,
                                        .operands = command->operands,
                                        .operand_count = command->operand_count,
                                        .chip = &gpu->facts.chip };
}

/* Operand `number` of the launches together, or NULL. */
static const struct device_host_operand *find_operand(const struct device_command *const *launches,
                                                      uint32_t count, uint32_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        if (number < launches[i]->operand_count)
            return &launches[i]->operands[number];
        number -= launches[i]->operand_count;
    }
    return NULL;
}

/* Whether a kernel may read what it reads early only after the kernels before it. */
static bool must_wait(const struct device_command *const *launches, uint32_t count,
                      const struct gpu_before *before, const struct device_gpu_step *step)
{
    if (!before->known)
        return step->early_operands != 0;
    for (uint32_t o = 0; o < GPU_OPERAND_LIMIT; o++) {
        const struct device_host_operand *operand = find_operand(launches, count,
                                                                 step->operands[o]);
        if (step->early_operands >> o & 1 && operand &&
            gpu_is_written(before->commands, before->count, operand))
            return true;
    }
    return false;
}

static void fill_calls(struct gpu_device *gpu, const struct gpu_stream *stream,
                       const struct device_command *const *launches, uint32_t count, uint64_t node,
                       const struct gpu_before *before, const struct device_gpu_step *steps,
                       uint32_t step_count, struct gpu_prepared *ret_prepared)
{
    ASSERT(step_count <= DEVICE_GPU_STEP_LIMIT);
    ret_prepared->count = step_count;
    for (uint32_t i = 0; i < step_count; i++) {
        const struct device_gpu_step *step = &steps[i];
        struct gpu_call *call = &ret_prepared->calls[i];
        *call = make_call(gpu, stream, launches[0], node);
        memcpy(call->params, launches[step->params_of]->params, sizeof(call->params));
        for (uint32_t more = 1; more < count && more <= COUNT_OF(call->more_trap_ids); more++)
            call->more_trap_ids[more - 1] = launches[more]->event_id;
        memcpy(call->args, step->args, sizeof(call->args));
        call->wait_first = must_wait(launches, count, before, step);
        for (uint32_t o = 0; o < GPU_OPERAND_LIMIT; o++) {
            const struct device_host_operand *operand = find_operand(launches, count,
                                                                     step->operands[o]);
            if (operand)
                fill_operand(operand, &call->operands[o]);
        }
        ret_prepared->functions[i] =
            gpu->modules[launches[0]->kernel.module_index].functions[step->kernel];
        ret_prepared->grids[i] = (struct gpu_grid){ step->grid_x, step->grid_y, step->threads,
                                                    step->shared_bytes };
    }
}

void gpu_prepare(struct gpu_device *gpu, const struct gpu_stream *stream,
                 const struct device_command *command, uint64_t node, struct gpu_before before,
                 struct gpu_prepared *ret_prepared)
{
    struct device_gpu_request request = request_of(gpu, command);
    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT];
    uint32_t count = command->kernel.gpu(&request, steps);
    fill_calls(gpu, stream, &command, 1, node, &before, steps, count, ret_prepared);
}

uint32_t gpu_prepare_joined(struct gpu_device *gpu, const struct gpu_stream *stream,
                            const struct device_command *const *launches, uint32_t count,
                            uint64_t node, struct gpu_before before,
                            struct gpu_prepared *ret_prepared)
{
    struct device_gpu_request requests[DEVICE_GPU_JOIN_LIMIT];
    struct device_gpu_step steps[DEVICE_GPU_STEP_LIMIT];
    device_gpu_plan plans[DEVICE_GPU_JOIN_LIMIT];
    uint32_t module_index = launches[0]->kernel.module_index, same = 0, taken = 0;
    device_gpu_join join = gpu->modules[module_index].join;
    ASSERT(count <= DEVICE_GPU_JOIN_LIMIT);
    while (same < count && launches[same]->kernel.module_index == module_index) {
        requests[same] = request_of(gpu, launches[same]);
        plans[same] = launches[same]->kernel.gpu;
        same++;
    }
    uint32_t step_count = join && same > 1 ? join(requests, plans, same, steps, &taken) : 0;
    if (step_count == 0)
        return 0;
    ASSERT(taken > 0 && taken <= same);
    fill_calls(gpu, stream, launches, same, node, &before, steps, step_count, ret_prepared);
    return taken;
}

enum status gpu_launch(struct gpu_device *gpu, struct gpu_stream *stream,
                       const struct device_command *command, struct error *err)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_prepared prepared; /* large: only what is used is written */
    TRY(gpu_make_workspace(gpu, stream, err));
    gpu_prepare(gpu, stream, command, 0, (struct gpu_before){ 0 }, &prepared);
    for (uint32_t i = 0; i < prepared.count; i++) {
        GPU_TRY(gpu,
                runtime->launch(runtime->self, prepared.functions[i], &prepared.grids[i],
                                stream->handle, &prepared.calls[i]),
                command->contract->name, err);
        if (i == 0) /* it may fault while the others are given */
            gpu_note_command(stream, command);
    }
    return STATUS_OK;
}

/* ---- Copies and fills ----------------------------------------------------------------------- */

static bool is_dense(const struct device_rows *rows)
{
    return rows->row_count <= 1 || rows->stride_bytes == rows->row_bytes;
}

static int transfer(const struct gpu_runtime *runtime, void *stream,
                    const struct device_command *command, uint64_t target, uint64_t source,
                    uint64_t staged, uint64_t bytes)
{
    uint8_t *staging = command->staging;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
        return runtime->copy_in(runtime->self, target, staging + staged, bytes, stream);
    case DEVICE_COMMAND_COPY_OUT:
        return runtime->copy_out(runtime->self, staging + staged, source, bytes, stream);
    case DEVICE_COMMAND_COPY_WITHIN:
        return runtime->copy_within(runtime->self, target, source, bytes, stream);
    case DEVICE_COMMAND_FILL:
        return runtime->fill(runtime->self, target, command->byte, bytes, stream);
    case DEVICE_COMMAND_INSPECT:
    case DEVICE_COMMAND_LAUNCH:
        break;
    }
    return 0;
}

/* A fill by a kernel: at any address, and a bad one is a fault of the kernel, as it is in an op. */
static int store(struct gpu_device *gpu, const struct gpu_stream *stream,
                 const struct device_command *command)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    const struct device_rows *rows = &command->target;
    struct gpu_grid grid = { (uint32_t)(rows->row_bytes / (64 * 256u) % 1024 + 1), 1, 256, 0 };
    struct gpu_call call = { .crumbs = stream->crumbs,
                             .entered = command->event_id,
                             .finished = command->event_id - 1 };
    struct gpu_region region = { .address = rows->address,
                                 .row_stride_bytes = rows->stride_bytes,
                                 .width = rows->row_bytes,
                                 .rows = rows->row_count,
                                 .byte = command->byte };
    memcpy(call.operands, &region, sizeof(region));
    return runtime->launch(runtime->self, gpu->store_function, &grid, stream->handle, &call);
}

int gpu_transfer(struct gpu_device *gpu, const struct gpu_stream *stream,
                 const struct device_command *command)
{
    if (command->kind == DEVICE_COMMAND_FILL && command->contract && gpu->store_function)
        return store(gpu, stream, command);
    bool out = command->kind == DEVICE_COMMAND_COPY_OUT;
    bool within = command->kind == DEVICE_COMMAND_COPY_WITHIN;
    const struct device_rows *rows = out ? &command->source : &command->target;
    const struct device_rows *from = &command->source;
    bool dense = is_dense(rows) && (!within || is_dense(from));
    uint64_t count = dense ? 1 : rows->row_count;
    uint64_t bytes = dense ? rows->row_bytes * rows->row_count : rows->row_bytes;
    int code = 0;
    for (uint64_t row = 0; row < count && bytes && !code; row++)
        code = transfer(&gpu->runtime, stream->handle, command,
                        command->target.address + row * command->target.stride_bytes,
                        from->address + row * from->stride_bytes, row * bytes, bytes);
    return code;
}
