/* copy_behaviour.c - the table, and the functions that look things up in it. */
#include "interpose/copy_behaviour.h"

static const uint8_t copies[INTERPOSE_RUNTIME_COUNT][COPY_FORM_COUNT][COPY_MEMORY_COUNT]
                           [COPY_MEMORY_COUNT] = {
#define COPIES(runtime, form, source, pageable, pinned, registered, managed, device)               \
    [INTERPOSE_##runtime][COPY_##form][COPY_##source] = { COPY_##pageable, COPY_##pinned,          \
                                                          COPY_##registered, COPY_##managed,       \
                                                          COPY_##device },
#define MEMSETS(...)
#define FREES(...)
#include "interpose/copy_behaviour.def"
#undef COPIES
#undef MEMSETS
                           };

/* The runtimes refuse a memset of pageable memory, so the table has none. */
static const uint8_t memsets[INTERPOSE_RUNTIME_COUNT][COPY_FORM_COUNT][COPY_MEMORY_COUNT] = {
#define COPIES(...)
#define MEMSETS(runtime, form, pinned, registered, managed, device)                                \
    [INTERPOSE_##runtime][COPY_##form] = { COPY_OPEN, COPY_##pinned, COPY_##registered,            \
                                           COPY_##managed, COPY_##device },
#include "interpose/copy_behaviour.def"
#undef MEMSETS
#undef FREES
};

static const uint8_t frees[INTERPOSE_RUNTIME_COUNT][INTERPOSE_MEMORY_COUNT] = {
#define MEMSETS(...)
#define FREES(runtime, device, pool, mapped, managed, pinned, registered)                          \
    [INTERPOSE_##runtime] = {                                                                      \
        [INTERPOSE_DEVICE] = COPY_##device, [INTERPOSE_POOL] = COPY_##pool,                        \
        [INTERPOSE_MAPPED] = COPY_##mapped, [INTERPOSE_MANAGED] = COPY_##managed,                  \
        [INTERPOSE_PINNED] = COPY_##pinned, [INTERPOSE_REGISTERED] = COPY_##registered             \
    },
#include "interpose/copy_behaviour.def"
#undef COPIES
#undef MEMSETS
#undef FREES
};

const char *copy_behaviour_name(enum copy_behaviour behaviour)
{
    static const char *const names[] = { "waits", "staged", "returns", "open" };
    _Static_assert(sizeof(names) / sizeof(*names) == COPY_BEHAVIOUR_COUNT, "every one has a name");
    return names[behaviour];
}

const char *copy_memory_name(enum copy_memory memory)
{
    static const char *const names[] = { "pageable", "pinned", "registered", "managed", "device" };
    _Static_assert(sizeof(names) / sizeof(*names) == COPY_MEMORY_COUNT, "every one has a name");
    return names[memory];
}

enum copy_memory copy_memory_of(enum interpose_memory memory)
{
    static const uint8_t as[INTERPOSE_MEMORY_COUNT] = {
        [INTERPOSE_DEVICE] = COPY_DEVICE, [INTERPOSE_POOL] = COPY_DEVICE,
        [INTERPOSE_MAPPED] = COPY_DEVICE, [INTERPOSE_MANAGED] = COPY_MANAGED,
        [INTERPOSE_PINNED] = COPY_PINNED, [INTERPOSE_REGISTERED] = COPY_REGISTERED,
    };
    return (enum copy_memory)as[memory];
}

/* Memory whose allocation was not seen is the program's own, or a module's. */
static const enum copy_memory unseen[] = { COPY_PAGEABLE, COPY_DEVICE };

enum copy_behaviour copy_behaviour_of(enum interpose_runtime runtime, enum copy_form form,
                                      enum copy_memory source, enum copy_memory target)
{
    if (source != COPY_UNKNOWN && target != COPY_UNKNOWN)
        return (enum copy_behaviour)copies[runtime][form][source][target];
    enum copy_behaviour reported[2];
    for (int i = 0; i < 2; i++)
        reported[i] = source == COPY_UNKNOWN ? copy_behaviour_of(runtime, form, unseen[i], target)
                                             : copy_behaviour_of(runtime, form, source, unseen[i]);
    return reported[0] == reported[1] ? reported[0] : COPY_OPEN;
}

enum copy_behaviour memset_behaviour_of(enum interpose_runtime runtime, enum copy_form form,
                                        enum copy_memory target)
{
    /* A memset of memory whose allocation was not seen is one of a module's memory. */
    return (
        enum copy_behaviour)memsets[runtime][form][target == COPY_UNKNOWN ? COPY_DEVICE : target];
}

enum copy_behaviour free_behaviour_of(enum interpose_runtime runtime, enum interpose_memory memory)
{
    return (enum copy_behaviour)frees[runtime][memory];
}
