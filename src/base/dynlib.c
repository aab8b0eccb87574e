/* dynlib.c - see dynlib.h. */
#include "base/dynlib.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

struct dynlib {
    void *handle;
    const char *name; /* borrowed; callers of open pass literals */
};

enum status dynlib_open(const char *const *names, struct dynlib **ret_library, struct error *err)
{
    for (size_t i = 0; names[i]; i++) {
        /* GPU drivers leak what they allocated when they are unloaded, so they stay loaded. */
        void *handle = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!handle)
            continue;
        struct dynlib *library = malloc(sizeof(*library));
        if (!library) {
            dlclose(handle);
            return error_set(err, STATUS_NO_MEMORY, "no memory for a library");
        }
        *library = (struct dynlib){ handle, names[i] };
        *ret_library = library;
        return STATUS_OK;
    }
    return error_set(err, STATUS_NOT_FOUND, "library %s: not found", names[0]);
}

void dynlib_close(struct dynlib *library)
{
    if (!library)
        return;
    dlclose(library->handle);
    free(library);
}

enum status dynlib_resolve(struct dynlib *library, const struct dynlib_symbol *symbols,
                           size_t count, void *table, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        /* POSIX guarantees that a function's address fits a data pointer. */
        void *address = dlsym(library->handle, symbols[i].name);
        if (!address && !symbols[i].optional)
            return error_set(err, STATUS_UNSUPPORTED,
                             "library %s: expected the function %s, found none: it is too old",
                             library->name, symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &address, sizeof(address));
    }
    return STATUS_OK;
}

enum status dynlib_load(const char *const *names, const struct dynlib_symbol *symbols, size_t count,
                        void *table, struct dynlib **ret_library, struct error *err)
{
    struct dynlib *library;
    TRY(dynlib_open(names, &library, err));
    enum status status = dynlib_resolve(library, symbols, count, table, err);
    if (status)
        dynlib_close(library);
    else
        *ret_library = library;
    return status;
}
