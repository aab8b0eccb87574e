/* cupti_layout_test.c - the numbers of callbacks and the structs that src/interpose/cuda declares
 * for itself are those of the CUDA toolkit. Compiled only if there is one; a difference does not
 * compile, or is printed. */
#include <cupti.h>

#include "interpose/cuda/cuda.h"

#include <stdio.h>

#define SAME(ours, field, theirs, their_field)                                                     \
    _Static_assert(offsetof(struct ours, field) == offsetof(theirs, their_field), #ours "." #field)

SAME(cupti_callback, function_name, CUpti_CallbackData, functionName);
SAME(cupti_callback, parameters, CUpti_CallbackData, functionParams);
SAME(cupti_callback, return_value, CUpti_CallbackData, functionReturnValue);
SAME(cupti_callback, symbol_name, CUpti_CallbackData, symbolName);
SAME(cupti_callback, context, CUpti_CallbackData, context);
SAME(cupti_callback, context_uid, CUpti_CallbackData, contextUid);
SAME(cupti_callback, correlation_data, CUpti_CallbackData, correlationData);
SAME(args_alloc, bytes, cuMemAlloc_v2_params, bytesize);
SAME(args_alloc, stream, cuMemAllocAsync_params, hStream);
SAME(args_alloc_pool, stream, cuMemAllocFromPoolAsync_params, hStream);
SAME(args_alloc_pitch, height, cuMemAllocPitch_v2_params, Height);
SAME(args_range, bytes, cuMemHostRegister_v2_params, bytesize);
SAME(args_range, bytes, cuMemMap_params, size);
SAME(args_range, bytes, cuMemUnmap_params, size);
SAME(args_pair, second, cuMemFreeAsync_params, hStream);
SAME(args_copy, source, cuMemcpyHtoDAsync_v2_params, srcHost);
SAME(args_copy, bytes, cuMemcpyHtoDAsync_v2_params, ByteCount);
SAME(args_copy, stream, cuMemcpyDtoHAsync_v2_params, hStream);
SAME(args_copy, stream, cuMemcpyAsync_params, hStream);
SAME(args_copy_peer, source, cuMemcpyPeerAsync_params, srcDevice);
SAME(args_copy_peer, stream, cuMemcpyPeerAsync_params, hStream);
SAME(args_from_array, bytes, cuMemcpyAtoHAsync_v2_params, ByteCount);
SAME(args_from_array, stream, cuMemcpyAtoHAsync_v2_params, hStream);
SAME(args_to_array, source, cuMemcpyHtoAAsync_v2_params, srcHost);
SAME(args_to_array, stream, cuMemcpyHtoAAsync_v2_params, hStream);
SAME(args_pointer_attribute, attribute, cuPointerSetAttribute_params, attribute);
_Static_assert(offsetof(cuMemcpyBatchAsync_v2_params, hStream) == 7 * 8, "the stream's number");
_Static_assert(offsetof(cuMemcpy3DBatchAsync_v2_params, hStream) == 3 * 8, "the stream's number");
_Static_assert(offsetof(cuDevicePrimaryCtxSetFlags_v2_params, flags) == 4, "the flags' number");
_Static_assert(CUDA_POINTER_SYNC_MEMOPS == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "an attribute");
_Static_assert(CUDA_CONTEXT_SYNC_MEMOPS == CU_CTX_SYNC_MEMOPS, "a flag");
SAME(args_copy_pitched, stream, cuMemcpy2DAsync_v2_params, hStream);
SAME(args_copy_pitched, stream, cuMemcpy3DAsync_v2_params, hStream);
SAME(args_fill, count, cuMemsetD8Async_params, N);
SAME(args_fill, stream, cuMemsetD32Async_params, hStream);
SAME(args_fill_2d, width, cuMemsetD2D16Async_params, Width);
SAME(args_fill_2d, stream, cuMemsetD2D8Async_params, hStream);
SAME(args_launch, grid, cuLaunchKernel_params, gridDimX);
SAME(args_launch, block, cuLaunchKernel_params, blockDimX);
SAME(args_launch, stream, cuLaunchKernel_params, hStream);
SAME(args_launch, parameters, cuLaunchKernel_params, kernelParams);
SAME(args_launch, extra, cuLaunchKernel_params, extra);
SAME(args_launch, parameters, cuLaunchCooperativeKernel_params, kernelParams);
SAME(args_launch_ex, function, cuLaunchKernelEx_params, f);
SAME(args_launch_ex, extra, cuLaunchKernelEx_params, extra);
SAME(cuda_launch_config, stream, CUlaunchConfig, hStream);
SAME(args_stream_create, flags, cuStreamCreate_params, Flags);
SAME(args_stream_create, flags, cuStreamCreateWithPriority_params, flags);
SAME(args_pair, second, cuEventRecord_params, hStream);
SAME(args_pair, second, cuStreamWaitEvent_params, hEvent);
SAME(args_pair, second, cuGraphLaunch_params, hStream);
SAME(args_given, graph, cuStreamEndCapture_params, phGraph);
SAME(args_instantiate, graph, cuGraphInstantiateWithFlags_params, hGraph);
SAME(args_instantiate, graph, cuGraphInstantiateWithParams_params, hGraph);
SAME(args_graph_node, graph, cuGraphAddMemcpyNode_params, hGraph);
SAME(args_graph_node, parameters, cuGraphAddMemcpyNode_params, copyParams);
SAME(args_graph_node, parameters, cuGraphAddMemsetNode_params, memsetParams);
SAME(args_graph_node, parameters, cuGraphAddKernelNode_v2_params, nodeParams);
SAME(cuda_kernel_node, parameters, CUDA_KERNEL_NODE_PARAMS, kernelParams);
SAME(cuda_kernel_node, extra, CUDA_KERNEL_NODE_PARAMS, extra);
SAME(cuda_kernel_node, kernel, CUDA_KERNEL_NODE_PARAMS_v2, kern);
SAME(cuda_fill_node, element_bytes, CUDA_MEMSET_NODE_PARAMS, elementSize);
SAME(cuda_fill_node, height, CUDA_MEMSET_NODE_PARAMS, height);
SAME(cuda_copy_2d, target, CUDA_MEMCPY2D, dstXInBytes);
SAME(cuda_copy_2d, height, CUDA_MEMCPY2D, Height);
SAME(cuda_copy_3d, target, CUDA_MEMCPY3D, dstXInBytes);
SAME(cuda_copy_3d, depth, CUDA_MEMCPY3D, Depth);
_Static_assert(offsetof(struct cuda_copy_2d_end, pitch) == offsetof(CUDA_MEMCPY2D, srcPitch), "");
_Static_assert(offsetof(struct cuda_copy_3d_end, height) == offsetof(CUDA_MEMCPY3D, srcHeight), "");
_Static_assert((int)CUPTI_CB_DOMAIN_DRIVER_API == CUPTI_DOMAIN_DRIVER, "");
_Static_assert((int)CUPTI_API_EXIT == CUPTI_SITE_EXIT, "");
_Static_assert((int)CU_MEMORYTYPE_UNIFIED == CUDA_MEMORY_UNIFIED, "");
_Static_assert(CU_STREAM_NON_BLOCKING == CUDA_STREAM_NON_BLOCKING, "");

#define CALL(id, name, begin, end, argument)                                                       \
    _Static_assert((id) == CUPTI_DRIVER_TRACE_CBID_##name, #name);
#include "interpose/cuda/calls.def"
#undef CALL

int main(void)
{
    puts("the layout is that of the toolkit");
    return 0;
}
