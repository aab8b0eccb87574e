/* infer_opening.c - see infer_opening.h. */
#include "cli/infer_opening.h"

#include "campaign/campaign.h"
#include "cli/audit_sink.h"
#include "cli/device_choice.h"
#include "device/all/all.h"

#include <string.h>

uint32_t infer_batch_limit(const struct infer_settings *settings)
{
    uint32_t batch = settings->batch, micro_batch = settings->micro_batch;
    return micro_batch && (!batch || micro_batch < batch) ? micro_batch : batch;
}

void infer_opening_join(struct infer_run *run)
{
    if (run->opening.started)
        pthread_join(run->opening.thread, NULL);
    run->opening.started = false;
}

static enum status choose_device(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    struct infer_opening *opening = &run->opening;
    opening->options = (struct device_options){ .thread_count = settings->threads,
                                                .gpu_image = ops_gpu_image() };
    for (int mode = 0; mode < DEVICE_D2H_COUNT; mode++)
        if (strcmp(settings->d2h_mode, device_d2h_mode_name((enum device_d2h_mode)mode)) == 0)
            opening->options.d2h_mode = (enum device_d2h_mode)mode;
    return cli_device_name(settings->device, settings->gpu_layers, opening->name,
                           sizeof(opening->name), err);
}

/* What is recorded or planted is of a device that is opened in its turn: no file is begun for a
 * prompt that cannot be. */
static bool opens_in_turn(const struct infer_run *run)
{
    const struct infer_settings *settings = run->settings;
    return settings->inject || settings->audit || settings->flight ||
           audit_sink_is_wanted(run->invocation->environment);
}

/* Prompts are known by now: a device in which something is planted is opened in its turn. */
static enum status check_inject(const struct infer_run *run, struct inject_spec *ret_spec,
                                struct error *err)
{
    const struct infer_settings *settings = run->settings;
    uint64_t steps = 0, written = settings->max_tokens >= 0 ? (uint64_t)settings->max_tokens : 0;
    uint64_t batch = infer_batch_limit(settings) ? infer_batch_limit(settings)
                                                 : engine_batch_default(false);
    /* Each prompt is read in one batch or more, the last of which gives the first token; each
     * other token takes a step. */
    for (size_t i = 0; i < run->count; i++)
        steps += (infer_prompt_ids(run, i)->count + batch - 1) / batch + written - 1;
    struct campaign_extent extent = { .step_limit = written ? steps : 0 };
    TRY(campaign_check_inject(settings->inject, run->file, &extent, err));
    return inject_parse(settings->inject, ret_spec, err);
}

static enum status watch_device(struct infer_run *run, struct error *err)
{
    const struct infer_settings *settings = run->settings;
    struct infer_opening *opening = &run->opening;
    if (settings->inject)
        TRY(check_inject(run, &opening->spec, err));
    return cli_audit_open(run->invocation, settings->audit, settings->flight, opening->name,
                          &opening->options, &run->audit, err);
}

static enum status open_device(struct infer_run *run, struct error *err)
{
    const struct infer_opening *opening = &run->opening;
    TRY(all_open(opening->name, &opening->options, &run->device, err));
    if (run->settings->inject) {
        TRY(inject_install(run->device, &opening->spec, &run->inject, err));
        cli_warn(run->invocation, "a fault is planted: %s", run->settings->inject);
    }
    return ops_load(&run->ops, run->device, CPU_PATH_COUNT, err);
}

static void *open_in_thread(void *argument)
{
    struct infer_run *run = argument;
    run->opening.status = open_device(run, &run->opening.err);
    return NULL;
}

enum status infer_opening_begin(struct infer_run *run, struct error *err)
{
    struct infer_opening *opening = &run->opening;
    TRY(choose_device(run, err));
    if (opens_in_turn(run))
        return STATUS_OK;
    TRY(watch_device(run, err));
    opening->started = pthread_create(&opening->thread, NULL, open_in_thread, run) == 0;
    return STATUS_OK;
}

enum status infer_opening_finish(struct infer_run *run, struct error *err)
{
    struct infer_opening *opening = &run->opening;
    if (opening->options.d2h_mode == DEVICE_D2H_PLAIN)
        cli_warn(run->invocation, "--d2h-mode plain: copies are read before they have arrived; the "
                                  "text may be wrong");
    if (opens_in_turn(run))
        TRY(watch_device(run, err));
    if (!opening->started)
        return open_device(run, err);
    infer_opening_join(run);
    if (opening->status)
        *err = opening->err;
    return opening->status;
}
