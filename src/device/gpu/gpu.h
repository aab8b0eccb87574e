/* gpu.h - a GPU as a device, over a small table of runtime calls that CUDA's and HIP's backends
 * fill. Everything but those calls is here once: buffers with guards, streams with crumbs, staging,
 * graphs, faults. */
#ifndef GRETA_DEVICE_GPU_GPU_H
#define GRETA_DEVICE_GPU_GPU_H

#include "device/kernel.h"
#include "device/options.h"

/* What a runtime says of its device. */
struct gpu_facts {
    char name[96];
    char driver[64];
    uint64_t memory_bytes;
    struct device_gpu_chip chip;
    bool early_start; /* a kernel may begin before the one before it has ended */
};

/* What the runtime says of an address. */
struct gpu_pointer {
    bool is_memory;                    /* of this device, mapped; else: */
    const char *words;                 /* what it is; static */
    uint64_t range_start, range_bytes; /* the allocation or range it lies in; 0: not told */
};

struct gpu_grid {
    uint32_t x, y;
    uint32_t threads;
    uint32_t shared_bytes;
};

/* Calls return 0 or the runtime's error code. Every one is made with the device current in the
 * calling thread (enter). Streams, events, modules, functions, graphs are the runtime's own
 * handles. There are no optional entries; what a runtime cannot do returns a code. */
struct gpu_runtime {
    const char *kind;  /* "cuda", "hip" */
    const char *title; /* "CUDA", "HIP": for messages */
    void *self;        /* first argument of every call */

    void (*close)(void *self);
    void (*facts)(void *self, struct gpu_facts *ret_facts);
    const char *(*error_name)(void *self, int code); /* "CUDA_ERROR_ILLEGAL_ADDRESS" */
    bool (*is_fault)(int code);                      /* the device can do nothing more after it */
    bool (*is_no_memory)(int code);
    int (*enter)(void *self);
    /* What the runtime itself was told of the first fault; false: nothing. reason: in words. */
    bool (*fault_find)(void *self, uint64_t *ret_address, char *reason, size_t reason_bytes);

    int (*memory_create)(void *self, uint64_t bytes, uint64_t *ret_address);
    int (*memory_destroy)(void *self, uint64_t address);
    int (*pointer_ask)(void *self, uint64_t address, struct gpu_pointer *ret_pointer);
    /* Pinned memory of the host that the device can read and write at ret_address. */
    int (*pinned_create)(void *self, uint64_t bytes, void **ret_memory, uint64_t *ret_address);
    int (*pinned_destroy)(void *self, void *memory);
    /* Memory of the caller as pinned memory. */
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
    int (*stream_query)(void *self, void *stream); /* 0 also where work is still under way */

    /* idle: who waits for it sleeps instead of spinning. */
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

    /* Whether the chip can run this code; cheap where the runtime says what chip it is. */
    bool (*code_fits)(void *self, const struct device_gpu_code *code);
    int (*module_load)(void *self, const void *code, void **ret_module);
    int (*module_unload)(void *self, void *module);
    int (*function_find)(void *self, void *module, const char *name, void **ret_function);
    int (*function_allow_shared)(void *self, void *function, uint32_t bytes);
    /* call: a struct gpu_call, copied. */
    int (*launch)(void *self, void *function, const struct gpu_grid *grid, void *stream,
                  struct gpu_call *call);

    /* What is given to the stream between begin and end becomes a graph. */
    int (*capture_begin)(void *self, void *stream);
    int (*capture_end)(void *self, void *stream, void **ret_graph, void **ret_exec);
    /* Between begin and end: the node that was added last. */
    int (*capture_node)(void *self, void *stream, void **ret_node);
    int (*graph_destroy)(void *self, void *graph, void *exec);
    int (*graph_set_call)(void *self, void *exec, void *node, void *function,
                          const struct gpu_grid *grid, struct gpu_call *call);
    int (*graph_launch)(void *self, void *exec, void *stream);
};

/* What a code of opening `name` means: STATUS_LOST, where a fault of this process came before. */
MUST_CHECK enum status gpu_open_failed(const struct gpu_runtime *runtime, const char *name,
                                       int code, struct error *err);

/* Takes the runtime, which is closed with the device, or here on failure. */
MUST_CHECK enum status gpu_device_open(const struct gpu_runtime *take_runtime,
                                       const struct device_options *options,
                                       struct device **ret_device, struct error *err);

#endif
