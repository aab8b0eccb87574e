/* recording.c - what a recording of CUDA calls needs of the driver. */
#include "interpose/cuda/cuda.h"

#include <dlfcn.h>

struct cuda_driver cuda_driver;

/* Codes after which a context answers nothing else any more, by the documentation. Between them
 * stand harmless ones: 712 is memory registered twice, which programs try and pass over. */
bool cuda_is_fatal(int32_t code)
{
    static const int32_t codes[] = {
        214, /* memory error that could not be corrected */
        220, /* the same of NVLink */
        226, /* contained by the hardware */
        700, /* illegal address */
        702, /* launch timed out */
        710, /* assert */
        714, /* stack error */
        715, /* illegal instruction */
        716, /* misaligned address */
        717, /* invalid address space */
        718, /* invalid program counter */
        719, /* launch failure */
        721, /* tensor memory not given back */
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i] == code)
            return true;
    return false;
}

static int32_t synchronise(void)
{
    return cuda_driver.ctx_synchronize ? cuda_driver.ctx_synchronize() : 0;
}

static struct interpose_backend backend = {
    .name = "cuda", .runtime = INTERPOSE_CUDA, .is_fatal = cuda_is_fatal, .synchronise = synchronise
};

struct interpose *cuda_start_recording(bool (*is_inside)(void))
{
    backend.is_inside = is_inside;
    return interpose_start(&backend, "CUDA");
}

void cuda_note(const char *slug, const char *detail)
{
    interpose_note(&backend, slug, detail);
}

void cuda_open_driver(void *(*find)(void *library, const char *name))
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library)
        return;
    *(void **)&cuda_driver.func_get_param_info = find(library, "cuFuncGetParamInfo");
    *(void **)&cuda_driver.kernel_get_param_info = find(library, "cuKernelGetParamInfo");
    *(void **)&cuda_driver.func_get_name = find(library, "cuFuncGetName");
    *(void **)&cuda_driver.kernel_get_name = find(library, "cuKernelGetName");
    *(void **)&cuda_driver.ctx_synchronize = find(library, "cuCtxSynchronize");
    *(void **)&cuda_driver.ctx_get_current = find(library, "cuCtxGetCurrent");
    *(void **)&cuda_driver.ctx_get_device = find(library, "cuCtxGetDevice");
    *(void **)&cuda_driver.coredump_set = find(library, "cuCoredumpSetAttributeGlobal");
    *(void **)&cuda_driver.primary_ctx_get_state = find(library, "cuDevicePrimaryCtxGetState");
}
