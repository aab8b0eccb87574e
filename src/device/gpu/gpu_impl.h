/* gpu_impl.h - what the files of the GPU device share.
 *
 * Faults. When the code of a runtime call says that the device can do nothing more, gpu_failed
 * reports the fault once, with what was seen and without a culprit, and returns STATUS_LOST. */
#ifndef GRETA_DEVICE_GPU_GPU_IMPL_H
#define GRETA_DEVICE_GPU_GPU_IMPL_H

#include "device/device_impl.h"
#include "device/gpu/gpu.h"
#include "device/gpu/gpu_log.h"

/* Commands per stream whose names and scopes are remembered for a fault. The runtimes queue about a
 * thousand, so this covers all that can be queued. */
#define GPU_HISTORY 2048u

struct gpu_history {
    uint64_t event_id;
    const char *op; /* static */
    struct event_scope scope;
    const struct gpu_graph *graph; /* replays only; set to NULL when the graph is freed */
    bool is_launch;                /* launches of ops, and planted stores of them */
};

struct gpu_stream {
    uint32_t index;
    void *handle;
    uint64_t workspace;          /* 0: not made yet */
    uint64_t crumbs;             /* the stream's line of the crumb page, as the device sees it */
    uint64_t last_id;            /* event id of the last command submitted */
    uint64_t given;              /* commands so far */
    struct gpu_history *history; /* GPU_HISTORY of them; owned */
    struct gpu_inspections *inspections; /* NULL: none so far */
};

struct gpu_module {
    void *handle;
    void **functions; /* kernel_count of the image; owned */
    device_gpu_join join;
};

struct gpu_graph_node {
    const char *op; /* static */
    struct event_scope scope;
    bool is_launch;
};

/* A graph of the runtime and the calls of its kernels. */
struct gpu_recording {
    void *graph, *exec;
    /* The first kernel carries the replay's id: its call is set again for each replay. */
    void *first_node, *first_function;
    struct gpu_grid first_grid;
    struct gpu_call first_call;
    struct gpu_graph_inspections *inspections; /* NULL: none */
};

struct gpu_graph {
    struct gpu_recording swept; /* inspected at its end; replayed until something is found */
    struct gpu_recording exact; /* inspected after every command; made when it is needed */
    const struct device_command *commands; /* borrowed */
    size_t command_count;
    const struct gpu_stream *stream; /* whose crumbs and workspace the kernels use */
    struct gpu_graph_node *nodes;    /* all commands except inspections; owned */
    size_t count;
};

/* How a buffer was made. */
enum gpu_memory_kind { GPU_MEMORY_PLAIN, GPU_MEMORY_ZONED, GPU_MEMORY_MAPPED, GPU_MEMORY_PART };

/* Runtimes align to this, and the widest loads profit from it. */
#define GPU_ALIGNMENT 256u

struct gpu_block;

struct gpu_memory {
    enum gpu_memory_kind kind;
    uint64_t base, base_bytes;        /* what was allocated, or the mapped part of the range */
    uint64_t range, range_bytes;      /* MAPPED: includes the unmapped parts on both sides */
    uint64_t handle;                  /* MAPPED: the memory mapped into it */
    uint64_t front_bytes, back_bytes; /* canary bytes before and after the buffer */
    struct gpu_block *block;          /* PART: what it was cut from */
};

/* Where pinned staging comes from. */
enum gpu_staging { GPU_STAGING_UNDECIDED, GPU_STAGING_OWN_PAGES, GPU_STAGING_RUNTIMES };

struct gpu_quarantine_entry;
struct gpu_completions;

struct gpu_device {
    struct device device; /* the common part, first */
    struct gpu_runtime runtime;
    struct gpu_facts facts;
    struct gpu_module modules[DEVICE_MODULE_LIMIT];
    size_t module_count;

    void *internal_stream; /* for this layer's own fills and copies */
    pthread_mutex_t lock;  /* guards the internal stream, the streams, the quarantine and blocks */
    enum gpu_staging staging; /* decided with the first slot, at open */
    struct gpu_block *block;  /* buffers are cut from it while they fit; may be NULL */
    struct gpu_stream *streams[CRUMB_STREAM_LIMIT];
    struct gpu_quarantine_entry *oldest, *newest;
    uint64_t quarantine_bytes;
    uint64_t granularity; /* of mapped memory; 0: not available, canaries instead */
    bool pointers_known;  /* the runtime recognises memory that it made itself */

    struct gpu_log_reader log; /* kernel log, for the addresses of faults */

    uint64_t waited[CRUMB_STREAM_LIMIT]; /* atomic; the host has waited for a mark after it */

    struct crumb_page *page; /* as the device's kernels write it */
    uint64_t page_address;   /* its device address */
    bool page_is_callers;    /* pinned in place; else own memory, copied out at waits */
    uint64_t trap_counter;   /* device memory: u64 */

    struct gpu_completions *completions; /* NULL: not requested */

    /* This layer's own kernels, from the first module that has them; NULL: none has. */
    void *inspect_function, *store_function;
    bool inspects;                /* atomic; anything was ever inspected */
    bool clean_unreported;        /* atomic; gpu_inspect_tell has clean sweeps to report */
    pthread_mutex_t inspect_lock; /* guards the rest; taken after any other lock of this layer */
    struct gpu_stream *inspecting[CRUMB_STREAM_LIMIT]; /* streams with inspections, or NULL */
    struct gpu_graph_inspections *graph_inspections;
    struct device_command inspected; /* what is reported */
};

static inline struct gpu_device *gpu_of(struct device *device)
{
    return (struct gpu_device *)device;
}

/* Makes the device current in this thread. A failure shows at the call that follows. */
void gpu_enter(struct gpu_device *gpu);

/* ---- Faults (gpu_fault.c) ------------------------------------------------------------------- */

/* For a code that is not 0, always a failure: STATUS_LOST after a fault, which is reported, else
 * STATUS_NO_MEMORY or STATUS_UNSUPPORTED. */
enum status gpu_failed(struct gpu_device *gpu, int code, const char *what, struct error *err);
#define GPU_TRY(gpu, code, what, err)                                                              \
    do {                                                                                           \
        int gpu_try_code = (code);                                                                 \
        if (gpu_try_code)                                                                          \
            return gpu_failed((gpu), gpu_try_code, (what), (err));                                 \
    } while (0)

/* Waits for all streams. True if a kernel queued earlier has faulted: reported, the device lost. */
bool gpu_find_fault(struct gpu_device *gpu);

/* Describes what may have been running: a launch, or "one of N launches: ..." (gpu_running.c). */
void gpu_describe_running(struct gpu_device *gpu, char *words, size_t bytes);
/* Copies what the kernels wrote to the observer's crumb page: after a wait, or during one. */
void gpu_show_crumbs(struct gpu_device *gpu);
/* The stream was waited for: its last command is finished. */
void gpu_stream_finished(struct gpu_device *gpu, struct gpu_stream *stream, uint64_t last_id);
/* callers: the page to write, if it can be pinned; may be NULL. Returns the runtime's code. */
int gpu_crumbs_create(struct gpu_device *gpu, struct crumb_page *callers);
void gpu_crumbs_destroy(struct gpu_device *gpu);

/* ---- Memory (gpu_memory.c) ------------------------------------------------------------------ */

/* gpu_block.c. A hint: buffers of this many bytes in total follow. */
void gpu_memory_reserve(struct device *device, uint64_t bytes);
/* False: there is no block, or no room in it. The memory holds zeros. */
bool gpu_block_take(struct gpu_device *gpu, uint64_t bytes, struct gpu_memory *memory);
void gpu_block_give_back(struct gpu_device *gpu, const struct gpu_memory *memory);
void gpu_block_release(struct gpu_device *gpu); /* at close */
enum status gpu_memory_create(struct device *device, uint64_t bytes,
                              struct device_memory *ret_memory, struct error *err);
enum status gpu_memory_import(struct device *device, const void *bytes, uint64_t count,
                              struct device_memory *ret_memory, struct error *err);
void gpu_memory_destroy(struct device *device, struct device_memory *memory);
uint64_t gpu_memory_damage(struct device *device, const struct device_memory *memory,
                           int64_t *ret_offset);
void gpu_memory_ask(struct device *device, uint64_t address, uint64_t bytes,
                    struct device_pointer_facts *ret_facts);
void gpu_memory_give_back(struct gpu_device *gpu, const struct gpu_memory *memory);
/* As gpu_failed for an allocation; if memory ran out, the message says how much there is. */
enum status gpu_no_room(struct gpu_device *gpu, int code, uint64_t bytes, struct error *err);
/* gpu_quarantine.c. Takes the memory; false if it cannot, and the memory is the caller's still. */
bool gpu_quarantine_keep(struct gpu_device *gpu, const struct gpu_memory *memory);
void gpu_quarantine_release(struct gpu_device *gpu);
/* gpu_pointer.c. Pointers are only asked about if the runtime knows memory that it made itself. */
void gpu_pointers_probe(struct gpu_device *gpu, const struct device_memory *memory);
/* Finds out, once, whether guards can be unmapped pages. */
void gpu_memory_probe(struct gpu_device *gpu);

/* ---- Streams, marks (gpu_stream.c) and graphs (gpu_graph.c) --------------------------------- */

enum status gpu_stream_create(struct device *device, uint32_t stream_index, void **ret_stream,
                              struct error *err);
void gpu_stream_destroy(struct device *device, void *stream);
enum status gpu_stream_sync(struct device *device, void *stream, struct error *err);
enum status gpu_stream_query(struct device *device, void *stream, struct error *err);
enum status gpu_stream_submit(struct device *device, void *stream,
                              const struct device_command *command, struct error *err);

enum status gpu_mark_create(struct device *device, void **ret_mark, struct error *err);
void gpu_mark_destroy(struct device *device, void *mark);
enum status gpu_mark_record(struct device *device, void *stream, void *mark, struct error *err);
enum status gpu_mark_wait(struct device *device, void *stream, void *mark, struct error *err);
enum status gpu_mark_sync(struct device *device, void *mark, struct error *err);
bool gpu_mark_passed(struct device *device, void *mark);

enum status gpu_graph_create(struct device *device, void *stream,
                             const struct device_command *commands, size_t count, void **ret_graph,
                             struct error *err);
enum status gpu_graph_replay(struct device *device, void *stream, void *graph, uint64_t event_id,
                             const struct event_scope *scope, struct error *err);
void gpu_graph_destroy(struct device *device, void *graph);

/* Records a submitted command in the stream's history. */
void gpu_stream_note(struct gpu_stream *stream, const struct gpu_history *given);
void gpu_note_command(struct gpu_stream *stream, const struct device_command *command);

/* ---- Commands (gpu_command.c) --------------------------------------------------------------- */

/* A launch's kernels and calls, in order. */
struct gpu_prepared {
    uint32_t count;
    void *functions[DEVICE_GPU_STEP_LIMIT];
    struct gpu_grid grids[DEVICE_GPU_STEP_LIMIT];
    struct gpu_call calls[DEVICE_GPU_STEP_LIMIT];
};
/* Needed before the stream's first launch; not while it captures. */
enum status gpu_make_workspace(struct gpu_device *gpu, struct gpu_stream *stream,
                               struct error *err);
/* The commands before a launch. */
struct gpu_before {
    bool known; /* no other command can still be running when its kernels begin (in a graph) */
    const struct device_command *commands;
    size_t count;
};
/* node 0: not in a graph. The stream has its workspace. */
void gpu_prepare(struct gpu_device *gpu, const struct gpu_stream *stream,
                 const struct device_command *command, uint64_t node, struct gpu_before before,
                 struct gpu_prepared *ret_prepared);
/* The same for consecutive launches of a graph, of which the first may be joined into one. count is
 * at most DEVICE_GPU_JOIN_LIMIT. Returns how many were joined, or 0. */
uint32_t gpu_prepare_joined(struct gpu_device *gpu, const struct gpu_stream *stream,
                            const struct device_command *const *launches, uint32_t count,
                            uint64_t node, struct gpu_before before,
                            struct gpu_prepared *ret_prepared);
/* True if one of the commands may write bytes of the operand, including those between its rows
 * (gpu_early.c). */
bool gpu_is_written(const struct device_command *commands, size_t count,
                    const struct device_host_operand *operand);
/* A launch outside of a graph; notes it. */
enum status gpu_launch(struct gpu_device *gpu, struct gpu_stream *stream,
                       const struct device_command *command, struct error *err);
/* Copies and fills. */
int gpu_transfer(struct gpu_device *gpu, const struct gpu_stream *stream,
                 const struct device_command *command);

/* ---- Inspections (gpu_inspect.c) ------------------------------------------------------------ */

enum status gpu_inspect_submit(struct gpu_device *gpu, struct gpu_stream *stream,
                               const struct device_command *command, struct error *err);
/* Launches the gathered inspections. Needed before any other work of the stream, or a wait. */
enum status gpu_inspect_flush(struct gpu_device *gpu, struct gpu_stream *stream, struct error *err);
/* Reports the inspections that are done. Called after a wait, or when a mark was found passed. */
void gpu_inspect_collect(struct gpu_device *gpu);
/* Reports the sweeps of graphs that were collected and found nothing. Called after other work was
 * submitted, and whenever a stream is waited for. */
void gpu_inspect_tell(struct gpu_device *gpu);
void gpu_inspect_stream_release(struct gpu_device *gpu, struct gpu_stream *stream);

/* The same while a graph is captured. Returns NULL if there is nothing to inspect or no memory; the
 * functions below accept NULL. The ints are codes of the runtime. */
struct gpu_graph_inspections *gpu_inspect_graph_create(struct gpu_device *gpu,
                                                       const struct gpu_stream *stream,
                                                       const struct device_command *commands,
                                                       size_t count, bool sweep);
int gpu_inspect_graph_add(struct gpu_device *gpu, struct gpu_graph_inspections *graph,
                          const struct device_command *command);
int gpu_inspect_graph_flush(struct gpu_device *gpu, struct gpu_graph_inspections *graph);
int gpu_inspect_graph_end(struct gpu_device *gpu, struct gpu_graph_inspections *graph);
/* True if each inspection follows the command it belongs to; else they are at the graph's end, or
 * there are none. */
bool gpu_inspect_graph_is_exact(const struct gpu_graph_inspections *graph);
/* True if a sweep found something: from now on every command is inspected. */
bool gpu_inspect_graph_is_alarmed(const struct gpu_graph_inspections *graph);
/* Before the graph is launched. */
int gpu_inspect_graph_replay(struct gpu_device *gpu, struct gpu_graph_inspections *graph,
                             uint64_t event_id);
void gpu_inspect_graph_destroy(struct gpu_device *gpu, struct gpu_graph_inspections *graph);

/* ---- Modules (gpu_module.c) ----------------------------------------------------------------- */

/* STATUS_UNSUPPORTED, with the chips it has code for, where it has none for this one. */
MUST_CHECK enum status gpu_image_check(const struct gpu_device *gpu,
                                       const struct device_gpu_image *image, struct error *err);
enum status gpu_module_load(struct device *device, const struct device_module *module,
                            uint32_t index, struct error *err);
void gpu_modules_release(struct gpu_device *gpu);

/* ---- Completions (gpu_completions.c) -------------------------------------------------------- */

enum status gpu_completions_create(struct gpu_device *gpu, struct error *err);
void gpu_completions_destroy(struct gpu_device *gpu); /* after the streams */
/* Reports completions once everything submitted to the stream so far is done. */
void gpu_completions_add(struct gpu_device *gpu, struct gpu_stream *stream, uint64_t event_id);
/* Returns when all that was added is reported. */
void gpu_completions_drain(struct gpu_device *gpu);

#endif
