/* fake_kinds.c - the emulated driver's more uncommon kinds of memory, and the ends of contexts. */
#include "fake_driver.h"

#include <stdlib.h>

/* ---- Allocations ---------------------------------------------------------------------------- */

/* As pinned memory: host and device have a mapping each. */
static result make_managed(address *pointer, size_t bytes)
{
    *pointer = (address)(uintptr_t)fake_pinned(bytes);
    return *pointer ? fake_set_alive(*pointer, bytes, 1) : INVALID_VALUE;
}

EXPORT result cuMemAllocManaged(address *pointer, size_t bytes, unsigned int flags)
{
    struct {
        address *pointer;
        size_t bytes;
        unsigned int flags;
    } arguments = { pointer, bytes, flags };
    CALL(371, "cuMemAllocManaged", arguments, NULL, make_managed(pointer, bytes));
}

static result make_rows(address *pointer, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) / 512 * 512;
    return fake_make(pointer, *pitch * height);
}

EXPORT result cuMemAllocPitch_v2(address *pointer, size_t *pitch, size_t width, size_t height,
                                 unsigned int element_bytes)
{
    struct {
        address *pointer;
        size_t *pitch;
        size_t width, height;
        unsigned int element_bytes;
    } arguments = { pointer, pitch, width, height, element_bytes };
    CALL(244, "cuMemAllocPitch_v2", arguments, NULL, make_rows(pointer, pitch, width, height));
}

EXPORT result cuMemAllocFromPoolAsync(address *pointer, size_t bytes, void *pool, stream on)
{
    struct {
        address *pointer;
        size_t bytes;
        void *pool;
        stream on;
    } arguments = { pointer, bytes, pool, on };
    CALL(611, "cuMemAllocFromPoolAsync", arguments, NULL, fake_make(pointer, bytes));
}

/* ---- Mappings ------------------------------------------------------------------------------- */

/* Not looked at by anybody. */
EXPORT result cuMemAddressReserve(address *pointer, size_t bytes, size_t alignment, address wanted,
                                  unsigned long long flags)
{
    void *memory = calloc(1, bytes);
    (void)alignment;
    (void)wanted;
    (void)flags;
    *pointer = (address)(uintptr_t)memory;
    return memory ? OK : INVALID_VALUE;
}

EXPORT result cuMemMap(address pointer, size_t bytes, size_t offset, unsigned long long memory,
                       unsigned long long flags)
{
    struct {
        address pointer;
        size_t bytes, offset;
        unsigned long long memory, flags;
    } arguments = { pointer, bytes, offset, memory, flags };
    CALL(551, "cuMemMap", arguments, NULL, fake_set_alive(pointer, bytes, 1));
}

EXPORT result cuMemUnmap(address pointer, size_t bytes)
{
    struct {
        address pointer;
        size_t bytes;
    } arguments = { pointer, bytes };
    CALL(552, "cuMemUnmap", arguments, NULL, fake_set_alive(pointer, bytes, 0));
}

/* ---- Memory of the program ------------------------------------------------------------------ */

static void *registered;

static result enroll(void *pointer)
{
    if (pointer == registered)
        return ALREADY_REGISTERED;
    registered = pointer;
    return OK;
}

EXPORT result cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned int flags)
{
    struct {
        void *pointer;
        size_t bytes;
        unsigned int flags;
    } arguments = { pointer, bytes, flags };
    CALL(379, "cuMemHostRegister_v2", arguments, NULL, enroll(pointer));
}

static result strike(const void *pointer)
{
    if (pointer != registered)
        return NOT_REGISTERED;
    registered = NULL;
    return OK;
}

EXPORT result cuMemHostUnregister(void *pointer)
{
    CALL(302, "cuMemHostUnregister", pointer, NULL, strike(pointer));
}

EXPORT result cuMemHostGetDevicePointer_v2(address *pointer, void *host, unsigned int flags)
{
    struct {
        address *pointer;
        void *host;
        unsigned int flags;
    } arguments = { pointer, host, flags };
    *pointer = (address)(uintptr_t)host;
    CALL(247, "cuMemHostGetDevicePointer_v2", arguments, NULL, OK);
}

/* The handle's bytes are of no use to a program without a second process. */
EXPORT result cuIpcGetMemHandle(void *handle, address pointer)
{
    struct {
        void *handle;
        address pointer;
    } arguments = { handle, pointer };
    CALL(328, "cuIpcGetMemHandle", arguments, NULL, OK);
}

EXPORT result cuMemcpyAtoD_v2(address target, void *array, size_t offset, size_t bytes)
{
    struct {
        address target;
        void *array;
        size_t offset, bytes;
    } arguments = { target, array, offset, bytes };
    CALL(284, "cuMemcpyAtoD_v2", arguments, NULL, OK);
}

static result encode(unsigned char map[128])
{
    for (int i = 0; i < 128; i++)
        map[i] = 0x5A; /* not a pointer, whatever it was made of */
    return OK;
}

EXPORT result cuTensorMapReplaceAddress(unsigned char map[128], void *pointer)
{
    struct {
        unsigned char *map;
        void *pointer;
    } arguments = { map, pointer };
    CALL(699, "cuTensorMapReplaceAddress", arguments, NULL, encode(map));
}

/* ---- Contexts ------------------------------------------------------------------------------- */

/* There is one device. */
EXPORT result cuCtxGetDevice(int *device)
{
    *device = 0;
    return OK;
}

EXPORT result cuDevicePrimaryCtxReset_v2(int device)
{
    CALL(545, "cuDevicePrimaryCtxReset_v2", device, NULL,
         device == 0 ? fake_reset() : INVALID_VALUE);
}
