/* runtime_calls.h - the calls of gpu.h that CUDA and HIP make alike, in CUDA's names; hip_names.h
 * maps those names to HIP.
 *
 * Not a header of its own: cuda_runtime.c and hip_runtime.c each include it once, after their
 * struct runtime and the functions that differ (close_runtime, get_facts, error_name, is_fault,
 * enter, find_fault, ask_pointer, code_fits, allow_shared, launch, begin_capture, end_capture,
 * find_captured, set_call, open_library), with RUNTIME_KIND, RUNTIME_TITLE and RUNTIME_PINNED
 * defined. */

/* ---- Memory --------------------------------------------------------------------------------- */

/* An address is a number in CUDA and a pointer in HIP. */
static CUdeviceptr to_address(uint64_t address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

static uint64_t to_number(CUdeviceptr address)
{
    return (uint64_t)(uintptr_t)address;
}

static bool is_no_memory(int code)
{
    return code == CUDA_NO_MEMORY;
}

static int create_memory(void *self, uint64_t bytes, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemAlloc_v2(&address, (size_t)bytes);
    *ret_address = to_number(address);
    return code;
}

static int destroy_memory(void *self, uint64_t address)
{
    return (int)api_of(self)->cuMemFree_v2(to_address(address));
}

static int find_address(void *self, void *memory, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemHostGetDevicePointer_v2(&address, memory, 0);
    *ret_address = to_number(address);
    return code;
}

static int create_pinned(void *self, uint64_t bytes, void **ret_memory, uint64_t *ret_address)
{
    int code = (int)api_of(self)->cuMemHostAlloc(ret_memory, (size_t)bytes, RUNTIME_PINNED);
    if (code)
        return code;
    code = find_address(self, *ret_memory, ret_address);
    if (code) {
        api_of(self)->cuMemFreeHost(*ret_memory);
        *ret_memory = NULL;
    }
    return code;
}

static int destroy_pinned(void *self, void *memory)
{
    return (int)api_of(self)->cuMemFreeHost(memory);
}

static int pin(void *self, void *memory, uint64_t bytes, uint64_t *ret_address)
{
    int code = (int)api_of(self)->cuMemHostRegister_v2(memory, (size_t)bytes, CUDA_REGISTER_MAPPED);
    if (code)
        return code;
    code = find_address(self, memory, ret_address);
    if (code)
        api_of(self)->cuMemHostUnregister(memory);
    return code;
}

static int unpin(void *self, void *memory)
{
    return (int)api_of(self)->cuMemHostUnregister(memory);
}

static CUmemAllocationProp properties_of(const struct runtime *runtime)
{
    return (CUmemAllocationProp){ .type = CUDA_MEMORY_PINNED,
                                  .location = { CUDA_LOCATION_DEVICE, runtime->device } };
}

static int get_granularity(void *self, uint64_t *ret_bytes)
{
    CUmemAllocationProp properties = properties_of(self);
    size_t bytes = 0;
    int code = (int)api_of(self)->cuMemGetAllocationGranularity(&bytes, &properties,
                                                                CUDA_GRANULARITY_MINIMUM);
    *ret_bytes = bytes;
    return code;
}

static int create_range(void *self, uint64_t bytes, uint64_t *ret_address)
{
    CUdeviceptr address = 0;
    int code = (int)api_of(self)->cuMemAddressReserve(&address, (size_t)bytes, 0, to_address(0), 0);
    *ret_address = to_number(address);
    return code;
}

static int destroy_range(void *self, uint64_t address, uint64_t bytes)
{
    return (int)api_of(self)->cuMemAddressFree(to_address(address), (size_t)bytes);
}

static int map_range(void *self, uint64_t number, uint64_t bytes, uint64_t *ret_memory)
{
    const struct runtime *runtime = self;
    CUmemAllocationProp properties = properties_of(self);
    CUmemAccessDesc access = { properties.location, CUDA_ACCESS_READ_WRITE };
    CUmemGenericAllocationHandle memory = 0;
    CUdeviceptr address = to_address(number);
    int code = (int)runtime->api.cuMemCreate(&memory, (size_t)bytes, &properties, 0);
    if (code)
        return code;
    code = (int)runtime->api.cuMemMap(address, (size_t)bytes, 0, memory, 0);
    if (!code) {
        code = (int)runtime->api.cuMemSetAccess(address, (size_t)bytes, &access, 1);
        if (code)
            runtime->api.cuMemUnmap(address, (size_t)bytes);
    }
    if (code)
        runtime->api.cuMemRelease(memory);
    *ret_memory = (uint64_t)(uintptr_t)memory;
    return code;
}

static int unmap_range(void *self, uint64_t address, uint64_t bytes, uint64_t memory)
{
    int code = (int)api_of(self)->cuMemUnmap(to_address(address), (size_t)bytes);
    int released = (int)api_of(self)->cuMemRelease((CUmemGenericAllocationHandle)(uintptr_t)memory);
    return code ? code : released;
}

/* ---- Streams, copies and kernels ------------------------------------------------------------ */

static int create_stream(void *self, void **ret_stream)
{
    CUstream stream = NULL;
    int code = (int)api_of(self)->cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING);
    *ret_stream = stream;
    return code;
}

static int destroy_stream(void *self, void *stream)
{
    return (int)api_of(self)->cuStreamDestroy_v2(stream);
}

static int sync_stream(void *self, void *stream)
{
    return (int)api_of(self)->cuStreamSynchronize(stream);
}

static int query_stream(void *self, void *stream)
{
    int code = (int)api_of(self)->cuStreamQuery(stream);
    return code == CUDA_NOT_READY ? 0 : code;
}

static int create_event(void *self, bool idle, void **ret_event)
{
    CUevent event = NULL;
    int code = (int)api_of(self)->cuEventCreate(&event, CUDA_EVENT_NO_TIMING |
                                                            (idle ? CUDA_EVENT_BLOCKING : 0));
    *ret_event = event;
    return code;
}

static int destroy_event(void *self, void *event)
{
    return (int)api_of(self)->cuEventDestroy_v2(event);
}

static int record_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->cuEventRecord(event, stream);
}

static int wait_event(void *self, void *event, void *stream)
{
    return (int)api_of(self)->cuStreamWaitEvent(stream, event, 0);
}

static int sync_event(void *self, void *event)
{
    return (int)api_of(self)->cuEventSynchronize(event);
}

static int query_event(void *self, void *event, bool *ret_passed)
{
    int code = (int)api_of(self)->cuEventQuery(event);
    *ret_passed = code == 0;
    return code == CUDA_NOT_READY ? 0 : code;
}

static int copy_in(void *self, uint64_t target, const void *source, uint64_t bytes, void *stream)
{
    /* HIP's parameter is not const. */
    return (int)api_of(self)->cuMemcpyHtoDAsync_v2(to_address(target), (void *)(uintptr_t)source,
                                                   (size_t)bytes, stream);
}

static int copy_out(void *self, void *target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemcpyDtoHAsync_v2(target, to_address(source), (size_t)bytes,
                                                   stream);
}

static int copy_within(void *self, uint64_t target, uint64_t source, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemcpyDtoDAsync_v2(to_address(target), to_address(source),
                                                   (size_t)bytes, stream);
}

static int fill(void *self, uint64_t target, uint8_t byte, uint64_t bytes, void *stream)
{
    return (int)api_of(self)->cuMemsetD8Async(to_address(target), byte, (size_t)bytes, stream);
}

static int load_module(void *self, const void *code, void **ret_module)
{
    CUmodule module = NULL;
    int result = (int)api_of(self)->cuModuleLoadData(&module, code);
    *ret_module = result ? NULL : module;
    return result;
}

static int unload_module(void *self, void *module)
{
    return (int)api_of(self)->cuModuleUnload(module);
}

static int find_function(void *self, void *module, const char *name, void **ret_function)
{
    CUfunction function = NULL;
    int code = (int)api_of(self)->cuModuleGetFunction(&function, module, name);
    *ret_function = function;
    return code;
}

static int destroy_graph(void *self, void *graph, void *exec)
{
    int code = exec ? (int)api_of(self)->cuGraphExecDestroy(exec) : 0;
    int second = graph ? (int)api_of(self)->cuGraphDestroy(graph) : 0;
    return code ? code : second;
}

static int launch_graph(void *self, void *exec, void *stream)
{
    return (int)api_of(self)->cuGraphLaunch(exec, stream);
}

/* ---- Opening -------------------------------------------------------------------------------- */

static const struct gpu_runtime runtime_calls = {
    .kind = RUNTIME_KIND,
    .title = RUNTIME_TITLE,
    .close = close_runtime,
    .facts = get_facts,
    .error_name = error_name,
    .is_fault = is_fault,
    .is_no_memory = is_no_memory,
    .enter = enter,
    .fault_find = find_fault,
    .memory_create = create_memory,
    .memory_destroy = destroy_memory,
    .pointer_ask = ask_pointer,
    .pinned_create = create_pinned,
    .pinned_destroy = destroy_pinned,
    .pin = pin,
    .unpin = unpin,
    .granularity = get_granularity,
    .range_create = create_range,
    .range_destroy = destroy_range,
    .range_map = map_range,
    .range_unmap = unmap_range,
    .stream_create = create_stream,
    .stream_destroy = destroy_stream,
    .stream_sync = sync_stream,
    .stream_query = query_stream,
    .event_create = create_event,
    .event_destroy = destroy_event,
    .event_record = record_event,
    .event_wait = wait_event,
    .event_sync = sync_event,
    .event_query = query_event,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .copy_within = copy_within,
    .fill = fill,
    .code_fits = code_fits,
    .module_load = load_module,
    .module_unload = unload_module,
    .function_find = find_function,
    .function_allow_shared = allow_shared,
    .launch = launch,
    .capture_begin = begin_capture,
    .capture_end = end_capture,
    .capture_node = find_captured,
    .graph_destroy = destroy_graph,
    .graph_set_call = set_call,
    .graph_launch = launch_graph,
};

/* Opens the library and counts the devices. */
static enum status open_runtime(struct runtime **ret_runtime, int *ret_count, struct error *err)
{
    struct runtime *runtime = calloc(1, sizeof(*runtime));
    if (!runtime)
        return error_set(err, STATUS_NO_MEMORY, "no memory for %s", RUNTIME_TITLE);
    enum status status = open_library(runtime, ret_count, err);
    if (status)
        close_runtime(runtime);
    else
        *ret_runtime = runtime;
    return status;
}

static enum status count_devices(uint32_t *ret_count, struct error *err)
{
    struct runtime *runtime;
    int count;
    TRY(open_runtime(&runtime, &count, err));
    close_runtime(runtime);
    *ret_count = (uint32_t)count;
    return STATUS_OK;
}

/* The same, for a device that must be there. */
static enum status open_runtime_of(uint32_t index, struct runtime **ret_runtime, struct error *err)
{
    struct runtime *runtime;
    int count;
    TRY(open_runtime(&runtime, &count, err));
    if (index >= (uint32_t)count) {
        close_runtime(runtime);
        return error_set(err, STATUS_NOT_FOUND, "expected a device below %s:%d, found %s:%u",
                         RUNTIME_KIND, count, RUNTIME_KIND, index);
    }
    *ret_runtime = runtime;
    return STATUS_OK;
}
