/* default_model.h - the model that is run when none is named. */
#ifndef GRETA_CLI_DEFAULT_MODEL_H
#define GRETA_CLI_DEFAULT_MODEL_H

#include "base/status.h"

#include <limits.h>

struct default_model {
    char path[PATH_MAX];
};

/* The path of the model to open: `named` or, if that is NULL, the model that came with greta. It is
 * looked for relative to the program: in ../share/greta if installed, in share/greta of a build
 * folder. Borrowed from named or model. STATUS_USAGE if there is neither. */
MUST_CHECK enum status default_model_path(const char *named, struct default_model *model,
                                          const char **ret_path, struct error *err);

#endif
