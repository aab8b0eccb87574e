/* command.c - what a command is called where a fault or an error names it. */
#include "device/device_impl.h"

const char *device_command_name(const struct device_command *command)
{
    if (command->contract) /* a launch, or part of one */
        return command->contract->name;
    switch (command->kind) {
    case DEVICE_COMMAND_COPY_IN:
        return "copy in";
    case DEVICE_COMMAND_COPY_OUT:
        return "copy out";
    case DEVICE_COMMAND_COPY_WITHIN:
        return "copy within";
    case DEVICE_COMMAND_FILL:
        return "fill";
    case DEVICE_COMMAND_INSPECT:
        return "inspection";
    case DEVICE_COMMAND_LAUNCH:
        break; /* has a contract */
    }
    return "";
}
