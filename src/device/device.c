/* device.c - opening, closing and asking a device. */
#include "device/device_core.h"

#include "base/copier.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Handles of each kind; a model has some thousand buffers at level guard. */
#define BUFFER_LIMIT 65536u
#define MARK_LIMIT 4096u
#define GRAPH_LIMIT 1024u

/* Number of threads that together fill memory faster than a link empties it. */
#define COPIER_THREADS 15u

#define SLOT_COUNT_DEFAULT 16u
#define SLOT_BYTES_DEFAULT ((uint64_t)1 << 20)

static const char *const d2h_mode_names[] = {
    [DEVICE_D2H_TICKET] = "ticket",
    [DEVICE_D2H_SYNC] = "sync",
    [DEVICE_D2H_EVENT] = "event",
    [DEVICE_D2H_PLAIN] = "plain",
};
_Static_assert(COUNT_OF(d2h_mode_names) == DEVICE_D2H_COUNT, "every mode has a name");

const char *device_d2h_mode_name(enum device_d2h_mode mode)
{
    ASSERT((unsigned)mode < DEVICE_D2H_COUNT);
    return d2h_mode_names[mode];
}

static enum status create_tables(struct device *device, struct error *err)
{
    TRY(slot_table_init(&device->buffers, sizeof(struct buffer_slot), BUFFER_LIMIT, err));
    TRY(slot_table_init(&device->streams, sizeof(struct stream_slot), CRUMB_STREAM_LIMIT, err));
    TRY(slot_table_init(&device->marks, sizeof(struct mark_slot), MARK_LIMIT, err));
    TRY(slot_table_init(&device->graphs, sizeof(struct graph_slot), GRAPH_LIMIT, err));
    for (uint32_t i = 0; i < CRUMB_STREAM_LIMIT; i++)
        pthread_mutex_init(&((struct stream_slot *)device->streams.slots)[i].lock, NULL);
    return STATUS_OK;
}

static void release_common(struct device *device)
{
    struct stream_slot *streams = device->streams.slots;
    for (uint32_t i = 0; streams && i < CRUMB_STREAM_LIMIT; i++)
        pthread_mutex_destroy(&streams[i].lock);
    slot_table_release(&device->buffers);
    slot_table_release(&device->streams);
    slot_table_release(&device->marks);
    slot_table_release(&device->graphs);
    if (device->owns_crumbs)
        free(device->crumbs);
    copier_destroy(device->copier);
    inspect_destroy(device);
    free(device->ops);
    pthread_mutex_destroy(&device->lock);
    pthread_mutex_destroy(&device->fault_lock);
    pthread_mutex_destroy(&device->serial_lock);
}

enum status device_init(struct device *device, const struct device_options *options,
                        struct error *err)
{
    device->options = *options;
    if (!device->options.event_ids)
        device->options.event_ids = &device->own_event_ids;
    device->process_id = (uint32_t)getpid();
    device->domain = event_error_domain_of(device->info.kind);
    if (!device->options.staging_slot_count)
        device->options.staging_slot_count = SLOT_COUNT_DEFAULT;
    if (!device->options.staging_slot_bytes)
        device->options.staging_slot_bytes = SLOT_BYTES_DEFAULT;
    pthread_mutex_init(&device->lock, NULL);
    pthread_mutex_init(&device->fault_lock, NULL);
    pthread_mutex_init(&device->serial_lock, NULL);
    device->crumbs = options->crumbs;
    device->owns_crumbs = !options->crumbs;
    if (device->owns_crumbs)
        device->crumbs = calloc(1, sizeof(*device->crumbs));
    device->ops = calloc(DEVICE_OP_LIMIT, sizeof(*device->ops));
    enum status status = inspect_create(device, err);
    if (!status && !device->ops)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the table of ops");
    if (!status && !device->crumbs)
        status = error_set(err, STATUS_NO_MEMORY, "no memory for the crumb page");
    if (!status)
        status = create_tables(device, err);
    if (!status)
        status = copier_create(COPIER_THREADS, &device->copier, err);
    if (!status)
        status = staging_create(device, err);
    if (status) {
        release_common(device);
        return status;
    }
    struct call call;
    call_init(&call, device, EVENT_DEVICE_OPEN, DEVICE_HERE);
    event_set_text(call.event.scope.tensor, sizeof(call.event.scope.tensor), device->info.name);
    event_set_text(call.event.op, sizeof(call.event.op), device->info.kind);
    call.event.device.domain = (uint8_t)device->domain;
    call_begin(&call);
    return call_end(&call, STATUS_OK, err);
}

/* Everything still alive, streams first: they may use the rest. */
static void destroy_all(struct device *device)
{
    const struct device_methods *methods = device->methods;
    for (uint32_t i = 1; i < device->streams.used; i++) {
        struct stream_slot *stream = slot_at(&device->streams, i);
        if (!slot_is_alive(&device->streams, i))
            continue;
        methods->stream_destroy(device, stream->impl);
        graph_builder_destroy(stream->builder);
    }
    for (uint32_t i = 1; i < device->graphs.used; i++)
        if (slot_is_alive(&device->graphs, i))
            graph_slot_release(device, slot_at(&device->graphs, i));
    staging_destroy(device);
    for (uint32_t i = 1; i < device->marks.used; i++)
        if (slot_is_alive(&device->marks, i))
            methods->mark_destroy(device, ((struct mark_slot *)slot_at(&device->marks, i))->impl);
    for (uint32_t i = 1; i < device->buffers.used; i++)
        if (slot_is_alive(&device->buffers, i))
            methods->memory_destroy(device,
                                    &((struct buffer_slot *)slot_at(&device->buffers, i))->memory);
}

void device_close(struct device *device)
{
    if (!device)
        return;
    struct call call;
    struct error unused;
    call_init(&call, device, EVENT_DEVICE_CLOSE, DEVICE_HERE);
    call_begin(&call);
    destroy_all(device);
    device_tell_traps(device);
    call_end(&call, STATUS_OK, &unused);
    release_common(device);
    device->methods->close(device);
}

const struct device_info *device_info(const struct device *device)
{
    return &device->info;
}

enum status device_check(struct device *device, struct error *err)
{
    if (!device_is_lost(device)) {
        pthread_mutex_lock(&device->lock);
        enum status refused = device->refused_destroy.status;
        if (refused)
            *err = device->refused_destroy;
        pthread_mutex_unlock(&device->lock);
        return refused;
    }
    return error_set(err, STATUS_LOST, "the device is lost: %s (first fault: %s)",
                     device->lost_words, device->first_fault);
}

void device_keep_refusal(struct device *device, const struct error *err)
{
    pthread_mutex_lock(&device->lock);
    if (!device->refused_destroy.status)
        device->refused_destroy = *err;
    pthread_mutex_unlock(&device->lock);
}

const struct crumb_page *device_show_crumbs(struct device *device)
{
    device->methods->crumbs_show(device);
    return device->crumbs;
}

uint64_t device_used_bytes(const struct device *device)
{
    return __atomic_load_n(&device->used_bytes, __ATOMIC_RELAXED);
}

uint64_t device_peak_bytes(const struct device *device)
{
    return __atomic_load_n(&device->peak_bytes, __ATOMIC_RELAXED);
}

static enum status load_module(struct device *device, struct device_module module,
                               uint64_t kernel_count, struct device_site site, struct error *err)
{
    struct call call;
    call_init(&call, device, EVENT_MODULE_LOAD, site);
    TRY(call_check_lost(&call, "module load", err));
    pthread_mutex_lock(&device->lock);
    size_t index = device->module_count;
    pthread_mutex_unlock(&device->lock);
    if (index == COUNT_OF(device->modules))
        return call_refuse(&call, EVENT_CHECK_HANDLE, EVENT_NO_OPERAND, COUNT_OF(device->modules),
                           index + 1, err, STATUS_LIMIT,
                           "expected at most %zu kernel images, found one more",
                           COUNT_OF(device->modules));
    call.event.module.kernel_count = kernel_count;
    call_begin(&call);
    enum status status = op_table_prepare(device, &module, (uint32_t)index, err);
    if (!status)
        status = device->methods->module_load(device, &module, (uint32_t)index, err);
    if (!status) {
        pthread_mutex_lock(&device->lock);
        device->modules[index] = module;
        device->module_count = index + 1;
        pthread_mutex_unlock(&device->lock);
        op_table_publish(device, &module);
    }
    return call_end(&call, status, err);
}

enum status device_module_load(struct device *device, const struct device_image *image,
                               struct device_site site, struct error *err)
{
    return load_module(device, (struct device_module){ .host = image }, image->count, site, err);
}

enum status device_gpu_module_load(struct device *device, const struct device_gpu_image *image,
                                   struct device_site site, struct error *err)
{
    return load_module(device, (struct device_module){ .gpu = image }, image->count, site, err);
}
