/* device_choice.h - which device and cache the user means: greta's names, and those of llama.cpp.
 */
#ifndef GRETA_CLI_DEVICE_CHOICE_H
#define GRETA_CLI_DEVICE_CHOICE_H

#include "cli/cli.h"
#include "tensor/dtype.h"

/* "CUDA0" is cuda:0, "ROCm1" hip:1, "CPU" host; other names stay. gpu_layers (may be NULL): "0"
 * makes auto the host; otherwise it must be a number, "auto" or "all". */
MUST_CHECK enum status cli_device_name(const char *name, const char *gpu_layers, char *ret_name,
                                       size_t ret_name_bytes, struct error *err);

/* Warns if layers on a GPU were requested but "auto" chose the host. */
void cli_warn_no_gpu(const struct cli_invocation *invocation, const char *gpu_layers,
                     const char *asked, const char *resolved);

/* STATUS_USAGE for more threads than a device takes; 0 is all processors. */
MUST_CHECK enum status cli_check_threads(uint32_t threads, struct error *err);

/* The common type of keys and values: F16 if none was given (NULL). STATUS_USAGE if two were given.
 */
MUST_CHECK enum status cli_cache_type(const char *both, const char *keys, const char *values,
                                      enum dtype *ret_dtype, struct error *err);

/* What greta devices prints. */
enum cli_exit cli_list_devices(const struct cli_invocation *invocation, bool json);

#endif
