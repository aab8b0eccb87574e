/* fake_driver_memory.c - memory of the emulated driver, copies and fills; see fake_trace.h. */
#include "fake_driver.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- Memory --------------------------------------------------------------------------------- */

#define BLOCK_LIMIT 256
static struct {
    address start;
    size_t bytes;
    int alive;
} blocks[BLOCK_LIMIT];
static size_t block_count;

result fake_make(address *pointer, size_t bytes)
{
    void *memory = block_count < BLOCK_LIMIT ? calloc(1, bytes + 64) : NULL;
    if (!memory)
        return INVALID_VALUE;
    *pointer = (address)(uintptr_t)memory;
    return fake_set_alive(*pointer, bytes, 1);
}

result fake_drop(address pointer)
{
    for (size_t i = 0; i < block_count; i++)
        if (blocks[i].start == pointer && blocks[i].alive) {
            blocks[i].alive = 0;
            return OK;
        }
    return pointer ? INVALID_VALUE : OK;
}

result fake_set_alive(address pointer, size_t bytes, int alive)
{
    if (alive) {
        if (block_count == BLOCK_LIMIT)
            return INVALID_VALUE;
        blocks[block_count].start = pointer;
        blocks[block_count].bytes = bytes;
        blocks[block_count++].alive = 1;
    }
    for (size_t i = 0; i < block_count && !alive; i++)
        if (blocks[i].start >= pointer && blocks[i].start - pointer < bytes)
            blocks[i].alive = 0;
    return OK;
}

/* Adjacent mappings are one range. */
int fake_is_device(address pointer, size_t bytes)
{
    for (size_t i = 0; i < block_count; i++) {
        if (!blocks[i].alive || pointer < blocks[i].start ||
            pointer - blocks[i].start >= blocks[i].bytes)
            continue;
        size_t room = blocks[i].bytes - (pointer - blocks[i].start);
        return bytes <= room || fake_is_device(pointer + room, bytes - room);
    }
    return 0;
}

EXPORT result cuMemAlloc_v2(address *pointer, size_t bytes)
{
    struct {
        address *pointer;
        size_t bytes;
    } arguments = { pointer, bytes };
    CALL(243, "cuMemAlloc_v2", arguments, NULL, fake_make(pointer, bytes));
}

EXPORT result cuMemFree_v2(address pointer)
{
    CALL(245, "cuMemFree_v2", pointer, NULL, fake_drop(pointer));
}

EXPORT result cuMemAllocAsync(address *pointer, size_t bytes, stream on)
{
    struct {
        address *pointer;
        size_t bytes;
        stream on;
    } arguments = { pointer, bytes, on };
    CALL(598, "cuMemAllocAsync", arguments, NULL, fake_make(pointer, bytes));
}

EXPORT result cuMemFreeAsync(address pointer, stream on)
{
    struct {
        address pointer;
        stream on;
    } arguments = { pointer, on };
    CALL(600, "cuMemFreeAsync", arguments, NULL, fake_drop(pointer));
}

/* Freed memory cannot be read, and its addresses are not handed out again. */
static struct {
    void *memory;
    size_t bytes;
} pinned[BLOCK_LIMIT];
static size_t pinned_count;

static result host_alloc(void **pointer, size_t bytes)
{
    *pointer = fake_pinned(bytes);
    if (!*pointer || pinned_count == BLOCK_LIMIT)
        return INVALID_VALUE;
    pinned[pinned_count].memory = *pointer;
    pinned[pinned_count++].bytes = bytes;
    return OK;
}

EXPORT result cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    struct {
        void **pointer;
        size_t bytes;
        unsigned int flags;
    } arguments = { pointer, bytes, flags };
    CALL(39, "cuMemHostAlloc", arguments, NULL, host_alloc(pointer, bytes));
}

/* NULL frees all. */
static result host_free(const void *pointer)
{
    fake_late_run(NULL);
    for (size_t i = 0; i < pinned_count; i++)
        if (!pointer || pinned[i].memory == pointer)
            mprotect(pinned[i].memory, pinned[i].bytes, PROT_NONE);
    return OK;
}

result fake_reset(void)
{
    for (size_t i = 0; i < block_count; i++)
        blocks[i].alive = 0;
    fake_new_context();
    return host_free(NULL);
}

EXPORT result cuMemFreeHost(void *pointer)
{
    CALL(38, "cuMemFreeHost", pointer, NULL, host_free(pointer));
}

/* ---- Copies --------------------------------------------------------------------------------- */

struct copy {
    address target, source;
    size_t bytes;
    stream on;
};

static result move(const struct copy *copy, int to_device, int from_device)
{
    if ((to_device && !fake_is_device(copy->target, copy->bytes)) ||
        (from_device && !fake_is_device(copy->source, copy->bytes)))
        return INVALID_VALUE;
    if (copy->on && !copy->on->capturing &&
        fake_late(copy->target, copy->source, copy->bytes, copy->on))
        return OK;
    if (!copy->on || !copy->on->capturing)
        memmove((void *)(uintptr_t)copy->target, (const void *)(uintptr_t)copy->source,
                copy->bytes);
    return OK;
}

static address as_address(const void *pointer)
{
    return (address)(uintptr_t)pointer;
}

EXPORT result cuMemcpyHtoD_v2(address target, const void *source, size_t bytes)
{
    struct copy copy = { target, as_address(source), bytes, NULL };
    CALL(276, "cuMemcpyHtoD_v2", copy, NULL, move(&copy, 1, 0));
}

EXPORT result cuMemcpyDtoH_v2(void *target, address source, size_t bytes)
{
    struct copy copy = { as_address(target), source, bytes, NULL };
    CALL(278, "cuMemcpyDtoH_v2", copy, NULL, move(&copy, 0, 1));
}

EXPORT result cuMemcpyHtoDAsync_v2(address target, const void *source, size_t bytes, stream on)
{
    struct copy copy = { target, as_address(source), bytes, on };
    CALL(277, "cuMemcpyHtoDAsync_v2", copy, NULL, move(&copy, 1, 0));
}

EXPORT result cuMemcpyDtoHAsync_v2(void *target, address source, size_t bytes, stream on)
{
    struct copy copy = { as_address(target), source, bytes, on };
    CALL(279, "cuMemcpyDtoHAsync_v2", copy, NULL, move(&copy, 0, 1));
}

EXPORT result cuMemcpyHtoDAsync_v2_ptsz(address target, const void *source, size_t bytes, stream on)
{
    struct copy copy = { target, as_address(source), bytes, on };
    CALL(421, "cuMemcpyHtoDAsync_v2_ptsz", copy, NULL, move(&copy, 1, 0));
}

EXPORT result cuMemcpyDtoHAsync_v2_ptsz(void *target, address source, size_t bytes, stream on)
{
    struct copy copy = { as_address(target), source, bytes, on };
    CALL(422, "cuMemcpyDtoHAsync_v2_ptsz", copy, NULL, move(&copy, 0, 1));
}

EXPORT result cuMemcpyDtoDAsync_v2(address target, address source, size_t bytes, stream on)
{
    struct copy copy = { target, source, bytes, on };
    CALL(281, "cuMemcpyDtoDAsync_v2", copy, NULL, move(&copy, 1, 1));
}

static result fill(address target, unsigned char value, size_t count)
{
    if (!fake_is_device(target, count))
        return INVALID_VALUE;
    memset((void *)(uintptr_t)target, value, count);
    return OK;
}

EXPORT result cuMemsetD8Async(address target, unsigned char value, size_t count, stream on)
{
    struct {
        address target;
        unsigned char value;
        size_t count;
        stream on;
    } arguments = { target, value, count, on };
    CALL(216, "cuMemsetD8Async", arguments, NULL, fill(target, value, count));
}
