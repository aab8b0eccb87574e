/* build: -lineinfo
 * Memory is cleared between launches, which the driver may do with kernels of its own; the third of
 * the program's launches reads far before its input. Nothing is checked until the copy.
 *
 * On hardware: cudaErrorIllegalAddress at the copy, and at every call after it.
 * To be named: the launch in gather_values, in the first run: the GPU's core dump has its number,
 * and numbers do not count the program's launches alone. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

__global__ void gather(const float *values, const long long *places, float *results, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        results[index] = values[places[index]]; /* the wild read */
}

CULPRIT void gather_values(const float *values, const long long *places, float *results)
{
    gather<<<BLOCKS(COUNT)>>>(values, places, results, COUNT);
}

CULPRIT void copy_back(float *host, const float *device)
{
    cudaError_t error = cudaMemcpy(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost);
    printf("copy: %s\n", cudaGetErrorName(error));
    if (error)
        exit(1);
}

int main()
{
    float *values, *results, *host = new float[COUNT];
    long long *places, *order = new long long[COUNT]();
    order[COUNT - 1] = -(1ll << 42);
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&places, COUNT * sizeof(long long)));
    CHECK(cudaMemset(values, 0, COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT)>>>(values, COUNT, 1.0f);
    CHECK(cudaMemset(places, 0, COUNT * sizeof(long long)));
    gather<<<BLOCKS(COUNT)>>>(values, places, results, COUNT);
    CHECK(cudaMemcpy(places, order, COUNT * sizeof(long long), cudaMemcpyHostToDevice));
    CHECK(cudaMemsetAsync(results, 0, COUNT * sizeof(float)));

    gather_values(values, places, results);
    CHECK(cudaMemsetAsync(values, 0, COUNT * sizeof(float)));
    scale<<<BLOCKS(COUNT)>>>(results, values, COUNT, 2.0f);
    copy_back(host, values);

    printf("right: %d of %d\n", count_equal(host, COUNT, 2.0f), COUNT);
    return 0;
}
