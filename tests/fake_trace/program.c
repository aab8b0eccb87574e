/* program.c - a small program over the driver API with one thing wrong, by name; what greta trace
 * must say of each is in tests/cli/trace_test.sh. More of them are in scenes.c. */
#include "scenes.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

function kernel(const char *name)
{
    function found = NULL;
    cuModuleGetFunction(&found, NULL, name);
    return found;
}

void open_scene(struct scene *scene)
{
    cuMemAlloc_v2(&scene->a, BYTES);
    cuMemAlloc_v2(&scene->b, BYTES);
    cuStreamCreate(&scene->first, STREAM_NON_BLOCKING);
    cuStreamCreate(&scene->second, STREAM_NON_BLOCKING);
    cuMemHostAlloc((void **)&scene->pinned, BYTES, 0);
    memset(scene->pinned, 0, BYTES);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    cuMemcpyHtoDAsync_v2(scene->b, scene->pinned, BYTES, scene->first);
    cuCtxSynchronize();
    scene->add = kernel("_ZN4demo3addEPfPKfi");
}

static void close_scene(struct scene *scene)
{
    cuCtxSynchronize();
    cuStreamDestroy_v2(scene->first);
    cuStreamDestroy_v2(scene->second);
    cuMemFreeHost(scene->pinned);
    cuMemFree_v2(scene->b);
    cuMemFree_v2(scene->a);
}

void launch(function which, address target, address source, stream on)
{
    int count = 16;
    void *parameters[] = { &target, &source, &count };
    cuLaunchKernel(which, 1, 1, 1, 32, 1, 1, 0, on, parameters, NULL);
}

/* ---- What is wrong -------------------------------------------------------------------------- */

/* Work on two streams, ordered as it must be. */
static void nothing(struct scene *scene)
{
    event mark;
    cuEventCreate(&mark, 0);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    cuEventRecord(mark, scene->first);
    cuStreamWaitEvent(scene->second, mark, 0);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
    cuStreamSynchronize(scene->second);
}

static void past_end(struct scene *scene)
{
    cuMemcpyDtoH_v2(scene->pinned, scene->a + 64, BYTES);
}

static void double_free(struct scene *scene)
{
    address extra;
    (void)scene;
    cuMemAlloc_v2(&extra, 256);
    cuMemFree_v2(extra);
    cuMemFree_v2(extra);
}

static void rewritten(struct scene *scene)
{
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    memset(scene->pinned, 7, BYTES);
    cuStreamSynchronize(scene->first);
}

static void unordered(struct scene *scene)
{
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

static void unordered_kernel(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

static void wrong_way(struct scene *scene)
{
    cuMemcpyHtoD_v2((address)(uintptr_t)scene->pinned, (void *)(uintptr_t)scene->a, BYTES);
}

static void freed_async(struct scene *scene)
{
    address extra;
    cuMemAllocAsync(&extra, 512, scene->first);
    cuMemFreeAsync(extra, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, 512, scene->first);
}

static void host_freed(struct scene *scene)
{
    void *extra;
    cuMemHostAlloc(&extra, BYTES, 0);
    cuMemcpyDtoHAsync_v2(extra, scene->a, BYTES, scene->first);
    cuMemFreeHost(extra);
}

static void stale_graph(struct scene *scene)
{
    graph made, executable;
    address extra;
    cuMemAlloc_v2(&extra, BYTES);
    cuMemsetD8Async(extra, 0, BYTES, scene->first);
    cuStreamBeginCapture_v2(scene->first, 0);
    cuMemcpyDtoHAsync_v2(scene->pinned, extra, BYTES, scene->first);
    cuStreamEndCapture(scene->first, &made);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    cuGraphLaunch(executable, scene->first);
    cuCtxSynchronize();
    cuMemFree_v2(extra);
    cuGraphLaunch(executable, scene->first);
}

/* Scratch memory of every round. */
static void leak(struct scene *scene)
{
    address extra;
    for (volatile int i = 0; i < 10; i++) {
        cuMemAlloc_v2(&extra, 1000);
        launch(scene->add, extra, scene->a, scene->first);
    }
}

/* Three launches, of which the second is out of bounds; the copy reports it. */
static void fault(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    cuStreamSynchronize(scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    launch(kernel("out_of_bounds"), scene->a, 0, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    if (cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->first) != OK)
        exit(9);
}

static void crash(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    raise(SIGSEGV);
}

static void destroyed_stream(struct scene *scene)
{
    stream extra;
    cuStreamCreate(&extra, STREAM_NON_BLOCKING);
    launch(scene->add, scene->b, scene->a, extra);
    cuStreamDestroy_v2(extra);
    cuStreamSynchronize(extra);
}

/* Many calls, and a recording that is too small for them. */
static void many(struct scene *scene)
{
    for (int i = 0; i < 20000; i++) {
        launch(scene->add, scene->b, scene->a, scene->first);
        if (i % 100 == 0)
            cuStreamSynchronize(scene->first);
    }
    cuStreamSynchronize(scene->first);
}

static const struct {
    const char *name;
    void (*run)(struct scene *scene);
} scenes[] = { { "nothing", nothing },
               { "past-end", past_end },
               { "double-free", double_free },
               { "rewritten", rewritten },
               { "unordered", unordered },
               { "unordered-kernel", unordered_kernel },
               { "wrong-way", wrong_way },
               { "freed-async", freed_async },
               { "host-freed", host_freed },
               { "stale-graph", stale_graph },
               { "leak", leak },
               { "fault", fault },
               { "crash", crash },
               { "destroyed-stream", destroyed_stream },
               { "many", many },
#define SCENE(name, function) { name, function },
               SCENES
#undef SCENE
};

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "nothing";
    int code = count > 2 ? (int)strtol(arguments[2], NULL, 10) : 0; /* of "then": not used */
    printf("out of %s\n", name);
    fprintf(stderr, "err of %s\n", name);
    if (strcmp(name, "no-gpu") == 0)
        return code;
    if (strcmp(name, "then") == 0) { /* work, then another program in the same process */
        struct scene scene;
        cuInit(0);
        open_scene(&scene);
        close_scene(&scene);
        fflush(stdout);
        execv(arguments[2], arguments + 2);
        return 1;
    }
    if (strcmp(name, "wait") == 0) { /* for a signal */
        fflush(stdout);
        for (;;)
            pause();
    }
    cuInit(0);
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        if (strcmp(scenes[i].name, name) == 0) {
            struct scene scene;
            open_scene(&scene);
            scenes[i].run(&scene);
            close_scene(&scene);
        }
    return code;
}
