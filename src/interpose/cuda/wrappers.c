/* wrappers.c - the wrappers of the preloaded library, made from signatures.def. */
#include "interpose/cuda/preload.h"

#include "interpose/cuda/arguments.h"
#include "interpose/next_dlsym.h"

#include <dlfcn.h>
#include <pthread.h>

/* ---- The recording -------------------------------------------------------------------------- */

static struct interpose *trace;
static pthread_once_t started = PTHREAD_ONCE_INIT, asked_for_dumps = PTHREAD_ONCE_INIT;
static bool armed; /* set before any context is there */
/* Wrapped calls that this thread is in. */
static _Thread_local uint32_t depth;

static bool is_inside(void)
{
    return depth > 0;
}

static void start(void)
{
    cuda_open_driver(interpose_next_dlsym());
    trace = cuda_start_recording(is_inside);
}

static void ask_for_dumps(void)
{
    armed = cuda_arm_coredump(trace);
}

__attribute__((destructor)) static void stop(void)
{
    interpose_stop(trace);
}

bool cuda_depth_enter(void)
{
    return depth++ == 0;
}

void cuda_depth_leave(void)
{
    depth--;
}

bool cuda_enter(struct cuda_call *call, uint32_t id, const void *arguments)
{
    call->entry = NULL;
    if (!cuda_depth_enter())
        return false;
    pthread_once(&started, start);
    if (!trace)
        return true;
    /* One by one: the event in it is large, and set by whatever begins one. */
    call->trace = trace;
    call->entry = cuda_entry(id);
    call->arguments = arguments;
    call->code = 0;
    call->call.open = false;
    call->kernel = NULL;
    call->context = NULL;
    call->context_uid = 0;
    call->entry->begin(call);
    return true;
}

void cuda_leave(struct cuda_call *call, CUresult code)
{
    call->code = code;
    if (call->entry)
        call->entry->end(call);
    if (code && armed && cuda_is_fatal(code))
        cuda_guard_exit();
    cuda_depth_leave();
}

/* ---- The calls ------------------------------------------------------------------------------ */

enum {
#define CALL(id, name, ...) CUDA_ID_##name = (id),
#include "interpose/cuda/calls.def"
#undef CALL
};

/* A row that has no line in calls.def does not compile, and the other way round; but for the one
 * that CUPTI has a number for and the driver no symbol. */
enum { CUDA_INDEX_cuMemHostAlloc_v2 = 0 };
#define CALL(id, name, ...) _Static_assert((int)CUDA_INDEX_##name >= 0, #name);
#include "interpose/cuda/calls.def"
#undef CALL

#define CUDA_ROW(entry, name, version, suffix, ...)                                                \
    CUresult entry(ARGUMENTS_DECLARED(__VA_ARGS__))                                                \
    {                                                                                              \
        struct {                                                                                   \
            ARGUMENTS_FIELDS(__VA_ARGS__)                                                          \
        } arguments = { ARGUMENTS_NAMES(__VA_ARGS__) };                                            \
        struct cuda_call call;                                                                     \
        bool outermost = cuda_enter(&call, CUDA_ID_##entry, &arguments);                           \
        CUresult (*real)(__VA_ARGS__) = (CUresult(*)(__VA_ARGS__))cuda_real(CUDA_INDEX_##entry,    \
                                                                            !outermost);           \
        CUresult code = real ? real(ARGUMENTS_NAMES(__VA_ARGS__)) : CUDA_NOT_FOUND;                \
        cuda_leave(&call, code);                                                                   \
        return code;                                                                               \
    }
#define CUDA_BY_HAND(...)
#include "interpose/cuda/signatures.def"
#undef CUDA_BY_HAND
#undef CUDA_ROW

CUresult cuCtxSynchronize(void)
{
    struct cuda_call call;
    bool outermost = cuda_enter(&call, CUDA_ID_cuCtxSynchronize, NULL);
    CUresult (*real)(void) = (CUresult(*)(void))cuda_real(CUDA_INDEX_cuCtxSynchronize, !outermost);
    CUresult code = real ? real() : CUDA_NOT_FOUND;
    cuda_leave(&call, code);
    return code;
}

/* A program that initialises the driver is one to record, whatever it calls then. */
CUresult cuInit(unsigned int flags)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(unsigned int) = (CUresult(*)(unsigned int))cuda_real(CUDA_INDEX_cuInit,
                                                                          !outermost);
    CUresult code = real ? real(flags) : CUDA_NO_DEVICE;
    cuda_depth_leave();
    if (code == 0) {
        pthread_once(&started, start);
        pthread_once(&asked_for_dumps, ask_for_dumps);
    }
    return code;
}

/* ---- What kernels are called ---------------------------------------------------------------- */

static uint64_t number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUmodule *, const void *) = (CUresult(*)(CUmodule *, const void *))cuda_real(
        CUDA_INDEX_cuModuleLoadData, !outermost);
    CUresult code = real ? real(module, image) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && module)
        cuda_uses_loaded(number(*module), image);
    return code;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUmodule *, const void *, unsigned int, CUjit_option *, void **) =
        (CUresult(*)(CUmodule *, const void *, unsigned int, CUjit_option *, void **))cuda_real(
            CUDA_INDEX_cuModuleLoadDataEx, !outermost);
    CUresult code = real ? real(module, image, count, options, values) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && module)
        cuda_uses_loaded(number(*module), image);
    return code;
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUmodule *, const void *) = (CUresult(*)(CUmodule *, const void *))cuda_real(
        CUDA_INDEX_cuModuleLoadFatBinary, !outermost);
    CUresult code = real ? real(module, image) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && module)
        cuda_uses_loaded(number(*module), image);
    return code;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
                           void **values, unsigned int count, CUlibraryOption *library_options,
                           void **library_values, unsigned int library_count)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUlibrary *, const void *, CUjit_option *, void **, unsigned int,
                     CUlibraryOption *, void **, unsigned int) =
        (CUresult(*)(CUlibrary *, const void *, CUjit_option *, void **, unsigned int,
                     CUlibraryOption *, void **,
                     unsigned int))cuda_real(CUDA_INDEX_cuLibraryLoadData, !outermost);
    CUresult code = real ? real(library, image, options, values, count, library_options,
                                library_values, library_count)
                         : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && library)
        cuda_uses_loaded(number(*library), image);
    return code;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUfunction *, CUmodule, const char *) = (CUresult(*)(
        CUfunction *, CUmodule, const char *))cuda_real(CUDA_INDEX_cuModuleGetFunction, !outermost);
    CUresult code = real ? real(function, module, name) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && function) {
        cuda_kernel_named(number(*function), name);
        cuda_uses_named(number(*function), number(module), name);
    }
    return code;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUkernel *, CUlibrary, const char *) = (CUresult(*)(
        CUkernel *, CUlibrary, const char *))cuda_real(CUDA_INDEX_cuLibraryGetKernel, !outermost);
    CUresult code = real ? real(kernel, library, name) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && kernel) {
        cuda_kernel_named(number(*kernel), name);
        cuda_uses_named(number(*kernel), number(library), name);
    }
    return code;
}

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    bool outermost = cuda_depth_enter();
    CUresult (*real)(CUfunction *, CUkernel) = (CUresult(*)(CUfunction *, CUkernel))cuda_real(
        CUDA_INDEX_cuKernelGetFunction, !outermost);
    CUresult code = real ? real(function, kernel) : CUDA_NOT_FOUND;
    cuda_depth_leave();
    if (code == 0 && function) {
        cuda_kernel_named(number(*function), cuda_kernel_name(number(kernel)));
        cuda_uses_same(number(*function), number(kernel));
    }
    return code;
}
