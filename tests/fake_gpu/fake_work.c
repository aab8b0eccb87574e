/* fake_work.c - what the fake driver does: copies, fills and kernels, one by one or as graphs. One
 * thing at a time, whatever the stream; a fault of a kernel ends it and stays. */
#define _GNU_SOURCE
#include "fake.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Work ----------------------------------------------------------------------------------- */

static sigjmp_buf fault_jump;
/* Work, in this thread. Read by the handler, in threads that may never have touched it: memory that
 * they would be given for it at first touch must not be asked for there. */
static _Thread_local bool running __attribute__((tls_model("initial-exec")));
static struct sigaction before_segv, before_bus;

/* A fault of another thread is none of ours. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const struct sigaction *before = number == SIGBUS ? &before_bus : &before_segv;
    if (running)
        siglongjmp(fault_jump, number);
    if (before->sa_flags & SA_SIGINFO)
        before->sa_sigaction(number, info, context);
    else
        abort();
}

static void do_work(const struct CUgraphNode_st *work)
{
    uint64_t digest;
    if (work->stream && work->kind == WORK_KERNEL)
        adverse_before(&work->stream->trail, work->call.crumbs, work->stream->late.waits);
    else if (work->stream)
        adverse_break(&work->stream->trail);
    switch (work->kind) {
    case WORK_KERNEL:
        digest = emulator_run(work->kernel->run, &work->call, work->grid_x, work->grid_y,
                              work->threads, work->shared_bytes);
        if (work->began && digest != work->early_digest) {
            fprintf(stderr, "kernel %s: what it read early is written by one before it\n",
                    work->kernel->name);
            abort();
        }
        break;
    case WORK_COPY:
        memmove(work->target, work->source, work->bytes);
        break;
    case WORK_FILL:
        memset(work->target, work->byte, work->bytes);
        break;
    }
}

long fake_idle_us(void)
{
    static long idle = -2;
    const char *text = idle == -2 ? getenv("FAKE_GPU_IDLE") : NULL;
    if (idle == -2)
        idle = text ? strtol(text, NULL, 10) : -1;
    return idle;
}

/* Inspections are done at once: what follows must find them done. */
static bool is_skipped(const struct CUgraphNode_st *work)
{
    struct gpu_inspect_params params;
    if (fake_idle_us() < 0 || work->kind != WORK_KERNEL)
        return false;
    if (strcmp(work->kernel->name, "inspect") == 0) {
        memcpy(&params, work->call.params, sizeof(params));
        struct gpu_inspect_slot *slots = (struct gpu_inspect_slot *)(uintptr_t)params.slots;
        for (uint32_t i = 0; i < work->grid_y; i++)
            slots[i].done = 1;
    }
    return true;
}

static CUresult run_work(const struct CUgraphNode_st *work)
{
    if (is_skipped(work))
        return 0;
    struct sigaction action = { .sa_sigaction = on_fault,
                                .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK };
    pthread_mutex_lock(&fake_lock);
    if (!fake_state_of(work->device)) {
        sigaction(SIGSEGV, &action, &before_segv);
        sigaction(SIGBUS, &action, &before_bus);
        running = true;
        if (sigsetjmp(fault_jump, 0) == 0)
            do_work(work);
        else
            fake_lose(work->device);
        running = false;
        if (fake_state_of(work->device))
            fake_dump(work);
        if (fake_state_of(work->device) && work->stream && work->kind == WORK_KERNEL)
            adverse_fault(&work->stream->trail, work->call.crumbs, fake_chip() >= 90);
        sigaction(SIGSEGV, &before_segv, NULL);
        sigaction(SIGBUS, &before_bus, NULL);
    }
    pthread_mutex_unlock(&fake_lock);
    return 0; /* a later call reports it, as with a GPU */
}

static void run_late(void *work)
{
    run_work(work);
}

static struct CUgraphNode_st *copy_node(const struct CUgraphNode_st *work)
{
    struct CUgraphNode_st *node = malloc(sizeof(*node));
    if (node)
        *node = *work;
    if (node)
        node->next = NULL;
    return node;
}

CUresult fake_do_or_keep(CUstream stream, const struct CUgraphNode_st *work)
{
    if (!late_wanted() || !stream)
        return run_work(work);
    struct CUgraphNode_st *node = copy_node(work);
    if (node)
        node->stream = stream;
    if (node && late_give(&stream->late, run_late, node))
        return 0;
    free(node);
    return FAKE_NO_MEMORY;
}

CUresult fake_give(CUstream stream, const struct CUgraphNode_st *work)
{
    struct CUgraphNode_st here = *work;
    CUresult state = fake_state_for(stream ? stream->device : -1, -1);
    if (state)
        return state;
    here.device = fake_current();
    if (!stream || !stream->capturing)
        return fake_do_or_keep(stream, &here);
    struct CUgraphNode_st *node = copy_node(&here);
    if (!node)
        return FAKE_NO_MEMORY;
    if (stream->capturing->last)
        stream->capturing->last->next = node;
    else
        stream->capturing->first = node;
    stream->capturing->last = node;
    return 0;
}

static CUresult give_copy(void *target, const void *source, size_t bytes, CUstream stream)
{
    struct CUgraphNode_st work = {
        .kind = WORK_COPY, .target = target, .source = source, .bytes = bytes
    };
    return fake_give(stream, &work);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void *source, size_t bytes, CUstream stream)
{
    return fake_is_memory(target, bytes)
               ? give_copy((void *)(uintptr_t)target, source, bytes, stream)
               : FAKE_INVALID_VALUE;
}

CUresult cuMemcpyDtoHAsync_v2(void *target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    return fake_is_memory(source, bytes)
               ? give_copy(target, (const void *)(uintptr_t)source, bytes, stream)
               : FAKE_INVALID_VALUE;
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, size_t bytes, CUstream stream)
{
    if (!fake_is_memory(source, bytes) || !fake_is_memory(target, bytes))
        return FAKE_INVALID_VALUE;
    return give_copy((void *)(uintptr_t)target, (const void *)(uintptr_t)source, bytes, stream);
}

CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, size_t count, CUstream stream)
{
    if (!fake_is_memory(target, count))
        return FAKE_INVALID_VALUE;
    struct CUgraphNode_st work = {
        .kind = WORK_FILL, .target = (void *)(uintptr_t)target, .bytes = count, .byte = byte
    };
    return fake_give(stream, &work);
}

/* ---- Kernels -------------------------------------------------------------------------------- */

/* A module is its PTX, which runs on the chip it is for and on later ones, that of sm_90a on that
 * one alone. A kernel is found if its entry is in the text and in the emulator. */
CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    static const char target[] = ".target sm_";
    const char *wanted = strncmp(image, "//", 2) == 0 ? strstr(image, target) : NULL;
    char *end = NULL;
    long made_for = wanted ? strtol(wanted + strlen(target), &end, 10) : 0;
    *module = (CUmodule)(uintptr_t)image;
    if (!wanted || (*end == 'a' ? made_for != fake_chip() : made_for > fake_chip()))
        return FAKE_INVALID_IMAGE;
    return fake_state();
}

CUresult cuModuleUnload(CUmodule module)
{
    return module ? fake_state() : FAKE_INVALID_VALUE;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    char entry[128];
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    struct fake_kernel *kernel = fake_kernel_find(name);
    const char *code = strstr((const char *)module, entry);
    const char *limit = code ? strstr(code, ".maxntid ") : NULL;
    if (!kernel || !limit)
        return FAKE_NOT_FOUND;
    kernel->thread_limit = (uint32_t)strtoul(limit + strlen(".maxntid "), NULL, 10);
    *function = (CUfunction)(uintptr_t)kernel;
    return fake_state();
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    bool shared = attribute == CUDA_FUNCTION_SHARED && value <= 232448;
    bool carveout = attribute == CUDA_FUNCTION_CARVEOUT && value <= 100;
    return function && (shared || carveout) ? fake_state() : FAKE_INVALID_VALUE;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    struct CUgraphNode_st work = { .kind = WORK_KERNEL,
                                   .kernel = (struct fake_kernel *)(uintptr_t)function,
                                   .grid_x = config->gridDimX,
                                   .grid_y = config->gridDimY,
                                   .threads = config->blockDimX,
                                   .shared_bytes = config->sharedMemBytes,
                                   .call = *(const struct gpu_call *)params[0] };
    if (extra || !config->gridDimX || !config->gridDimY || config->gridDimY > 65535 ||
        config->blockDimX > work.kernel->thread_limit || config->sharedMemBytes > 232448)
        return FAKE_INVALID_VALUE;
    if (config->hStream && config->hStream->capturing)
        work.kernel->captured++;
    return fake_give(config->hStream, &work);
}

/* For tests: how often a kernel was given to a graph. */
uint64_t fake_cuda_captured(const char *name)
{
    const struct fake_kernel *kernel = fake_kernel_find(name);
    return kernel ? kernel->captured : 0;
}

/* ---- Graphs --------------------------------------------------------------------------------- */

CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    stream->capturing = calloc(1, sizeof(*stream->capturing));
    if (stream->capturing)
        stream->capturing->device = stream->device;
    return stream->capturing ? fake_state_for(stream->device, -1) : FAKE_NO_MEMORY;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    *graph = stream->capturing;
    stream->capturing = NULL;
    fake_count(THING_GRAPH, *graph != NULL);
    return *graph ? fake_state() : FAKE_INVALID_VALUE;
}

CUresult cuStreamGetCaptureInfo_v2(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id,
                                   CUgraph *graph, const CUgraphNode **dependencies,
                                   size_t *dependency_count)
{
    (void)id;
    (void)graph;
    *status = stream->capturing != NULL;
    *dependency_count = stream->capturing && stream->capturing->last ? 1 : 0;
    *dependencies = stream->capturing ? &stream->capturing->last : NULL;
    return fake_state();
}

/* Returns the graph itself, since no test changes a graph after its executable was made. */
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    *exec = (CUgraphExec)graph;
    return flags ? FAKE_INVALID_VALUE : fake_state();
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    if (!exec || node->kind != WORK_KERNEL ||
        node->kernel != (const struct fake_kernel *)(uintptr_t)params->func)
        return FAKE_INVALID_VALUE;
    node->call = *(const struct gpu_call *)params->kernelParams[0];
    return fake_state();
}

/* Only where work is done at once: what is kept for later has not all been done before. */
static void begin_early(CUgraph graph)
{
    static int wanted = -1;
    if (wanted < 0)
        wanted = getenv("FAKE_GPU_EARLY") != NULL;
    if (!wanted || late_wanted() || fake_idle_us() >= 0)
        return;
    pthread_mutex_lock(&fake_lock);
    for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
        node->began = node->kind == WORK_KERNEL;
        if (node->began)
            node->early_digest = emulator_run_early(node->kernel->run, &node->call, node->grid_x,
                                                    node->threads, node->shared_bytes);
    }
    pthread_mutex_unlock(&fake_lock);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    CUresult state = fake_state_for(((CUgraph)exec)->device, stream->device);
    if (state)
        return state;
    begin_early((CUgraph)exec);
    for (struct CUgraphNode_st *node = ((CUgraph)exec)->first; node; node = node->next)
        if (fake_do_or_keep(stream, node))
            return FAKE_NO_MEMORY;
    if (fake_idle_us() > 0)
        usleep((useconds_t)fake_idle_us());
    return 0;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    return exec ? fake_state_for(((CUgraph)exec)->device, -1) : FAKE_INVALID_VALUE;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    CUresult state = fake_state_for(graph->device, -1);
    while (graph->first) {
        struct CUgraphNode_st *node = graph->first;
        graph->first = node->next;
        free(node);
    }
    free(graph);
    fake_count(THING_GRAPH, -1);
    return state;
}
