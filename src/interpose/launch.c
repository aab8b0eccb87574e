/* launch.c - launches: the kernel's name, and the pointers among its parameters.
 *
 * A kernel does not say what it reads and writes. Every aligned word of its parameters that points
 * into memory of the program is an access with EVENT_MAYBE, unless the kernel's code proves that
 * none is made through it; a read, if the code proves that nothing is written through it. A pointer
 * to the start of an allocation stands for all of it. A pointer into the middle, as a caching
 * allocator hands out, stands only for the bytes right there, because its neighbours are other
 * tensors. */
#include "interpose/interpose_impl.h"

#include "base/size.h"

#include <string.h>

/* Bytes that a pointer into the middle of an allocation stands for: what allocators align to. */
#define PART_BYTES 256u
/* No kernel has more parameters. */
#define PARAMETER_BYTES_LIMIT 32768u

/* ---- Names ---------------------------------------------------------------------------------- */

/* Reads one part of a mangled name: its length in digits, then itself. NULL if there is none here.
 */
static const char *name_part(const char *at, size_t *ret_length)
{
    size_t length = 0;
    if (*at < '1' || *at > '9')
        return NULL;
    for (; *at >= '0' && *at <= '9'; at++) {
        length = length * 10 + (size_t)(*at - '0');
        if (length > FLIGHT_NAME_BYTES * 8)
            return NULL;
    }
    if (strnlen(at, length) < length)
        return NULL;
    *ret_length = length;
    return at;
}

void name_shorten(const char *name, char ret_op[EVENT_OP_BYTES])
{
    size_t length = strlen(name), part_length;
    const char *shown = name, *part;
    if (strncmp(name, "_Z", 2) == 0) {
        const char *at = name + 2;
        bool nested = *at == 'N';
        at += nested;
        at += strspn(at, "KVr");
        at += at[0] == 'S' && at[1] == 't' ? 2 : 0;
        at += *at == 'L';
        /* The last part before template arguments: namespaces come before it. */
        while ((part = name_part(at, &part_length)) != NULL) {
            shown = part;
            length = part_length;
            at = part + part_length;
            if (!nested)
                break;
        }
    }
    if (length >= EVENT_OP_BYTES)
        length = EVENT_OP_BYTES - 1;
    memset(ret_op, 0, EVENT_OP_BYTES);
    memcpy(ret_op, shown, length);
}

static void set_name(struct interpose *interpose, struct event *event,
                     const struct interpose_launch *launch)
{
    const char *kernel = launch->kernel && launch->kernel[0] ? launch->kernel : "(unnamed kernel)";
    uint64_t hash = launch->function * UINT64_C(0x9E3779B97F4A7C15);
    struct cached_name *cached = &interpose->names[hash >> 52 & (NAME_CACHE - 1)];
    if (cached->function != launch->function || !cached->op[0]) {
        cached->function = launch->function;
        name_shorten(kernel, cached->op);
        cached->name_index = flight_add_name(interpose->flight, kernel);
    }
    memcpy(event->op, cached->op, sizeof(event->op));
    event->launch.name_index = cached->name_index;
}

/* ---- Pointers ------------------------------------------------------------------------------- */

/* The same address among earlier parameters, or NULL. */
static struct event_access *find_known(struct event *event, uint32_t index, uint64_t address)
{
    for (uint8_t i = 0; i < event->access_count; i++)
        if (event->accesses[i].buffer_index == index && event->accesses[i].address == address)
            return &event->accesses[i];
    return NULL;
}

/* What the kernel may do through the word; without a proof, everything. */
static uint8_t mode_of(const struct interpose_launch *launch, size_t parameter, size_t word)
{
    const struct kernel_uses *uses = launch->uses;
    bool fits = uses && uses->parameter_count == launch->parameter_count &&
                uses->sizes[parameter] == launch->parameters[parameter].count;
    uint8_t use = fits ? uses->uses[uses->words[parameter] + word] : KERNEL_READS | KERNEL_WRITES;
    if (!use)
        return 0;
    return (use & KERNEL_WRITES ? EVENT_UPDATE : EVENT_READ) | EVENT_MAYBE;
}

/* stream: NULL if the launch is recorded into a graph and not run. */
static void add_pointer(struct interpose *interpose, struct interpose_call *call, uint64_t value,
                        uint8_t operand, uint8_t mode, const struct tracked_stream *stream)
{
    struct event *event = &call->event;
    if (value < interpose->lowest || value >= interpose->highest)
        return;
    struct block *block = block_find(&interpose->blocks, value);
    if (!block)
        return;
    if (block_is_shown(block))
        event->flags |= EVENT_MAY_TELL; /* a kernel that only reads there may be held back */
    if (stream && block_side(block) == EVENT_SIDE_HOST && (mode & EVENT_WRITE))
        pending_write(interpose, block->address, block->bytes, stream);
    struct event_access *known = find_known(event, block->index, value);
    if (known) {
        known->mode |= mode;
        return;
    }
    if (event->access_count == EVENT_ACCESS_LIMIT) {
        event->flags |= EVENT_PARTIAL;
        return;
    }
    if (value != block->address)
        block->parted = true;
    uint64_t bytes = block->bytes - (value - block->address);
    if (block->parted && bytes > PART_BYTES)
        bytes = PART_BYTES;
    if (stream)
        trapped_watch_kernel(interpose, call, value, bytes, stream);
    event->accesses[event->access_count++] = (struct event_access){ .address = value,
                                                                    .bytes = bytes,
                                                                    .buffer_index = block->index,
                                                                    .generation = 1,
                                                                    .mode = mode,
                                                                    .operand = operand };
    if (block->freed_id)
        translate_check(call, EVENT_CHECK_GENERATION, operand, 1, 2);
}

static void add_parameters(struct interpose *interpose, struct interpose_call *call,
                           const struct interpose_launch *launch,
                           const struct tracked_stream *stream)
{
    size_t budget = PARAMETER_BYTES_LIMIT;
    for (size_t i = 0; i < launch->parameter_count; i++) {
        const struct interpose_parameter *parameter = &launch->parameters[i];
        size_t count = min_u64(parameter->count, budget);
        budget -= count;
        for (size_t at = 0; parameter->bytes && at + sizeof(uint64_t) <= count;
             at += sizeof(uint64_t)) {
            uint64_t value;
            memcpy(&value, (const uint8_t *)parameter->bytes + at, sizeof(value));
            uint8_t mode = mode_of(launch, i, at / sizeof(value));
            if (mode)
                add_pointer(interpose, call, value, (uint8_t)min_u64(i, 254), mode, stream);
        }
    }
}

void interpose_launch_begin(struct interpose *interpose, struct interpose_call *call,
                            const char *name, const struct interpose_launch *launch)
{
    if (!translate_open(interpose, call, EVENT_LAUNCH, name, launch->function))
        return;
    struct event *event = &call->event;
    if (launch->parameters_unknown)
        event->flags |= EVENT_PARTIAL;
    pthread_mutex_lock(&interpose->lock);
    set_name(interpose, event, launch);
    struct tracked_stream *used = NULL;
    if (launch->graph) {
        event->launch.graph_id = graph_take(interpose, launch->graph);
    } else {
        used = stream_use(interpose, call, launch->stream);
        if (used) {
            event->launch.graph_id = used->capture_id;
            stream_queue(interpose, used);
        }
    }
    add_parameters(interpose, call, launch, event->launch.graph_id ? NULL : used);
    if (interpose->kernels_may_tell || (event->flags & EVENT_PARTIAL))
        event->flags |= EVENT_MAY_TELL;
    if (used && !event->launch.graph_id && (event->flags & EVENT_MAY_TELL))
        pending_tell_before(interpose, used, true);
    pthread_mutex_unlock(&interpose->lock);
    if (!event->launch.graph_id)
        call->launch_ordinal = __atomic_add_fetch(&interpose->launches, 1, __ATOMIC_RELAXED);
    /* The launch's number in this process, which --narrow goes by. */
    event->launch.ordinal = call->launch_ordinal;
    launch_facts_begin(interpose, call, launch);
    translate_tell(interpose, call);
}
