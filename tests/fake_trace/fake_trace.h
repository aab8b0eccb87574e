/* fake_trace.h - a CUDA driver and a CUPTI for tests of greta trace: the driver's calls do what
 * their names say in host memory, and are told to a subscriber as CUPTI tells them. Faults are the
 * real ones: a kernel that is out of bounds makes every later call return 700.
 *
 * Two shared libraries with the real names; a test program is linked with the driver, and the
 * library of greta trace finds the CUPTI by --cupti. */
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

enum { OK = 0, INVALID_VALUE = 1, INVALID_HANDLE = 400, NOT_READY = 600, ILLEGAL_ADDRESS = 700 };
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
result cuMemsetD8Async(address target, unsigned char value, size_t count, stream on);
result cuStreamCreate(stream *made, unsigned int flags);
result cuStreamDestroy_v2(stream on);
result cuStreamSynchronize(stream on);
result cuCtxSynchronize(void);
result cuEventCreate(event *made, unsigned int flags);
result cuEventRecord(event mark, stream on);
result cuStreamWaitEvent(stream on, event mark, unsigned int flags);
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

/* Between the two libraries: who is told of calls. */
typedef void (*fake_callback)(void *context, int32_t domain, uint32_t id, const void *data);
void fake_driver_subscribe(fake_callback callback, void *context);
void fake_driver_enable(uint32_t id, int on);

#endif
