/* inject_stage.c - what a run of the model, and the streams workload, have that a fault can be
 * planted in. */
#include "campaign/campaign.h"

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
    model_check(file, NULL, &report);
    for (int i = 0; i < OPS_COUNT; i++)
        contracts[i] = ops_contract((enum ops_op)i);
    struct inject_stage stage = {
        .contracts = contracts,
        .contract_count = COUNT_OF(contracts),
        .labels = engine_labels,
        .label_count = engine_label_count,
        .more_labels = work_streams_labels,
        .more_label_count = extent->streams ? work_streams_label_count : 0,
        .is_weight = is_weight,
        .context = (void *)(uintptr_t)file,
        .layer_count = report.config_known ? report.config.block_count : 0,
        .step_limit = extent->step_limit,
        .run_count = extent->run_count,
        .no_runs = extent->run_count == 0,
    };
    return inject_check(&spec, &stage, err);
}
