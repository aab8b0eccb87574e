/* ranges_nvtx.c - the ranges that a program marks with NVTX 3: "range push" and "range pop" of the
 * default domain.
 *
 * NVTX is a header: in each library that uses it, its first call loads what NVTX_INJECTION64_PATH
 * names and passes InitializeInjectionNvtx2 a function that gives access to its table of functions.
 * Without an injection a push returns "no tracking", and so it does here. */
#include "interpose/cuda/preload.h"
#include "interpose/interpose.h"

#include <stddef.h>

/* As NVTX's public headers have them. */
enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MESSAGE_ASCII = 1, NO_TRACKING = -2 };
enum { PUSH_ATTRIBUTES = 8, PUSH_ASCII = 9, PUSH_WIDE = 10, POP = 11 };

typedef void (*nvtx_function)(void);

struct nvtx_callbacks {
    size_t bytes;
    int (*module_functions)(int module, nvtx_function ***ret_slots, unsigned int *ret_count);
};

struct nvtx_attributes {
    uint16_t version, bytes;
    uint32_t category;
    int32_t colour_type;
    uint32_t colour;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
};
_Static_assert(offsetof(struct nvtx_attributes, message) == 40, "as NVTX lays it out");

static int push(const char *name)
{
    interpose_range_push(name);
    return NO_TRACKING;
}

static int push_attributes(const struct nvtx_attributes *attributes)
{
    bool ascii = attributes && attributes->bytes >= sizeof(*attributes) &&
                 attributes->message_type == MESSAGE_ASCII;
    return push(ascii ? attributes->message : NULL);
}

/* Names in wide characters are not read. */
static int push_wide(const void *name)
{
    (void)name;
    return push(NULL);
}

static int pop(void)
{
    interpose_range_pop();
    return NO_TRACKING;
}

EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t id));

EXPORT int InitializeInjectionNvtx2(const void *(*table)(uint32_t id))
{
    const struct nvtx_callbacks *callbacks = table ? table(TABLE_CALLBACKS) : NULL;
    nvtx_function **slots = NULL;
    unsigned int count = 0;
    if (!callbacks || callbacks->bytes < sizeof(*callbacks) || !callbacks->module_functions ||
        !callbacks->module_functions(MODULE_CORE, &slots, &count) || !slots || count <= POP)
        return 0;
    *slots[PUSH_ATTRIBUTES] = (nvtx_function)push_attributes;
    *slots[PUSH_ASCII] = (nvtx_function)push;
    *slots[PUSH_WIDE] = (nvtx_function)push_wide;
    *slots[POP] = (nvtx_function)pop;
    return 1;
}
