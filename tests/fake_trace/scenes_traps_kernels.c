/* scenes_traps_kernels.c - the program's scenes with host memory that a queued kernel writes, or
 * may write; see scenes_traps.c. The kernel writes the first page of what it is given. */
#include "scenes.h"

#include <stdio.h>

enum { PAGE = 4096 };

__attribute__((noinline)) static unsigned char look_at(const volatile unsigned char *bytes)
{
    return *bytes;
}

static void fill_late(const struct scene *scene, unsigned char *bytes)
{
    launch(kernel("fill_late"), (address)(uintptr_t)bytes, scene->a, scene->first);
}

static unsigned char *managed_memory(void)
{
    address memory;
    return cuMemAllocManaged(&memory, BYTES, 1) == OK ? (unsigned char *)(uintptr_t)memory : NULL;
}

/* ---- Too early ------------------------------------------------------------------------------ */

void kernel_early(struct scene *scene)
{
    int sum = 0;
    fill_late(scene, scene->pinned);
    for (int i = 0; i < PAGE; i += 8)
        sum += look_at(scene->pinned + i);
    cuStreamSynchronize(scene->first);
    printf("early %d, then %d\n", sum, look_at(scene->pinned));
}

void managed_early(struct scene *scene)
{
    unsigned char *memory = managed_memory();
    fill_late(scene, memory);
    printf("early %d %d\n", look_at(memory), look_at(memory + 100));
    cuCtxSynchronize();
    printf("then %d\n", look_at(memory));
    cuMemFree_v2((address)(uintptr_t)memory);
}

/* One place: it may be a flag or a counter. */
void kernel_looked_once(struct scene *scene)
{
    fill_late(scene, scene->pinned);
    printf("early %d\n", look_at(scene->pinned + 16));
    cuStreamSynchronize(scene->first);
}

/* ---- Twins that are clean ------------------------------------------------------------------- */

/* The same place again and again. (This driver's kernels end when they are waited for.) */
void kernel_polled(struct scene *scene)
{
    int tries = 0;
    fill_late(scene, scene->pinned);
    while (tries < 5 && look_at(scene->pinned) == 0)
        tries++;
    printf("tries %d, then %d\n", tries, look_at(scene->pinned + 100));
    cuStreamSynchronize(scene->first);
}

/* Host and kernel only read. */
void kernel_input(struct scene *scene)
{
    int sum = 0;
    for (int i = 0; i < BYTES; i++)
        scene->pinned[i] = (unsigned char)i;
    launch(scene->add, scene->b, (address)(uintptr_t)scene->pinned, scene->first);
    for (int i = 0; i < BYTES; i++)
        sum += look_at(scene->pinned + i);
    cuStreamSynchronize(scene->first);
    printf("sum %d\n", sum);
}

/* Fields of one struct: the host's next to the kernel's. */
void kernel_other_fields(struct scene *scene)
{
    unsigned char *memory = managed_memory();
    int sum = 0;
    memory[PAGE] = 1;
    memory[PAGE + 200] = 2;
    fill_late(scene, memory);
    for (int i = 0; i < 20; i++)
        sum += look_at(memory + PAGE) + look_at(memory + PAGE + 200 + i);
    cuStreamSynchronize(scene->first);
    printf("sum %d\n", sum);
    cuMemFree_v2((address)(uintptr_t)memory);
}

/* The kernel waits for a flag of the host, which reads what was there before. */
void kernel_let_go(struct scene *scene)
{
    volatile unsigned char *flag = scene->pinned + BYTES - 1;
    fill_late(scene, scene->pinned);
    printf("before %d %d\n", look_at(scene->pinned), look_at(scene->pinned + 500));
    *flag = 1;
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(scene->pinned));
}

void managed_after_wait(struct scene *scene)
{
    unsigned char *memory = managed_memory();
    for (int i = 0; i < 3; i++) {
        fill_late(scene, memory);
        fill_late(scene, memory);
        cuStreamSynchronize(scene->first);
        printf("then %d %d\n", look_at(memory), look_at(memory + 1000));
        memory[5] = 0;
    }
    cuMemFree_v2((address)(uintptr_t)memory);
}
