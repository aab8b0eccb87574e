/* gpu_device.c - the GPU's method table, its staging, opening and closing. */
#define _DEFAULT_SOURCE /* madvise */
#include "device/gpu/gpu_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The default size of a slot: large enough that the fixed cost of a copy is small compared with its
 * time on the link. */
#define SLOT_BYTES ((uint64_t)2 << 20)
/* The default number of slots: two for each of twelve threads that upload weights. They are made at
 * first use. */
#define SLOT_COUNT 24u

/* ---- Staging -------------------------------------------------------------------------------- */

static void *create_pages(uint64_t bytes, size_t page)
{
    return aligned_alloc(page, (size_t)((bytes + page - 1) / page * page));
}

/* The runtimes make pinned memory of small pages, one by one and with a lock that copies want; few
 * large pages that are there already are pinned in a fraction of that time. */
#define LARGE_PAGE ((size_t)2 << 20)

static int create_pinned_pages(struct gpu_device *gpu, uint64_t bytes, void **ret_staging)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint8_t *pages = create_pages(bytes, LARGE_PAGE);
    uint64_t unused;
    if (!pages)
        return -1;
    madvise(pages, (size_t)bytes, MADV_HUGEPAGE); /* where there are none, small ones do */
    for (uint64_t at = 0; at < bytes; at += 4096)
        ((volatile uint8_t *)pages)[at] = 0;
    int code = runtime->pin(runtime->self, pages, bytes, &unused);
    if (code)
        free(pages);
    else
        *ret_staging = pages;
    return code;
}

static int create_pinned(struct gpu_device *gpu, uint64_t bytes, void **ret_staging)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    uint64_t unused;
    if (gpu->staging == GPU_STAGING_UNDECIDED) /* the first slot shows which way works */
        gpu->staging = bytes % LARGE_PAGE == 0 && create_pinned_pages(gpu, bytes, ret_staging) == 0
                           ? GPU_STAGING_OWN_PAGES
                           : GPU_STAGING_RUNTIMES;
    else if (gpu->staging == GPU_STAGING_OWN_PAGES)
        return create_pinned_pages(gpu, bytes, ret_staging);
    return gpu->staging == GPU_STAGING_OWN_PAGES
               ? 0
               : runtime->pinned_create(runtime->self, bytes, ret_staging, &unused);
}

static enum status create_staging(struct device *device, uint64_t bytes, void **ret_staging,
                                  struct error *err)
{
    struct gpu_device *gpu = gpu_of(device);
    gpu_enter(gpu);
    if (device->options.staging == DEVICE_STAGING_PINNED) {
        int code = create_pinned(gpu, bytes, ret_staging);
        if (code)
            return error_set(err, STATUS_NO_MEMORY,
                             "staging: expected pinned memory, found error %d of %s (%s)", code,
                             gpu->runtime.title, gpu->runtime.error_name(gpu->runtime.self, code));
        return STATUS_OK;
    }
    *ret_staging = create_pages(bytes, (size_t)sysconf(_SC_PAGESIZE));
    if (!*ret_staging)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a staging slot");
    return STATUS_OK;
}

static void destroy_staging(struct device *device, void *staging, uint64_t bytes)
{
    struct gpu_device *gpu = gpu_of(device);
    (void)bytes;
    gpu_enter(gpu);
    if (device->options.staging == DEVICE_STAGING_PINNED && gpu->staging == GPU_STAGING_RUNTIMES) {
        gpu->runtime.pinned_destroy(gpu->runtime.self, staging);
        return;
    }
    if (device->options.staging == DEVICE_STAGING_PINNED)
        gpu->runtime.unpin(gpu->runtime.self, staging);
    free(staging);
}

/* ---- The table ------------------------------------------------------------------------------ */

static void close_device(struct device *device)
{
    struct gpu_device *gpu = gpu_of(device);
    const struct gpu_runtime *runtime = &gpu->runtime;
    gpu_enter(gpu);
    gpu_completions_destroy(gpu);
    gpu_quarantine_release(gpu);
    gpu_block_release(gpu);
    gpu_modules_release(gpu);
    gpu_crumbs_destroy(gpu);
    gpu_log_close(&gpu->log);
    if (gpu->internal_stream)
        runtime->stream_destroy(runtime->self, gpu->internal_stream);
    runtime->close(runtime->self);
    pthread_mutex_destroy(&gpu->lock);
    pthread_mutex_destroy(&gpu->inspect_lock);
    free(gpu);
}

static void show_crumbs(struct device *device)
{
    gpu_show_crumbs(gpu_of(device));
}

static const struct device_methods gpu_methods = {
    .kind = "gpu",
    .close = close_device,
    .module_load = gpu_module_load,
    .memory_reserve = gpu_memory_reserve,
    .memory_create = gpu_memory_create,
    .memory_import = gpu_memory_import,
    .memory_destroy = gpu_memory_destroy,
    .memory_damage = gpu_memory_damage,
    .memory_ask = gpu_memory_ask,
    .crumbs_show = show_crumbs,
    .staging_create = create_staging,
    .staging_destroy = destroy_staging,
    .stream_create = gpu_stream_create,
    .stream_destroy = gpu_stream_destroy,
    .stream_sync = gpu_stream_sync,
    .stream_query = gpu_stream_query,
    .submit = gpu_stream_submit,
    .mark_create = gpu_mark_create,
    .mark_destroy = gpu_mark_destroy,
    .mark_record = gpu_mark_record,
    .mark_wait = gpu_mark_wait,
    .mark_sync = gpu_mark_sync,
    .mark_passed = gpu_mark_passed,
    .graph_create = gpu_graph_create,
    .graph_replay = gpu_graph_replay,
    .graph_destroy = gpu_graph_destroy,
};

/* ---- Opening -------------------------------------------------------------------------------- */

static void fill_info(struct gpu_device *gpu)
{
    struct device_info *info = &gpu->device.info;
    snprintf(info->kind, sizeof(info->kind), "%s", gpu->runtime.kind);
    snprintf(info->name, sizeof(info->name), "%s", gpu->facts.name);
    snprintf(info->driver, sizeof(info->driver), "%s", gpu->facts.driver);
    info->memory_bytes = gpu->facts.memory_bytes;
    info->alignment = GPU_ALIGNMENT;
    info->replay_pays = true;
    info->own_memory = true;
    info->is_gpu = true;
}

static int open_parts(struct gpu_device *gpu, const struct device_options *options)
{
    const struct gpu_runtime *runtime = &gpu->runtime;
    int code = runtime->stream_create(runtime->self, &gpu->internal_stream);
    if (!code)
        code = gpu_crumbs_create(gpu, options->crumbs);
    if (!code && options->guards)
        gpu_memory_probe(gpu);
    gpu->device.info.guards_fault = gpu->granularity != 0;
    return code;
}

/* A context that faulted stays unusable: opening the device again in the same process meets the
 * earlier fault. */
enum status gpu_open_failed(const struct gpu_runtime *runtime, const char *name, int code,
                            struct error *err)
{
    const char *error_name = runtime->error_name(runtime->self, code);
    if (runtime->is_fault(code))
        return error_set(err, STATUS_LOST,
                         "%s: expected a device that works, found one that a fault earlier in this "
                         "process has lost (error %d, %s): open it in a new process",
                         name, code, error_name);
    return error_set(err, STATUS_NOT_FOUND, "%s: expected a device that works, found error %d (%s)",
                     name, code, error_name);
}

enum status gpu_device_open(const struct gpu_runtime *take_runtime,
                            const struct device_options *options, struct device **ret_device,
                            struct error *err)
{
    struct gpu_device *gpu = calloc(1, sizeof(*gpu));
    if (!gpu) {
        take_runtime->close(take_runtime->self);
        return error_set(err, STATUS_NO_MEMORY, "no memory for a device");
    }
    gpu->runtime = *take_runtime;
    gpu_log_open(&gpu->log, options->kernel_log);
    gpu->device.methods = &gpu_methods;
    pthread_mutex_init(&gpu->lock, NULL);
    pthread_mutex_init(&gpu->inspect_lock, NULL);
    gpu->runtime.facts(gpu->runtime.self, &gpu->facts);
    fill_info(gpu);
    gpu->device.completions_lag = true;
    enum status status = STATUS_OK;
    int code = gpu->runtime.enter(gpu->runtime.self);
    if (!code && options->gpu_image)
        status = gpu_image_check(gpu, options->gpu_image, err);
    if (!code && !status)
        code = open_parts(gpu, options);
    if (code)
        status = gpu_open_failed(&gpu->runtime, gpu->facts.name, code, err);
    if (!status && options->completions)
        status = gpu_completions_create(gpu, err);
    struct device_options chosen = *options;
    if (!chosen.staging_slot_bytes)
        chosen.staging_slot_bytes = SLOT_BYTES;
    if (!chosen.staging_slot_count) {
        chosen.staging_slot_count = SLOT_COUNT;
        gpu->device.staging_late = true;
    }
    if (!status)
        status = device_init(&gpu->device, &chosen, err);
    if (!status) {
        crumb_set_order(gpu->device.crumbs,
                        gpu->facts.early_start ? CRUMB_ORDER_EARLY : CRUMB_ORDER_NEXT);
        crumb_set_late(gpu->device.crumbs, gpu->page != gpu->device.crumbs);
    }
    if (status)
        close_device(&gpu->device);
    else
        *ret_device = &gpu->device;
    return status;
}
