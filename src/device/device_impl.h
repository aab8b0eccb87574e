/* device_impl.h - for backends and decorators: the method table, what the common layer passes to
 * them, and what they report back.
 *
 * The common layer (device.c and its neighbours) has checked everything before it calls a method:
 * handles are alive, ranges lie inside their buffers, contracts hold. A backend checks nothing.
 * Methods may be called from any thread; calls for one stream come one at a time. */
#ifndef GRETA_DEVICE_DEVICE_IMPL_H
#define GRETA_DEVICE_DEVICE_IMPL_H

#include "device/kernel.h"
#include "device/options.h"

#include <pthread.h>

/* Memory of a backend. address is what events show. */
struct device_memory {
    uint64_t address;
    uint64_t bytes;
    bool read_only;
    bool copied; /* an import that no longer needs the caller's bytes */
    void *impl;  /* owned by the backend */
    /* Bytes right before and right after the memory that hold `canary`; 0: none. */
    uint64_t slack_before, slack_after;
    uint8_t canary;
};

/* row_count rows of row_bytes each, stride_bytes apart. */
struct device_rows {
    uint64_t address;
    uint64_t row_bytes, row_count, stride_bytes;
};

enum device_command_kind {
    DEVICE_COMMAND_COPY_IN,     /* staging -> target */
    DEVICE_COMMAND_COPY_OUT,    /* source -> staging */
    DEVICE_COMMAND_COPY_WITHIN, /* source -> target */
    DEVICE_COMMAND_FILL, /* byte -> target; with a contract: written by a kernel, as a store of that
                            op */
    DEVICE_COMMAND_LAUNCH,
    DEVICE_COMMAND_INSPECT, /* reads memory; changes nothing that a caller owns */
};

/* What an inspection looks for. It belongs to a call (event_id) and must not be mistaken for it: an
 * inspection leaves no crumbs, and if it cannot read its bytes it is reported as failed, never as a
 * fault. */
enum device_inspect {
    DEVICE_INSPECT_DIGEST, /* device_digest of source's rows, or of `staging` if it is set; it is of
                              a transfer if `check` is set, else of an operand of a launch */
    DEVICE_INSPECT_SCAN,   /* how many values of source's rows, as F32, are not finite */
    DEVICE_INSPECT_CANARY, /* bytes of source and target that are not `byte`; restores them */
};

struct transfer_check;

struct device_inspection {
    enum device_inspect what;
    uint8_t part;                 /* digests: which of the check's three */
    struct transfer_check *check; /* of the common layer; NULL for an operand of a launch */
    struct event_access access;   /* what is inspected, for events */
    uint64_t buffer_bytes;        /* of a canary: size of the buffer that it is next to */
    bool swept; /* of a canary: all were checked after the work before, and it ran alone */
};

/* The result of an inspection. */
struct device_inspection_result {
    bool failed; /* the bytes could not be read */
    uint64_t digest;
    uint64_t count; /* values that were read */
    uint64_t found; /* values that are not finite, or damaged bytes of a canary */
    uint64_t first; /* index of the first of those; its address for a canary */
};

/* Kernels that were loaded: of the host or of a GPU, never both. */
struct device_module {
    const struct device_image *host;
    const struct device_gpu_image *gpu;
};

/* The kernel of an op: one of host and gpu is set. */
struct device_kernel {
    const struct device_kernel_entry *host;
    device_gpu_plan gpu;
    uint32_t module_index; /* in device->modules */
};

/* One command of a stream, with all it needs: nothing is looked up when it runs. */
struct device_command {
    enum device_command_kind kind;
    uint64_t event_id; /* what crumbs and faults name */
    struct event_scope scope;
    struct device_inspection inspection;
    struct device_rows target, source;
    void *staging; /* dense bytes of the host */
    uint8_t byte;
    /* Launches. */
    const struct device_contract *contract;
    struct device_kernel kernel;
    uint64_t tile_count;
    uint8_t operand_count;
    /* Last and in this order: a queue copies only as many of them as the launch has. */
    struct device_host_operand operands[DEVICE_OPERAND_LIMIT];
    _Alignas(16) uint8_t params[DEVICE_PARAMS_LIMIT_BYTES];
};

/* For messages: the op that it launches or is part of, else what it does. Static. */
const char *device_command_name(const struct device_command *command);

#define DEVICE_ILLEGAL_ADDRESS 700 /* the same number in CUDA and in HIP */

/* What a backend knows about an illegal access. */
struct device_fault {
    bool caught; /* while it ran the command below; else the command is unknown */
    uint64_t event_id;
    uint64_t node_id; /* graphs: event of the recorded call; else 0 */
    const char *op;   /* its name; static */
    struct event_scope scope;
    uint32_t stream_index;
    const char *running;              /* not caught: what may have been running, for messages */
    bool by_copy;                     /* the hardware says that a copy made the access */
    enum event_address address_known; /* a non-canonical address has none */
    uint64_t address;
    const char *note;      /* how the address is known, or why not; may be NULL */
    int code;              /* of the runtime; 0: none */
    const char *code_name; /* with code; static */
};

/* What the runtime's pointer attributes say of an address. */
struct device_pointer_facts {
    bool asked;     /* false: this backend has no such query */
    uint64_t bytes; /* of the range asked about, from its start, that are memory of this device */
    char words[96]; /* what the rest is instead; "" if all is memory of this device */
};

struct device_methods {
    const char *kind;
    void (*close)(struct device *device); /* streams are destroyed already */

    /* STATUS_UNSUPPORTED for kernels of the other kind. index: the module's index in
     * device->modules. */
    enum status (*module_load)(struct device *device, const struct device_module *module,
                               uint32_t index, struct error *err);

    /* A hint: buffers of this many bytes in total are created next. */
    void (*memory_reserve)(struct device *device, uint64_t bytes);
    enum status (*memory_create)(struct device *device, uint64_t bytes,
                                 struct device_memory *ret_memory, struct error *err);
    enum status (*memory_import)(struct device *device, const void *bytes, uint64_t count,
                                 struct device_memory *ret_memory, struct error *err);
    void (*memory_destroy)(struct device *device, struct device_memory *memory);
    /* Counts damaged canary bytes around the memory; 0 if there are none or no canaries.
     * *ret_offset: of the first one, from the memory's start. */
    uint64_t (*memory_damage)(struct device *device, const struct device_memory *memory,
                              int64_t *ret_offset);

    /* Queries [address, address + bytes); bytes > 0. */
    void (*memory_ask)(struct device *device, uint64_t address, uint64_t bytes,
                       struct device_pointer_facts *ret_facts);

    /* Brings device->crumbs up to date where kernels write another page; from any thread. */
    void (*crumbs_show)(struct device *device);

    enum status (*staging_create)(struct device *device, uint64_t bytes, void **ret_staging,
                                  struct error *err);
    void (*staging_destroy)(struct device *device, void *staging, uint64_t bytes);

    enum status (*stream_create)(struct device *device, uint32_t stream_index, void **ret_stream,
                                 struct error *err);
    void (*stream_destroy)(struct device *device, void *stream); /* waits for its work */
    enum status (*stream_sync)(struct device *device, void *stream, struct error *err);
    /* The stream's pending error, without waiting; STATUS_OK if there is none yet. */
    enum status (*stream_query)(struct device *device, void *stream, struct error *err);
    enum status (*submit)(struct device *device, void *stream, const struct device_command *command,
                          struct error *err);

    enum status (*mark_create)(struct device *device, void **ret_mark, struct error *err);
    void (*mark_destroy)(struct device *device, void *mark);
    enum status (*mark_record)(struct device *device, void *stream, void *mark, struct error *err);
    enum status (*mark_wait)(struct device *device, void *stream, void *mark, struct error *err);
    enum status (*mark_sync)(struct device *device, void *mark, struct error *err);
    bool (*mark_passed)(struct device *device, void *mark);

    /* commands are borrowed until graph_destroy. stream: the one they were given to. */
    enum status (*graph_create)(struct device *device, void *stream,
                                const struct device_command *commands, size_t count,
                                void **ret_graph, struct error *err);
    /* scope: of the replay; its commands have their own. */
    enum status (*graph_replay)(struct device *device, void *stream, void *graph, uint64_t event_id,
                                const struct event_scope *scope, struct error *err);
    void (*graph_destroy)(struct device *device, void *graph);
};

/* ---- Planting bugs of the caller ------------------------------------------------------------ */

/* A call as the caller made it, before anything is checked or locked. `before` may change its
 * arguments. */
struct device_tampered {
    enum event_kind kind;
    const char *op; /* the contract's name, else event_kind_name */
    struct event_scope scope;
    struct device_stream stream;
    struct device_launch *launch;
    struct device_view *view;    /* target of a copy or fill; source of a copy out */
    uint64_t *byte_count;        /* copy in */
    struct device_buffer buffer; /* destroy; after a create, the new one */
    const char *name;            /* create */
    struct device_mark mark;
    struct device_graph graph;
    struct device_ticket ticket; /* redeem and release; after a copy out, the new one */
    /* After the call. */
    enum status status;
    uint64_t event_id; /* 0 if the call was refused and there is no observer */
};

/* Plants bugs of the caller. The functions are called without locks, so they may use the device;
 * their own calls come through here as well. Set all three or none. */
struct device_tamper {
    /* False: as if the caller forgot the call. It is not made or reported, and seems to succeed. */
    bool (*before)(void *context, struct device_tampered *call);
    void (*after)(void *context, const struct device_tampered *call);
    /* Called when a staging slot is needed; true: the last one is given out again. */
    bool (*take_again)(void *context);
    void *context;
};

/* ---- The common part of a device ------------------------------------------------------------ */

/* The objects that handles name. Allocated in full at open, so that slots never move. */
struct device_slot_table {
    void *slots; /* owned; slot 0 is never used */
    size_t slot_bytes;
    uint32_t used, capacity; /* slots ever used, and all */
    uint32_t free_head;      /* 0: none */
};

struct device_staging_ring;
struct copier;
struct op_row;

#define DEVICE_MODULE_LIMIT 4
#define DEVICE_OP_LIMIT 64u /* of all modules */

struct device {
    const struct device_methods *methods;
    void *impl;      /* owned by the backend */
    void *decorator; /* owned by the decorator of the backend's methods; NULL: none */
    struct device_tamper tamper;
    struct device_info info;
    struct device_options options;
    struct crumb_page *crumbs;
    bool owns_crumbs;
    bool staging_late; /* staging slots get their memory at first use */
    /* The backend's reports of completions are late and costly. Therefore a copy in is reported as
     * complete when its slot is found free, and a copy out only with options.completions (redeeming
     * its ticket already shows that it was waited for). */
    bool completions_lag;

    /* options.serialise: held from submitting work until it is done and inspected */
    pthread_mutex_t serial_lock;
    bool canary_unseen; /* atomic: it was reported that a check of a canary could not be made */

    uint64_t own_event_ids;         /* the last id given, where options.event_ids is NULL */
    uint32_t process_id;            /* as events have it */
    enum event_error_domain domain; /* of the codes of its runtime */
    uint64_t traps_reported;        /* traps of the crumb page that were reported; under lock */
    uint64_t launch_count;          /* atomic; launches that could be scanned */
    uint64_t run_launches;          /* atomic; launches since device_run_begin, for hash_ops */
    uint64_t iteration;             /* atomic; of the last device_run_begin */

    pthread_mutex_t inspect_lock;  /* guards the next two */
    struct recent_launch *recent;  /* RECENT_LAUNCHES of them; NULL without an observer */
    struct transfer_check *checks; /* transfers with hashes that are not known yet */

    pthread_mutex_t lock; /* guards the tables below */
    struct device_slot_table buffers, streams, marks, graphs;
    struct device_module modules[DEVICE_MODULE_LIMIT];
    size_t module_count;
    struct op_row *ops; /* DEVICE_OP_LIMIT of them; see op_table.c */
    uint32_t op_count;  /* atomic */
    uint64_t used_bytes, peak_bytes;
    struct device_staging_ring *staging;
    struct copier *copier; /* fills slots of large copies in */

    uint32_t lost;              /* atomic flag; set once, after first_fault is written */
    pthread_mutex_t fault_lock; /* guards first_fault until lost is set */
    char first_fault[768];      /* in words */
    uint64_t first_fault_id;    /* event of the fault */
    int first_fault_code;       /* of the runtime; 0: none */
    char lost_words[96];        /* what later calls report */

    struct error refused_destroy; /* the first; under lock; status 0: none was refused */
};

/* Called by a backend's open after it filled methods, impl and info. Owns nothing on failure. */
MUST_CHECK enum status device_init(struct device *device, const struct device_options *options,
                                   struct error *err);

/* Makes the device lost and tells the observer. A backend may call it from any thread. */
void device_report_fault(struct device *device, const struct device_fault *fault);
bool device_is_lost(const struct device *device);
/* On a lost device: sets err to the first fault, as what `what` failed with; returns STATUS_LOST.
 */
enum status device_set_lost(const struct device *device, const char *what, struct error *err);

/* Called by a backend when a command finishes for which device_wants_completion is true (a replay:
 * if options.completions), before any later mark is passed. */
bool device_wants_completion(const struct device *device, const struct device_command *command);
void device_report_completion(struct device *device, uint32_t stream_index, uint64_t event_id);

/* Called by a backend once for each inspection that ran, before any wait for the stream or for a
 * later mark returns; for a replay without a finding, before the stream's next wait returns.
 * event_id: of the command, or of the replay that it is part of. */
void device_report_inspection(struct device *device, uint32_t stream_index,
                              const struct device_command *command, uint64_t event_id,
                              const struct device_inspection_result *result);

/* ---- Digests -------------------------------------------------------------------------------- */

/* The digest of row_count rows of row_bytes, stride_bytes apart: device_digest_word in abi/abi.h.
 */
uint64_t device_digest(const void *bytes, uint64_t row_bytes, uint64_t row_count,
                       uint64_t stride_bytes);

#endif
