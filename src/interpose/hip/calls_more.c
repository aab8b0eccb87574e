/* calls_more.c - the wrappers that calls.def has no row for. */
#include "interpose/hip/hip.h"

#include <string.h>

#define REAL(name, parameters) ((hipError_t(*) parameters)hip_real(HIP_INDEX_##name))

/* ---- Memory with rows: how long they are is known afterwards -------------------------------- */

static void end_rows(struct interpose *trace, struct interpose_call *call, const void *address,
                     size_t pitch, size_t rows, hipError_t code)
{
    uint64_t bytes;
    if (code == 0 && call->open && !__builtin_mul_overflow(pitch, rows, &bytes))
        call->event.buffer.bytes = bytes;
    interpose_alloc_context(trace, call, hip_context());
    interpose_alloc_end(trace, call, code ? 0 : hip_number(address), (int32_t)code);
    hip_leave();
}

hipError_t hipMallocPitch(void **address, size_t *pitch, size_t width, size_t height)
{
    hipError_t (*real)(void **, size_t *, size_t,
                       size_t) = REAL(hipMallocPitch, (void **, size_t *, size_t, size_t));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(address, pitch, width, height) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_alloc_begin(trace, &call, "hipMallocPitch", INTERPOSE_DEVICE, width * height, NULL);
    hipError_t code = real(address, pitch, width, height);
    end_rows(trace, &call, code ? NULL : *address, code ? 0 : *pitch, height, code);
    return code;
}

hipError_t hipMemAllocPitch(hipDeviceptr_t *address, size_t *pitch, size_t width, size_t height,
                            unsigned int element_bytes)
{
    hipError_t (*real)(hipDeviceptr_t *, size_t *, size_t, size_t, unsigned int) = REAL(
        hipMemAllocPitch, (hipDeviceptr_t *, size_t *, size_t, size_t, unsigned int));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(address, pitch, width, height, element_bytes) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_alloc_begin(trace, &call, "hipMemAllocPitch", INTERPOSE_DEVICE, width * height, NULL);
    hipError_t code = real(address, pitch, width, height, element_bytes);
    end_rows(trace, &call, code ? NULL : *address, code ? 0 : *pitch, height, code);
    return code;
}

hipError_t hipMalloc3D(hipPitchedPtr *memory, hipExtent extent)
{
    hipError_t (*real)(hipPitchedPtr *, hipExtent) = REAL(hipMalloc3D,
                                                          (hipPitchedPtr *, hipExtent));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(memory, extent) : HIP_NOT_FOUND;
    struct interpose_call call;
    size_t rows = extent.height * extent.depth;
    interpose_alloc_begin(trace, &call, "hipMalloc3D", INTERPOSE_DEVICE, extent.width * rows, NULL);
    hipError_t code = real(memory, extent);
    end_rows(trace, &call, code ? NULL : memory->ptr, code ? 0 : memory->pitch, rows, code);
    return code;
}

/* ---- Streams, events, devices --------------------------------------------------------------- */

/* Records the end of a call that was begun. */
static hipError_t end_call(struct interpose *trace, struct interpose_call *call, hipError_t code)
{
    interpose_end(trace, call, (int32_t)code);
    hip_leave();
    return code;
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    hipError_t (*real)(hipStream_t) = REAL(hipStreamDestroy, (hipStream_t));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(stream) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_stream_destroy_begin(trace, &call, "hipStreamDestroy", ON(stream));
    return end_call(trace, &call, real(stream));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    hipError_t (*real)(hipEvent_t) = REAL(hipEventSynchronize, (hipEvent_t));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(event) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_event_sync_begin(trace, &call, "hipEventSynchronize", hip_number(event));
    return end_call(trace, &call, real(event));
}

/* Records a call only if it failed. */
static hipError_t end_other(struct interpose *trace, const char *name, hipError_t code)
{
    if (trace && code)
        interpose_failed(trace, name, (int32_t)code);
    if (trace)
        hip_leave();
    return code;
}

hipError_t hipSetDevice(int device)
{
    hipError_t (*real)(int) = REAL(hipSetDevice, (int));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    hipError_t code = real(device);
    if (code == 0)
        hip_device_set(device);
    return end_other(trace, "hipSetDevice", code);
}

/* All memory of the calling thread's device is freed. */
hipError_t hipDeviceReset(void)
{
    hipError_t (*real)(void) = REAL(hipDeviceReset, (void));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real() : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_reset_begin(trace, &call, "hipDeviceReset");
    hipError_t code = real();
    if (code == 0)
        interpose_context_gone(trace, &call, hip_context());
    return end_call(trace, &call, code);
}

/* ---- Code ----------------------------------------------------------------------------------- */

hipError_t hipModuleLoad(hipModule_t *module, const char *path)
{
    hipError_t (*real)(hipModule_t *, const char *) = REAL(hipModuleLoad,
                                                           (hipModule_t *, const char *));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    hipError_t code = real(module, path);
    if (trace && code == 0)
        hip_module_add_file(*module, path);
    return end_other(trace, "hipModuleLoad", code);
}

static hipError_t end_load(struct interpose *trace, const char *name, hipModule_t *module,
                           const void *image, hipError_t code)
{
    struct code_source source = hip_memory_source(image);
    if (trace && code == 0)
        hip_module_add(*module, &source);
    return end_other(trace, name, code);
}

hipError_t hipModuleLoadData(hipModule_t *module, const void *image)
{
    hipError_t (*real)(hipModule_t *, const void *) = REAL(hipModuleLoadData,
                                                           (hipModule_t *, const void *));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    return end_load(trace, "hipModuleLoadData", module, image, real(module, image));
}

hipError_t hipModuleLoadDataEx(hipModule_t *module, const void *image, unsigned int count,
                               hipJitOption *options, void **values)
{
    hipError_t (*real)(hipModule_t *, const void *, unsigned int, hipJitOption *, void **) = REAL(
        hipModuleLoadDataEx, (hipModule_t *, const void *, unsigned int, hipJitOption *, void **));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    return end_load(trace, "hipModuleLoadDataEx", module, image,
                    real(module, image, count, options, values));
}

hipError_t hipModuleUnload(hipModule_t module)
{
    hipError_t (*real)(hipModule_t) = REAL(hipModuleUnload, (hipModule_t));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    if (trace)
        hip_module_remove(module);
    return end_other(trace, "hipModuleUnload", real(module));
}

hipError_t hipModuleGetFunction(hipFunction_t *function, hipModule_t module, const char *name)
{
    hipError_t (*real)(hipFunction_t *, hipModule_t, const char *) = REAL(
        hipModuleGetFunction, (hipFunction_t *, hipModule_t, const char *));
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    hipError_t code = real(function, module, name);
    if (trace && code == 0)
        hip_module_function(module, *function, name);
    return end_other(trace, "hipModuleGetFunction", code);
}

/* ---- Launches of older and of several kinds ------------------------------------------------- */

static _Thread_local struct hip_launch configured; /* by hipConfigureCall */
static _Thread_local hipStream_t configured_stream;

hipError_t hipConfigureCall(dim3 grid, dim3 block, size_t shared_bytes, hipStream_t stream)
{
    hipError_t (*real)(dim3, dim3, size_t, hipStream_t) = REAL(hipConfigureCall,
                                                               (dim3, dim3, size_t, hipStream_t));
    if (!real)
        return HIP_NOT_FOUND;
    configured = (struct hip_launch){ .grid = grid, .block = block, .shared_bytes = shared_bytes };
    configured_stream = stream;
    return real(grid, block, shared_bytes, stream);
}

/* Its arguments went to the runtime one by one: they are unknown. */
hipError_t hipLaunchByPtr(const void *function)
{
    hipError_t (*real)(const void *) = REAL(hipLaunchByPtr, (const void *));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(function) : HIP_NOT_FOUND;
    struct interpose_call call;
    struct hip_launch launch = configured;
    launch.function = function;
    launch.stream = ON(configured_stream);
    hip_launch_begin(trace, &call, "hipLaunchByPtr", &launch);
    return end_call(trace, &call, real(function));
}

#define LAUNCH_LIMIT 16 /* devices of a machine */

static hipError_t launch_several(hipError_t (*real)(hipLaunchParams *, int, unsigned int),
                                 const char *name, hipLaunchParams *launches, int count,
                                 unsigned int flags)
{
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(launches, count, flags) : HIP_NOT_FOUND;
    struct interpose_call calls[LAUNCH_LIMIT];
    int reported = !launches || count < 0 ? 0 : count < LAUNCH_LIMIT ? count : LAUNCH_LIMIT;
    for (int i = 0; i < reported; i++) {
        const hipLaunchParams *params = &launches[i];
        struct hip_launch launch = { .function = params->func,
                                     .grid = params->gridDim,
                                     .block = params->blockDim,
                                     .shared_bytes = params->sharedMem,
                                     .params = params->args,
                                     .stream = ON(params->stream) };
        hip_launch_begin(trace, &calls[i], name, &launch);
    }
    hipError_t code = real(launches, count, flags);
    for (int i = 0; i < reported; i++)
        interpose_end(trace, &calls[i], (int32_t)code);
    hip_leave();
    return code;
}

hipError_t hipExtLaunchMultiKernelMultiDevice(hipLaunchParams *launches, int count,
                                              unsigned int flags)
{
    return launch_several(
        REAL(hipExtLaunchMultiKernelMultiDevice, (hipLaunchParams *, int, unsigned int)),
        "hipExtLaunchMultiKernelMultiDevice", launches, count, flags);
}

hipError_t hipLaunchCooperativeKernelMultiDevice(hipLaunchParams *launches, int count,
                                                 unsigned int flags)
{
    return launch_several(
        REAL(hipLaunchCooperativeKernelMultiDevice, (hipLaunchParams *, int, unsigned int)),
        "hipLaunchCooperativeKernelMultiDevice", launches, count, flags);
}

/* ---- Graphs --------------------------------------------------------------------------------- */

hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode)
{
    hipError_t (*real)(hipStream_t, hipStreamCaptureMode) = REAL(
        hipStreamBeginCapture, (hipStream_t, hipStreamCaptureMode));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(stream, mode) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_capture_begin(trace, &call, "hipStreamBeginCapture", ON(stream));
    return end_call(trace, &call, real(stream, mode));
}

hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *graph)
{
    hipError_t (*real)(hipStream_t, hipGraph_t *) = REAL(hipStreamEndCapture,
                                                         (hipStream_t, hipGraph_t *));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(stream, graph) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_capture_end(trace, &call, "hipStreamEndCapture", ON(stream));
    hipError_t code = real(stream, graph);
    if (code == 0)
        interpose_capture_gave(trace, &call, hip_number(*graph));
    return end_call(trace, &call, code);
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream)
{
    hipError_t (*real)(hipGraphExec_t, hipStream_t) = REAL(hipGraphLaunch,
                                                           (hipGraphExec_t, hipStream_t));
    struct interpose *trace = real ? hip_enter() : NULL;
    if (!trace)
        return real ? real(exec, stream) : HIP_NOT_FOUND;
    struct interpose_call call;
    interpose_graph_launch_begin(trace, &call, "hipGraphLaunch", hip_number(exec), ON(stream));
    return end_call(trace, &call, real(exec, stream));
}

static hipError_t destroy(hipError_t (*real)(void *), const char *name, void *graph)
{
    if (!real)
        return HIP_NOT_FOUND;
    struct interpose *trace = hip_enter();
    hipError_t code = real(graph);
    if (trace && code == 0)
        interpose_graph_destroyed(trace, hip_number(graph));
    return end_other(trace, name, code);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec)
{
    return destroy(REAL(hipGraphExecDestroy, (void *)), "hipGraphExecDestroy", exec);
}

hipError_t hipGraphDestroy(hipGraph_t graph)
{
    return destroy(REAL(hipGraphDestroy, (void *)), "hipGraphDestroy", graph);
}
