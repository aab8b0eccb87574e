/* device_choice.c - see device_choice.h. */
#include "cli/device_choice.h"

#include "base/parallel.h"
#include "device/options.h"

#include <string.h>
#include <strings.h>

static bool all_digits(const char *text)
{
    return text[0] && strspn(text, "0123456789") == strlen(text);
}

enum status cli_device_name(const char *name, const char *gpu_layers, char *ret_name,
                            size_t ret_name_bytes, struct error *err)
{
    static const struct {
        const char *theirs, *ours;
    } kinds[] = { { "CUDA", "cuda" }, { "ROCm", "hip" } };
    if (gpu_layers && !all_digits(gpu_layers) && strcmp(gpu_layers, "auto") != 0 &&
        strcmp(gpu_layers, "all") != 0 && strcmp(gpu_layers, "-1") != 0)
        return error_set(err, STATUS_USAGE,
                         "--n-gpu-layers: expected a number, auto or all, found '%s'", gpu_layers);
    bool none = gpu_layers && all_digits(gpu_layers) &&
                strspn(gpu_layers, "0") == strlen(gpu_layers);
    if (strcasecmp(name, "CPU") == 0 || (none && strcmp(name, "auto") == 0)) {
        snprintf(ret_name, ret_name_bytes, "host");
        return STATUS_OK;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        size_t length = strlen(kinds[i].theirs);
        if (strncasecmp(name, kinds[i].theirs, length) == 0 && all_digits(name + length)) {
            snprintf(ret_name, ret_name_bytes, "%s:%s", kinds[i].ours, name + length);
            return STATUS_OK;
        }
    }
    snprintf(ret_name, ret_name_bytes, "%s", name);
    return STATUS_OK;
}

/* A number of layers above 0, or all. */
static bool wants_gpu(const char *gpu_layers)
{
    if (!gpu_layers)
        return false;
    bool number = all_digits(gpu_layers) && strspn(gpu_layers, "0") != strlen(gpu_layers);
    return number || strcmp(gpu_layers, "all") == 0;
}

void cli_warn_no_gpu(const struct cli_invocation *invocation, const char *gpu_layers,
                     const char *asked, const char *resolved)
{
    if (wants_gpu(gpu_layers) && strcmp(asked, "auto") == 0 && strcmp(resolved, "host") == 0)
        cli_warn(invocation,
                 "--n-gpu-layers %s: no GPU was found, the model runs on the host (see "
                 "greta devices)",
                 gpu_layers);
}

enum status cli_check_threads(uint32_t threads, struct error *err)
{
    if (threads <= DEVICE_THREAD_LIMIT)
        return STATUS_OK;
    return error_set(err, STATUS_USAGE,
                     "--threads: expected at most %u (0: one for each of the %u processors here), "
                     "found %u",
                     DEVICE_THREAD_LIMIT, parallel_processor_count(), threads);
}

enum status cli_cache_type(const char *both, const char *keys, const char *values,
                           enum dtype *ret_dtype, struct error *err)
{
    keys = keys ? keys : both;
    values = values ? values : both;
    keys = keys ? keys : values ? values : "f16";
    values = values ? values : keys;
    if (strcasecmp(keys, values) != 0)
        return error_set(err, STATUS_USAGE,
                         "cache: expected one type for keys and values, found %s and %s", keys,
                         values);
    ASSERT(dtype_from_name(keys, ret_dtype)); /* of the option's list */
    return STATUS_OK;
}
