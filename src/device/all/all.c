/* all.c - see all.h. */
#include "device/all/all.h"

#include "device/cuda/cuda.h"
#include "device/hip/hip.h"
#include "device/host/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void list_host(struct all_entry *entry)
{
    struct device_options options = { .staging_slot_count = 1, .staging_slot_bytes = 4096 };
    struct device *device;
    struct error err;
    snprintf(entry->name, sizeof(entry->name), "host");
    if (host_device_open(&options, &device, &err)) {
        snprintf(entry->reason, sizeof(entry->reason), "%.190s", err.text);
        return;
    }
    entry->available = true;
    entry->info = *device_info(device);
    device_close(device);
}

/* ---- GPUs ----------------------------------------------------------------------------------- */

struct backend {
    const char *kind;
    enum status (*count)(uint32_t *ret_count, struct error *err);
    enum status (*open)(uint32_t index, const struct device_options *options,
                        struct device **ret_device, struct error *err);
};

/* In the order in which `auto` looks. */
static const struct backend backends[] = {
    { "cuda", cuda_device_count, cuda_device_open },
    { "hip", hip_device_count, hip_device_open },
};

static void list_device(const struct backend *backend, uint32_t index,
                        const struct device_gpu_image *image, struct all_entry *entry)
{
    struct device_options options = { .staging_slot_count = 1,
                                      .staging_slot_bytes = 4096,
                                      .gpu_image = image };
    struct device *device;
    struct error err;
    snprintf(entry->name, sizeof(entry->name), "%.8s:%u", backend->kind, index % 1000);
    if (backend->open(index, &options, &device, &err)) {
        snprintf(entry->reason, sizeof(entry->reason), "%.190s", err.text);
        return;
    }
    entry->available = true;
    entry->info = *device_info(device);
    device_close(device);
}

static size_t list_backend(const struct backend *backend, const struct device_gpu_image *image,
                           struct all_entry *entries, size_t room)
{
    uint32_t count;
    struct error err;
    if (backend->count(&count, &err)) {
        snprintf(entries[0].name, sizeof(entries[0].name), "%s", backend->kind);
        snprintf(entries[0].reason, sizeof(entries[0].reason), "%.190s", err.text);
        return 1;
    }
    uint32_t index = 0;
    for (; index < count && index < room; index++)
        list_device(backend, index, image, &entries[index]);
    return index;
}

size_t all_list(const struct device_gpu_image *image, struct all_entry *ret_entries)
{
    size_t filled = 1;
    memset(ret_entries, 0, ALL_DEVICE_LIMIT * sizeof(*ret_entries));
    list_host(&ret_entries[0]);
    for (size_t i = 0; i < COUNT_OF(backends) && filled < ALL_DEVICE_LIMIT; i++)
        filled += list_backend(&backends[i], image, ret_entries + filled,
                               ALL_DEVICE_LIMIT - filled);
    return filled;
}

/* "cuda" is cuda:0; false if the name is not of this kind. */
static bool parse_index(const char *name, const char *kind, uint32_t *ret_index)
{
    size_t length = strlen(kind);
    if (strncmp(name, kind, length) != 0)
        return false;
    const char *rest = name + length;
    *ret_index = 0;
    if (*rest == '\0')
        return true;
    if (*rest != ':' || rest[1] == '\0' || strlen(rest) > 5 ||
        strspn(rest + 1, "0123456789") != strlen(rest + 1))
        return false;
    *ret_index = (uint32_t)strtoul(rest + 1, NULL, 10);
    return true;
}

/* The first GPU that opens, else the host. */
static enum status open_best(const struct device_options *options, struct device **ret_device,
                             struct error *err)
{
    struct error unused;
    for (size_t i = 0; i < COUNT_OF(backends); i++)
        if (backends[i].open(0, options, ret_device, &unused) == STATUS_OK)
            return STATUS_OK;
    return host_device_open(options, ret_device, err);
}

void all_resolve(const char *name, const struct device_gpu_image *image,
                 char ret_name[ALL_NAME_BYTES])
{
    struct all_entry entry = { 0 };
    snprintf(ret_name, ALL_NAME_BYTES, "%s", name);
    if (strcmp(name, "auto") != 0)
        return;
    for (size_t i = 0; i < COUNT_OF(backends) && !entry.available; i++)
        list_device(&backends[i], 0, image, &entry);
    snprintf(ret_name, ALL_NAME_BYTES, "%s", entry.available ? entry.name : "host");
}

enum status all_open(const char *name, const struct device_options *options,
                     struct device **ret_device, struct error *err)
{
    if (strcmp(name, "host") == 0)
        return host_device_open(options, ret_device, err);
    if (strcmp(name, "auto") == 0)
        return open_best(options, ret_device, err);
    for (size_t i = 0; i < COUNT_OF(backends); i++) {
        uint32_t index;
        if (!parse_index(name, backends[i].kind, &index))
            continue;
        enum status status = backends[i].open(index, options, ret_device, err);
        return status ? error_wrap(err, "device %s", name) : STATUS_OK;
    }
    return error_set(err, STATUS_USAGE, "device: expected host, cuda:N, hip:N or auto, found '%s'",
                     name);
}
