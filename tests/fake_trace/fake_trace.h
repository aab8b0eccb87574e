/* fake_trace.h - a CUDA driver and a CUPTI for tests of greta trace: the driver's calls do what
 * their names say in host memory, and are reported to a subscriber as by CUPTI. Faults are the
 * real ones: a kernel that is out of bounds makes every later call return 700.
 *
 * Two shared libraries with the real names. A test program is linked with the driver, or finds its
 * functions as the CUDA runtime does (routes.c); the library of greta trace that uses CUPTI finds
 * it by --cupti-library. */
#ifndef GRETA_TESTS_FAKE_TRACE_H
#define GRETA_TESTS_FAKE_TRACE_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t result;
typedef uint64_t address;
typedef struct fake_stream *stream;
typedef struct fake_event *event;
typedef struct fake_graph *graph;
typedef struct fake_kernel *function;

enum {
    OK = 0,
    INVALID_VALUE = 1,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    ILLEGAL_ADDRESS = 700,
    ALREADY_REGISTERED = 712,
    NOT_REGISTERED = 713
};
enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };

/* As cuda.h has them. */
struct end_2d {
    size_t x, y;
    unsigned int kind;
    const void *host;
    address device;
    void *array;
    size_t pitch;
};
struct copy_2d {
    struct end_2d source, target;
    size_t width, height;
};
struct end_3d {
    size_t x, y, z, level;
    unsigned int kind;
    const void *host;
    address device;
    void *array, *reserved;
    size_t pitch, height;
};
struct copy_3d {
    struct end_3d source, target;
    size_t width, height, depth;
};
struct fill_node {
    address target;
    size_t pitch;
    unsigned int value, element_bytes;
    size_t width, height;
};

enum { STREAM_DEFAULT = 0, STREAM_NON_BLOCKING = 1 };

result cuInit(unsigned int flags);
result cuMemAlloc_v2(address *pointer, size_t bytes);
result cuMemFree_v2(address pointer);
result cuMemAllocAsync(address *pointer, size_t bytes, stream on);
result cuMemFreeAsync(address pointer, stream on);
result cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags);
result cuMemFreeHost(void *pointer);
result cuMemcpyHtoD_v2(address target, const void *source, size_t bytes);
result cuMemcpyDtoH_v2(void *target, address source, size_t bytes);
result cuMemcpyHtoDAsync_v2(address target, const void *source, size_t bytes, stream on);
result cuMemcpyDtoHAsync_v2(void *target, address source, size_t bytes, stream on);
result cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, stream on);
result cuMemcpy(address target, address source, size_t bytes);
result cuMemsetD8Async(address target, unsigned char value, size_t count, stream on);
result cuStreamCreate(stream *made, unsigned int flags);
result cuStreamDestroy_v2(stream on);
result cuStreamSynchronize(stream on);
result cuCtxSynchronize(void);
result cuEventCreate(event *made, unsigned int flags);
result cuEventRecord(event mark, stream on);
result cuStreamWaitEvent(stream on, event mark, unsigned int flags);
result cuModuleLoadData(void **module, const void *image);
result cuModuleGetFunction(function *kernel, void *module, const char *name);
result cuFuncGetParamInfo(function kernel, size_t index, size_t *offset, size_t *size);
result cuLaunchKernel(function kernel, unsigned int grid_x, unsigned int grid_y,
                      unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                      unsigned int block_z, unsigned int shared_bytes, stream on, void **parameters,
                      void **extra);
result cuStreamBeginCapture_v2(stream on, int mode);
result cuStreamEndCapture(stream on, graph *made);
result cuGraphInstantiateWithFlags(graph *made, graph from, unsigned long long flags);
result cuGraphLaunch(graph executable, stream on);

result cuFuncGetName(const char **name, function kernel);
result cuCtxGetCurrent(void **context);
result cuCtxSetCurrent(void *context);
result cuCtxCreate_v2(void **context, unsigned int flags, int device);
result cuCoredumpSetAttributeGlobal(int setting, void *value, size_t *bytes);
/* The same where stream 0 is the calling thread's own. */
result cuMemcpyHtoDAsync_v2_ptsz(address target, const void *source, size_t bytes, stream on);
result cuMemcpyDtoHAsync_v2_ptsz(void *target, address source, size_t bytes, stream on);
result cuStreamSynchronize_ptsz(stream on);
result cuLaunchKernel_ptsz(function kernel, unsigned int grid_x, unsigned int grid_y,
                           unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                           unsigned int block_z, unsigned int shared_bytes, stream on,
                           void **parameters, void **extra);

/* fake_proc.c */
result cuGetProcAddress(const char *name, void **found, int version, uint64_t flags);
result cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *query);

result cuStreamQuery(stream on);
result cuEventQuery(event mark);
result cuLaunchHostFunc(stream on, void (*host)(void *), void *data);

/* fake_kinds.c */
result cuMemAllocManaged(address *pointer, size_t bytes, unsigned int flags);
result cuMemAllocPitch_v2(address *pointer, size_t *pitch, size_t width, size_t height,
                          unsigned int element_bytes);
result cuMemAllocFromPoolAsync(address *pointer, size_t bytes, void *pool, stream on);
result cuMemAddressReserve(address *pointer, size_t bytes, size_t alignment, address wanted,
                           unsigned long long flags);
result cuMemMap(address pointer, size_t bytes, size_t offset, unsigned long long memory,
                unsigned long long flags);
result cuMemUnmap(address pointer, size_t bytes);
result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags);
result cuMemHostUnregister(void *pointer);
result cuMemHostGetDevicePointer_v2(address *pointer, void *host, unsigned int flags);
result cuIpcGetMemHandle(void *handle, address pointer);
result cuMemcpyAtoD_v2(address target, void *array, size_t offset, size_t bytes);
void fake_when_leaving(void (*called)(void));
result cuTensorMapReplaceAddress(unsigned char map[128], void *pointer);
result cuCtxGetDevice(int *device);
result cuDevicePrimaryCtxReset_v2(int device);

/* fake_shapes.c */
result cuMemcpy2D_v2(const struct copy_2d *copy);
result cuMemcpy2DAsync_v2(const struct copy_2d *copy, stream on);
result cuMemcpy3DAsync_v2(const struct copy_3d *copy, stream on);
result cuMemcpyPeer(address target, void *target_context, address source, void *source_context,
                    size_t bytes);
result cuMemcpyPeerAsync(address target, void *target_context, address source, void *source_context,
                         size_t bytes, stream on);
result cuMemsetD32Async(address target, unsigned int value, size_t count, stream on);
result cuMemsetD2D16Async(address target, size_t pitch, unsigned short value, size_t width,
                          size_t height, stream on);
result cuGraphCreate(graph *made, unsigned int flags);
result cuGraphAddMemcpyNode(void **node, graph into, void **behind, size_t behind_count,
                            const struct copy_3d *copy, void *context);
result cuGraphAddMemsetNode(void **node, graph into, void **behind, size_t behind_count,
                            const struct fill_node *parameters, void *context);
result cuGraphExecMemcpyNodeSetParams(graph executable, void *node, const struct copy_3d *copy,
                                      void *context);
result cuGraphExecDestroy(graph executable);
result cuGraphDestroy(graph made);

/* Between the two libraries: who hears of calls. */
typedef void (*fake_callback)(void *context, int32_t domain, uint32_t id, const void *data);
void fake_driver_subscribe(fake_callback callback, void *context);
void fake_driver_enable(uint32_t id, int on);

#endif
