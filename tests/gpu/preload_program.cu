/* preload_program.cu - what preload_check.sh runs plain and traced. Built with the runtime static and
 * shared, and with default streams of threads.
 *
 *     preload_program work N     N launches by two threads, then a sum: prints it, exits with 0
 *     preload_program fault N    the same, launch N writes out of bounds: prints the error, exits with 7
 *     preload_program streams    two threads, one after the other, copy the same bytes on stream 0
 *     preload_program rate N     prints how many empty launches and waits it makes in a second */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cuda_runtime.h>
#include <thread>

enum { COUNT = 1 << 16, ROUNDS = 200 };

__global__ void add_one(int *values, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index]++;
}

__global__ void out_of_bounds(int *values)
{
    values[(1ll << 42) + threadIdx.x] = 1;
}

__global__ void nothing()
{
}

static void check(cudaError_t error, const char *call)
{
    if (error == cudaSuccess)
        return;
    printf("%s: %s\n", call, cudaGetErrorName(error));
    exit(7);
}

static void launch_some(int *values, int launches, int wild)
{
    cudaStream_t stream;
    check(cudaStreamCreate(&stream), "cudaStreamCreate");
    for (int i = 1; i <= launches; i++) {
        if (i == wild)
            out_of_bounds<<<1, 32, 0, stream>>>(values);
        else
            add_one<<<COUNT / 256, 256, 0, stream>>>(values, COUNT);
    }
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    check(cudaStreamDestroy(stream), "cudaStreamDestroy");
}

static int work(int launches, int wild)
{
    int *values[2], *host = (int *)malloc(COUNT * sizeof(int));
    long long sum = 0;
    for (int i = 0; i < 2; i++) {
        check(cudaMalloc(&values[i], COUNT * sizeof(int)), "cudaMalloc");
        check(cudaMemset(values[i], 0, COUNT * sizeof(int)), "cudaMemset");
    }
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::thread other(launch_some, values[1], launches / 2, 0);
    other.join(); /* so that launch numbers are the same each time */
    launch_some(values[0], launches - launches / 2, wild);
    for (int i = 0; i < 2; i++) {
        check(cudaMemcpy(host, values[i], COUNT * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
        for (int j = 0; j < COUNT; j++)
            sum += host[j];
        check(cudaFree(values[i]), "cudaFree");
    }
    printf("sum %lld\n", sum);
    free(host);
    return 0;
}

static int streams()
{
    char *device, *from, *to;
    check(cudaMalloc(&device, COUNT), "cudaMalloc");
    check(cudaMallocHost(&from, COUNT), "cudaMallocHost");
    check(cudaMallocHost(&to, COUNT), "cudaMallocHost");
    std::thread other([=] { check(cudaMemcpyAsync(device, from, COUNT, cudaMemcpyHostToDevice), "copy in"); });
    other.join();
    check(cudaMemcpyAsync(to, device, COUNT, cudaMemcpyDeviceToHost), "copy out");
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    check(cudaFreeHost(to), "cudaFreeHost");
    check(cudaFreeHost(from), "cudaFreeHost");
    check(cudaFree(device), "cudaFree");
    puts("copied");
    return 0;
}

static double seconds()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* One wait for each ten launches, as programs that decode have them. */
static int rate(int launches)
{
    nothing<<<1, 32>>>();
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    double began = seconds();
    for (int i = 1; i <= launches; i++) {
        nothing<<<1, 32>>>();
        if (i % 10 == 0)
            check(cudaStreamSynchronize(0), "cudaStreamSynchronize");
    }
    printf("%.0f\n", launches / (seconds() - began));
    return 0;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "work";
    int number = count > 2 ? atoi(arguments[2]) : ROUNDS;
    if (strcmp(what, "fault") == 0)
        return work(ROUNDS, number);
    if (strcmp(what, "streams") == 0)
        return streams();
    return strcmp(what, "rate") == 0 ? rate(number) : work(number, 0);
}
