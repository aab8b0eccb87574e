/* all.c - see all.h. */
#include "device/all/all.h"

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

/* Backends that the design has and this build has not. */
static void list_unbuilt(struct all_entry *entry, const char *name)
{
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    snprintf(entry->reason, sizeof(entry->reason), "not tried: this build has no %s backend", name);
}

size_t all_list(struct all_entry *ret_entries)
{
    memset(ret_entries, 0, 3 * sizeof(*ret_entries));
    list_host(&ret_entries[0]);
    list_unbuilt(&ret_entries[1], "cuda");
    list_unbuilt(&ret_entries[2], "hip");
    return 3;
}

/* "cuda", or "cuda:3". */
static bool is_kind(const char *name, const char *kind)
{
    size_t length = strlen(kind);
    if (strncmp(name, kind, length) != 0)
        return false;
    if (name[length] == '\0')
        return true;
    if (name[length] != ':' || name[length + 1] == '\0')
        return false;
    return strspn(name + length + 1, "0123456789") == strlen(name + length + 1);
}

enum status all_open(const char *name, const struct device_options *options,
                     struct device **ret_device, struct error *err)
{
    if (strcmp(name, "host") == 0 || strcmp(name, "auto") == 0)
        return host_device_open(options, ret_device, err);
    if (!is_kind(name, "cuda") && !is_kind(name, "hip"))
        return error_set(err, STATUS_USAGE,
                         "device: expected host, cuda:N, hip:N or auto, found '%s'", name);
    return error_set(err, STATUS_NOT_FOUND,
                     "device %s: not there: this build has no such backend; use host (see greta "
                     "devices)",
                     name);
}
