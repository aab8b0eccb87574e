/* calls.c - the wrappers, made from calls.def. */
#include "interpose/hip/hip.h"

/* What every wrapper begins with: without a recording the call goes straight to the runtime. */
#define BEGIN(name, parameters, arguments)                                                         \
    hipError_t(*real) parameters = (hipError_t(*) parameters)hip_real(HIP_INDEX_##name);           \
    if (!real)                                                                                     \
        return HIP_NOT_FOUND;                                                                      \
    struct interpose *trace = hip_enter();                                                         \
    if (!trace)                                                                                    \
    return real arguments

#define END                                                                                        \
    hip_leave();                                                                                   \
    return code

/* A call that is recorded before and after it. */
#define HIP_TOLD(name, parameters, arguments, ...)                                                 \
    hipError_t name parameters                                                                     \
    {                                                                                              \
        BEGIN(name, parameters, arguments);                                                        \
        struct interpose_call call;                                                                \
        __VA_ARGS__;                                                                               \
        hipError_t code = real arguments;                                                          \
        interpose_end(trace, &call, (int32_t)code);                                                \
        END;                                                                                       \
    }

/* A call that is recorded when it is over: what it did, or that it failed. */
#define HIP_TOLD_AFTER(name, parameters, arguments, tell)                                          \
    hipError_t name parameters                                                                     \
    {                                                                                              \
        BEGIN(name, parameters, arguments);                                                        \
        hipError_t code = real arguments;                                                          \
        if (code == 0)                                                                             \
            tell;                                                                                  \
        else if (code != HIP_NOT_READY)                                                            \
            interpose_failed(trace, #name, (int32_t)code);                                         \
        END;                                                                                       \
    }

static inline enum interpose_memory hip_pinned(unsigned int flags)
{
    return flags & HIP_HOST_WRITE_COMBINED ? INTERPOSE_PINNED | INTERPOSE_SLOW_TO_READ
                                           : INTERPOSE_PINNED;
}

#define HIP_ALLOC(name, parameters, arguments, memory_kind, byte_count, address_made, on)          \
    hipError_t name parameters                                                                     \
    {                                                                                              \
        BEGIN(name, parameters, arguments);                                                        \
        struct interpose_call call;                                                                \
        interpose_alloc_begin(trace, &call, #name, memory_kind, byte_count, on);                   \
        interpose_alloc_context(trace, &call, hip_context());                                      \
        hipError_t code = real arguments;                                                          \
        interpose_alloc_end(trace, &call, code ? 0 : hip_number(address_made), (int32_t)code);     \
        END;                                                                                       \
    }

/* free(NULL) is not recorded: it does nothing. */
#define HIP_FREE(name, parameters, arguments, memory_kind, address_freed, byte_count, on)          \
    hipError_t name parameters                                                                     \
    {                                                                                              \
        BEGIN(name, parameters, arguments);                                                        \
        struct interpose_call call = { .open = false };                                            \
        if (address_freed)                                                                         \
            interpose_free_begin(trace, &call, #name, memory_kind, hip_number(address_freed),      \
                                 byte_count, on);                                                  \
        hipError_t code = real arguments;                                                          \
        if (call.open)                                                                             \
            interpose_end(trace, &call, (int32_t)code);                                            \
        else                                                                                       \
            interpose_failed(trace, #name, (int32_t)code);                                         \
        END;                                                                                       \
    }

#define HIP_COPY(name, parameters, arguments, request)                                             \
    HIP_TOLD(name, parameters, arguments, struct interpose_copy reported = request;                \
             interpose_copy_begin(trace, &call, #name, &reported))
#define HIP_FILL(name, parameters, arguments, request)                                             \
    HIP_TOLD(name, parameters, arguments, struct interpose_fill reported = request;                \
             interpose_fill_begin(trace, &call, #name, &reported))
#define HIP_LAUNCH(name, parameters, arguments, ...)                                               \
    HIP_TOLD(name, parameters, arguments, struct hip_launch reported = __VA_ARGS__;                \
             hip_launch_begin(trace, &call, #name, &reported))
#define HIP_SYNC(name, parameters, arguments, on)                                                  \
    HIP_TOLD(name, parameters, arguments, interpose_sync_begin(trace, &call, #name, on))
#define HIP_RECORD(name, parameters, arguments, mark, on)                                          \
    HIP_TOLD(name, parameters, arguments,                                                          \
             interpose_record_begin(trace, &call, #name, hip_number(mark), on))
#define HIP_WAIT(name, parameters, arguments, mark, on)                                            \
    HIP_TOLD(name, parameters, arguments,                                                          \
             interpose_wait_begin(trace, &call, #name, hip_number(mark), on))

#define HIP_QUERY(name, parameters, arguments, mark, on)                                           \
    HIP_TOLD_AFTER(name, parameters, arguments,                                                    \
                   interpose_query_done(trace, #name, hip_number(mark), on))
#define HIP_CREATED(name, parameters, arguments, made, is_blocking)                                \
    HIP_TOLD_AFTER(name, parameters, arguments,                                                    \
                   interpose_stream_created(trace, #name, ON(made), is_blocking))
#define HIP_HIDDEN(name, parameters, arguments, on)                                                \
    HIP_TOLD_AFTER(name, parameters, arguments, interpose_hidden_order(trace, #name, on))
#define HIP_GIVEN(name, parameters, arguments, to_process)                                         \
    HIP_TOLD_AFTER(name, parameters, arguments, interpose_may_tell(trace, to_process))
#define HIP_CHANGED(name, parameters, arguments, changed)                                          \
    HIP_TOLD_AFTER(name, parameters, arguments, interpose_graph_changed(trace, hip_number(changed)))
#define HIP_INSTANTIATE(name, parameters, arguments, source, made)                                 \
    HIP_TOLD_AFTER(name, parameters, arguments,                                                    \
                   interpose_graph_instantiated(trace, hip_number(source), hip_number(made)))
#define HIP_OTHER(name, parameters, arguments) HIP_TOLD_AFTER(name, parameters, arguments, (void)0)
#define HIP_BY_HAND(name, parameters)

#include "interpose/hip/calls.def"
