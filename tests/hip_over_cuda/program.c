/* program.c - a HIP program like any other, to be traced: it adds two rows of numbers on the device
 * with a kernel from a code object, and makes one mistake if asked to.
 *
 *     program CODE_OBJECT clean|past-end|freed|missing-wait
 *
 * Exit status 0: the sum is right; 7: there is no device; 1: something else failed. */
#define _GNU_SOURCE
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "device/abi/abi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 1024u
#define BYTES (COUNT * sizeof(float))
#define APART __attribute__((noinline)) /* a function of its own in a backtrace */

static void check(hipError_t code, const char *what)
{
    if (code == hipSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, hipGetErrorName(code));
    exit(code == hipErrorNoDevice || code == hipErrorInvalidDevice ? 7 : 1);
}

static void *read_code(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END))
        exit(1);
    long size = ftell(file);
    char *bytes = size > 0 ? malloc((size_t)size + 1) : NULL;
    rewind(file);
    if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size)
        exit(1);
    fclose(file);
    bytes[size] = 0x55; /* not part of it */
    return bytes;
}

struct work {
    hipStream_t stream, other;
    hipEvent_t ready;
    hipFunction_t add;
    float *host;
    void *x, *y;
};

APART static void copy_in(struct work *work)
{
    for (unsigned i = 0; i < COUNT; i++)
        work->host[i] = (float)i;
    check(hipMemcpyAsync(work->x, work->host, BYTES, hipMemcpyHostToDevice, work->stream), "in");
    check(hipMemcpyAsync(work->y, work->host, BYTES, hipMemcpyHostToDevice, work->stream), "in");
}

APART static void launch_add(struct work *work)
{
    struct gpu_call call = { .operands = {
                                 { (uint64_t)(uintptr_t)work->x, BYTES, COUNT, 1, 0, 0 },
                                 { (uint64_t)(uintptr_t)work->y, BYTES, COUNT, 1, 0, 0 } } };
    void *params[] = { &call };
    check(hipModuleLaunchKernel(work->add, COUNT / 256, 1, 1, 256, 1, 1, 0, work->stream, params,
                                NULL),
          "launch");
}

APART static void copy_back(struct work *work, size_t bytes)
{
    check(hipMemcpyAsync(work->host, work->x, bytes, hipMemcpyDeviceToHost, work->stream), "back");
    check(hipStreamSynchronize(work->stream), "sync");
}

/* More than the allocation has. */
APART static void copy_past_end(struct work *work)
{
    (void)hipMemcpyAsync(work->host, work->x, BYTES + 64, hipMemcpyDeviceToHost, work->stream);
    (void)hipStreamSynchronize(work->stream);
}

APART static void copy_freed(struct work *work)
{
    check(hipFree(work->y), "free");
    (void)hipMemcpyAsync(work->host, work->y, 16, hipMemcpyDeviceToHost, work->stream);
    (void)hipStreamSynchronize(work->stream);
    work->y = NULL;
}

/* Another stream writes what the first one is still reading. */
APART static void copy_unordered(struct work *work, int wait)
{
    check(hipEventRecord(work->ready, work->stream), "record");
    if (wait)
        check(hipStreamWaitEvent(work->other, work->ready, 0), "wait");
    check(hipMemcpyAsync(work->y, work->host, BYTES, hipMemcpyHostToDevice, work->other), "in");
    check(hipStreamSynchronize(work->other), "sync");
}

/* The next library after this program does not depend on who watches it. */
static void check_next(void)
{
    hipError_t (*linked)(void **, size_t) = hipMalloc;
    void *next = dlsym(RTLD_NEXT, "hipMalloc");
    if (memcmp(&next, &linked, sizeof(next)) != 0) {
        fprintf(stderr, "expected RTLD_NEXT to give the function that is called\n");
        exit(1);
    }
}

static void open_work(struct work *work, const char *path)
{
    hipModule_t module;
    int count = 0;
    check(hipGetDeviceCount(&count), "devices");
    check(hipSetDevice(0), "device");
    check(hipStreamCreateWithFlags(&work->stream, hipStreamNonBlocking), "stream");
    check(hipStreamCreateWithFlags(&work->other, hipStreamNonBlocking), "stream");
    check(hipEventCreateWithFlags(&work->ready, hipEventDisableTiming), "event");
    check(hipMalloc(&work->x, BYTES), "memory");
    check(hipMalloc(&work->y, BYTES), "memory");
    check(hipHostMalloc((void **)&work->host, BYTES + 4096, 0), "pinned memory");
    check(hipMemset(work->x, 0, BYTES), "fill");
    check(hipDeviceSynchronize(), "sync");
    void *code = read_code(path);
    check(hipModuleLoadData(&module, code), "module");
    free(code);
    check(hipModuleGetFunction(&work->add, module, "add"), "function");
}

static void close_work(struct work *work)
{
    check(hipFree(work->x), "free");
    check(hipFree(work->y), "free");
    check(hipHostFree(work->host), "free");
    check(hipEventDestroy(work->ready), "event");
    check(hipStreamDestroy(work->stream), "stream");
    check(hipStreamDestroy(work->other), "stream");
}

int main(int argument_count, char **arguments)
{
    struct work work = { 0 };
    if (argument_count != 3)
        return 2;
    const char *mistake = arguments[2];
    check_next();
    open_work(&work, arguments[1]);
    copy_in(&work);
    launch_add(&work);
    copy_back(&work, BYTES);
    for (unsigned i = 0; i < COUNT; i++)
        if (work.host[i] != 2.0f * (float)i) {
            fprintf(stderr, "expected %u, found %g\n", 2 * i, (double)work.host[i]);
            return 1;
        }
    if (strcmp(mistake, "past-end") == 0)
        copy_past_end(&work);
    if (strcmp(mistake, "freed") == 0)
        copy_freed(&work);
    copy_in(&work);
    copy_unordered(&work, strcmp(mistake, "missing-wait") != 0);
    close_work(&work);
    printf("the sum is right\n");
    return 0;
}
