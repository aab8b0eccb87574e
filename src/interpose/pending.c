/* pending.c - queued copies that read pinned host memory: is it still what it was when the copy was
 * queued? Looked at where the program begins to wait for the copy: whoever rewrites the memory
 * before that did not know the copy was done.
 *
 * Nothing is said where the bytes may change rightly: where queued work of the device (a copy, a
 * kernel, a graph) or a function of the host inside a stream may write them, and after a wait
 * for work that came behind the copy on another stream, which was a wait for the copy too.
 *
 * Pageable memory is not looked at: the runtime has taken it before the call returns. */
#define _GNU_SOURCE /* process_vm_readv */
#include "interpose/interpose_impl.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>
#include <xxhash.h>

/* Small copies are looked at in full, of large ones samples: a program must not wait for this. */
#define SAMPLE_COUNT 32u
#define SAMPLE_BYTES 512u
#define WHOLE_LIMIT (SAMPLE_COUNT * SAMPLE_BYTES)

/* The runtime's own memory is there until it is freed, which is seen. What the program registered
 * it may have unmapped since: the kernel reads it, and says so instead of raising a signal. */
static bool read_sample(const struct pending_copy *copy, uint64_t offset, uint8_t *bytes,
                        size_t count)
{
    void *source = (void *)(uintptr_t)(copy->address + offset);
    if (!copy->registered) {
        memcpy(bytes, source, count);
        return true;
    }
    struct iovec here = { bytes, count }, there = { source, count };
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)count;
}

/* False: it cannot be read. */
static bool digest(const struct pending_copy *copy, uint64_t *ret)
{
    uint8_t bytes[SAMPLE_BYTES];
    bool whole = copy->bytes <= WHOLE_LIMIT;
    uint64_t step = whole ? SAMPLE_BYTES : (copy->bytes - SAMPLE_BYTES) / (SAMPLE_COUNT - 1);
    uint64_t sum = 0;
    for (uint64_t i = 0; i < SAMPLE_COUNT && i * step < copy->bytes; i++) {
        uint64_t left = copy->bytes - i * step;
        size_t count = left < SAMPLE_BYTES ? (size_t)left : SAMPLE_BYTES;
        if (!read_sample(copy, i * step, bytes, count))
            return false;
        sum = XXH3_64bits_withSeed(bytes, count, sum);
    }
    *ret = sum;
    return true;
}

static bool has_common_bytes(const struct pending_copy *copy, uint64_t address, uint64_t bytes)
{
    return copy->address - address < bytes || address - copy->address < copy->bytes;
}

/* Room for one more, at the cost of the oldest that is only looked at; NULL if there is none. */
static struct pending_copy *make_room(struct interpose *interpose)
{
    size_t oldest = 0;
    if (interpose->pending_count < PENDING_LIMIT)
        return &interpose->pending[interpose->pending_count++];
    while (oldest < PENDING_LIMIT && interpose->pending[oldest].writes)
        oldest++;
    if (oldest == PENDING_LIMIT)
        return NULL;
    memmove(&interpose->pending[oldest], &interpose->pending[oldest + 1],
            (PENDING_LIMIT - 1 - oldest) * sizeof(interpose->pending[0]));
    return &interpose->pending[PENDING_LIMIT - 1];
}

void pending_add(struct interpose *interpose, const struct interpose_call *call,
                 const struct block *block, uint64_t address, uint64_t bytes,
                 const struct tracked_stream *stream)
{
    struct pending_copy copy = { .event_id = call->event.id,
                                 .address = address,
                                 .bytes = bytes,
                                 .stream = (uint32_t)(stream - interpose->streams),
                                 .queued = stream->queued,
                                 .registered = block->memory == INTERPOSE_REGISTERED };
    for (size_t i = 0; i < interpose->pending_count; i++)
        if (interpose->pending[i].writes &&
            has_common_bytes(&interpose->pending[i], address, bytes))
            return;
    if (interpose->pending_blind || !digest(&copy, &copy.digest))
        return;
    struct pending_copy *place = make_room(interpose);
    if (place)
        *place = copy;
}

void pending_share(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (copy->stream == stream && copy->queued <= queued)
            copy->shared = true;
    }
}

static bool is_meant(const struct pending_copy *copy, size_t stream, uint64_t queued)
{
    return stream == SIZE_MAX || (copy->stream == stream && copy->queued <= queued);
}

static void tell_changed(struct interpose *interpose, const struct pending_copy *copy, uint64_t now)
{
    struct interpose_call call;
    if (!translate_open(interpose, &call, EVENT_SOURCE_CHANGED, "", copy->event_id))
        return;
    call.event.cause_id = copy->event_id;
    call.event.stream_index = interpose->streams[copy->stream].index;
    call.event.host_address = copy->address;
    call.event.bytes = copy->bytes;
    call.event.expected = copy->digest;
    call.event.found = now;
    translate_tell_done(interpose, &call);
}

static void look(struct interpose *interpose, struct pending_copy *copy)
{
    uint64_t now;
    if (!digest(copy, &now) || now == copy->digest)
        return;
    tell_changed(interpose, copy, now);
    copy->digest = now;
}

void pending_look(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (!copy->writes && (copy->shared || is_meant(copy, stream, queued)))
            look(interpose, copy);
    }
}

/* Sources with bytes there are looked at now: later they may be what the device wrote. */
static void forget_sources(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (!copy->writes && has_common_bytes(copy, address, bytes))
            look(interpose, copy);
        else
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
}

void pending_write(struct interpose *interpose, uint64_t address, uint64_t bytes,
                   const struct tracked_stream *stream)
{
    uint32_t place = (uint32_t)(stream - interpose->streams);
    forget_sources(interpose, address, bytes);
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (copy->writes && copy->stream == place && copy->address == address &&
            copy->bytes == bytes) {
            copy->queued = stream->queued;
            return;
        }
    }
    struct pending_copy *copy = make_room(interpose);
    if (copy)
        *copy = (struct pending_copy){ .address = address,
                                       .bytes = bytes,
                                       .stream = place,
                                       .queued = stream->queued,
                                       .writes = true };
    else
        interpose->pending_blind = true;
}

void pending_done(struct interpose *interpose, size_t stream, uint64_t queued)
{
    size_t kept = 0;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        const struct pending_copy *copy = &interpose->pending[i];
        /* Of what is shared it is not known: a copy is no longer looked at, a write may be still to
         * come. */
        if (!is_meant(copy, stream, queued) && (copy->writes || !copy->shared))
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
    if (stream == SIZE_MAX)
        interpose->pending_blind = false;
}

void pending_forget(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        const struct pending_copy *copy = &interpose->pending[i];
        bool everywhere = copy->writes && copy->bytes == PENDING_EVERYWHERE;
        if (everywhere || !has_common_bytes(copy, address, bytes))
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
}
