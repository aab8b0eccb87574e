/* gpu.h - a GPU as a device, over a table of runtime calls that the CUDA and HIP backends fill. All
 * else is shared by both: buffers with guards, streams with crumbs, staging, graphs, faults. */
#ifndef GRETA_DEVICE_GPU_GPU_H
#define GRETA_DEVICE_GPU_GPU_H

#include "device/kernel.h"
#include "device/options.h"

/* What a runtime says about its device. */
struct gpu_facts {
    char name[96];
    char driver[64];
    uint64_t memory_bytes;
    struct device_gpu_chip chip;
    bool early_start; /* kernels may start before the previous one has ended */
};

/* What the runtime says about an address. */
struct gpu_pointer {
    bool is_memory;                    /* mapped memory of this device */
    const char *words;                 /* otherwise, what it is; static */
    uint64_t range_start, range_bytes; /* the allocation or range around it; 0: unknown */
};

struct gpu_grid {
    uint32_t x, y;
    uint32_t threads;
    uint32_t shared_bytes;
};

/* Calls return 0 or the runtime's error code. `enter` makes the device current in the calling
 * thread before any other call. Streams, events, modules, functions and graphs are the runtime's
 * handles. No entry is optional; a call that a runtime does not support returns a code. */
struct gpu_runtime {
    const char *kind;  /* "cuda", "hip" */
    const char *title; /* "CUDA", "HIP": for messages */
    void *self;        /* first argument of every call */

    void (*close)(void *self);
    void (*facts)(void *self, struct gpu_facts *ret_facts);
    const char *(*error_name)(void *self, int code); /* "CUDA_ERROR_ILLEGAL_ADDRESS" */
    bool (*is_fault)(int code);                      /* the device is unusable after it */
    bool (*is_no_memory)(int code);
    int (*enter)(void *self);
    /* The first fault of which the runtime was notified; false: none. reason: a description. */
    bool (*fault_find)(void *self, uint64_t *ret_address, char *reason, size_t reason_bytes);

    int (*memory_create)(void *self, uint64_t bytes, uint64_t *ret_address);
    int (*memory_destroy)(void *self, uint64_t address);
    int (*pointer_ask)(void *self, uint64_t address, struct gpu_pointer *ret_pointer);
    /* Pinned host memory that the device can access at *ret_address. */
    int (*pinned_create)(void *self, uint64_t bytes, void **ret_memory, uint64_t *ret_address);
    int (*pinned_destroy)(void *self, void *memory);
    /* Pins memory of the caller. */
    int (*pin)(void *self, void *memory, uint64_t bytes, uint64_t *ret_address);
    int (*unpin)(void *self, void *memory);

    /* Address ranges without memory, and memory mapped into them, in multiples of the granularity.
     */
    int (*granularity)(void *self, uint64_t *ret_bytes);
    int (*range_create)(void *self, uint64_t bytes, uint64_t *ret_address);
    int (*range_destroy)(void *self, uint64_t address, uint64_t bytes);
    int (*range_map)(void *self, uint64_t address, uint64_t bytes, uint64_t *ret_memory);
    int (*range_unmap)(void *self, uint64_t address, uint64_t bytes, uint64_t memory);

    int (*stream_create)(void *self, void **ret_stream);
    int (*stream_destroy)(void *self, void *stream);
    int (*stream_sync)(void *self, void *stream);
    int (*stream_query)(void *self, void *stream); /* 0 also while work is running */

    /* idle: waiting threads sleep instead of spinning. */
    int (*event_create)(void *self, bool idle, void **ret_event);
    int (*event_destroy)(void *self, void *event);
    int (*event_record)(void *self, void *event, void *stream);
    int (*event_wait)(void *self, void *event, void *stream);
    int (*event_sync)(void *self, void *event);
    int (*event_query)(void *self, void *event, bool *ret_passed);

    int (*copy_in)(void *self, uint64_t target, const void *source, uint64_t bytes, void *stream);
    int (*copy_out)(void *self, void *target, uint64_t source, uint64_t bytes, void *stream);
    int (*copy_within)(void *self, uint64_t target, uint64_t source, uint64_t bytes, void *stream);
    int (*fill)(void *self, uint64_t target, uint8_t byte, uint64_t bytes, void *stream);

    /* True if the chip can run this code. */
    bool (*code_fits)(void *self, const struct device_gpu_code *code);
    int (*module_load)(void *self, const void *code, void **ret_module);
    int (*module_unload)(void *self, void *module);
    int (*function_find)(void *self, void *module, const char *name, void **ret_function);
    int (*function_allow_shared)(void *self, void *function, uint32_t bytes);
    /* call: a struct gpu_call, copied. */
    int (*launch)(void *self, void *function, const struct gpu_grid *grid, void *stream,
                  struct gpu_call *call);

    /* What is submitted to the stream between begin and end becomes a graph. */
    int (*capture_begin)(void *self, void *stream);
    int (*capture_end)(void *self, void *stream, void **ret_graph, void **ret_exec);
    /* Between begin and end: the last node. */
    int (*capture_node)(void *self, void *stream, void **ret_node);
    int (*graph_destroy)(void *self, void *graph, void *exec);
    int (*graph_set_call)(void *self, void *exec, void *node, void *function,
                          const struct gpu_grid *grid, struct gpu_call *call);
    int (*graph_launch)(void *self, void *exec, void *stream);
};

/* Turns the code with which opening `name` failed into a status: STATUS_LOST if an earlier fault of
 * this process is the reason. */
MUST_CHECK enum status gpu_open_failed(const struct gpu_runtime *runtime, const char *name,
                                       int code, struct error *err);

/* Takes the runtime: it is closed with the device or, on failure, here. */
MUST_CHECK enum status gpu_device_open(const struct gpu_runtime *take_runtime,
                                       const struct device_options *options,
                                       struct device **ret_device, struct error *err);

#endif
