/* device_name.c - which device a command runs on. */
#include "cli/cli.h"

#include "ops/ops.h"

#include <string.h>

const char *cli_device_name(const char *asked)
{
    bool gpus = ops_has_kernels("cuda") || ops_has_kernels("hip");
    return strcmp(asked, "auto") == 0 && !gpus ? "host" : asked;
}
