/* pending.c - queued copies that read pinned host memory: is it still what it was when the copy was
 * queued? Looked at where the program begins to wait for the copy: whoever rewrites the memory
 * before that did not know the copy was done.
 *
 * Pageable memory is not looked at: the runtime has taken it before the call returns. */
#include "interpose/interpose_impl.h"

#include <string.h>
#include <xxhash.h>

/* Small copies are looked at in full, of large ones samples: a program must not wait for this. */
#define WHOLE_LIMIT (UINT64_C(32) << 10)
#define SAMPLE_COUNT 32u
#define SAMPLE_BYTES 512u

static uint64_t digest(uint64_t address, uint64_t bytes)
{
    const uint8_t *data = (const uint8_t *)(uintptr_t)address;
    if (bytes <= WHOLE_LIMIT)
        return XXH3_64bits(data, (size_t)bytes);
    uint64_t sum = 0, step = (bytes - SAMPLE_BYTES) / (SAMPLE_COUNT - 1);
    for (uint64_t i = 0; i < SAMPLE_COUNT; i++)
        sum = XXH3_64bits_withSeed(data + i * step, SAMPLE_BYTES, sum);
    return sum;
}

void pending_add(struct interpose *interpose, const struct interpose_call *call, uint64_t address,
                 uint64_t bytes, const struct tracked_stream *stream)
{
    if (interpose->pending_count == PENDING_LIMIT) {
        memmove(&interpose->pending[0], &interpose->pending[1],
                (PENDING_LIMIT - 1) * sizeof(interpose->pending[0]));
        interpose->pending_count--;
    }
    interpose->pending[interpose->pending_count++] =
        (struct pending_copy){ .event_id = call->event.id,
                               .address = address,
                               .bytes = bytes,
                               .digest = digest(address, bytes),
                               .stream = (uint32_t)(stream - interpose->streams),
                               .queued = stream->queued };
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

void pending_look(struct interpose *interpose, size_t stream, uint64_t queued)
{
    for (size_t i = 0; i < interpose->pending_count; i++) {
        struct pending_copy *copy = &interpose->pending[i];
        if (!is_meant(copy, stream, queued))
            continue;
        uint64_t now = digest(copy->address, copy->bytes);
        if (now == copy->digest)
            continue;
        tell_changed(interpose, copy, now);
        copy->digest = now;
    }
}

static void remove_if(struct interpose *interpose, size_t stream, uint64_t queued, uint64_t address,
                      uint64_t bytes)
{
    size_t kept = 0;
    for (size_t i = 0; i < interpose->pending_count; i++) {
        const struct pending_copy *copy = &interpose->pending[i];
        bool gone = bytes ? copy->address - address < bytes || address - copy->address < copy->bytes
                          : is_meant(copy, stream, queued);
        if (!gone)
            interpose->pending[kept++] = *copy;
    }
    interpose->pending_count = kept;
}

void pending_done(struct interpose *interpose, size_t stream, uint64_t queued)
{
    remove_if(interpose, stream, queued, 0, 0);
}

void pending_forget(struct interpose *interpose, uint64_t address, uint64_t bytes)
{
    remove_if(interpose, 0, 0, address, bytes);
}
