/* scenes_order.c - the program's scenes with order that is not seen, with copies that wait or do
 * not, and with memory that is kept; what greta trace must say of each is in
 * tests/cli/trace_order_test.sh. */
#include "scenes.h"

#include <string.h>

static unsigned char own[BYTES], other[BYTES];

static address number(const void *pointer)
{
    return (address)(uintptr_t)pointer;
}

/* ---- Copies that wait, and that do not ------------------------------------------------------ */

/* From host to host a copy waits, whatever its name: there is nothing wrong with this. */
void host_to_host(struct scene *scene)
{
    (void)scene;
    cuMemHostRegister_v2(own, BYTES, 0);
    cuMemcpy(number(other), number(own), BYTES);
    cuMemHostUnregister(own);
}

/* Pageable memory is staged: the call comes back while the copy may still run, and another stream
 * does not wait for it. */
void staged(struct scene *scene)
{
    cuMemcpyHtoD_v2(scene->a, other, BYTES);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->first);
}

/* A plain copy between devices is in order with all streams. */
void peers_ordered(struct scene *scene)
{
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    cuMemcpyPeer(scene->b, NULL, scene->a, NULL, BYTES);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

/* Managed memory: whether the copy waits is documented nowhere. */
void managed_copy(struct scene *scene)
{
    address managed;
    cuMemAllocManaged(&managed, BYTES, 1);
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2((void *)(uintptr_t)managed, scene->b, BYTES, scene->first);
    cuMemcpyHtoDAsync_v2(scene->b, scene->pinned, BYTES, scene->second);
    cuMemFree_v2(managed);
}

/* ---- Flags that the host reads -------------------------------------------------------------- */

/* The kernel writes a flag in mapped memory; the program has read it and fills the source again.
 * (The emulated driver runs no kernels: the program need not look.) */
void polled_flag(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    launch(scene->add, number(flag), scene->a, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* The same with the flag's address in a variable of the device. */
void polled_flag_elsewhere(struct scene *scene)
{
    void *flag;
    address on_device;
    cuMemHostAlloc(&flag, 64, 2);
    cuMemHostGetDevicePointer_v2(&on_device, flag, 0);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* A flag that is copied, not written by a kernel. */
void polled_copy(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 0);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    cuMemcpyDtoHAsync_v2(flag, scene->b, 4, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* The program holds the stream back with a kernel that reads a flag, fills the source, lets go. */
void held_back(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    launch(scene->add, scene->b, number(flag), scene->first);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* Rewritten before the kernel with the flag was even launched: no flag can have said so. */
void rewritten_before_flag(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    memset(scene->pinned, 9, BYTES);
    launch(scene->add, number(flag), scene->a, scene->first);
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* A kernel that was given no memory of the host can tell it nothing. */
void rewritten_after_kernel(struct scene *scene)
{
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    launch(scene->add, scene->b, scene->a, scene->first);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
}

/* The flag of another stream says nothing of this copy. */
void flag_of_another(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    launch(scene->add, number(flag), scene->b, scene->second);
    memset(scene->pinned, 9, BYTES);
    cuStreamSynchronize(scene->first);
    cuStreamSynchronize(scene->second);
    cuMemFreeHost(flag);
}

/* Two copies that nothing orders but, perhaps, a flag. */
void unordered_flag(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    launch(scene->add, number(flag), scene->a, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
    cuCtxSynchronize();
    cuMemFreeHost(flag);
}

static void nothing(void *unused)
{
    (void)unused;
}

/* A graph with a function of the host after the copy: a thread that it notifies may go on. */
void graph_with_function(struct scene *scene)
{
    graph made, executable;
    cuStreamBeginCapture_v2(scene->first, 0);
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    cuLaunchHostFunc(scene->first, nothing, NULL);
    cuStreamEndCapture(scene->first, &made);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    cuGraphLaunch(executable, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

/* The same without it. */
void graph_unordered(struct scene *scene)
{
    graph made, executable;
    cuStreamBeginCapture_v2(scene->first, 0);
    cuMemcpyDtoDAsync_v2(scene->b, scene->a, BYTES, scene->first);
    cuStreamEndCapture(scene->first, &made);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    cuGraphLaunch(executable, scene->first);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->b, BYTES, scene->second);
}

/* ---- Memory that is kept -------------------------------------------------------------------- */

/* Weights: made in a loop, used in every round, left to the driver at the end. */
void weights(struct scene *scene)
{
    address kept[12];
    for (volatile int i = 0; i < 12; i++) {
        cuMemAlloc_v2(&kept[i], 1000);
        cuMemcpyHtoD_v2(kept[i], scene->pinned, 1000);
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 12; i++)
            launch(scene->add, scene->b, kept[i], scene->first);
}

/* The address goes to other memory before the graph is launched again: it may be meant. */
void graph_taken_again(struct scene *scene)
{
    graph made, executable;
    address range;
    cuMemAddressReserve(&range, BYTES, 0, 0, 0);
    cuMemMap(range, BYTES, 0, 1, 0);
    cuStreamBeginCapture_v2(scene->first, 0);
    cuMemcpyDtoHAsync_v2(scene->pinned, range, BYTES, scene->first);
    cuStreamEndCapture(scene->first, &made);
    cuGraphInstantiateWithFlags(&executable, made, 0);
    cuGraphLaunch(executable, scene->first);
    cuCtxSynchronize();
    cuMemUnmap(range, BYTES);
    cuMemMap(range, BYTES, 0, 2, 0);
    cuGraphLaunch(executable, scene->first);
    cuCtxSynchronize();
    cuMemUnmap(range, BYTES);
}
