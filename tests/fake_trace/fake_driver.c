/* fake_driver.c - see fake_trace.h. Everything happens at once: order is what the recording says of
 * it, not what this driver does. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "fake_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct fake_event {
    int asked; /* how often it was asked whether it has passed */
};
struct fake_graph {
    int unused;
};
struct fake_kernel {
    const char *name;
    size_t sizes[4], count;
};

/* As CUPTI has it. */
struct callback_data {
    int32_t site;
    const char *function_name;
    const void *parameters;
    void *return_value;
    const char *symbol_name;
    void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

static fake_callback told;
static void *told_context;
static uint32_t context_uid = 1;
static unsigned char enabled[1024];
int fake_lost;

EXPORT void fake_driver_subscribe(fake_callback callback, void *context)
{
    told = callback;
    told_context = context;
}

EXPORT void fake_driver_enable(uint32_t id, int on)
{
    if (id < sizeof(enabled))
        enabled[id] = (unsigned char)on;
}

void fake_tell(int site, uint32_t id, const char *name, const void *parameters, result *code,
               const char *symbol)
{
    static uint64_t correlation;
    struct callback_data data = { site,  name,        parameters,   code, symbol,
                                  &told, context_uid, &correlation, 1 };
    if (told && enabled[id])
        told(told_context, 1, id, &data);
}

/* ---- Memory --------------------------------------------------------------------------------- */

#define BLOCK_LIMIT 256
static struct {
    address start;
    size_t bytes;
    int alive;
} blocks[BLOCK_LIMIT];
static size_t block_count;

result fake_make(address *pointer, size_t bytes)
{
    void *memory = block_count < BLOCK_LIMIT ? calloc(1, bytes + 64) : NULL;
    if (!memory)
        return INVALID_VALUE;
    *pointer = (address)(uintptr_t)memory;
    return fake_set_alive(*pointer, bytes, 1);
}

result fake_drop(address pointer)
{
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].start == pointer && blocks[i].alive) {
            blocks[i].alive = 0;
            return OK;
        }
    return pointer ? INVALID_VALUE : OK;
}

result fake_set_alive(address pointer, size_t bytes, int alive)
{
    if (alive) {
        if (block_count == BLOCK_LIMIT)
            return INVALID_VALUE;
        blocks[block_count].start = pointer;
        blocks[block_count].bytes = bytes;
        blocks[block_count++].alive = 1;
    }
    for (size_t i = 0; i < block_count && !alive; i++)
        if (blocks[i].start >= pointer && blocks[i].start - pointer < bytes)
            blocks[i].alive = 0;
    return OK;
}

/* Mappings side by side are one range. */
int fake_is_device(address pointer, size_t bytes)
{
    for (size_t i = 0; i < block_count; i++) {
        if (!blocks[i].alive || pointer < blocks[i].start ||
            pointer - blocks[i].start >= blocks[i].bytes)
            continue;
        size_t room = blocks[i].bytes - (pointer - blocks[i].start);
        return bytes <= room || fake_is_device(pointer + room, bytes - room);
    }
    return 0;
}

EXPORT result cuMemAlloc_v2(address *pointer, size_t bytes)
{
    struct {
        address *pointer;
        size_t bytes;
    } arguments = { pointer, bytes };
    CALL(243, "cuMemAlloc_v2", arguments, NULL, fake_make(pointer, bytes));
}

EXPORT result cuMemFree_v2(address pointer)
{
    CALL(245, "cuMemFree_v2", pointer, NULL, fake_drop(pointer));
}

EXPORT result cuMemAllocAsync(address *pointer, size_t bytes, stream on)
{
    struct {
        address *pointer;
        size_t bytes;
        stream on;
    } arguments = { pointer, bytes, on };
    CALL(598, "cuMemAllocAsync", arguments, NULL, fake_make(pointer, bytes));
}

EXPORT result cuMemFreeAsync(address pointer, stream on)
{
    struct {
        address pointer;
        stream on;
    } arguments = { pointer, on };
    CALL(600, "cuMemFreeAsync", arguments, NULL, fake_drop(pointer));
}

/* Memory that is gone cannot be read, and is not given again. */
static struct {
    void *memory;
    size_t bytes;
} pinned[BLOCK_LIMIT];
static size_t pinned_count;

static result host_alloc(void **pointer, size_t bytes)
{
    *pointer = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (*pointer == MAP_FAILED || pinned_count == BLOCK_LIMIT)
        return INVALID_VALUE;
    pinned[pinned_count].memory = *pointer;
    pinned[pinned_count++].bytes = bytes;
    return OK;
}

EXPORT result cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    struct {
        void **pointer;
        size_t bytes;
        unsigned int flags;
    } arguments = { pointer, bytes, flags };
    CALL(39, "cuMemHostAlloc", arguments, NULL, host_alloc(pointer, bytes));
}

/* All of them for NULL. */
static result host_free(const void *pointer)
{
    for (size_t i = 0; i < pinned_count; i++)
        if (!pointer || pinned[i].memory == pointer)
            mprotect(pinned[i].memory, pinned[i].bytes, PROT_NONE);
    return OK;
}

result fake_reset(void)
{
    for (size_t i = 0; i < block_count; i++)
        blocks[i].alive = 0;
    context_uid++;
    return host_free(NULL);
}

EXPORT result cuMemFreeHost(void *pointer)
{
    CALL(38, "cuMemFreeHost", pointer, NULL, host_free(pointer));
}

/* ---- Copies --------------------------------------------------------------------------------- */

struct copy {
    address target, source;
    size_t bytes;
    stream on;
};

static result move(const struct copy *copy, int to_device, int from_device)
{
    if ((to_device && !fake_is_device(copy->target, copy->bytes)) ||
        (from_device && !fake_is_device(copy->source, copy->bytes)))
        return INVALID_VALUE;
    if (!copy->on || !copy->on->capturing)
        memmove((void *)(uintptr_t)copy->target, (const void *)(uintptr_t)copy->source,
                copy->bytes);
    return OK;
}

static address as_address(const void *pointer)
{
    return (address)(uintptr_t)pointer;
}

EXPORT result cuMemcpyHtoD_v2(address target, const void *source, size_t bytes)
{
    struct copy copy = { target, as_address(source), bytes, NULL };
    CALL(276, "cuMemcpyHtoD_v2", copy, NULL, move(&copy, 1, 0));
}

EXPORT result cuMemcpyDtoH_v2(void *target, address source, size_t bytes)
{
    struct copy copy = { as_address(target), source, bytes, NULL };
    CALL(278, "cuMemcpyDtoH_v2", copy, NULL, move(&copy, 0, 1));
}

EXPORT result cuMemcpyHtoDAsync_v2(address target, const void *source, size_t bytes, stream on)
{
    struct copy copy = { target, as_address(source), bytes, on };
    CALL(277, "cuMemcpyHtoDAsync_v2", copy, NULL, move(&copy, 1, 0));
}

EXPORT result cuMemcpyDtoHAsync_v2(void *target, address source, size_t bytes, stream on)
{
    struct copy copy = { as_address(target), source, bytes, on };
    CALL(279, "cuMemcpyDtoHAsync_v2", copy, NULL, move(&copy, 0, 1));
}

EXPORT result cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, stream on)
{
    struct copy copy = { target, source, bytes, on };
    CALL(281, "cuMemcpyDtoDAsync_v2", copy, NULL, move(&copy, 1, 1));
}

static result fill(address target, unsigned char value, size_t count)
{
    if (!fake_is_device(target, count))
        return INVALID_VALUE;
    memset((void *)(uintptr_t)target, value, count);
    return OK;
}

EXPORT result cuMemsetD8Async(address target, unsigned char value, size_t count, stream on)
{
    struct {
        address target;
        unsigned char value;
        size_t count;
        stream on;
    } arguments = { target, value, count, on };
    CALL(216, "cuMemsetD8Async", arguments, NULL, fill(target, value, count));
}

/* ---- Streams -------------------------------------------------------------------------------- */

static result make_stream(stream *made)
{
    *made = calloc(1, sizeof(**made));
    return *made ? OK : INVALID_VALUE;
}

EXPORT result cuStreamCreate(stream *made, unsigned int flags)
{
    struct {
        stream *made;
        unsigned int flags;
    } arguments = { made, flags };
    CALL(124, "cuStreamCreate", arguments, NULL, make_stream(made));
}

/* Kept: the real driver crashes when one is used that is gone, and so does this one. */
static result drop_stream(stream on)
{
    on->destroyed = 1;
    return OK;
}

EXPORT result cuStreamDestroy_v2(stream on)
{
    CALL(326, "cuStreamDestroy_v2", on, NULL, drop_stream(on));
}

static result use(stream on)
{
    if (on && on->destroyed)
        abort();
    return OK;
}

EXPORT result cuStreamSynchronize(stream on)
{
    CALL(126, "cuStreamSynchronize", on, NULL, use(on));
}

/* It has no arguments to show. */
EXPORT result cuCtxSynchronize(void)
{
    result code = OK;
    fake_tell(0, 17, "cuCtxSynchronize", NULL, &code, NULL);
    code = fake_lost ? ILLEGAL_ADDRESS : OK;
    fake_tell(1, 17, "cuCtxSynchronize", NULL, &code, NULL);
    return code;
}

/* Done when it is asked for the second time. */
static result passed(int *asked)
{
    return (*asked)++ ? OK : NOT_READY;
}

EXPORT result cuStreamQuery(stream on)
{
    CALL(125, "cuStreamQuery", on, NULL, passed(&on->asked));
}

EXPORT result cuEventQuery(event mark)
{
    CALL(120, "cuEventQuery", mark, NULL, passed(&mark->asked));
}

static result run(void (*host)(void *), void *data)
{
    host(data);
    return OK;
}

EXPORT result cuLaunchHostFunc(stream on, void (*host)(void *), void *data)
{
    struct {
        stream on;
        void (*host)(void *);
        void *data;
    } arguments = { on, host, data };
    CALL(527, "cuLaunchHostFunc", arguments, NULL, run(host, data));
}

EXPORT result cuEventCreate(event *made, unsigned int flags)
{
    (void)flags;
    *made = calloc(1, sizeof(**made));
    return *made ? OK : INVALID_VALUE;
}

EXPORT result cuEventRecord(event mark, stream on)
{
    struct {
        event mark;
        stream on;
    } arguments = { mark, on };
    CALL(119, "cuEventRecord", arguments, NULL, OK);
}

EXPORT result cuStreamWaitEvent(stream on, event mark, unsigned int flags)
{
    struct {
        stream on;
        event mark;
        unsigned int flags;
    } arguments = { on, mark, flags };
    CALL(295, "cuStreamWaitEvent", arguments, NULL, OK);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

static struct fake_kernel kernels[] = {
    { "_ZN4demo3addEPfPKfi", { 8, 8, 4 }, 3 },
    { "_ZN4demo6packedENS_4packE", { 32 }, 1 },
    { "out_of_bounds", { 8 }, 1 },
};

EXPORT result cuModuleGetFunction(function *kernel, void *module, const char *name)
{
    (void)module;
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (strcmp(kernels[i].name, name) == 0) {
            *kernel = &kernels[i];
            return OK;
        }
    return INVALID_VALUE;
}

EXPORT result cuFuncGetParamInfo(function kernel, size_t index, size_t *offset, size_t *size)
{
    if (index >= kernel->count)
        return INVALID_VALUE;
    *offset = 0;
    *size = kernel->sizes[index];
    return OK;
}

/* The error is told by a later copy or wait; launches behind the faulty one are queued before
 * anybody knows. */
static result launch(const struct fake_kernel *kernel, stream on)
{
    if (on && on->capturing)
        return OK;
    if (strcmp(kernel->name, "out_of_bounds") == 0)
        fake_lost = 1;
    return OK;
}

EXPORT result cuLaunchKernel(function kernel, unsigned int grid_x, unsigned int grid_y,
                             unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                             unsigned int block_z, unsigned int shared_bytes, stream on,
                             void **parameters, void **extra)
{
    struct {
        function kernel;
        unsigned int grid[3], block[3], shared_bytes;
        stream on;
        void **parameters, **extra;
    } arguments = { kernel,
                    { grid_x, grid_y, grid_z },
                    { block_x, block_y, block_z },
                    shared_bytes,
                    on,
                    parameters,
                    extra };
    result code = OK;
    fake_tell(0, 307, "cuLaunchKernel", &arguments, &code, kernel->name);
    code = launch(kernel, on);
    fake_tell(1, 307, "cuLaunchKernel", &arguments, &code, kernel->name);
    return code;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

static result capture(stream on, int begins)
{
    on->capturing = begins;
    return OK;
}

EXPORT result cuStreamBeginCapture_v2(stream on, int mode)
{
    struct {
        stream on;
        int mode;
    } arguments = { on, mode };
    CALL(539, "cuStreamBeginCapture_v2", arguments, NULL, capture(on, 1));
}

static result end_capture(stream on, graph *made)
{
    *made = calloc(1, sizeof(**made));
    return capture(on, 0);
}

EXPORT result cuStreamEndCapture(stream on, graph *made)
{
    struct {
        stream on;
        graph *made;
    } arguments = { on, made };
    CALL(497, "cuStreamEndCapture", arguments, NULL, end_capture(on, made));
}

static result make_graph(graph *made)
{
    *made = calloc(1, sizeof(**made));
    return *made ? OK : INVALID_VALUE;
}

EXPORT result cuGraphInstantiateWithFlags(graph *made, graph from, unsigned long long flags)
{
    struct {
        graph *made;
        graph from;
        unsigned long long flags;
    } arguments = { made, from, flags };
    CALL(643, "cuGraphInstantiateWithFlags", arguments, NULL, make_graph(made));
}

EXPORT result cuGraphLaunch(graph executable, stream on)
{
    struct {
        graph executable;
        stream on;
    } arguments = { executable, on };
    CALL(514, "cuGraphLaunch", arguments, NULL, OK);
}

/* ---- Injection ------------------------------------------------------------------------------ */

/* As the real driver: the first call loads what the environment names, and calls it. */
EXPORT result cuInit(unsigned int flags)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    (void)flags;
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    int (*initialize)(void) = NULL;
    if (library)
        *(void **)&initialize = dlsym(library, "InitializeInjection");
    if (initialize)
        initialize();
    return OK;
}
