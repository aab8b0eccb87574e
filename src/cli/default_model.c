/* default_model.c - see default_model.h. The folders and the name come from the build. */
#include "cli/default_model.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const folders[] = { GRETA_MODEL_FOLDER, "share/greta" };

/* The folder of the running program, links followed; false where the system does not say. */
static bool program_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX);
    if (length <= 0 || length == PATH_MAX)
        return false;
    folder[length] = '\0';
    char *slash = strrchr(folder, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

enum status default_model_path(const char *named, struct default_model *model,
                               const char **ret_path, struct error *err)
{
    char folder[PATH_MAX];
    *ret_path = named;
    if (named)
        return STATUS_OK;
    *ret_path = model->path;
    for (size_t i = 0; i < COUNT_OF(folders) && program_folder(folder); i++) {
        int length = snprintf(model->path, sizeof(model->path), "%s/%s/%s", folder, folders[i],
                              GRETA_MODEL_NAME);
        if (length < (int)sizeof(model->path) && access(model->path, R_OK) == 0)
            return STATUS_OK;
    }
    return error_set(err, STATUS_USAGE,
                     "expected --model FILE, found none, and greta's own model (%s) is not "
                     "installed with this program",
                     GRETA_MODEL_NAME);
}
