/* Clean: ways to launch: cooperative, with attributes, dependent on the launch before it, with
 * pointers inside a structure given by value, with an integer that looks like an address. */
#include "../foreign.h"

#include <cooperative_groups.h>

enum { COUNT = 1 << 16 };

struct bundle {
    char tag[12];
    const float *values;
    float *results;
    int count;
};

static __global__ void add_all(float *values, float *sum, int count)
{
    auto grid = cooperative_groups::this_grid();
    for (int i = grid.thread_rank(); i < count; i += grid.size())
        values[i] += 1.0f;
    grid.sync();
    for (int i = grid.thread_rank(); i < count; i += grid.size())
        atomicAdd(sum, values[i]);
}

static __global__ void scale_bundle(struct bundle bundle, unsigned long long number)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < bundle.count)
        bundle.results[index] = bundle.values[index] * (number ? 2.0f : 0.0f);
}

static __global__ void add_behind(float *values, int count)
{
    cudaGridDependencySynchronize();
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        values[index] += 1.0f;
}

int main()
{
    cudaStream_t stream;
    float *values, *results, *sum, *gone, *host = new float[COUNT], total;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&sum, sizeof(float)));
    CHECK(cudaMalloc(&gone, COUNT * sizeof(float)));
    CHECK(cudaMemsetAsync(values, 0, COUNT * sizeof(float), stream));
    CHECK(cudaMemsetAsync(sum, 0, sizeof(float), stream));
    int count = COUNT;
    void *arguments[] = { &values, &sum, &count };
    CHECK(cudaLaunchCooperativeKernel((void *)add_all, 64, 256, arguments, 0, stream));

    struct bundle bundle = { "by value", values, results, COUNT };
    unsigned long long number = (unsigned long long)gone; /* a number, never followed */
    CHECK(cudaFree(gone));
    scale_bundle<<<BLOCKS(COUNT), 0, stream>>>(bundle, number);

    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((COUNT + 255) / 256);
    config.blockDim = dim3(256);
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, add_behind, results, (int)COUNT));

    CHECK(cudaMemcpyAsync(host, results, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaMemcpyAsync(&total, sum, sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaStreamSynchronize(stream));
    int right = count_equal(host, COUNT, 3.0f);
    printf("right: %d of %d, sum %g\n", right, COUNT, total);
    CHECK(cudaFree(values));
    CHECK(cudaFree(results));
    CHECK(cudaFree(sum));
    CHECK(cudaStreamDestroy(stream));
    delete[] host;
    return right == COUNT && total == COUNT ? 0 : 1;
}
