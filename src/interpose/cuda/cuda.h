/* cuda.h - what the two libraries that record calls of the CUDA driver share: the preloaded one
 * (preload.h) and the one that the driver loads and CUPTI calls (inject.c). Both pass a call's
 * arguments on in a struct in which they stand as the function declares them.
 *
 * All declarations of CUPTI's and the driver's are our own, so that no toolkit is needed to build
 * the libraries. tests/tools/cupti_layout_test.c compares them with the toolkit's headers if
 * they are installed. */
#ifndef GRETA_INTERPOSE_CUDA_CUDA_H
#define GRETA_INTERPOSE_CUDA_CUDA_H

#include "interpose/interpose.h"

/* ---- CUPTI ---------------------------------------------------------------------------------- */

enum { CUPTI_SITE_ENTER = 0, CUPTI_SITE_EXIT = 1 };
enum { CUPTI_DOMAIN_DRIVER = 1 };

struct cupti_callback {
    int32_t site;
    const char *function_name;
    const void *parameters;
    const void *return_value; /* of the driver: an int32_t; there at the exit */
    const char *symbol_name;  /* for a launch: the kernel */
    const void *context;
    uint32_t context_uid;
    uint64_t *correlation_data;
    uint32_t correlation_id;
};

typedef void (*cupti_function)(void *context, int32_t domain, uint32_t id, const void *data);

/* ---- Arguments of driver calls -------------------------------------------------------------- */

struct args_alloc { /* cuMemAlloc, cuMemAllocManaged, cuMemAllocHost, cuMemAllocAsync */
    const uint64_t *address;
    size_t bytes;
    uint64_t stream; /* of cuMemAllocAsync */
};
struct args_alloc_host { /* cuMemHostAlloc */
    const uint64_t *address;
    size_t bytes;
    uint32_t flags;
};
struct args_alloc_pool {
    const uint64_t *address;
    size_t bytes;
    uint64_t pool, stream;
};
struct args_alloc_pitch {
    const uint64_t *address;
    const size_t *pitch;
    size_t width, height;
    uint32_t element_bytes;
};
struct args_range { /* cuMemHostRegister, cuMemMap, cuMemUnmap, cuMemFree, cuMemFreeAsync */
    uint64_t address;
    size_t bytes; /* of cuMemFreeAsync: the stream; of cuMemFree: not there */
};
struct args_copy { /* cuMemcpyHtoD and its like, cuMemcpy */
    uint64_t target, source;
    size_t bytes;
    uint64_t stream; /* of the asynchronous ones */
};
struct args_copy_peer {
    uint64_t target, target_context, source, source_context;
    size_t bytes;
    uint64_t stream;
};
struct args_from_array {
    uint64_t target, array;
    size_t offset, bytes;
    uint64_t stream; /* of the asynchronous one */
};
struct args_to_array {
    uint64_t array;
    size_t offset;
    uint64_t source;
    size_t bytes;
    uint64_t stream;
};
struct args_pointer_attribute {
    const uint32_t *value;
    uint32_t attribute;
    uint64_t address;
};
#define CUDA_POINTER_SYNC_MEMOPS 6u
#define CUDA_HOST_WRITE_COMBINED 4u
#define CUDA_CONTEXT_SYNC_MEMOPS 0x80u
struct args_copy_pitched {
    const void *copy; /* struct cuda_copy_2d, struct cuda_copy_3d */
    uint64_t stream;
};
struct args_fill {
    uint64_t target;
    uint32_t value;
    size_t count;
    uint64_t stream;
};
struct args_fill_2d {
    uint64_t target;
    size_t pitch;
    uint32_t value;
    size_t width, height;
    uint64_t stream;
};
struct args_launch { /* cuLaunchKernel; cuLaunchCooperativeKernel ends before extra */
    uint64_t function;
    uint32_t grid[3], block[3], shared_bytes;
    uint64_t stream;
    void *const *parameters;
    void *const *extra;
};
struct cuda_launch_config {
    uint32_t grid[3], block[3], shared_bytes;
    uint64_t stream;
};
struct args_launch_ex {
    const struct cuda_launch_config *config;
    uint64_t function;
    void *const *parameters;
    void *const *extra;
};
struct args_stream_create {
    const uint64_t *stream;
    uint32_t flags;
};
struct args_pair { /* cuEventRecord(event, stream), cuStreamWaitEvent(stream, event), ... */
    uint64_t first, second;
};
struct args_given { /* cuStreamEndCapture(stream, &graph) */
    uint64_t stream;
    const uint64_t *graph;
};
struct args_instantiate {
    const uint64_t *executable;
    uint64_t graph;
};
struct args_graph_node {
    uint64_t *node;
    uint64_t graph;
    const void *dependencies;
    size_t dependency_count;
    const void *parameters; /* struct cuda_kernel_node, cuda_copy_3d, cuda_fill_node */
};
struct cuda_kernel_node {
    uint64_t function;
    uint32_t grid[3], block[3], shared_bytes;
    void *const *parameters;
    void *const *extra;
    uint64_t kernel; /* where function is 0; not there in the struct of cuGraphAddKernelNode */
};
struct cuda_fill_node {
    uint64_t target;
    size_t pitch;
    uint32_t value, element_bytes;
    size_t width, height;
};

enum {
    CUDA_MEMORY_HOST = 1,
    CUDA_MEMORY_DEVICE = 2,
    CUDA_MEMORY_ARRAY = 3,
    CUDA_MEMORY_UNIFIED = 4
};
#define CUDA_STREAM_NON_BLOCKING 1u

struct cuda_copy_2d_end {
    size_t x, y;
    uint32_t memory;
    uint64_t host, device, array;
    size_t pitch;
};
struct cuda_copy_2d {
    struct cuda_copy_2d_end source, target;
    size_t width, height;
};
struct cuda_copy_3d_end {
    size_t x, y, z, level;
    uint32_t memory;
    uint64_t host, device, array, reserved;
    size_t pitch, height;
};
struct cuda_copy_3d {
    struct cuda_copy_3d_end source, target;
    size_t width, height, depth;
};

/* ---- A call being looked at ----------------------------------------------------------------- */

struct cuda_call;

struct cuda_entry {
    const char *name;
    void (*begin)(struct cuda_call *call);
    void (*end)(struct cuda_call *call);
    uint64_t argument;
    bool per_thread; /* stream 0 is the calling thread's own */
};

struct cuda_call {
    struct interpose *trace;
    const struct cuda_entry *entry;
    const void *arguments; /* NULL: there are none */
    int32_t code;          /* at the end */
    struct interpose_call call;
    /* As CUPTI says; preloaded: NULL and 0, and the driver is asked where they are needed. */
    const char *kernel; /* of a launch */
    const void *context;
    uint32_t context_uid;
};

/* The entry for a callback, or NULL. Numbers are below CUDA_CALL_LIMIT. */
#define CUDA_CALL_LIMIT 1024u
const struct cuda_entry *cuda_entry(uint32_t id);

/* The stream of a call, by its handle there. */
struct interpose_stream cuda_stream(const struct cuda_call *call, uint64_t handle);

/* Functions of the driver that the library calls, each only where its comment says so; NULL: the
 * driver has none. */
struct cuda_driver {
    int32_t (*func_get_param_info)(uint64_t function, size_t index, size_t *offset, size_t *size);
    int32_t (*kernel_get_param_info)(uint64_t kernel, size_t index, size_t *offset, size_t *size);
    int32_t (*func_get_name)(const char **name, uint64_t function);
    int32_t (*kernel_get_name)(const char **name, uint64_t kernel);
    int32_t (*ctx_synchronize)(void); /* only in a rerun that narrows */
    int32_t (*ctx_get_current)(const void **context);
    int32_t (*ctx_get_device)(int32_t *device); /* once for each context */
    /* When a primary context was released: is it still there? */
    int32_t (*primary_ctx_get_state)(int32_t device, uint32_t *flags, int32_t *active);
    /* Once, after the driver was initialised. */
    int32_t (*coredump_set)(int setting, void *value, size_t *bytes);
};
extern struct cuda_driver cuda_driver;

/* ---- The recording (recording.c) ------------------------------------------------------------ */

/* Fills in cuda_driver from the driver that the program has loaded. find: dlsym, or the one that
 * does not give wrappers. */
void cuda_open_driver(void *(*find)(void *library, const char *name));
/* NULL: this process is not traced. is_inside: as in struct interpose_backend. */
struct interpose *cuda_start_recording(bool (*is_inside)(void));
/* True for codes after which a context answers nothing else any more. */
bool cuda_is_fatal(int32_t code);
/* Says next to the recordings why there is none (INTERPOSE_NOTE_*). */
void cuda_note(const char *slug, const char *detail);

/* ---- Kernels, contexts ---------------------------------------------------------------------- */

/* The sizes of a kernel's parameters are remembered; unloading a module removes its kernels. */
void cuda_parameters_forget(void);
/* A module or library was loaded from this image (kernel_uses.c); a kernel of it was found by name;
 * a kernel is another handle of one. NULL: nothing is known of the kernel. Unloading forgets. */
void cuda_uses_loaded(uint64_t module, const void *image);
void cuda_uses_named(uint64_t kernel, uint64_t module, const char *name);
void cuda_uses_same(uint64_t kernel, uint64_t as);
const struct kernel_uses *cuda_uses_of(uint64_t kernel);
void cuda_uses_forget(void);
/* A program got this kernel by this name. */
void cuda_kernel_named(uint64_t kernel, const char *name);
/* The name it was got by; NULL: not known. */
const char *cuda_kernel_name(uint64_t kernel);
/* Records a launch: parameters as the call has them. */
void cuda_tell_launch(struct cuda_call *call, struct interpose_launch *launch,
                      void *const *parameters, void *const *extra);

/* The number of the context in which a call is made, as recorded with allocations; 0: not known. */
uint64_t cuda_context(const struct cuda_call *call);

/* A handle of libcupti, opened and complete; NULL, and why. */
void *cuda_open_cupti(const char **ret_slug, const char **ret_detail);

#define CALL(id, name, begin, end, argument)                                                       \
    void cuda_begin_##begin(struct cuda_call *call);                                               \
    void cuda_end_##end(struct cuda_call *call);
#include "interpose/cuda/calls.def"
#undef CALL

#endif
