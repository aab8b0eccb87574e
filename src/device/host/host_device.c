/* host_device.c - the CPU's method table, and what it says of itself. */
#define _DEFAULT_SOURCE
#include "device/host/host.h"

#include "base/parallel.h"
#include "base/text.h"
#include "device/host/host_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- Staging -------------------------------------------------------------------------------- */

static enum status create_staging(struct device *device, uint64_t bytes, void **ret_staging,
                                  struct error *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t room = (size_t)((bytes + page - 1) / page * page);
    void *memory = aligned_alloc(page, room);
    if (!memory)
        return error_set(err, STATUS_NO_MEMORY, "no memory for a staging slot");
    /* Pinned means: never paged out. Where the limit does not allow it, it works all the same. */
    int locked = device->options.staging == DEVICE_STAGING_PINNED ? mlock(memory, room) : 0;
    (void)locked;
    *ret_staging = memory;
    return STATUS_OK;
}

static void destroy_staging(struct device *device, void *staging, uint64_t bytes)
{
    if (device->options.staging == DEVICE_STAGING_PINNED)
        munlock(staging, (size_t)bytes);
    free(staging);
}

/* Host kernels are functions of this program: there is nothing to load. */
static enum status load_module(struct device *device, const struct device_module *module,
                               uint32_t index, struct error *err)
{
    (void)device;
    (void)index;
    if (!module->host)
        return error_set(err, STATUS_UNSUPPORTED,
                         "kernels: expected those of the host, found those of a GPU");
    return STATUS_OK;
}

/* ---- The table ------------------------------------------------------------------------------ */

static void close_device(struct device *device)
{
    struct host_device *host = host_of(device);
    host_pool_destroy(host->pool);
    host_quarantine_release(&host->quarantine);
    pthread_mutex_destroy(&host->import_lock);
    free(host);
}

/* The processor's own check of an address is the access itself. */
static void ask_nobody(struct device *device, uint64_t address, uint64_t bytes,
                       struct device_pointer_facts *ret_facts)
{
    (void)device;
    (void)address;
    (void)bytes;
    *ret_facts = (struct device_pointer_facts){ .asked = false };
}

/* Host memory is cheap to allocate. */
static void reserve_nothing(struct device *device, uint64_t bytes)
{
    (void)device;
    (void)bytes;
}

/* Streams write the page itself. */
static void show_crumbs(struct device *device)
{
    (void)device;
}

static const struct device_methods host_methods = {
    .kind = "host",
    .close = close_device,
    .module_load = load_module,
    .memory_reserve = reserve_nothing,
    .memory_create = host_memory_create,
    .memory_import = host_memory_import,
    .memory_destroy = host_memory_destroy,
    .memory_damage = host_memory_damage,
    .memory_ask = ask_nobody,
    .crumbs_show = show_crumbs,
    .staging_create = create_staging,
    .staging_destroy = destroy_staging,
    .stream_create = host_stream_create,
    .stream_destroy = host_stream_destroy,
    .stream_sync = host_stream_sync,
    .stream_query = host_stream_query,
    .submit = host_stream_submit,
    .mark_create = host_mark_create,
    .mark_destroy = host_mark_destroy,
    .mark_record = host_mark_record,
    .mark_wait = host_mark_wait,
    .mark_sync = host_mark_sync,
    .mark_passed = host_mark_passed,
    .graph_create = host_graph_create,
    .graph_replay = host_graph_replay,
    .graph_destroy = host_graph_destroy,
};

/* ---- What it is ----------------------------------------------------------------------------- */

/* The processor's own name for itself, from the kernel; "CPU" where there is none. */
static void read_processor_name(char *name, size_t name_bytes)
{
    snprintf(name, name_bytes, "CPU");
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return;
    char line[256];
    while (fgets(line, sizeof(line), file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || !colon)
            continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(name, name_bytes, "%s", colon + 1 + (colon[1] == ' '));
        break;
    }
    fclose(file);
}

static void fill_info(struct device_info *info, uint32_t thread_count, bool guards)
{
    struct utsname system;
    char processor[96];
    read_processor_name(processor, sizeof(processor));
    snprintf(info->kind, sizeof(info->kind), "host");
    snprintf(info->name, sizeof(info->name), "%s, %u %s", processor, thread_count,
             text_plural(thread_count, "thread", "threads"));
    if (uname(&system) == 0)
        snprintf(info->driver, sizeof(info->driver), "%.20s %.40s", system.sysname, system.release);
    info->memory_bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    info->alignment = 64;
    info->guards_fault = guards;
}

enum status host_device_open(const struct device_options *options, struct device **ret_device,
                             struct error *err)
{
    struct host_device *host = calloc(1, sizeof(*host));
    if (!host)
        return error_set(err, STATUS_NO_MEMORY, "no memory for the host device");
    uint32_t threads = options->thread_count ? options->thread_count : parallel_processor_count();
    fault_install();
    host->device.methods = &host_methods;
    fill_info(&host->device.info, threads, options->guards);
    host_quarantine_init(&host->quarantine, options->quarantine_bytes);
    pthread_mutex_init(&host->import_lock, NULL);
    enum status status = host_pool_create(threads, &host->pool, err);
    if (!status)
        status = device_init(&host->device, options, err);
    if (!status)
        crumb_set_order(host->device.crumbs, CRUMB_ORDER_EXACT);
    if (status)
        close_device(&host->device);
    else
        *ret_device = &host->device;
    return status;
}
