/* interpose_copy_behaviour_test.c - every row of the table of copies, memsets and frees, as calls
 * of a program: the event is marked as the table says. What the table must say, where the vendors'
 * documentation is plain, stands here a second time. */
#include "test.h"

#include "event/flight.h"
#include "interpose/copy_behaviour.h"
#include "temp_folder.h"

#include <string.h>

enum { BYTES = 4096, WAITING = EVENT_SYNCHRONOUS | EVENT_STAGED | EVENT_MAY_WAIT };

static bool never_fatal(int32_t code)
{
    (void)code;
    return false;
}

static int32_t nothing_to_wait_for(void)
{
    return 0;
}

/* One place of memory for each kind, as source and as target; pageable memory is never reported to
 * the recording. Pinned memory is read, so it must exist. */
static unsigned char memory_there[COPY_MEMORY_COUNT][2][BYTES];

static uint64_t place(enum copy_memory memory, bool source)
{
    return (uint64_t)(uintptr_t)memory_there[memory][source];
}

static const enum interpose_memory made_as[COPY_MEMORY_COUNT] = {
    [COPY_PINNED] = INTERPOSE_PINNED,
    [COPY_REGISTERED] = INTERPOSE_REGISTERED,
    [COPY_MANAGED] = INTERPOSE_MANAGED,
    [COPY_DEVICE] = INTERPOSE_DEVICE,
};

static struct interpose *open_with(struct temp_folder *folder, enum interpose_runtime runtime)
{
    static struct interpose_backend backends[INTERPOSE_RUNTIME_COUNT];
    backends[runtime] = (struct interpose_backend){ "test", runtime, never_fatal,
                                                    nothing_to_wait_for, NULL };
    temp_folder_init(folder);
    struct interpose *trace = interpose_open(&backends[runtime], folder->path, "test", 4096);
    assert_non_null(trace);
    for (int memory = COPY_PINNED; memory < COPY_MEMORY_COUNT; memory++)
        for (int source = 0; source < 2; source++) {
            struct interpose_call call;
            interpose_alloc_begin(trace, &call, "alloc", made_as[memory], BYTES, NULL);
            interpose_alloc_end(trace, &call, place((enum copy_memory)memory, source), 0);
        }
    return trace;
}

static uint16_t flags_of(enum copy_behaviour behaviour)
{
    return behaviour == COPY_WAITS    ? EVENT_SYNCHRONOUS
           : behaviour == COPY_STAGED ? EVENT_STAGED
           : behaviour == COPY_OPEN   ? EVENT_MAY_WAIT
                                      : 0;
}

/* The event stays in the call when it is over. */
static uint16_t copy_flags(struct interpose *trace, enum interpose_direction direction,
                           enum copy_form form, enum copy_memory source, enum copy_memory target)
{
    /* The legacy stream must not order: what counts is the call. */
    static const struct interpose_stream stream = { 0, 0x100 };
    struct interpose_call call;
    struct interpose_copy copy = { .direction = direction,
                                   .source = place(source, true),
                                   .target = place(target, false),
                                   .bytes = 256,
                                   .async = form == COPY_ASYNC,
                                   .stream = form == COPY_ASYNC ? &stream : NULL };
    interpose_copy_begin(trace, &call, "copy", &copy);
    interpose_end(trace, &call, 0);
    return call.event.flags & WAITING;
}

static bool is_host(enum copy_memory memory)
{
    return memory == COPY_PAGEABLE || memory == COPY_PINNED || memory == COPY_REGISTERED;
}

static enum interpose_direction direction_of(enum copy_memory source, enum copy_memory target)
{
    return is_host(source) && is_host(target) ? INTERPOSE_HOST
           : is_host(source)                  ? INTERPOSE_TO_DEVICE
           : is_host(target)                  ? INTERPOSE_TO_HOST
                                              : INTERPOSE_WITHIN;
}

static void test_copies(void **state)
{
    (void)state;
    for (int runtime = 0; runtime < INTERPOSE_RUNTIME_COUNT; runtime++) {
        struct temp_folder folder;
        struct interpose *trace = open_with(&folder, (enum interpose_runtime)runtime);
        for (int form = 0; form < COPY_FORM_COUNT; form++)
            for (int source = 0; source < COPY_MEMORY_COUNT; source++)
                for (int target = 0; target < COPY_MEMORY_COUNT; target++) {
                    enum copy_memory from = (enum copy_memory)source;
                    enum copy_memory to = (enum copy_memory)target;
                    enum copy_behaviour reported = copy_behaviour_of(
                        (enum interpose_runtime)runtime, (enum copy_form)form, from, to);
                    if (copy_flags(trace, direction_of(from, to), (enum copy_form)form, from, to) !=
                        flags_of(reported))
                        fail_msg("runtime %d, form %d, %s to %s: expected %s", runtime, form,
                                 copy_memory_name(from), copy_memory_name(to),
                                 copy_behaviour_name(reported));
                }
        interpose_close(trace);
        temp_folder_release(&folder);
    }
}

/* cudaMemcpyDefault: what is not known may be pageable memory or a module's. */
static void test_default_direction(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct interpose *trace = open_with(&folder, INTERPOSE_CUDA);
    static const struct {
        enum copy_form form;
        enum copy_memory source, target;
        uint16_t flags;
    } rows[] = {
        { COPY_SYNC, COPY_REGISTERED, COPY_REGISTERED, EVENT_SYNCHRONOUS },
        { COPY_SYNC, COPY_REGISTERED, COPY_PAGEABLE, EVENT_SYNCHRONOUS },
        { COPY_SYNC, COPY_PAGEABLE, COPY_REGISTERED, EVENT_SYNCHRONOUS },
        { COPY_SYNC, COPY_PINNED, COPY_DEVICE, EVENT_SYNCHRONOUS },
        { COPY_SYNC, COPY_DEVICE, COPY_PINNED, EVENT_SYNCHRONOUS },
        { COPY_SYNC, COPY_DEVICE, COPY_DEVICE, 0 },
        { COPY_SYNC, COPY_PAGEABLE, COPY_DEVICE,
          EVENT_MAY_WAIT }, /* staged, or within the device */
        { COPY_SYNC, COPY_PAGEABLE, COPY_PAGEABLE, EVENT_MAY_WAIT },
        { COPY_ASYNC, COPY_PINNED, COPY_DEVICE, 0 },
        { COPY_ASYNC, COPY_REGISTERED, COPY_PINNED, EVENT_SYNCHRONOUS },
        { COPY_ASYNC, COPY_REGISTERED, COPY_PAGEABLE, EVENT_MAY_WAIT },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (copy_flags(trace, INTERPOSE_ANY, rows[i].form, rows[i].source, rows[i].target) !=
            rows[i].flags)
            fail_msg("row %zu: %s to %s", i, copy_memory_name(rows[i].source),
                     copy_memory_name(rows[i].target));
    interpose_close(trace);
    temp_folder_release(&folder);
}

static void test_memsets(void **state)
{
    (void)state;
    static const char *const names[COPY_FORM_COUNT] = { "cuMemsetD8", "cuMemsetD8Async" };
    for (int runtime = 0; runtime < INTERPOSE_RUNTIME_COUNT; runtime++) {
        struct temp_folder folder;
        struct interpose *trace = open_with(&folder, (enum interpose_runtime)runtime);
        for (int form = 0; form < COPY_FORM_COUNT; form++)
            for (int memory = COPY_PINNED; memory < COPY_MEMORY_COUNT; memory++) {
                struct interpose_call call;
                struct interpose_fill fill = { .target = place((enum copy_memory)memory, false),
                                               .bytes = 64 };
                interpose_fill_begin(trace, &call, names[form], &fill);
                interpose_end(trace, &call, 0);
                assert_int_equal(
                    call.event.flags & WAITING,
                    flags_of(memset_behaviour_of((enum interpose_runtime)runtime,
                                                 (enum copy_form)form, (enum copy_memory)memory)));
            }
        interpose_close(trace);
        temp_folder_release(&folder);
    }
}

static void test_frees(void **state)
{
    (void)state;
    static const struct interpose_stream stream = { 0, 0x100 };
    for (int runtime = 0; runtime < INTERPOSE_RUNTIME_COUNT; runtime++) {
        struct temp_folder folder;
        struct interpose *trace = open_with(&folder, (enum interpose_runtime)runtime);
        for (int memory = 0; memory < INTERPOSE_MEMORY_COUNT; memory++) {
            const uint64_t address = UINT64_C(0x600000000000);
            struct interpose_call call;
            const struct interpose_stream *on = memory == INTERPOSE_POOL ? &stream : NULL;
            interpose_alloc_begin(trace, &call, "alloc", (enum interpose_memory)memory, BYTES, on);
            interpose_alloc_end(trace, &call, address, 0);
            interpose_free_begin(trace, &call, "free", (enum interpose_memory)memory, address, 0,
                                 NULL);
            interpose_end(trace, &call, 0);
            assert_int_equal(call.event.flags & WAITING,
                             flags_of(free_behaviour_of((enum interpose_runtime)runtime,
                                                        (enum interpose_memory)memory)));
        }
        interpose_close(trace);
        temp_folder_release(&folder);
    }
}

/* A copy that is recorded into a graph is not waited for. */
static void test_captured(void **state)
{
    (void)state;
    struct temp_folder folder;
    struct interpose *trace = open_with(&folder, INTERPOSE_CUDA);
    struct interpose_call call;
    struct interpose_copy copy = { .direction = INTERPOSE_TO_HOST,
                                   .source = place(COPY_DEVICE, true),
                                   .target = place(COPY_PINNED, false),
                                   .bytes = 256,
                                   .graph = 7 };
    interpose_copy_begin(trace, &call, "copy", &copy);
    interpose_end(trace, &call, 0);
    assert_int_equal(call.event.flags & WAITING, 0);
    interpose_close(trace);
    temp_folder_release(&folder);
}

/* Where the documentation is plain: a slip in the table must not pass unseen. */
static void test_what_is_documented(void **state)
{
    (void)state;
    static const struct {
        enum interpose_runtime runtime;
        enum copy_form form;
        enum copy_memory source, target;
        enum copy_behaviour behaviour;
    } rows[] = {
        { INTERPOSE_CUDA, COPY_SYNC, COPY_PAGEABLE, COPY_DEVICE, COPY_STAGED },
        { INTERPOSE_CUDA, COPY_SYNC, COPY_PINNED, COPY_DEVICE, COPY_WAITS },
        { INTERPOSE_CUDA, COPY_SYNC, COPY_DEVICE, COPY_PAGEABLE, COPY_WAITS },
        { INTERPOSE_CUDA, COPY_SYNC, COPY_DEVICE, COPY_PINNED, COPY_WAITS },
        { INTERPOSE_CUDA, COPY_SYNC, COPY_DEVICE, COPY_DEVICE, COPY_RETURNS },
        { INTERPOSE_CUDA, COPY_ASYNC, COPY_PINNED, COPY_DEVICE, COPY_RETURNS },
        { INTERPOSE_CUDA, COPY_ASYNC, COPY_DEVICE, COPY_PINNED, COPY_RETURNS },
        { INTERPOSE_CUDA, COPY_ASYNC, COPY_DEVICE, COPY_DEVICE, COPY_RETURNS },
        { INTERPOSE_CUDA, COPY_ASYNC, COPY_PAGEABLE, COPY_DEVICE, COPY_OPEN },
        { INTERPOSE_CUDA, COPY_ASYNC, COPY_DEVICE, COPY_PAGEABLE, COPY_OPEN },
        { INTERPOSE_HIP, COPY_ASYNC, COPY_PINNED, COPY_DEVICE, COPY_RETURNS },
        { INTERPOSE_HIP, COPY_ASYNC, COPY_DEVICE, COPY_PAGEABLE, COPY_WAITS },
        { INTERPOSE_HIP, COPY_SYNC, COPY_PINNED, COPY_DEVICE, COPY_WAITS },
        { INTERPOSE_HIP, COPY_SYNC, COPY_DEVICE, COPY_PINNED, COPY_WAITS },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        assert_int_equal(
            copy_behaviour_of(rows[i].runtime, rows[i].form, rows[i].source, rows[i].target),
            rows[i].behaviour);
    /* From any host memory to any host memory, CUDA waits in both forms. */
    static const enum copy_memory host[] = { COPY_PAGEABLE, COPY_PINNED, COPY_REGISTERED };
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int form = 0; form < COPY_FORM_COUNT; form++)
                assert_int_equal(
                    copy_behaviour_of(INTERPOSE_CUDA, (enum copy_form)form, host[i], host[j]),
                    COPY_WAITS);
    assert_int_equal(memset_behaviour_of(INTERPOSE_CUDA, COPY_SYNC, COPY_DEVICE), COPY_RETURNS);
    assert_int_equal(memset_behaviour_of(INTERPOSE_CUDA, COPY_SYNC, COPY_PINNED), COPY_WAITS);
    assert_int_equal(free_behaviour_of(INTERPOSE_CUDA, INTERPOSE_POOL), COPY_RETURNS);
    assert_int_equal(free_behaviour_of(INTERPOSE_HIP, INTERPOSE_PINNED), COPY_WAITS);
    for (int memory = COPY_PINNED; memory < COPY_MEMORY_COUNT; memory++)
        assert_int_equal(memset_behaviour_of(INTERPOSE_CUDA, COPY_ASYNC, (enum copy_memory)memory),
                         COPY_RETURNS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),   cmocka_unit_test(test_default_direction),
        cmocka_unit_test(test_memsets),  cmocka_unit_test(test_frees),
        cmocka_unit_test(test_captured), cmocka_unit_test(test_what_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
