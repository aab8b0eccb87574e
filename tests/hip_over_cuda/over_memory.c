/* over_memory.c - memory of the device and of the host, and address ranges. */
#include "over.h"

hipError_t hipMalloc(void **address, size_t bytes)
{
    CUdeviceptr found = 0;
    const struct over_api *api = over_enter();
    CUresult code = !api                 ? OVER_NO_DEVICE
                    : !address || !bytes ? OVER_INVALID_VALUE
                                         : api->calls.cuMemAlloc_v2(&found, bytes);
    if (!code)
        *address = (void *)(uintptr_t)found;
    return over_end(code);
}

hipError_t hipFree(void *address)
{
    if (!address)
        return over_end(0);
    OVER_CALL(cuMemFree_v2, over_address(address));
}

/* Coherent or not is a question of AMD's. */
hipError_t hipHostMalloc(void **memory, size_t bytes, unsigned int flags)
{
    OVER_CALL(cuMemHostAlloc, memory, bytes, flags & (HIP_HOST_PORTABLE | HIP_HOST_MAPPED));
}

hipError_t hipHostFree(void *memory)
{
    if (!memory)
        return over_end(0);
    OVER_CALL(cuMemFreeHost, memory);
}

hipError_t hipHostGetDevicePointer(void **address, void *memory, unsigned int flags)
{
    CUdeviceptr found = 0;
    const struct over_api *api = over_enter();
    CUresult code = api ? api->calls.cuMemHostGetDevicePointer_v2(&found, memory, flags)
                        : OVER_NO_DEVICE;
    if (!code)
        *address = (void *)(uintptr_t)found;
    return over_end(code);
}

hipError_t hipHostRegister(void *memory, size_t bytes, unsigned int flags)
{
    OVER_CALL(cuMemHostRegister_v2, memory, bytes, flags);
}

hipError_t hipHostUnregister(void *memory)
{
    OVER_CALL(cuMemHostUnregister, memory);
}

/* ---- What an address is ---------------------------------------------------------------------- */

/* What CUDA's driver knows of an address. */
struct known {
    unsigned int type; /* 0: not in use */
    int device;
    CUdeviceptr start;
    size_t bytes;
};

static CUresult ask(const void *address, struct known *ret_known)
{
    const struct over_api *api = over_enter();
    CUpointer_attribute attributes[] = { CUDA_POINTER_TYPE, CUDA_POINTER_DEVICE, CUDA_POINTER_START,
                                         CUDA_POINTER_BYTES };
    void *data[] = { &ret_known->type, &ret_known->device, &ret_known->start, &ret_known->bytes };
    CUresult code = api ? api->calls.cuPointerGetAttributes(4, attributes, data,
                                                            over_address(address))
                        : OVER_NO_DEVICE;
    return code || ret_known->type ? code : OVER_INVALID_VALUE;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *address)
{
    struct known known = { 0 };
    CUresult code = ask(address, &known);
    if (!code) {
        void *pointer = (void *)(uintptr_t)over_address(address);
        *attributes = (hipPointerAttribute_t){
            .type = known.type,
            .device = known.device,
            .devicePointer = pointer,
            .hostPointer = known.type == CUDA_TYPE_DEVICE ? NULL : pointer,
        };
    }
    return over_end(code);
}

hipError_t hipMemGetAddressRange(void **start, size_t *bytes, void *address)
{
    struct known known = { 0 };
    CUresult code = ask(address, &known);
    if (!code) {
        *start = (void *)(uintptr_t)known.start;
        *bytes = known.bytes;
    }
    return over_end(code);
}

/* ---- Ranges --------------------------------------------------------------------------------- */

static CUmemAllocationProp properties_of(const hipMemAllocationProp *properties)
{
    return (
        CUmemAllocationProp){ .type = properties->type,
                              .requestedHandleTypes = properties->requestedHandleType,
                              .location = { properties->location.type, properties->location.id } };
}

hipError_t hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *properties,
                                          hipMemAllocationGranularity_flags option)
{
    CUmemAllocationProp cuda = properties_of(properties);
    OVER_CALL(cuMemGetAllocationGranularity, bytes, &cuda, option);
}

hipError_t hipMemAddressReserve(void **address, size_t bytes, size_t alignment, void *wanted,
                                unsigned long long flags)
{
    CUdeviceptr found = 0;
    const struct over_api *api = over_enter();
    CUresult code = api ? api->calls.cuMemAddressReserve(&found, bytes, alignment,
                                                         over_address(wanted), flags)
                        : OVER_NO_DEVICE;
    if (!code)
        *address = (void *)(uintptr_t)found;
    return over_end(code);
}

hipError_t hipMemAddressFree(void *address, size_t bytes)
{
    OVER_CALL(cuMemAddressFree, over_address(address), bytes);
}

hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *memory, size_t bytes,
                        const hipMemAllocationProp *properties, unsigned long long flags)
{
    CUmemAllocationProp cuda = properties_of(properties);
    CUmemGenericAllocationHandle found = 0;
    const struct over_api *api = over_enter();
    CUresult code = api ? api->calls.cuMemCreate(&found, bytes, &cuda, flags) : OVER_NO_DEVICE;
    if (!code)
        *memory = (hipMemGenericAllocationHandle_t)(uintptr_t)found;
    return over_end(code);
}

hipError_t hipMemRelease(hipMemGenericAllocationHandle_t memory)
{
    OVER_CALL(cuMemRelease, over_address(memory));
}

hipError_t hipMemMap(void *address, size_t bytes, size_t offset,
                     hipMemGenericAllocationHandle_t memory, unsigned long long flags)
{
    OVER_CALL(cuMemMap, over_address(address), bytes, offset, over_address(memory), flags);
}

hipError_t hipMemUnmap(void *address, size_t bytes)
{
    OVER_CALL(cuMemUnmap, over_address(address), bytes);
}

hipError_t hipMemSetAccess(void *address, size_t bytes, const hipMemAccessDesc *access,
                           size_t count)
{
    if (count != 1)
        return over_end(OVER_INVALID_VALUE);
    CUmemAccessDesc cuda = { { access->location.type, access->location.id }, access->flags };
    OVER_CALL(cuMemSetAccess, over_address(address), bytes, &cuda, count);
}
