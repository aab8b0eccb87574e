/* addresses.c - does a copy to the device carry addresses of device memory? A kernel may read them
 * there and write where they point, although none of its arguments says so: from then on it is not
 * known what such memory holds.
 *
 * Looked at are the first EVENT_ADDRESSES_LOOKED bytes, and nothing more once a copy was marked.
 * Memory that this process may not own is read by the system, which says so instead of crashing. */
#define _GNU_SOURCE /* process_vm_readv */
#include "interpose/interpose_impl.h"

#include "base/size.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static bool read_part(struct interpose *interpose, bool own, uint64_t address, size_t bytes)
{
    if (own) {
        memcpy(interpose->samples, (const void *)(uintptr_t)address, bytes);
        return true;
    }
    struct iovec here = { interpose->samples, bytes };
    struct iovec there = { (void *)(uintptr_t)address, bytes };
    return process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

static bool has_address(const struct interpose *interpose, size_t bytes)
{
    for (size_t at = 0; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t value;
        memcpy(&value, interpose->samples + at, sizeof(value));
        if (value < interpose->lowest || value >= interpose->highest)
            continue;
        const struct block *block = block_find(&interpose->blocks, value);
        if (block && block_side(block) != EVENT_SIDE_HOST)
            return true;
    }
    return false;
}

void addresses_look(struct interpose *interpose, struct interpose_call *call,
                    const struct block *source, uint64_t address, uint64_t bytes)
{
    bool found = false;
    if (interpose->addresses_told)
        return;
    /* Reading managed memory would move it. A graph reads its sources when it is launched. */
    if (call->event.copy.graph_id || (source && source->memory == INTERPOSE_MANAGED))
        found = true;
    bool own = source && source->memory == INTERPOSE_PINNED && !source->freed_id &&
               bytes <= source->bytes - (address - source->address);
    uint64_t left = min_u64(bytes, EVENT_ADDRESSES_LOOKED);
    for (size_t part; left && !found; left -= part, address += part) {
        part = min_u64(left, sizeof(interpose->samples));
        found = !read_part(interpose, own, address, part) || has_address(interpose, part);
    }
    if (!found)
        return;
    interpose->addresses_told = true;
    call->event.flags |= EVENT_HAS_ADDRESSES;
}
