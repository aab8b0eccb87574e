/* foreign.h - what these programs share: calls that are checked, work that takes its time.
 *
 * They are ordinary CUDA programs that know nothing of greta. What is wrong in one stands in a
 * function of its own (CULPRIT), so that a stack of the call names it without debug information. */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CULPRIT extern "C" __attribute__((noinline))

#define CHECK(call) check((call), #call, __LINE__)

static inline void check(cudaError_t error, const char *call, int line)
{
    if (error == cudaSuccess)
        return;
    printf("line %d: %s: %s\n", line, call, cudaGetErrorString(error));
    exit(1);
}

/* Milliseconds of work ahead of what a program must not wait for, so that the order of calls shows
 * in the bytes every time and not once in a thousand runs. */
#define DELAY_MS 30

static __global__ void delay(unsigned milliseconds)
{
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < milliseconds * 1000000ull);
}

static __global__ void fill(float *values, int count, float value)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index] = value;
}

static __global__ void scale(const float *values, float *results, int count, float factor)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        results[index] = values[index] * factor;
}

/* The first launch of a kernel loads it, which waits for what runs. */
static inline void load_kernels(void)
{
    delay<<<1, 1>>>(0);
    fill<<<1, 1>>>(NULL, 0, 0.0f);
    scale<<<1, 1>>>(NULL, NULL, 0, 0.0f);
    check(cudaDeviceSynchronize(), "load_kernels", __LINE__);
}

#define BLOCKS(count) (((count) + 255) / 256), 256

static inline int count_equal(const float *values, int count, float wanted)
{
    int equal = 0;
    for (int i = 0; i < count; i++)
        equal += values[i] == wanted;
    return equal;
}

static inline void set_all(float *values, int count, float value)
{
    for (int i = 0; i < count; i++)
        values[i] = value;
}

#endif
