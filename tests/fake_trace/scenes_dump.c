/* scenes_dump.c - faults of kernels, told apart by a GPU core dump or not; what greta trace must
 * say of each is in tests/cli/trace_dump_test.sh. The last call reports the fault: exit status 7.
 */
#include "scenes.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static void give_up(struct scene *scene)
{
    if (cuMemcpyDtoH_v2(scene->pinned, scene->b, BYTES) == OK)
        exit(1);
    printf("the program's own last words\n");
    exit(7);
}

static void fill(struct scene *scene)
{
    cuMemsetD32Async(scene->a, 0, 16, scene->first);
}

/* Kernels on both streams, memsets between them, one that is wrong. */
void dump_streams(struct scene *scene)
{
    function nest = kernel("_Z4nestPfPKfi");
    for (int i = 0; i < 3; i++) {
        launch(scene->add, scene->b, scene->a, scene->first);
        launch(nest, scene->a, scene->b, scene->second);
        fill(scene);
    }
    launch(nest, scene->a, 0, scene->second); /* reads nothing's memory */
    launch(nest, scene->a, scene->b, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    give_up(scene);
}

static void launch_third(struct scene *scene, int count)
{
    for (int i = 0; i < count; i++)
        launch(kernel("third_time"), scene->a, 0, scene->first);
}

/* Equal launches in a row: their numbers tell them apart. */
void dump_equal(struct scene *scene)
{
    launch_third(scene, 5);
    give_up(scene);
}

/* With a memset before them they do not. */
void dump_equal_after_fill(struct scene *scene)
{
    fill(scene);
    launch_third(scene, 5);
    give_up(scene);
}

static graph make_graph(struct scene *scene)
{
    graph made, executable;
    cuStreamBeginCapture_v2(scene->first, 0);
    launch(scene->add, scene->b, scene->a, scene->first);
    launch_third(scene, 1);
    launch(scene->add, scene->a, scene->b, scene->first);
    cuStreamEndCapture(scene->first, &made);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    return executable;
}

/* The node that fails is known; which replay, only if the program waits between them. */
void dump_graph(struct scene *scene)
{
    graph executable = make_graph(scene);
    for (int i = 0; i < 5; i++)
        cuGraphLaunch(executable, scene->first);
    give_up(scene);
}

void dump_graph_waited(struct scene *scene)
{
    graph executable = make_graph(scene);
    for (int i = 0; i < 3; i++) {
        cuGraphLaunch(executable, scene->first);
        if (i < 2)
            cuStreamSynchronize(scene->first);
    }
    give_up(scene);
}

/* Two contexts, each of which counts from 1, and the same launches in both. */
static void in_two_contexts(struct scene *scene, address second)
{
    void *contexts[2];
    cuCtxGetCurrent(&contexts[0]);
    cuCtxCreate_v2(&contexts[1], 0, 0);
    for (int i = 0; i < 2; i++) {
        cuCtxSetCurrent(contexts[i]);
        launch(scene->add, scene->b, scene->a, i ? scene->second : scene->first);
        launch(kernel("third_time"), i ? second : scene->a, 0, i ? scene->second : scene->first);
        launch(kernel("third_time"), i ? second : scene->a, 0, i ? scene->second : scene->first);
    }
    cuCtxSetCurrent(contexts[0]);
    give_up(scene);
}

void dump_contexts(struct scene *scene)
{
    in_two_contexts(scene, scene->a);
}

void dump_contexts_apart(struct scene *scene)
{
    in_two_contexts(scene, scene->b);
}

/* Ends before any call reports the fault. */
void dump_unreported(struct scene *scene)
{
    launch(scene->add, scene->b, scene->a, scene->first);
    launch(kernel("_Z4nestPfPKfi"), scene->a, 0, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    exit(3);
}

static void crash_by_itself(void)
{
    raise(SIGSEGV);
}

/* A handler of the program's own crashes when it exits. */
void dump_crash(struct scene *scene)
{
    atexit(crash_by_itself);
    launch(kernel("_Z4nestPfPKfi"), scene->a, 0, scene->first);
    give_up(scene);
}

/* So does a function of its own that the driver calls then. */
void dump_callback(struct scene *scene)
{
    void (*when_leaving)(void (*)(void)); /* not in programs that find the driver at run time */
    *(void **)&when_leaving = dlsym(RTLD_DEFAULT, "fake_when_leaving");
    if (when_leaving)
        when_leaving(crash_by_itself);
    launch(kernel("_Z4nestPfPKfi"), scene->a, 0, scene->first);
    give_up(scene);
}
