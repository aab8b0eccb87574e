/* engine_load.c - see engine_load.h. */
#include "cli/engine_load.h"

enum status cli_engine_open(const struct cli_invocation *invocation, const struct ops *ops,
                            const struct gguf_file *file, const struct model_report *report,
                            const struct engine_options *options, struct engine **ret_engine,
                            struct error *err)
{
    struct cli_progress progress;
    struct engine_options watched = *options;
    cli_progress_begin(&progress, invocation, "loading weights", "bytes");
    watched.progress = &progress.progress;
    enum status status = engine_open(ops, file, report, &watched, ret_engine, err);
    cli_progress_end(&progress);
    return status;
}
