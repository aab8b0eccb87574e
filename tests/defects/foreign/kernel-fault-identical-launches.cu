/* build: -lineinfo
 * Eight launches in a row have the same kernel, dimensions and arguments. A counter in device memory
 * tells them apart, and the sixth walks out of its buffer.
 *
 * On hardware: cudaErrorIllegalAddress at the copy.
 * To be named: the sixth launch in repeat; its number in the GPU's core dump is all that tells it
 * from the others. */
#include "foreign.h"

enum { COUNT = 1 << 12, LAUNCHES = 8, WILD = 5 };

__global__ void accumulate(float *sums, int *calls, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    long long place = index;
    if (*calls == WILD && index == count - 1)
        place += 1ll << 40;
    if (index < count)
        sums[place] += 1.0f; /* the wild update */
}

__global__ void count_call(int *calls)
{
    *calls += 1;
}

CULPRIT void repeat(float *sums, int *calls)
{
    for (int i = 0; i < LAUNCHES; i++) {
        accumulate<<<BLOCKS(COUNT)>>>(sums, calls, COUNT);
        count_call<<<1, 1>>>(calls);
    }
}

int main()
{
    float *sums, *host = new float[COUNT]();
    int *calls;
    CHECK(cudaMalloc(&sums, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&calls, sizeof(int)));
    CHECK(cudaMemcpy(sums, host, COUNT * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(calls, host, sizeof(int), cudaMemcpyHostToDevice));

    repeat(sums, calls);
    cudaError_t error = cudaMemcpy(host, sums, COUNT * sizeof(float), cudaMemcpyDeviceToHost);
    printf("copy: %s\n", cudaGetErrorName(error));
    if (error)
        return 1;
    printf("right: %d of %d\n", count_equal(host, COUNT, LAUNCHES), COUNT);
    return 0;
}
