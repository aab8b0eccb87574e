/* device_choice.h - which device the user means: greta's names, and those of llama.cpp. */
#ifndef GRETA_CLI_DEVICE_CHOICE_H
#define GRETA_CLI_DEVICE_CHOICE_H

#include "cli/cli.h"

/* "CUDA0" is cuda:0, "ROCm1" hip:1, "CPU" host; other names stay. gpu_layers (may be NULL): "0"
 * makes auto the host; otherwise it must be a number, "auto" or "all". */
MUST_CHECK enum status cli_device_name(const char *name, const char *gpu_layers, char *ret_name,
                                       size_t ret_name_bytes, struct error *err);

/* What greta devices prints. */
enum cli_exit cli_list_devices(const struct cli_invocation *invocation, bool json);

#endif
