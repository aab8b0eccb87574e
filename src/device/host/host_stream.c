/* host_stream.c - a stream is a thread with a queue.
 *
 * The queue has one writer at a time (the common layer holds the stream's lock) and one reader. Its
 * two counters only grow; the thread that waits for one of them sleeps on a word beside it. After a
 * fault the thread goes on emptying the queue without doing the work, so that marks are passed and
 * nobody waits for ever. */
#include "device/host/host_impl.h"

#include "device/host/host_stream_item.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A decode step fits, so that the host can run ahead by one. */
#define QUEUE_ITEMS 1024u
/* Items behind the one at hand in which the next matrix product is looked for. */
#define ANNOUNCE_ITEMS 8u
#define FETCH_ITEM_BYTES 512u
_Static_assert(FETCH_ITEM_BYTES <= sizeof(struct stream_item), "the beginning of an item");
/* Items left that are worth spinning for. */
#define NEARLY_DONE_ITEMS 2u

struct host_stream {
    struct device *device;
    uint32_t index;
    pthread_t thread;
    struct host_job job;
    struct stream_item *items; /* QUEUE_ITEMS of them */
    void *scratch; /* of its thread, made before it: without memory there is no stream */
    /* Whoever gives writes these, its thread looks at them when it has done all it knows of. */
    _Alignas(HOST_LINE_BYTES) uint64_t given; /* atomic: items written */
    struct host_word given_word;
    uint64_t taken_seen; /* as many items were taken, at least; the giver's own */
    /* Its thread writes these. */
    _Alignas(HOST_LINE_BYTES) uint64_t taken; /* atomic: items done with */
    uint64_t given_seen;                      /* as many were given, at least; its thread's own */
    uint64_t announced; /* the item last announced to the pool; its thread's own */
    /* Whoever waits for its thread writes these. */
    _Alignas(HOST_LINE_BYTES) uint64_t awaited; /* atomic: somebody sleeps until `taken` is this;
                                                   UINT64_MAX: nobody */
    struct host_word taken_word;
};

/* ---- Doing ---------------------------------------------------------------------------------- */

static void copy_rows(uint8_t *target, uint64_t target_stride, const uint8_t *source,
                      uint64_t source_stride, uint64_t row_bytes, uint64_t row_count)
{
    for (uint64_t row = 0; row < row_count; row++)
        memmove(target + row * target_stride, source + row * source_stride, (size_t)row_bytes);
}

/* Everything but launches; runs where a fault is caught. */
static void do_transfer(void *context)
{
    const struct device_command *command = context;
    const struct device_rows *to = &command->target, *from = &command->source;
    uint8_t *target = (uint8_t *)(uintptr_t)to->address;
    const uint8_t *source = (const uint8_t *)(uintptr_t)from->address;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
        copy_rows(target, to->stride_bytes, command->staging, to->row_bytes, to->row_bytes,
                  to->row_count);
        break;
    case DEVICE_COMMAND_COPY_OUT:
        copy_rows(command->staging, from->row_bytes, source, from->stride_bytes, from->row_bytes,
                  from->row_count);
        break;
    case DEVICE_COMMAND_COPY_WITHIN:
        copy_rows(target, to->stride_bytes, source, from->stride_bytes, to->row_bytes,
                  to->row_count);
        break;
    case DEVICE_COMMAND_FILL:
        for (uint64_t row = 0; row < to->row_count; row++)
            memset(target + row * to->stride_bytes, command->byte, (size_t)to->row_bytes);
        break;
    case DEVICE_COMMAND_LAUNCH:
    case DEVICE_COMMAND_INSPECT:
        break;
    }
}

static const char *command_name(const struct device_command *command)
{
    if (command->contract) /* a launch, or part of one */
        return command->contract->name;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
        return "copy in";
    case DEVICE_COMMAND_COPY_OUT:
        return "copy out";
    case DEVICE_COMMAND_COPY_WITHIN:
        return "copy within";
    case DEVICE_COMMAND_FILL:
        return "fill";
    case DEVICE_COMMAND_LAUNCH:
    case DEVICE_COMMAND_INSPECT:
        break;
    }
    return "";
}

/* Tells the pool of the next launch that has something to fetch, if it is among the items that are
 * given already and follows soon. */
static void announce_next(struct host_stream *stream)
{
    uint64_t taken = __atomic_load_n(&stream->taken, __ATOMIC_RELAXED);
    if (stream->announced > taken)
        return; /* still to come */
    stream->given_seen = __atomic_load_n(&stream->given, __ATOMIC_ACQUIRE);
    uint64_t end = stream->given_seen;
    end = end - taken > ANNOUNCE_ITEMS ? taken + ANNOUNCE_ITEMS : end;
    for (uint64_t i = taken + 1; i < end; i++) {
        const struct stream_item *item = &stream->items[i % QUEUE_ITEMS];
        if (item->kind == ITEM_COMMAND && item->command.kind == DEVICE_COMMAND_LAUNCH &&
            item->command.kernel.host->reads) {
            stream->announced = i;
            host_pool_announce(host_of(stream->device)->pool, &item->command);
            return;
        }
    }
}

static void do_launch(struct host_stream *stream, const struct device_command *command,
                      void *scratch)
{
    struct host_pool *pool = host_of(stream->device)->pool;
    stream->job.command = command;
    stream->job.crumbs = stream->device->crumbs;
    host_pool_begin(pool, &stream->job);
    announce_next(stream); /* the workers have begun */
    host_job_finish(&stream->job, scratch);
}

/* event_id: of the command, or of the replay it is part of. */
static void do_command(struct host_stream *stream, const struct device_command *command,
                       uint64_t event_id, void *scratch)
{
    struct device *device = stream->device;
    struct crumb_stream *crumbs = &device->crumbs->streams[stream->index];
    if (device_is_lost(device))
        return;
    if (command->kind == DEVICE_COMMAND_INSPECT) {
        host_inspect(device, stream->index, command, event_id);
        return;
    }
    bool faulted = false;
    struct fault_info info;
    crumb_enter(crumbs, event_id);
    if (command->kind == DEVICE_COMMAND_LAUNCH) {
        do_launch(stream, command, scratch);
        faulted = __atomic_load_n(&stream->job.faulted, __ATOMIC_ACQUIRE) != 0;
        info = stream->job.fault;
    } else {
        faulted = !fault_run(do_transfer, (void *)(uintptr_t)command, &info);
    }
    if (!faulted) {
        crumb_finish(crumbs, event_id);
        return;
    }
    /* `finished` stays behind: the crumbs name where the stream stopped. */
    struct device_fault fault = { .event_id = event_id,
                                  .node_id = command->event_id != event_id ? command->event_id : 0,
                                  .op = command_name(command),
                                  .scope = command->scope,
                                  .stream_index = stream->index,
                                  .address_known = info.address_known,
                                  .address = info.address };
    device_report_fault(device, &fault);
}

static void report_completion(const struct host_stream *stream,
                              const struct device_command *command)
{
    if (device_wants_completion(stream->device, command))
        device_report_completion(stream->device, stream->index, command->event_id);
}

static void do_graph(struct host_stream *stream, const struct stream_item *item, void *scratch)
{
    struct host_graph *graph = item->graph;
    struct crumb_stream *crumbs = &stream->device->crumbs->streams[stream->index];
    uint64_t node = 0;
    for (size_t i = 0; i < graph->count && !device_is_lost(stream->device); i++) {
        if (graph->commands[i].kind != DEVICE_COMMAND_INSPECT)
            __atomic_store_n(&crumbs->node, ++node, __ATOMIC_RELEASE);
        do_command(stream, &graph->commands[i], item->event_id, scratch);
    }
    host_graph_unuse(graph);
}

static void do_item(struct host_stream *stream, const struct stream_item *item, void *scratch)
{
    switch (item->kind) {
    case ITEM_COMMAND:
        do_command(stream, &item->command, item->command.event_id, scratch);
        report_completion(stream, &item->command);
        break;
    case ITEM_GRAPH:
        do_graph(stream, item, scratch);
        if (stream->device->options.completions)
            device_report_completion(stream->device, stream->index, item->event_id);
        break;
    case ITEM_MARK_RECORD:
        host_mark_pass(item->mark, item->mark_value);
        break;
    case ITEM_MARK_WAIT:
        host_mark_wait_for(item->mark, item->mark_value);
        break;
    case ITEM_STOP:
        break;
    }
}

/* What is looked at before the first tile of a launch: another core wrote it. */
static void fetch_item(const struct stream_item *item)
{
    const uint8_t *bytes = (const uint8_t *)item;
    for (size_t at = 0; at < FETCH_ITEM_BYTES; at += 64)
        __builtin_prefetch(bytes + at);
}

static void *stream_thread(void *argument)
{
    struct host_stream *stream = argument;
    bool going = true;
    while (going) {
        uint64_t taken = __atomic_load_n(&stream->taken, __ATOMIC_RELAXED);
        if (taken == stream->given_seen) {
            uint32_t seen = host_word_load(&stream->given_word);
            stream->given_seen = __atomic_load_n(&stream->given, __ATOMIC_ACQUIRE);
            if (taken == stream->given_seen)
                host_word_wait(&stream->given_word, seen, HOST_WAIT_SPINNING);
            continue;
        }
        const struct stream_item *item = &stream->items[taken % QUEUE_ITEMS];
        going = item->kind != ITEM_STOP;
        if (taken + 1 < stream->given_seen)
            fetch_item(&stream->items[(taken + 1) % QUEUE_ITEMS]);
        do_item(stream, item, stream->scratch);
        /* Waking a sleeper costs more than a small kernel: only when what he waits for is there.
         * The orders on both sides are such that either he sees the count or we see that he waits.
         */
        __atomic_store_n(&stream->taken, taken + 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&stream->awaited, __ATOMIC_SEQ_CST) <= taken + 1) {
            __atomic_store_n(&stream->awaited, UINT64_MAX, __ATOMIC_SEQ_CST);
            host_word_bump(&stream->taken_word);
        }
    }
    return NULL;
}

/* ---- Giving --------------------------------------------------------------------------------- */

/* Returns when `target` items are done with. */
static void wait_taken(struct host_stream *stream, uint64_t target)
{
    for (;;) {
        uint32_t seen = host_word_load(&stream->taken_word);
        uint64_t awaited = __atomic_load_n(&stream->awaited, __ATOMIC_RELAXED);
        while (awaited > target &&
               !__atomic_compare_exchange_n(&stream->awaited, &awaited, target, true,
                                            __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
        uint64_t taken = __atomic_load_n(&stream->taken, __ATOMIC_SEQ_CST);
        if (taken >= target)
            return;
        /* While there is much to do, the workers need the processor more than this thread. */
        host_word_wait(&stream->taken_word, seen,
                       target - taken > NEARLY_DONE_ITEMS ? HOST_WAIT_SLEEPING
                                                          : HOST_WAIT_SPINNING);
    }
}

/* The next free place of the queue; waits while it is full. */
static struct stream_item *next_item(struct host_stream *stream)
{
    uint64_t given = __atomic_load_n(&stream->given, __ATOMIC_RELAXED);
    if (given - stream->taken_seen >= QUEUE_ITEMS) {
        stream->taken_seen = __atomic_load_n(&stream->taken, __ATOMIC_ACQUIRE);
        if (given - stream->taken_seen >= QUEUE_ITEMS)
            wait_taken(stream, given - QUEUE_ITEMS / 2); /* one sleep for half a queue */
    }
    return &stream->items[given % QUEUE_ITEMS];
}

static void give_item(struct host_stream *stream)
{
    uint64_t given = __atomic_load_n(&stream->given, __ATOMIC_RELAXED);
    __atomic_store_n(&stream->given, given + 1, __ATOMIC_RELEASE);
    host_word_bump(&stream->given_word);
}

_Static_assert(offsetof(struct device_command, params) + DEVICE_PARAMS_LIMIT_BYTES ==
                       sizeof(struct device_command) &&
                   offsetof(struct device_command, params) -
                           sizeof(((struct device_command *)0)->operands) -
                           offsetof(struct device_command, operands) <
                       16,
               "nothing but operands and parameters is left out");

/* Of a launch only the operands and parameters it has. */
static void copy_command(struct device_command *target, const struct device_command *source)
{
    if (source->kind != DEVICE_COMMAND_LAUNCH) {
        *target = *source;
        return;
    }
    memcpy(target, source,
           offsetof(struct device_command, operands) +
               source->operand_count * sizeof(source->operands[0]));
    memcpy(target->params, source->params, source->contract->params_bytes);
}

enum status host_stream_submit(struct device *device, void *stream,
                               const struct device_command *command, struct error *err)
{
    (void)device;
    (void)err;
    struct stream_item *item = next_item(stream);
    item->kind = ITEM_COMMAND;
    copy_command(&item->command, command);
    give_item(stream);
    return STATUS_OK;
}

static void give_mark(struct host_stream *stream, enum item_kind kind, struct host_mark *mark,
                      uint64_t value)
{
    struct stream_item *item = next_item(stream);
    item->kind = kind;
    item->mark = mark;
    item->mark_value = value;
    give_item(stream);
}

enum status host_mark_record(struct device *device, void *stream, void *mark, struct error *err)
{
    (void)device;
    (void)err;
    give_mark(stream, ITEM_MARK_RECORD, mark, host_mark_next(mark));
    return STATUS_OK;
}

enum status host_mark_wait(struct device *device, void *stream, void *mark, struct error *err)
{
    (void)device;
    (void)err;
    give_mark(stream, ITEM_MARK_WAIT, mark, host_mark_use(mark));
    return STATUS_OK;
}

enum status host_graph_replay(struct device *device, void *stream, void *graph, uint64_t event_id,
                              const struct event_scope *scope, struct error *err)
{
    (void)device;
    (void)scope; /* every command has its own */
    (void)err;
    struct stream_item *item = next_item(stream);
    host_graph_use(graph);
    item->kind = ITEM_GRAPH;
    item->graph = graph;
    item->event_id = event_id;
    give_item(stream);
    return STATUS_OK;
}

enum status host_stream_sync(struct device *device, void *argument, struct error *err)
{
    struct host_stream *stream = argument;
    (void)device;
    (void)err;
    wait_taken(stream, __atomic_load_n(&stream->given, __ATOMIC_ACQUIRE));
    return STATUS_OK;
}

enum status host_stream_query(struct device *device, void *stream, struct error *err)
{
    (void)stream;
    return device_check(device, err);
}

/* ---- Life ----------------------------------------------------------------------------------- */

static void release(struct host_stream *stream)
{
    free(stream->scratch);
    free(stream->items);
    free(stream);
}

enum status host_stream_create(struct device *device, uint32_t stream_index, void **ret_stream,
                               struct error *err)
{
    struct host_stream *stream = aligned_alloc(_Alignof(struct host_stream), sizeof(*stream));
    if (!stream)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a stream");
    memset(stream, 0, sizeof(*stream));
    host_job_init(&stream->job, host_pool_workers(host_of(device)->pool));
    stream->items = calloc(QUEUE_ITEMS, sizeof(*stream->items));
    stream->scratch = aligned_alloc(64, DEVICE_SCRATCH_BYTES);
    if (!stream->items || !stream->scratch) {
        release(stream);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a stream");
    }
    stream->device = device;
    stream->index = stream_index;
    stream->awaited = UINT64_MAX;
    host_pool_add(host_of(device)->pool, stream_index, &stream->job);
    int code = pthread_create(&stream->thread, NULL, stream_thread, stream);
    if (code != 0) {
        host_pool_remove(host_of(device)->pool, stream_index);
        release(stream);
        return error_set_os(err, code, "cannot start the thread of a stream");
    }
    *ret_stream = stream;
    return STATUS_OK;
}

void host_stream_destroy(struct device *device, void *argument)
{
    struct host_stream *stream = argument;
    next_item(stream)->kind = ITEM_STOP;
    give_item(stream);
    pthread_join(stream->thread, NULL);
    host_pool_remove(host_of(device)->pool, stream->index);
    release(stream);
}
