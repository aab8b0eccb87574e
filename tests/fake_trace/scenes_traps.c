/* scenes_traps.c - the program's scenes with host memory that is used while a queued copy uses it;
 * what greta trace --trap-host must say of each is in tests/cli/trace_traps_test.sh. What they
 * print must be the same without it. */
#include "scenes.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096 };

/* Not inlined, so that a stack shows where the access is. */
__attribute__((noinline)) static unsigned char look_at(const volatile unsigned char *bytes)
{
    return *bytes;
}

__attribute__((noinline)) static void put_into(volatile unsigned char *bytes, unsigned char value)
{
    *bytes = value;
}

/* What the copies to the host bring. */
static void fill(const struct scene *scene)
{
    memset((void *)(uintptr_t)scene->a, 42, BYTES);
}

/* ---- Too early, too late -------------------------------------------------------------------- */

void early_read(struct scene *scene)
{
    fill(scene);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->first);
    printf("early %d\n", look_at(scene->pinned + 5000));
    printf("early again %d\n", look_at(scene->pinned + 9000));
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(scene->pinned + 5000));
}

void early_write(struct scene *scene)
{
    fill(scene);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->first);
    put_into(scene->pinned + 3, 7);
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(scene->pinned + 3));
}

void late_write(struct scene *scene)
{
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    put_into(scene->pinned + 100, 7);
    cuStreamSynchronize(scene->first);
}

/* So few bytes may be a flag. */
void early_read_of_few(struct scene *scene)
{
    fill(scene);
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, 4, scene->first);
    printf("early %d\n", look_at(scene->pinned));
    cuStreamSynchronize(scene->first);
}

/* The program's own memory, registered: copied at once by this driver. */
void early_read_of_own(struct scene *scene)
{
    unsigned char *own = aligned_alloc(PAGE, BYTES);
    cuMemHostRegister_v2(own, BYTES, 0);
    fill(scene);
    cuMemcpyDtoHAsync_v2(own, scene->a, BYTES, scene->first);
    printf("early %d\n", look_at(own + PAGE));
    cuStreamSynchronize(scene->first);
    cuMemHostUnregister(own);
    free(own);
}

/* ---- Twins that are clean ------------------------------------------------------------------- */

static void copy_out(struct scene *scene)
{
    cuMemcpyDtoHAsync_v2(scene->pinned, scene->a, BYTES, scene->first);
}

/* Each way to wait, and then the memory is the program's. */
void read_after_waits(struct scene *scene)
{
    event mark;
    int sum = 0;
    fill(scene);
    cuEventCreate(&mark, 0);
    copy_out(scene);
    cuStreamSynchronize(scene->first);
    sum += look_at(scene->pinned);
    copy_out(scene);
    cuCtxSynchronize();
    sum += look_at(scene->pinned);
    copy_out(scene);
    while (cuStreamQuery(scene->first) == NOT_READY)
        sched_yield();
    sum += look_at(scene->pinned);
    copy_out(scene);
    cuEventRecord(mark, scene->first);
    while (cuEventQuery(mark) == NOT_READY)
        sched_yield();
    sum += look_at(scene->pinned);
    put_into(scene->pinned, 1);
    cuMemcpyHtoDAsync_v2(scene->b, scene->pinned, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    put_into(scene->pinned, 2);
    printf("sum %d\n", sum);
}

/* The kernel after the copy writes a flag in mapped memory, which the program has read. (The
 * emulated driver runs no kernels: the program need not look.) */
void read_after_flag(struct scene *scene)
{
    void *flag;
    cuMemHostAlloc(&flag, 64, 2);
    copy_out(scene);
    launch(scene->add, scene->b, (address)(uintptr_t)flag, scene->first);
    printf("flag %d\n", look_at(flag));
    printf("then %d\n", look_at(scene->pinned));
    cuStreamSynchronize(scene->first);
    cuMemFreeHost(flag);
}

/* The copy and the host only read. */
void source_read(struct scene *scene)
{
    memset(scene->pinned, 5, BYTES);
    cuMemcpyHtoDAsync_v2(scene->a, scene->pinned, BYTES, scene->first);
    printf("read %d\n", look_at(scene->pinned + 77));
    cuStreamSynchronize(scene->first);
}

/* Other fields on the same pages as what is copied. */
void neighbours(struct scene *scene)
{
    fill(scene);
    cuMemcpyDtoHAsync_v2(scene->pinned + 1000, scene->a, 2 * PAGE, scene->first);
    put_into(scene->pinned + 999, 1);
    put_into(scene->pinned + 1000 + 2 * PAGE, 2);
    printf("around %d %d\n", look_at(scene->pinned + 999),
           look_at(scene->pinned + 1000 + 2 * PAGE));
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(scene->pinned + 1000));
}

/* The neighbours may be used, what is copied may not yet: all on one page. */
void neighbour_then_early(struct scene *scene)
{
    fill(scene);
    cuMemcpyDtoHAsync_v2(scene->pinned + 1000, scene->a, 100, scene->first);
    for (int i = 0; i < 10; i++)
        put_into(scene->pinned + i, (unsigned char)i);
    memcpy(scene->pinned + 2000, scene->pinned, 500);
    printf("neighbours %d %d\n", look_at(scene->pinned + 9), look_at(scene->pinned + 2009));
    printf("early %d\n", look_at(scene->pinned + 1050));
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(scene->pinned + 1050));
}

/* The first and last page of registered memory hold other memory too, which the C library may give
 * to the system: they are not watched. */
void edges_of_own(struct scene *scene)
{
    unsigned char *own = aligned_alloc(PAGE, BYTES);
    unsigned char *part = own + 100;
    memset(own, 0, BYTES);
    cuMemHostRegister_v2(part, 3 * PAGE, 0);
    cuMemcpyDtoHAsync_v2(part, scene->a, 3 * PAGE, scene->first);
    printf("before %d after %d\n", look_at(own + 99), look_at(part + 3 * PAGE));
    cuStreamSynchronize(scene->first);
    cuMemHostUnregister(part);
    free(own);
}

/* The device reads in order what it wrote; the runtime copies it to pageable memory itself. */
void given_again(struct scene *scene)
{
    fill(scene);
    copy_out(scene);
    cuMemcpyHtoDAsync_v2(scene->b, scene->pinned, BYTES, scene->first);
    cuStreamSynchronize(scene->first);
    printf("copied %d\n", look_at((const unsigned char *)(uintptr_t)scene->b));
}

/* Another stream waits for the copy's stream, and the host for that one. */
void waited_elsewhere(struct scene *scene)
{
    event mark;
    cuEventCreate(&mark, 0);
    copy_out(scene);
    cuEventRecord(mark, scene->first);
    cuStreamWaitEvent(scene->second, mark, 0);
    cuStreamSynchronize(scene->second);
    printf("then %d\n", look_at(scene->pinned));
}

/* More ranges than are watched at once. */
void many_traps(struct scene *scene)
{
    enum { COUNT = 6000 };
    unsigned char *large;
    cuMemHostAlloc((void **)&large, (size_t)COUNT * 2 * PAGE, 0);
    for (size_t i = 0; i < COUNT; i++)
        cuMemcpyDtoHAsync_v2(large + i * 2 * PAGE, scene->a, 100 + i % 1000, scene->first);
    cuStreamSynchronize(scene->first);
    printf("then %d\n", look_at(large));
    cuMemFreeHost(large);
}
