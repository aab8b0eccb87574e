/* cuda_coredump.c - asks the driver for a GPU core dump of the first fault, and to let the process
 * go on: the failing call returns the error as it does without.
 *
 * Nothing depends on the dump being there. A driver that does not know the call (before CUDA 12.1),
 * or refuses one of the settings, is left as it is. */
#include "device/cuda/cuda_coredump.h"

#include <string.h>

/* As the driver numbers its settings and flags. */
enum { SETTING_ON_EXCEPTION = 1, SETTING_FILE = 5, SETTING_FLAGS = 7 };
enum {
    SKIP_NONRELOCATED_IMAGES = 1,
    SKIP_GLOBAL_MEMORY = 2,
    SKIP_SHARED_MEMORY = 4,
    SKIP_LOCAL_MEMORY = 8,
    SKIP_ABORT = 16
};
/* The driver takes no longer names. */
#define NAME_LIMIT 1023u

struct coredump_calls {
    int (*set)(int setting, void *value, size_t *bytes);
};

static bool set(const struct coredump_calls *calls, int setting, const void *value, size_t bytes)
{
    char copy[NAME_LIMIT + 1]; /* it is not declared as const */
    memcpy(copy, value, bytes);
    return calls->set(setting, copy, &bytes) == 0;
}

bool cuda_coredump_arm(struct dynlib *library, const char *path)
{
    static const struct dynlib_symbol symbols[] = {
        { "cuCoredumpSetAttributeGlobal", offsetof(struct coredump_calls, set), true },
    };
    struct coredump_calls calls = { NULL };
    struct error unused;
    int flags = SKIP_NONRELOCATED_IMAGES | SKIP_GLOBAL_MEMORY | SKIP_SHARED_MEMORY |
                SKIP_LOCAL_MEMORY | SKIP_ABORT;
    bool on = true;
    size_t length = strlen(path);
    if (dynlib_resolve(library, symbols, COUNT_OF(symbols), &calls, &unused) || !calls.set ||
        length > NAME_LIMIT || strchr(path, '%')) /* which the driver would replace */
        return false;
    return set(&calls, SETTING_FILE, path, length + 1) &&
           set(&calls, SETTING_FLAGS, &flags, sizeof(flags)) &&
           set(&calls, SETTING_ON_EXCEPTION, &on, sizeof(on));
}
