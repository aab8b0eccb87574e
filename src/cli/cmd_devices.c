/* cmd_devices.c - greta devices: the devices that can run a model here, and why the others cannot.
 */
#include "cli/cli.h"
#include "cli/device_choice.h"

#include "device/all/all.h"
#include "ops/ops.h"

#include <stddef.h>

struct settings {
    bool json;
};

static const struct settings defaults = { false };

static const struct cli_option options[] = {
    { "--json", NULL, CLI_FLAG, offsetof(struct settings, json), "JSON instead of text", NULL,
      false },
};

static void emit_entry(struct emit *emit, const struct all_entry *entry)
{
    emit_object_begin(emit, NULL);
    emit_text(emit, "device", entry->name);
    emit_flag(emit, "available", entry->available);
    if (entry->available) {
        emit_bytes(emit, "memory", entry->info.memory_bytes);
        emit_text(emit, "driver", entry->info.driver);
        emit_text(emit, "name", entry->info.name);
    } else {
        if (!emit_is_json(emit)) {
            emit_text(emit, "memory", "-");
            emit_text(emit, "driver", "-");
        }
        emit_text(emit, emit_is_json(emit) ? "reason" : "name", entry->reason);
    }
    emit_object_end(emit);
}

enum cli_exit cli_list_devices(const struct cli_invocation *invocation, bool json)
{
    struct all_entry entries[ALL_DEVICE_LIMIT];
    struct emit *emit;
    struct error err;
    size_t count = all_list(ops_gpu_image(), entries);
    if (emit_create(json ? EMIT_JSON : EMIT_TEXT, &emit, &err))
        return cli_fail(invocation, &err);
    emit_list_begin(emit, "devices");
    for (size_t i = 0; i < count; i++)
        emit_entry(emit, &entries[i]);
    emit_list_end(emit);
    enum status status = emit_finish(emit, stdout, &err);
    emit_destroy(emit);
    return status ? cli_fail(invocation, &err) : CLI_EXIT_OK;
}

static enum cli_exit run_devices(const struct cli_invocation *invocation)
{
    const struct settings *settings = invocation->settings;
    return cli_list_devices(invocation, settings->json);
}

const struct cli_command cli_devices = {
    .name = "devices",
    .operands = "",
    .summary = "list the devices models can run on",
    .description = "Lists every device that was found, with its memory and driver, and for every "
                   "backend that is not usable what was tried and why.",
    .examples = "  greta devices --json\n",
    .options = options,
    .option_count = COUNT_OF(options),
    .settings_bytes = sizeof(defaults),
    .defaults = &defaults,
    .run = run_devices,
};
