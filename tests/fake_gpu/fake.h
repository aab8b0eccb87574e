/* fake.h - what the files of the fake driver share. */
#ifndef GRETA_TESTS_FAKE_GPU_FAKE_H
#define GRETA_TESTS_FAKE_GPU_FAKE_H

#include "device/cuda/cuda_api.h"

#include "adverse.h"
#include "emulator.h"
#include "late.h"

#include <pthread.h>

#define EXPORT __attribute__((visibility("default")))
#define CUDA_CALL(name, parameters) EXPORT CUresult name parameters;
#define CUDA_OLD CUDA_CALL
#include "device/cuda/cuda_api.def"
#undef CUDA_OLD
#undef CUDA_CALL
EXPORT CUresult cuCtxSynchronize(void);
EXPORT uint64_t fake_cuda_captured(const char *name);
EXPORT int fake_cuda_left(void);

/* The driver's numbers for what is wrong. */
#define FAKE_INVALID_VALUE 1
#define FAKE_NO_MEMORY 2
#define FAKE_INVALID_DEVICE 101
#define FAKE_INVALID_IMAGE 200
#define FAKE_INVALID_CONTEXT 201
#define FAKE_INVALID_HANDLE 400
#define FAKE_NOT_FOUND 500
#define FAKE_NOT_SUPPORTED 801

/* ---- fake_cuda.c ---------------------------------------------------------------------------- */

extern pthread_mutex_t fake_lock; /* held while work is done */

#define FAKE_DEVICE_LIMIT 8
/* The device whose context is current in this thread; -1: none is. */
int fake_current(void);
/* What every call returns: an earlier illegal access of a kernel on the current device stays; an
 * error without a current device. */
CUresult fake_state(void);
/* The same of a call that names things of these devices, which must be the current one; -1: none.
 */
CUresult fake_state_for(int device, int other);
CUresult fake_state_of(int device);
void fake_lose(int device);

int fake_number(const char *variable, int otherwise);
int fake_chip(void); /* compute capability, times ten */

/* What a process makes and must give back. */
enum thing {
    THING_MEMORY,
    THING_RANGE,
    THING_PINNED,
    THING_STREAM,
    THING_EVENT,
    THING_GRAPH,
    THING_COUNT
};
void fake_count(enum thing thing, int change);
/* These are about the memory of one device. */
bool fake_use_bytes(int device, size_t bytes); /* false if there is not as much left */
void fake_unuse_bytes(int device, size_t bytes);

/* ---- fake_memory.c -------------------------------------------------------------------------- */

/* The driver looks at addresses of copies and fills before it queues them. False also for memory of
 * another device than the current one: nothing is copied from device to device here. */
bool fake_is_memory(CUdeviceptr address, size_t bytes);

/* ---- fake_work.c ---------------------------------------------------------------------------- */

struct fake_kernel {
    const char *name;
    emulated_kernel run;
    uint32_t thread_limit; /* of a block, as its code says; 0: not known yet */
    uint64_t captured;     /* how often it was given to a graph */
};
struct fake_kernel *fake_kernel_find(const char *name); /* or NULL; kernels.c */

enum work_kind { WORK_KERNEL, WORK_COPY, WORK_FILL };

struct CUgraphNode_st {
    enum work_kind kind;
    struct fake_kernel *kernel;
    uint32_t grid_x, grid_y, threads, shared_bytes;
    struct gpu_call call;
    void *target;
    const void *source;
    size_t bytes;
    unsigned char byte;
    bool began; /* early: with what it read by then */
    uint64_t early_digest;
    int device;
    struct CUstream_st *stream; /* that it is given to; NULL: the default one */
    struct CUgraphNode_st *next;
};

struct CUgraph_st {
    int device;
    struct CUgraphNode_st *first, *last;
};

struct CUstream_st {
    int device;
    CUgraph capturing;
    struct late_queue late;
    struct adverse_trail trail;
};

struct CUevent_st {
    int device;
    struct late_mark mark;
};

/* To the stream, or to the graph it records. */
CUresult fake_give(CUstream stream, const struct CUgraphNode_st *work);
/* At once, or when the stream is waited for. */
CUresult fake_do_or_keep(CUstream stream, const struct CUgraphNode_st *work);
/* fake_dump.c: the kernel faulted; writes a dump if one is wanted. */
void fake_dump(const struct CUgraphNode_st *work);
/* FAKE_GPU_IDLE, in microseconds; -1: kernels are run. */
long fake_idle_us(void);

#endif
