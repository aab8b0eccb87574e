/* fake_proc.c - how the emulated driver hands out its functions by name. It is the real driver's
 * way: of the versions of a function the newest that the caller knows, and with the flag for
 * default streams of threads the function that uses those, where there is one. */
#include "fake_driver.h"

#include <string.h>

enum { NOT_FOUND = 500, PER_THREAD = 2, NOT_THERE = 1, NEWER = 2 };

typedef void (*entry_point)(void); /* any function, to be cast */

/* As the toolkit's cudaTypedefs.h has them: the name, from which version of CUDA on, and only for
 * default streams of threads. */
static const struct {
    const char *name;
    int version, per_thread;
    entry_point entry;
} functions[] = {
    { "cuCtxGetCurrent", 4000, 0, (entry_point)cuCtxGetCurrent },
    { "cuCtxSetCurrent", 4000, 0, (entry_point)cuCtxSetCurrent },
    { "cuCtxCreate", 3020, 0, (entry_point)cuCtxCreate_v2 },
    { "cuCtxGetDevice", 2000, 0, (entry_point)cuCtxGetDevice },
    { "cuCtxSynchronize", 2000, 0, (entry_point)cuCtxSynchronize },
    { "cuDevicePrimaryCtxReset", 11000, 0, (entry_point)cuDevicePrimaryCtxReset_v2 },
    { "cuEventCreate", 2000, 0, (entry_point)cuEventCreate },
    { "cuEventQuery", 2000, 0, (entry_point)cuEventQuery },
    { "cuEventRecord", 2000, 0, (entry_point)cuEventRecord },
    { "cuFuncGetParamInfo", 12040, 0, (entry_point)cuFuncGetParamInfo },
    { "cuGraphAddMemcpyNode", 10000, 0, (entry_point)cuGraphAddMemcpyNode },
    { "cuGraphAddMemsetNode", 10000, 0, (entry_point)cuGraphAddMemsetNode },
    { "cuGraphCreate", 10000, 0, (entry_point)cuGraphCreate },
    { "cuGraphDestroy", 10000, 0, (entry_point)cuGraphDestroy },
    { "cuGraphExecDestroy", 10000, 0, (entry_point)cuGraphExecDestroy },
    { "cuGraphExecMemcpyNodeSetParams", 10020, 0, (entry_point)cuGraphExecMemcpyNodeSetParams },
    { "cuGraphInstantiateWithFlags", 11040, 0, (entry_point)cuGraphInstantiateWithFlags },
    { "cuGraphLaunch", 10000, 0, (entry_point)cuGraphLaunch },
    { "cuInit", 2000, 0, (entry_point)cuInit },
    { "cuLaunchHostFunc", 10000, 0, (entry_point)cuLaunchHostFunc },
    { "cuLaunchKernel", 4000, 0, (entry_point)cuLaunchKernel },
    { "cuLaunchKernel", 7000, 1, (entry_point)cuLaunchKernel_ptsz },
    { "cuMemAddressReserve", 10020, 0, (entry_point)cuMemAddressReserve },
    { "cuMemAllocAsync", 11020, 0, (entry_point)cuMemAllocAsync },
    { "cuMemAllocFromPoolAsync", 11020, 0, (entry_point)cuMemAllocFromPoolAsync },
    { "cuMemAllocManaged", 6000, 0, (entry_point)cuMemAllocManaged },
    { "cuMemAllocPitch", 3020, 0, (entry_point)cuMemAllocPitch_v2 },
    { "cuMemAlloc", 3020, 0, (entry_point)cuMemAlloc_v2 },
    { "cuMemFreeAsync", 11020, 0, (entry_point)cuMemFreeAsync },
    { "cuMemFreeHost", 2000, 0, (entry_point)cuMemFreeHost },
    { "cuMemFree", 3020, 0, (entry_point)cuMemFree_v2 },
    { "cuMemHostAlloc", 2020, 0, (entry_point)cuMemHostAlloc },
    { "cuMemHostGetDevicePointer", 3020, 0, (entry_point)cuMemHostGetDevicePointer_v2 },
    { "cuMemHostRegister", 6050, 0, (entry_point)cuMemHostRegister_v2 },
    { "cuMemHostUnregister", 4000, 0, (entry_point)cuMemHostUnregister },
    { "cuMemMap", 10020, 0, (entry_point)cuMemMap },
    { "cuMemUnmap", 10020, 0, (entry_point)cuMemUnmap },
    { "cuMemcpy", 4000, 0, (entry_point)cuMemcpy },
    { "cuMemcpy2DAsync", 3020, 0, (entry_point)cuMemcpy2DAsync_v2 },
    { "cuMemcpy2D", 3020, 0, (entry_point)cuMemcpy2D_v2 },
    { "cuMemcpy3DAsync", 3020, 0, (entry_point)cuMemcpy3DAsync_v2 },
    { "cuMemcpyDtoDAsync", 3020, 0, (entry_point)cuMemcpyDtoDAsync_v2 },
    { "cuMemcpyDtoHAsync", 3020, 0, (entry_point)cuMemcpyDtoHAsync_v2 },
    { "cuMemcpyDtoHAsync", 7000, 1, (entry_point)cuMemcpyDtoHAsync_v2_ptsz },
    { "cuMemcpyDtoH", 3020, 0, (entry_point)cuMemcpyDtoH_v2 },
    { "cuMemcpyHtoDAsync", 3020, 0, (entry_point)cuMemcpyHtoDAsync_v2 },
    { "cuMemcpyHtoDAsync", 7000, 1, (entry_point)cuMemcpyHtoDAsync_v2_ptsz },
    { "cuMemcpyHtoD", 3020, 0, (entry_point)cuMemcpyHtoD_v2 },
    { "cuMemcpyPeer", 4000, 0, (entry_point)cuMemcpyPeer },
    { "cuMemcpyPeerAsync", 4000, 0, (entry_point)cuMemcpyPeerAsync },
    { "cuMemsetD2D16Async", 3020, 0, (entry_point)cuMemsetD2D16Async },
    { "cuMemsetD32Async", 3020, 0, (entry_point)cuMemsetD32Async },
    { "cuMemsetD8Async", 3020, 0, (entry_point)cuMemsetD8Async },
    { "cuModuleLoadData", 2000, 0, (entry_point)cuModuleLoadData },
    { "cuModuleGetFunction", 2000, 0, (entry_point)cuModuleGetFunction },
    { "cuStreamBeginCapture", 10010, 0, (entry_point)cuStreamBeginCapture_v2 },
    { "cuStreamCreate", 2000, 0, (entry_point)cuStreamCreate },
    { "cuStreamDestroy", 4000, 0, (entry_point)cuStreamDestroy_v2 },
    { "cuStreamEndCapture", 10000, 0, (entry_point)cuStreamEndCapture },
    { "cuStreamQuery", 2000, 0, (entry_point)cuStreamQuery },
    { "cuStreamSynchronize", 2000, 0, (entry_point)cuStreamSynchronize },
    { "cuStreamSynchronize", 7000, 1, (entry_point)cuStreamSynchronize_ptsz },
    { "cuStreamWaitEvent", 3020, 0, (entry_point)cuStreamWaitEvent },
    { "cuGetProcAddress", 11030, 0, (entry_point)cuGetProcAddress },
#ifndef FAKE_OLD
    { "cuFuncGetName", 12030, 0, (entry_point)cuFuncGetName },
    { "cuGetProcAddress", 12000, 0, (entry_point)cuGetProcAddress_v2 },
#endif
};

static result hand_out(const char *name, void **found, int version, uint64_t flags, int *query)
{
    int best = -1, known = 0;
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        if (strcmp(functions[i].name, name) != 0 ||
            (functions[i].per_thread && !(flags & PER_THREAD)))
            continue;
        known = 1;
        if (functions[i].version > version)
            continue;
        if (best < 0 || functions[i].per_thread > functions[best].per_thread ||
            (functions[i].per_thread == functions[best].per_thread &&
             functions[i].version >= functions[best].version))
            best = (int)i;
    }
    *query = best >= 0 ? OK : known ? NEWER : NOT_THERE;
    *found = NULL;
    if (best < 0)
        return NOT_FOUND;
    memcpy(found, &functions[best].entry, sizeof(*found));
    return OK;
}

EXPORT result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
    int unused;
    return hand_out(name, found, version, flags, &unused);
}

#ifndef FAKE_OLD /* from CUDA 12 on */
EXPORT result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags,
                                  int *query)
{
    int unused;
    return hand_out(name, found, version, flags, query ? query : &unused);
}
#endif
