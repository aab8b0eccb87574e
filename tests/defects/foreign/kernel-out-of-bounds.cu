/* The second of four kernels writes through an index table with one wild entry. Nothing is checked
 * until the copy of the result, which gets the blame.
 *
 * On hardware: cudaErrorIllegalAddress at the copy, and at every call after it.
 * To be named: with --narrow the launch of scatter; without it the four launches before the copy in
 * copy_back, among which it is. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

__global__ void scatter(const float *values, const long long *places, float *results, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        results[places[index]] = values[index];
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
    long long *places, *order = new long long[COUNT];
    for (int i = 0; i < COUNT; i++)
        order[i] = COUNT - 1 - i;
    order[COUNT / 2] = 1ll << 42;
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&places, COUNT * sizeof(long long)));
    CHECK(cudaMemcpy(places, order, COUNT * sizeof(long long), cudaMemcpyHostToDevice));

    fill<<<BLOCKS(COUNT)>>>(values, COUNT, 1.0f);
    scatter<<<BLOCKS(COUNT)>>>(values, places, results, COUNT);
    scale<<<BLOCKS(COUNT)>>>(results, values, COUNT, 2.0f);
    fill<<<BLOCKS(COUNT)>>>(results, COUNT, 0.0f);
    copy_back(host, values);

    printf("right: %d of %d\n", count_equal(host, COUNT, 2.0f), COUNT);
    return 0;
}
