/* engine_load.h - opening an engine with progress on the terminal. */
#ifndef GRETA_CLI_ENGINE_LOAD_H
#define GRETA_CLI_ENGINE_LOAD_H

#include "cli/cli.h"
#include "engine/engine.h"

/* engine_open; Ctrl-C ends it between two tensors. */
MUST_CHECK enum status cli_engine_open(const struct cli_invocation *invocation,
                                       const struct ops *ops, const struct gguf_file *file,
                                       const struct model_report *report,
                                       const struct engine_options *options,
                                       struct engine **ret_engine, struct error *err);

#endif
