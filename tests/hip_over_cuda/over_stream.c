/* over_stream.c - streams, events, copies, fills. */
#include "over.h"

#include <string.h>

/* A handle of one interface is the other's, by another name. */
#define CU_STREAM(stream) ((CUstream)(void *)(stream))
#define CU_EVENT(event) ((CUevent)(void *)(event))

hipError_t hipStreamCreateWithFlags(hipStream_t *stream, unsigned int flags)
{
    OVER_CALL(cuStreamCreate, (CUstream *)(void *)stream, flags);
}

hipError_t hipStreamCreate(hipStream_t *stream)
{
    return hipStreamCreateWithFlags(stream, 0);
}

hipError_t hipStreamDestroy(hipStream_t stream)
{
    OVER_CALL(cuStreamDestroy_v2, CU_STREAM(stream));
}

hipError_t hipStreamSynchronize(hipStream_t stream)
{
    OVER_CALL(cuStreamSynchronize, CU_STREAM(stream));
}

/* Not ready is an answer and no error. */
static hipError_t end_query(CUresult code)
{
    return code == CUDA_NOT_READY ? code : over_end(code);
}

hipError_t hipStreamQuery(hipStream_t stream)
{
    const struct over_api *api = over_enter();
    return end_query(api ? api->calls.cuStreamQuery(CU_STREAM(stream)) : OVER_NO_DEVICE);
}

hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags)
{
    OVER_CALL(cuStreamWaitEvent, CU_STREAM(stream), CU_EVENT(event), flags);
}

hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned int flags)
{
    OVER_CALL(cuEventCreate, (CUevent *)(void *)event, flags & HIP_EVENT_NO_TIMING);
}

hipError_t hipEventCreate(hipEvent_t *event)
{
    return hipEventCreateWithFlags(event, 0);
}

hipError_t hipEventDestroy(hipEvent_t event)
{
    OVER_CALL(cuEventDestroy_v2, CU_EVENT(event));
}

hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream)
{
    OVER_CALL(cuEventRecord, CU_EVENT(event), CU_STREAM(stream));
}

hipError_t hipEventSynchronize(hipEvent_t event)
{
    OVER_CALL(cuEventSynchronize, CU_EVENT(event));
}

hipError_t hipEventQuery(hipEvent_t event)
{
    const struct over_api *api = over_enter();
    return end_query(api ? api->calls.cuEventQuery(CU_EVENT(event)) : OVER_NO_DEVICE);
}

/* ---- Bytes ---------------------------------------------------------------------------------- */

hipError_t hipMemcpyHtoDAsync(void *target, void *source, size_t bytes, hipStream_t stream)
{
    OVER_CALL(cuMemcpyHtoDAsync_v2, over_address(target), source, bytes, CU_STREAM(stream));
}

hipError_t hipMemcpyDtoHAsync(void *target, void *source, size_t bytes, hipStream_t stream)
{
    OVER_CALL(cuMemcpyDtoHAsync_v2, target, over_address(source), bytes, CU_STREAM(stream));
}

hipError_t hipMemcpyDtoDAsync(void *target, void *source, size_t bytes, hipStream_t stream)
{
    OVER_CALL(cuMemcpyDtoDAsync_v2, over_address(target), over_address(source), bytes,
              CU_STREAM(stream));
}

hipError_t hipMemsetD8Async(void *target, unsigned char byte, size_t count, hipStream_t stream)
{
    OVER_CALL(cuMemsetD8Async, over_address(target), byte, count, CU_STREAM(stream));
}

hipError_t hipMemcpyAsync(void *target, const void *source, size_t bytes, hipMemcpyKind kind,
                          hipStream_t stream)
{
    void *from = (void *)(uintptr_t)source;
    switch (kind) {
    case OVER_COPY_IN:
        return hipMemcpyHtoDAsync(target, from, bytes, stream);
    case OVER_COPY_OUT:
        return hipMemcpyDtoHAsync(target, from, bytes, stream);
    case OVER_COPY_WITHIN:
        return hipMemcpyDtoDAsync(target, from, bytes, stream);
    default:
        return over_end(OVER_INVALID_DIRECTION);
    }
}

hipError_t hipMemcpy(void *target, const void *source, size_t bytes, hipMemcpyKind kind)
{
    if (kind == OVER_COPY_HOST_HOST) {
        memmove(target, source, bytes);
        return over_end(0);
    }
    hipError_t code = hipMemcpyAsync(target, source, bytes, kind, NULL);
    return code ? code : hipStreamSynchronize(NULL);
}

hipError_t hipMemsetAsync(void *target, int byte, size_t bytes, hipStream_t stream)
{
    return hipMemsetD8Async(target, (unsigned char)byte, bytes, stream);
}

hipError_t hipMemset(void *target, int byte, size_t bytes)
{
    return hipMemsetAsync(target, byte, bytes, NULL);
}
