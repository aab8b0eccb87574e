/* code_object.h - what an AMD code object says of its kernels: names, and offset and size of each
 * argument.
 *
 * A code object is an ELF file with a note in MessagePack; programs carry one for each chip in a
 * bundle. All bytes are foreign: nothing is believed that was not checked. A compressed bundle is
 * not read (STATUS_UNSUPPORTED). */
#ifndef GRETA_INTERPOSE_HIP_CODE_OBJECT_H
#define GRETA_INTERPOSE_HIP_CODE_OBJECT_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the bytes are: a file, or memory that may not be there. */
struct code_source {
    /* All of them, or false. */
    bool (*read)(void *context, uint64_t offset, void *to, size_t bytes);
    void *context;
};

/* Describes the caller's arguments; those that the compiler adds are left out. */
struct code_argument {
    uint32_t offset, bytes;
    bool reads_only; /* the compiler says that the kernel writes nothing through this pointer */
};

struct code_kernel {
    const char *name; /* borrowed from the code object */
    const struct code_argument *arguments;
    uint32_t argument_count;
};

struct code_object {
    struct code_kernel *kernels; /* by name */
    size_t kernel_count;
    struct code_argument *arguments;
    char *names;
};

/* ret_object is released by code_object_release; untouched on failure. */
MUST_CHECK enum status code_object_read(const struct code_source *source,
                                        struct code_object *ret_object, struct error *err);
void code_object_release(struct code_object *object);

/* NULL: it has no such kernel. */
const struct code_kernel *code_object_find(const struct code_object *object, const char *name);

#endif
