/* Clean: kernels on two streams and a copy read the same memory at once, two of them through a
 * pointer inside a structure. Nothing orders them, and nothing needs to: the code of the kernels
 * shows that they only read there. */
#include "../foreign.h"

enum { COUNT = 1 << 16 };

struct bundle {
    const float *values;
    float *results;
    int count;
};

static __global__ void scale_bundle(struct bundle bundle, float factor)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < bundle.count)
        bundle.results[index] = bundle.values[index] * factor;
}

int main()
{
    float *values, *results[2], *host;
    cudaStream_t streams[3];
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT)>>>(values, COUNT, 3.0f);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
    for (int i = 0; i < 2; i++)
        CHECK(cudaMalloc(&results[i], COUNT * sizeof(float)));
    for (int i = 0; i < 2; i++) {
        struct bundle bundle = { values, results[i], COUNT };
        scale_bundle<<<BLOCKS(COUNT), 0, streams[i]>>>(bundle, 1.0f + i);
    }
    CHECK(cudaMemcpyAsync(host, values, COUNT * sizeof(float), cudaMemcpyDeviceToHost, streams[2]));
    CHECK(cudaDeviceSynchronize());
    printf("read: %g\n", host[COUNT - 1]);
    for (int i = 0; i < 2; i++) {
        CHECK(cudaMemcpy(host, results[i], COUNT * sizeof(float), cudaMemcpyDeviceToHost));
        printf("scaled: %g\n", host[COUNT - 1]);
        CHECK(cudaFree(results[i]));
    }
    for (int i = 0; i < 3; i++)
        CHECK(cudaStreamDestroy(streams[i]));
    CHECK(cudaFreeHost(host));
    CHECK(cudaFree(values));
    return 0;
}
