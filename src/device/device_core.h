/* device_core.h - shared by the files of the common layer: slots, events, refusals. */
#ifndef GRETA_DEVICE_DEVICE_CORE_H
#define GRETA_DEVICE_DEVICE_CORE_H

#include "device/device_impl.h"

/* ---- What the tables hold ------------------------------------------------------------------- */

/* First in every slot. */
struct slot_head {
    uint32_t generation; /* odd: alive */
    uint32_t next_free;
};

#define BUFFER_NAME_BYTES EVENT_TENSOR_BYTES

struct buffer_slot {
    struct slot_head head;
    struct device_memory memory;
    char name[BUFFER_NAME_BYTES];
};

struct graph_builder;

struct stream_slot {
    struct slot_head head;
    void *impl;
    pthread_mutex_t lock; /* from an event's begin to its end: one order for both */
    struct event_scope scope;
    struct graph_builder *builder; /* while a graph is recorded */
};

struct mark_slot {
    struct slot_head head;
    void *impl;
};

struct graph_slot {
    struct slot_head head;
    void *impl;
    struct graph_builder *recorded; /* owned */
    uint64_t epoch;
};

/* ---- Slots ---------------------------------------------------------------------------------- */

MUST_CHECK enum status slot_table_init(struct device_slot_table *table, size_t slot_bytes,
                                       uint32_t capacity, struct error *err);
void slot_table_release(struct device_slot_table *table);

/* With device->lock held. Returns 0 if all slots are taken; otherwise the index of a slot that is
 * now alive, whose contents except the head are those of its last user. */
uint32_t slot_take(struct device_slot_table *table);
void slot_release(struct device_slot_table *table, uint32_t index);
/* NULL if the handle is not of a live slot. */
void *slot_find(const struct device_slot_table *table, uint32_t index, uint32_t generation);
/* The slot at an index, alive or not. Slots do not move, so this needs no lock; reading their
 * contents may. */
void *slot_at(const struct device_slot_table *table, uint32_t index);
/* Prefetches a slot. Any index is fine. */
void slot_fetch(const struct device_slot_table *table, uint32_t index);
bool slot_is_alive(const struct device_slot_table *table, uint32_t index);
/* The generation at that index now; 0 if it was never used. */
uint32_t slot_generation(const struct device_slot_table *table, uint32_t index);
/* The same for callers that do not hold device->lock. */
uint32_t slot_generation_locking(struct device *device, const struct device_slot_table *table,
                                 uint32_t index);

/* ---- A call and its event ------------------------------------------------------------------- */

/* On the caller's stack from begin to end. */
struct call {
    struct device *device;
    struct event event;
    bool reported;    /* the observer saw the begin */
    const char *what; /* the call's name in messages; static, or on the caller's stack */
};

/* Fills kind, site, time and id. Reports nothing yet. */
void call_init(struct call *call, struct device *device, enum event_kind kind,
               struct device_site site);
void call_scope(struct call *call, const struct stream_slot *stream, uint32_t stream_index);
/* Begins another event for the same call: the next chunk of a copy. */
void call_again(struct call *call);
/* Reports the begin, right before the backend is called. */
void call_begin(struct call *call);
/* Reports the end with the outcome of the backend; returns status. A lost device is named as the
 * event's cause and described in the words of the call. */
enum status call_end(struct call *call, enum status status, struct error *err);

/* Refuses the call: sets err, and reports which check failed with which numbers. */
#define call_refuse(call, check, operand, expected, found, err, status, ...)                       \
    (error_set_at((err), (status), __FILE__, __LINE__, __VA_ARGS__),                               \
     call_refused((call), (check), (operand), (expected), (found)), (status))
void call_refused(struct call *call, enum event_check check, uint32_t operand, uint64_t expected,
                  uint64_t found);
/* Keeps the first refusal of a destroy, which has no status of its own, for device_check. */
void device_keep_refusal(struct device *device, const struct error *err);

/* Refuses the call if the device is lost. `what` names the call: "RoPE launch failed: an illegal
 * memory access was encountered". */
MUST_CHECK enum status call_check_lost(struct call *call, const char *what, struct error *err);

/* After a wait: fails if a fault ended it. */
MUST_CHECK enum status call_fail_if_lost(struct call *call, const char *what, struct error *err);
/* Copies the code of an error to the event, with its domain. */
void call_set_code(struct call *call, const struct error *err);

/* Reports the traps that kernels have left since the last time. */
void device_tell_traps(struct device *device);

bool device_is_observed(const struct device *device);
/* Reports something that is not a call, once, as an end. Fills in id and times. */
void device_tell(struct device *device, struct event *event);

/* Refuses a lost device and a dead handle. Otherwise locks the stream, which the caller unlocks,
 * and sets the scope of the event. */
MUST_CHECK enum status call_lock_stream(struct call *call, struct device_stream stream,
                                        const char *what, struct stream_slot **ret_stream,
                                        struct error *err);
void call_unlock_stream(struct stream_slot *stream);
/* Refuses while the stream is recording a graph. */
MUST_CHECK enum status call_refuse_capture(struct call *call, const struct stream_slot *stream,
                                           const char *what, struct error *err);

/* ---- Views ---------------------------------------------------------------------------------- */

/* A view that passed its checks. */
struct resolved {
    struct device_rows rows;
    uint64_t span_bytes; /* from the first byte to the last that may be touched */
    struct device_memory memory;
    char name[BUFFER_NAME_BYTES];
};

/* Handle, lifetime, shape, bounds, alignment, write permission. On success adds the access to the
 * event. operand: for messages, position in `what`. */
MUST_CHECK enum status call_resolve(struct call *call, const struct device_view *view,
                                    uint32_t operand, const char *operand_name, uint8_t mode,
                                    struct resolved *ret, struct error *err);

/* ---- Contracts ------------------------------------------------------------------------------ */

#define CONTRACT_EXTENT_LIMIT 16

/* What a check of parameters receives. */
struct device_contract_call {
    const struct device_launch *launch;
};

/* A dimension of a shape: a number, or an extent that has a name in the contract. */
#define CONTRACT_NUMBER UINT32_MAX
struct contract_dimension {
    uint32_t extent; /* from 0, in the order of the names; CONTRACT_NUMBER: none */
    uint32_t number;
};
struct contract_shape {
    struct contract_dimension dimensions[SHAPE_RANK_LIMIT];
    uint32_t rank;
};

/* An op that can be launched. */
struct op_row {
    const struct device_contract *contract; /* of the image; this address is the op's identity */
    struct device_kernel kernel;
    struct contract_shape shapes[DEVICE_OPERAND_LIMIT];
};

/* op_table.c. Resolves the ops of a module that is to be loaded; they are found only once they are
 * published. One thread loads modules. */
MUST_CHECK enum status op_table_prepare(struct device *device, const struct device_module *module,
                                        uint32_t module_index, struct error *err);
void op_table_publish(struct device *device, const struct device_module *module);
/* NULL: no image with this contract is loaded. Takes no lock. */
const struct op_row *op_table_find(const struct device *device,
                                   const struct device_contract *contract);
/* The text of a dimension of an operand's shape, for messages; not NUL-terminated. */
const char *contract_dimension_name(const struct device_contract *contract, uint32_t operand,
                                    uint32_t dimension, int *ret_length);

/* Types, shapes, strides, parameters, geometry; before any view is resolved. op: of the launch's
 * contract. */
MUST_CHECK enum status contract_check(struct call *call, const struct op_row *op,
                                      const struct device_launch *launch, struct error *err);

/* ---- Inspections ---------------------------------------------------------------------------- */

#define RECENT_LAUNCHES 4096u /* remembered, for traps that name a launch by its id */

MUST_CHECK enum status inspect_create(struct device *device, struct error *err);
void inspect_destroy(struct device *device); /* after all streams */

/* Queues an inspection that belongs to the call. If the stream is recording a graph, the inspection
 * is recorded and runs at every replay. */
MUST_CHECK enum status inspect_queue(struct call *call, struct stream_slot *stream,
                                     struct device_command *command, struct error *err);

/* Remembers a launch, if there is an observer. */
void inspect_note_launch(const struct call *call, const char *op);
/* Sets op, scope and stream of the launch with that id; false if it is forgotten. With device->lock
 * held, because graphs are searched too. */
bool inspect_find_launch(struct device *device, uint64_t event_id, struct event *event);

/* Queues the inspections that the options ask for before a launch: hashes of its inputs.
 * *ret_hashed: the operands of this launch are hashed. */
MUST_CHECK enum status inspect_inputs(struct call *call, struct stream_slot *stream,
                                      const struct device_launch *launch,
                                      const struct resolved *resolved, bool *ret_hashed,
                                      struct error *err);
/* Queues those after the launch: canaries of the buffers it wrote, the scan, hashes of its outputs.
 */
MUST_CHECK enum status inspect_outputs(struct call *call, struct stream_slot *stream,
                                       const struct device_launch *launch,
                                       const struct resolved *resolved, bool hashed,
                                       struct error *err);

/* Checks the canaries of every buffer after the call's work, which ran alone and has ended. Any
 * damage was done by this call, since the check before it restored all canaries. */
MUST_CHECK enum status inspect_sweep(const struct call *call, const struct stream_slot *stream,
                                     struct error *err);

/* The three hashes of one transfer, reported as one event when all are known. */
enum transfer_part { TRANSFER_BEFORE, TRANSFER_AFTER, TRANSFER_LANDED, TRANSFER_PARTS };

/* For a copy that has begun; NULL if it is not verified. accessed: the rows on the device. */
struct transfer_check *transfer_check_create(const struct call *call,
                                             const struct device_rows *accessed);
/* Queues the digest of rows or, if staging is set, of dense host bytes. Does nothing if check is
 * NULL. */
MUST_CHECK enum status transfer_check_queue(struct call *call, struct stream_slot *stream,
                                            struct transfer_check *check, enum transfer_part part,
                                            const struct device_rows *rows, void *staging,
                                            struct error *err);
/* Takes the digest of host bytes now. Does nothing if check is NULL. */
void transfer_check_host(struct device *device, struct transfer_check *check,
                         enum transfer_part part, const void *bytes, uint64_t count);
/* The result of one part, once for each; the last one reports the event and frees the check. */
void transfer_check_set(struct device *device, struct transfer_check *check, uint8_t part,
                        uint64_t digest, bool failed);
/* Drops the checks that a lost device left incomplete. */
void transfer_check_drop_all(struct device *device);

/* With options.ask_errors: queries the stream for a pending error and notes the answer in the
 * event. Refuses the call if there is one. */
MUST_CHECK enum status call_ask_before(struct call *call, const struct stream_slot *stream,
                                       const char *what, struct error *err);
/* The same after a copy was queued; the answer is only noted. */
void call_ask_after(struct call *call, const struct stream_slot *stream);

/* ---- Planted bugs --------------------------------------------------------------------------- */

static inline bool device_is_tampered(const struct device *device)
{
    return device->tamper.before != NULL;
}

/* Fills kind, op and scope and calls `before`. False: the call must not be made. */
bool tamper_before(struct device *device, struct device_tampered *call);
void tamper_after(struct device *device, struct device_tampered *call, enum status status,
                  uint64_t event_id);

/* ---- Staging -------------------------------------------------------------------------------- */

MUST_CHECK enum status staging_create(struct device *device, struct error *err);
void staging_destroy(struct device *device);
/* staging_view.c */
struct staging_slot;
void staging_view_create(struct device *device, struct staging_slot *slot);
void staging_view_destroy(struct device *device, struct staging_slot *slot);
/* Nothing of it can be read until it is shown. */
void staging_view_close(struct device *device, struct staging_slot *slot);

/* ---- Graphs --------------------------------------------------------------------------------- */

/* A graph while it is recorded, and as long as it lives. */
struct graph_builder {
    uint64_t id; /* event of graph_begin */
    struct device_command *commands;
    size_t command_count, command_capacity;
    struct event *events; /* what the commands were reported as; NULL: not reported again */
    size_t event_capacity;
    struct device_buffer *buffers; /* that the commands name, each once */
    size_t buffer_count, buffer_capacity;
};

/* Adds a command of the call, and the buffers it names, to the graph being recorded. */
MUST_CHECK enum status graph_record(struct graph_builder *builder, const struct call *call,
                                    const struct device_command *command,
                                    const struct device_view *views, size_t view_count,
                                    struct error *err);
/* The graph's id, for the events of recorded launches. */
uint64_t graph_builder_id(const struct graph_builder *builder);
void graph_slot_release(struct device *device, struct graph_slot *slot);
void graph_builder_destroy(struct graph_builder *builder); /* NULL is fine */
/* The recorded command with that event id, or NULL. */
const struct device_command *graph_find_command(const struct graph_builder *builder,
                                                uint64_t event_id);

/* With options.serialise, encloses a command from before it is submitted until it is done and
 * inspected; other threads submit work and destroy buffers only afterwards. Call it with a stream's
 * lock held, or none. */
void device_begin_alone(struct device *device);
void device_end_alone(struct device *device);

/* With options.serialise: waits for the work that was queued, reports the wait as an event (later
 * calls are ordered by it), and checks the canaries of all buffers. Called between
 * device_begin_alone and device_end_alone. */
MUST_CHECK enum status call_settle(const struct call *call, const struct stream_slot *stream,
                                   struct error *err);

/* Submits a command. With options.serialise, waits for it before other threads can submit theirs.
 */
MUST_CHECK enum status call_submit_alone(const struct call *call, const struct stream_slot *stream,
                                         const struct device_command *command, struct error *err);

/* Submits a command, or records it if the stream is recording. `views` name its buffers. */
MUST_CHECK enum status call_submit(struct call *call, struct stream_slot *stream,
                                   const struct device_command *command,
                                   const struct device_view *views, size_t view_count,
                                   struct error *err);

#endif
