/* host_stream.c - a stream is a thread with a queue; what it does with a command is in
 * host_command.c.
 *
 * The queue has one writer at a time (the common layer holds the stream's lock) and one reader. Its
 * two counters only grow; a thread that waits for one of them sleeps on the word next to it. After
 * a fault the thread empties the queue without doing the work, so that marks are passed and no
 * caller waits forever. */
#include "device/host/host_impl.h"

#include "device/host/host_stream_item.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A decode step fits, so that the host can run ahead by one. */
#define QUEUE_ITEMS 1024u
/* Items after the current one that are searched for the next matmul. */
#define ANNOUNCE_ITEMS 8u
#define FETCH_ITEM_BYTES 512u
_Static_assert(FETCH_ITEM_BYTES <= sizeof(struct stream_item), "the beginning of an item");
/* Items left that are worth spinning for. */
#define NEARLY_DONE_ITEMS 2u

/* ---- Doing ---------------------------------------------------------------------------------- */

void host_stream_announce_next(struct host_stream *stream)
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

static void do_item(struct host_stream *stream, const struct stream_item *item)
{
    switch (item->kind) {
    case ITEM_COMMAND:
        host_command_do(stream, &item->command);
        break;
    case ITEM_GRAPH:
        host_graph_do(stream, item->graph, item->event_id);
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
        do_item(stream, item);
        /* A wake-up costs more than a small kernel, so the sleeper is woken only when the item it
         * waits for is done. The memory orders guarantee that either it sees the count or this
         * thread sees that it waits. */
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

/* Copies only as many operands and parameters as the launch has. */
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
    wait_taken(stream, __atomic_load_n(&stream->given, __ATOMIC_ACQUIRE));
    return device_is_lost(device) ? device_set_lost(device, "stream sync", err) : STATUS_OK;
}

enum status host_stream_query(struct device *device, void *stream, struct error *err)
{
    (void)stream;
    return device_is_lost(device) ? device_set_lost(device, "stream query", err) : STATUS_OK;
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
