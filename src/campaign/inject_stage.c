/* inject_stage.c - what a run of the model, and the streams workload, have that a fault can be
 * planted in. */
#include "campaign/inject_stage.h"

#include "campaign/worker.h"
#include "engine/engine.h"
#include "inject/inject.h"
#include "model/model.h"
#include "ops/ops.h"

#include <string.h>

static bool is_weight(void *context, const char *name)
{
    const struct gguf_file *file = context;
    for (size_t i = 0; i < gguf_tensor_count(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        if (strlen(name) == tensor->name.length &&
            memcmp(name, tensor->name.bytes, tensor->name.length) == 0)
            return true;
    }
    return false;
}

enum status campaign_check_inject(const char *inject, const struct gguf_file *file,
                                  const struct campaign_extent *extent, struct error *err)
{
    const struct device_contract *contracts[OPS_COUNT];
    struct model_report report;
    struct inject_spec spec;
    TRY(inject_parse(inject, &spec, err));
    if (extent->only_copies && spec.layer >= 0)
        return error_set(err, STATUS_USAGE,
                         "inject: layer: found %d, expected none: copies alone are made, which "
                         "belong to no layer",
                         (int)spec.layer);
    model_check(file, NULL, &report);
    for (int i = 0; i < OPS_COUNT; i++)
        contracts[i] = ops_contract((enum ops_op)i);
    struct inject_stage stage = {
        .contracts = contracts,
        .contract_count = COUNT_OF(contracts),
        .labels = engine_labels,
        /* The transfers workload labels copies by their paths, which are not known here. */
        .label_count = extent->only_copies ? 0 : engine_label_count,
        .more_labels = work_streams_labels,
        .more_label_count = extent->streams ? work_streams_label_count : 0,
        .is_weight = extent->only_copies ? NULL : is_weight,
        .context = (void *)(uintptr_t)file,
        .layer_count = report.config_known ? report.config.block_count : 0,
        .step_limit = extent->step_limit,
        .run_count = extent->run_count,
        .no_runs = extent->run_count == 0,
    };
    return inject_check(&spec, &stage, err);
}

enum status inject_stage_check(const char *inject, const char *model_path,
                               const struct campaign_extent *extent, struct error *err)
{
    struct gguf_file *file;
    struct error unused;
    if (gguf_open(model_path, &file, &unused))
        return STATUS_OK; /* the run says why it cannot be */
    enum status status = campaign_check_inject(inject, file, extent, err);
    gguf_close(file);
    return status;
}

/* A prompt has at most a token for each byte and one before them. It is read in chunks; under
 * stress in chunks of any size, and repeated. */
static uint64_t prompt_steps(const struct job *job)
{
    uint64_t tokens = strlen(job->prompt) + 1;
    if (job->stress.on)
        return tokens * job->stress.repeat.most;
    uint64_t chunk = job->batch ? job->batch : engine_batch_default(false);
    chunk = job->chunk && job->chunk < chunk ? job->chunk : chunk;
    return (tokens + chunk - 1) / chunk;
}

uint64_t inject_stage_steps(const struct job *job)
{
    /* The prompt's last step gives the first token. */
    return prompt_steps(job) + (job->token_limit ? job->token_limit - 1 : 0);
}
