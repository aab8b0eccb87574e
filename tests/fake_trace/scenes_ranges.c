/* scenes_ranges.c - a scene with ranges of NVTX, found and called as its header does; what greta
 * trace must say of it is in tests/cli/trace_code_test.sh. */
#define _GNU_SOURCE
#include "scenes.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

/* The header's table of functions, by its numbers. */
typedef void (*slot)(void);
enum { PUSH_ATTRIBUTES = 8, PUSH = 9, POP = 11, SLOTS = 16 };
static slot functions[SLOTS];
static slot *slots[SLOTS];

static int module_functions(int module, slot ***ret_slots, unsigned int *ret_count)
{
    for (int i = 0; i < SLOTS; i++)
        slots[i] = &functions[i];
    *ret_slots = slots;
    *ret_count = SLOTS;
    return module == 1;
}

static const void *table(uint32_t id)
{
    static const struct {
        size_t bytes;
        int (*module_functions)(int, slot ***, unsigned int *);
    } callbacks = { sizeof(callbacks), module_functions };
    return id == 1 ? &callbacks : NULL;
}

static void push(const char *name)
{
    if (functions[PUSH])
        ((int (*)(const char *))functions[PUSH])(name);
}

static void push_attributes(const char *name)
{
    struct {
        uint16_t version, bytes;
        uint32_t numbers[5];
        uint64_t payload;
        int32_t message_type;
        const char *message;
    } attributes = { .version = 3, .bytes = 48, .message_type = 1, .message = name };
    if (functions[PUSH_ATTRIBUTES])
        ((int (*)(const void *))functions[PUSH_ATTRIBUTES])(&attributes);
}

static void pop(void)
{
    if (functions[POP])
        ((int (*)(void))functions[POP])();
}

/* Three copies past the end: in the inner range, in the outer one, in none. */
void ranges(struct scene *scene)
{
    const char *path = getenv("NVTX_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_LAZY) : NULL;
    int (*begin)(const void *(*)(uint32_t)) = NULL;
    if (library)
        *(void **)&begin = dlsym(library, "InitializeInjectionNvtx2");
    if (begin && !begin(table))
        abort();
    push("decode");
    push_attributes("layer 3");
    cuMemcpyDtoH_v2(scene->pinned, scene->a + 64, BYTES);
    pop();
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a + 64, BYTES, scene->first);
    pop();
    pop(); /* one too many */
    cuMemcpyDtoDAsync_v2(scene->b + 64, scene->a, BYTES, scene->first);
}
