/* gpu_fault.c - what the kernels left on the crumb page, and what becomes of a fault.
 *
 * After a fault the device answers nothing more; what is known is on the host already: the crumbs,
 * and the names and scopes of the commands each stream was given. The fault is reported with what
 * was seen: that it happened, its address and how that is known. Which launch did it is for the
 * analysis to find out (analyze/suspects.c). */
#include "device/gpu/gpu_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gpu_enter(struct gpu_device *gpu)
{
    /* A code here comes back at the call that follows, which is checked. */
    gpu->runtime.enter(gpu->runtime.self);
}

/* ---- Crumbs --------------------------------------------------------------------------------- */

int gpu_crumbs_create(struct gpu_device *gpu, struct crumb_page *callers)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    int code = 1;
    if (callers)
        code = runtime->pin(runtime->self, callers, sizeof(*callers), &gpu->page_address);
    gpu->page_is_callers = code == 0;
    gpu->page = callers;
    if (code) {
        /* Not every mapping of a file can be pinned. */
        void *memory = NULL;
        code = runtime->pinned_create(runtime->self, sizeof(*gpu->page), &memory,
                                      &gpu->page_address);
        gpu->page = memory;
        if (code)
            return code;
        memset(gpu->page, 0, sizeof(*gpu->page));
    }
    code = runtime->memory_create(runtime->self, sizeof(uint64_t), &gpu->trap_counter);
    if (!code)
        code = runtime->fill(runtime->self, gpu->trap_counter, 0, sizeof(uint64_t),
                             gpu->internal_stream);
    if (!code)
        code = runtime->stream_sync(runtime->self, gpu->internal_stream);
    return code;
}

void gpu_crumbs_destroy(struct gpu_device *gpu)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    if (gpu->trap_counter)
        runtime->memory_destroy(runtime->self, gpu->trap_counter);
    if (gpu->page && gpu->page_is_callers)
        runtime->unpin(runtime->self, gpu->page);
    else if (gpu->page)
        runtime->pinned_destroy(runtime->self, gpu->page);
    gpu->page = NULL;
}

void gpu_show_crumbs(struct gpu_device *gpu)
{
    struct crumb_page *shown = gpu->device.crumbs;
    if (gpu->page == shown)
        return;
    pthread_mutex_lock(&gpu->lock); /* an older look must not come after a newer one */
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++) {
        const struct crumb_stream *from = &gpu->page->streams[i];
        struct crumb_stream *to = &shown->streams[i];
        __atomic_store_n(&to->node, __atomic_load_n(&from->node, __ATOMIC_ACQUIRE),
                         __ATOMIC_RELEASE);
        crumb_enter(to, crumb_entered(from));
        crumb_finish(to, crumb_finished(from));
    }
    struct crumb_trap trap;
    for (uint64_t place = shown->trap_count; crumb_trap_get(gpu->page, place, &trap); place++)
        crumb_trap_add(shown, trap.launch_id, trap.operand, trap.index, trap.bound);
    pthread_mutex_unlock(&gpu->lock);
}

void gpu_stream_finished(struct gpu_device *gpu, struct gpu_stream *stream, uint64_t last_id)
{
    struct crumb_stream *crumbs = &gpu->page->streams[stream->index];
    if (last_id > crumb_finished(crumbs))
        crumb_finish(crumbs, last_id);
}

/* ---- Faults --------------------------------------------------------------------------------- */

/* The address: of the runtime, or else of the kernel's log. note: how it is known, or why not. */
static void find_address(struct gpu_device *gpu, struct device_fault *fault, char *note,
                         size_t note_bytes)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    struct gpu_log_fault logged;
    char reason[64];
    fault->note = note;
    if (runtime->fault_find(runtime->self, &fault->address, reason, sizeof(reason))) {
        fault->address_known = EVENT_ADDRESS_RUNTIME;
        snprintf(note, note_bytes, "of the page, reported by the runtime: %s", reason);
    } else if (gpu_log_find(&gpu->log, &logged, note, note_bytes)) {
        fault->address_known = EVENT_ADDRESS_KERNEL_LOG;
        fault->address = logged.address;
        fault->by_copy = logged.is_copy;
        snprintf(note, note_bytes, "of the page, by the kernel log%s%s%s%s",
                 logged.access == GPU_LOG_WRITE  ? ": a write"
                 : logged.access == GPU_LOG_READ ? ": a read"
                                                 : "",
                 logged.engine[0] ? " of engine " : "", logged.engine,
                 logged.is_copy ? ", a copy" : "");
    }
}

/* code: of the runtime. */
static void report(struct gpu_device *gpu, int code)
{
    char note[160], running[512];
    struct device_fault fault = { .running = running };
    gpu_describe_running(gpu, running, sizeof(running));
    find_address(gpu, &fault, note, sizeof(note));
    fault.code = code;
    fault.code_name = gpu->runtime.error_name(gpu->runtime.self, code);
    device_report_fault(&gpu->device, &fault);
}

/* A failing call may be the first to meet the fault of an earlier kernel, so all streams are
 * checked before the call is blamed. Returns the code of the fault, or 0. */
static int pending_fault(struct gpu_device *gpu)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    void *handles[CRUMB_STREAM_LIMIT];
    uint32_t count = 0;
    pthread_mutex_lock(&gpu->lock);
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++)
        if (gpu->streams[i])
            handles[count++] = gpu->streams[i]->handle;
    pthread_mutex_unlock(&gpu->lock);
    for (uint32_t i = 0; i < count; i++) {
        int code = runtime->stream_sync(runtime->self, handles[i]);
        if (runtime->is_fault(code))
            return code;
    }
    return 0;
}

/* Reports the fault, unless an earlier call has: from then on the device is lost. */
static void lose_device(struct gpu_device *gpu, int fault)
{
    if (gpu->page)
        gpu_show_crumbs(gpu);
    if (!device_is_lost(&gpu->device))
        report(gpu, fault);
}

bool gpu_find_fault(struct gpu_device *gpu)
{
    int fault = pending_fault(gpu);
    if (fault)
        lose_device(gpu, fault);
    return fault != 0;
}

enum status gpu_failed(struct gpu_device *gpu, int code, const char *what, struct error *err)
{
    bool no_memory = gpu->runtime.is_no_memory(code);
    int fault = gpu->runtime.is_fault(code) ? code : no_memory ? 0 : pending_fault(gpu);
    if (fault) {
        lose_device(gpu, fault);
        return device_set_lost(&gpu->device, what, err);
    }
    enum status status = no_memory ? STATUS_NO_MEMORY : STATUS_UNSUPPORTED;
    error_set_at(err, status, __FILE__, __LINE__, "%s failed: %s (%s error %d)", what,
                 gpu->runtime.error_name(gpu->runtime.self, code), gpu->runtime.title, code);
    err->runtime_code = code;
    return status;
}
