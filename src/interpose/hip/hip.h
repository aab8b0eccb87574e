/* hip.h - what the files of the preload library over libamdhip64 share.
 *
 * Every call of calls.def is exported under its own name and found by the dynamic linker before the
 * runtime's. A wrapper passes the call's arguments to the recording (interpose/interpose.h), calls
 * the runtime, records the outcome and returns the same code. It makes no other call of the
 * runtime, because any call could change what hipGetLastError returns. */
#ifndef GRETA_INTERPOSE_HIP_HIP_H
#define GRETA_INTERPOSE_HIP_HIP_H

#include "interpose/hip/code_object.h"
#include "interpose/hip/types.h"
#include "interpose/interpose.h"

#define EXPORT __attribute__((visibility("default")))

enum hip_number {
    HIP_NOT_FOUND = 302, /* a call that this runtime does not have */
    HIP_NOT_READY = 600,
    HIP_STREAM_APART = 1, /* does not wait for the default stream */
    HIP_COPY_HOST = 0,
    HIP_COPY_IN = 1,
    HIP_COPY_OUT = 2,
    HIP_COPY_WITHIN = 3,
    HIP_HOST_WRITE_COMBINED = 4, /* a flag of pinned memory */
};

/* ---- The runtime's own functions ------------------------------------------------------------ */

typedef void (*hip_function)(void); /* any function, to be cast */

enum hip_index {
#define HIP_ROW(name, ...) HIP_INDEX_##name,
#include "interpose/hip/rows.def"
#undef HIP_ROW
    HIP_INDEX_COUNT
};

/* NULL: this runtime has none. */
hip_function hip_real(enum hip_index index);
/* One that is not in calls.def. */
hip_function hip_real_named(const char *name);

/* ---- The recording -------------------------------------------------------------------------- */

/* Returns the recording if this call is to be recorded, that is, if the program is traced and the
 * runtime is not calling itself; hip_leave must follow then. */
struct interpose *hip_enter(void);
void hip_leave(void);

/* ---- Streams -------------------------------------------------------------------------------- */

void hip_device_set(int device); /* of the calling thread */
uint64_t hip_device_get(void);

/* The owner of memory that is freed when a device is reset. */
static inline uint64_t hip_context(void)
{
    return hip_device_get() + 1;
}

#define ON(stream)                                                                                 \
    (&(struct interpose_stream){ hip_device_get(), hip_stream_number(stream, false) })
#define ON_THREAD(stream)                                                                          \
    (&(struct interpose_stream){ hip_device_get(), hip_stream_number(stream, true) })

static inline uint64_t hip_number(const void *handle)
{
    return (uint64_t)(uintptr_t)handle;
}

/* HIP's names for the default streams are the recording's numbers. */
static inline uint64_t hip_stream_number(hipStream_t stream, bool of_thread)
{
    if (stream)
        return hip_number(stream);
    return of_thread ? INTERPOSE_STREAM_PER_THREAD : INTERPOSE_STREAM_LEGACY;
}

/* ---- Kernels -------------------------------------------------------------------------------- */

struct hip_launch {
    const void *function; /* in a module, or in the program itself */
    dim3 grid, block;
    size_t shared_bytes;
    void **params, **extra;
    const struct interpose_stream *stream;
    hipGraph_t graph; /* added to it, not run */
};
void hip_launch_begin(struct interpose *trace, struct interpose_call *call, const char *name,
                      const struct hip_launch *launch);

#define HIP_ARGUMENT_LIMIT 128

struct hip_kernel {
    const char *name; /* lives as long as the process; NULL: unknown */
    bool known;       /* what its arguments are */
    uint32_t argument_count;
    struct code_argument arguments[HIP_ARGUMENT_LIMIT];
};
void hip_kernel_find(const void *function, struct hip_kernel *ret_kernel);

/* A module was loaded from these bytes; read before this returns. */
void hip_module_add(const void *module, const struct code_source *source);
/* The same from a file. */
void hip_module_add_file(const void *module, const char *path);
void hip_module_remove(const void *module);
void hip_module_function(const void *module, const void *function, const char *name);
/* Called by code that the compiler adds: registers the program's own kernels. bundle stays in place
 * and is read when needed. */
void hip_bundle_add(const void *handle, const void *bundle);
void hip_bundle_function(const void *handle, const void *function, const char *name);

/* Memory of this process, which may not be there. */
struct code_source hip_memory_source(const void *memory);

/* ---- Requests ------------------------------------------------------------------------------- */

struct interpose_copy hip_line(hipMemcpyKind kind, const void *target, const void *source,
                               size_t bytes, bool async, const struct interpose_stream *stream);
struct interpose_copy hip_rows(struct interpose_copy copy, size_t rows, size_t target_pitch,
                               size_t source_pitch);
struct interpose_copy hip_planes(const struct hipMemcpy3DParms *copy, bool async,
                                 const struct interpose_stream *stream);
struct interpose_copy hip_driver_rows(const hip_Memcpy2D *copy, bool async,
                                      const struct interpose_stream *stream);
struct interpose_copy hip_opaque(bool async, const struct interpose_stream *stream);
struct interpose_copy hip_to_opaque(struct interpose_copy copy);
struct interpose_copy hip_from_opaque(struct interpose_copy copy);
struct interpose_copy hip_in_graph(hipGraph_t graph, struct interpose_copy copy);

struct interpose_fill hip_fill(const void *target, size_t count, size_t value_bytes,
                               const struct interpose_stream *stream);
struct interpose_fill hip_fill_rows(const void *target, size_t width, size_t height, size_t pitch,
                                    const struct interpose_stream *stream);
struct interpose_fill hip_fill_planes(hipPitchedPtr memory, hipExtent extent,
                                      const struct interpose_stream *stream);
struct interpose_fill hip_fill_in_graph(hipGraph_t graph, const hipMemsetParams *fill);

dim3 hip_blocks(uint32_t x, uint32_t y, uint32_t z, uint32_t block_x, uint32_t block_y,
                uint32_t block_z);
struct hip_launch hip_node_launch(hipGraph_t graph, const hipKernelNodeParams *kernel);
struct hip_launch hip_config_launch(const hipLaunchConfig_t *config, const void *function,
                                    void **params, const struct interpose_stream *stream);
struct hip_launch hip_driver_launch(const HIP_LAUNCH_CONFIG *config, const void *function,
                                    void **params, void **extra,
                                    const struct interpose_stream *stream);

/* ---- Wrappers ------------------------------------------------------------------------------- */

#define HIP_ROW(name, parameters, ...) EXPORT hipError_t name parameters;
#include "interpose/hip/rows.def"
#undef HIP_ROW

#endif
