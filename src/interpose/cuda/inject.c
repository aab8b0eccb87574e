/* inject.c - loaded by the CUDA driver when the program initialises it (CUDA_INJECTION64_PATH):
 * finds CUPTI, subscribes to the calls in calls.def, and passes them on.
 *
 * A static CUDA runtime works too, because the driver's calls are recorded. Without CUPTI the
 * program runs as if nothing were there, and a note next to the recordings says why. */
#include "interpose/cuda/cuda.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* Calls of one thread within each other; the driver does not go deeper. */
#define DEPTH_LIMIT 6u

static struct interpose *trace;

/* ---- Callbacks ------------------------------------------------------------------------------ */

static _Thread_local struct cuda_call open_calls[DEPTH_LIMIT];
static _Thread_local unsigned open_count;
/* Calls that are made here are none of the program's. */
static _Thread_local bool inside;

static void take_data(struct cuda_call *call, const struct cupti_callback *data)
{
    call->arguments = data->parameters;
    call->kernel = data->symbol_name;
    call->context = data->context;
    call->context_uid = data->context_uid;
}

static void enter(const struct cuda_entry *entry, const struct cupti_callback *data)
{
    unsigned depth = open_count++;
    if (depth >= DEPTH_LIMIT)
        return;
    struct cuda_call *call = &open_calls[depth];
    call->trace = trace;
    call->entry = entry;
    call->code = 0;
    call->call.open = false;
    take_data(call, data);
    entry->begin(call);
}

static void leave(const struct cuda_entry *entry, const struct cupti_callback *data)
{
    if (open_count == 0)
        return; /* the call began before the callbacks did */
    unsigned depth = --open_count;
    if (depth >= DEPTH_LIMIT || open_calls[depth].entry != entry)
        return;
    struct cuda_call *call = &open_calls[depth];
    take_data(call, data);
    call->code = data->return_value ? *(const int32_t *)data->return_value : 0;
    entry->end(call);
}

static void called(void *context, int32_t domain, uint32_t id, const void *data)
{
    (void)context;
    const struct cuda_entry *entry = domain == CUPTI_DOMAIN_DRIVER ? cuda_entry(id) : NULL;
    const struct cupti_callback *callback = data;
    /* A call without arguments may have none to show. */
    if (!entry || inside || (!callback->parameters && entry->begin != cuda_begin_sync_all))
        return;
    inside = true;
    if (callback->site == CUPTI_SITE_ENTER)
        enter(entry, callback);
    else
        leave(entry, callback);
    inside = false;
}

/* ---- Starting ------------------------------------------------------------------------------- */

static void stop(void)
{
    interpose_stop(trace);
}

/* 0, or CUPTI's code. */
static int32_t subscribe(void *cupti)
{
    int32_t (*begin)(void **subscriber, cupti_function function, void *context);
    int32_t (*enable)(uint32_t on, void *subscriber, int32_t domain, uint32_t id);
    void *subscriber;
    *(void **)&begin = dlsym(cupti, "cuptiSubscribe");
    *(void **)&enable = dlsym(cupti, "cuptiEnableCallback");
    int32_t code = begin(&subscriber, called, NULL);
    if (code)
        return code;
    /* A number that this CUPTI does not know is a call this driver does not have. */
    for (uint32_t id = 0; id < CUDA_CALL_LIMIT; id++)
        if (cuda_entry(id))
            enable(1, subscriber, CUPTI_DOMAIN_DRIVER, id);
    return 0;
}

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Called once by the driver, in the program's first call of it. 1: all is well, which it is for the
 * program whatever comes of this. */
int InitializeInjection(void)
{
    const char *slug, *detail;
    char refused[32];
    if (trace || !getenv(INTERPOSE_VARIABLE_FOLDER))
        return 1;
    void *cupti = cuda_open_cupti(&slug, &detail);
    if (!cupti) {
        cuda_note(slug, detail);
        return 1;
    }
    cuda_open_driver(dlsym);
    trace = cuda_start_recording(NULL);
    if (!trace)
        return 1;
    int32_t code = subscribe(cupti);
    if (code) {
        snprintf(refused, sizeof(refused), "CUPTI %d", (int)code);
        cuda_note(INTERPOSE_NOTE_CUPTI_TAKEN, refused);
        return 1;
    }
    atexit(stop);
    return 1;
}
