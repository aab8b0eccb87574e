/* coredump.c - arms GPU core dumps, from inside the program and for it alone.
 *
 * The driver is asked to go on after a dump (skip abort), so that a call returns the error as it
 * does untraced; one that cannot is not asked for dumps at all. What the caller set by environment
 * variables is the caller's: greta trace does not ask for dumps then. */
#include "interpose/cuda/preload.h"

#include <stdio.h>
#include <stdlib.h>
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

static bool set(const struct interpose *trace, int setting, const char *what, const void *value,
                size_t bytes)
{
    char text[96];
    char copy[NAME_LIMIT + 1];
    memcpy(copy, value, bytes); /* it is not declared as const */
    int32_t code = cuda_driver.coredump_set(setting, copy, &bytes);
    if (code == 0)
        return true;
    snprintf(text, sizeof(text), "cuCoredumpSetAttributeGlobal(%s): CUDA error %d", what,
             (int)code);
    interpose_leave(trace, INTERPOSE_SUFFIX_NO_DUMP, text);
    return false;
}

bool cuda_arm_coredump(const struct interpose *trace)
{
    char name[NAME_LIMIT + 1];
    int flags = SKIP_NONRELOCATED_IMAGES | SKIP_GLOBAL_MEMORY | SKIP_SHARED_MEMORY |
                SKIP_LOCAL_MEMORY | SKIP_ABORT;
    bool on = true;
    if (!trace || !getenv(INTERPOSE_VARIABLE_COREDUMP))
        return false;
    if (!cuda_driver.coredump_set) {
        interpose_leave(trace, INTERPOSE_SUFFIX_NO_DUMP,
                        "the driver has no cuCoredumpSetAttributeGlobal (CUDA 12.1)");
        return false;
    }
    int length = snprintf(name, sizeof(name), "%s" INTERPOSE_SUFFIX_DUMP, interpose_path(trace));
    if (length < 0 || (size_t)length >= sizeof(name) || strchr(name, '%')) {
        interpose_leave(trace, INTERPOSE_SUFFIX_NO_DUMP,
                        "the driver takes no path that is longer than 1023 bytes or has a '%'");
        return false;
    }
    return set(trace, SETTING_FILE, "FILE", name, (size_t)length + 1) &&
           set(trace, SETTING_FLAGS, "GENERATION_FLAGS", &flags, sizeof(flags)) &&
           set(trace, SETTING_ON_EXCEPTION, "ENABLE_ON_EXCEPTION", &on, sizeof(on));
}
