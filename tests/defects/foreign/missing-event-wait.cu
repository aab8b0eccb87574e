/* Values are uploaded on one stream and used by a kernel on another, which does not wait.
 *
 * On hardware: no error; not one of the results is right.
 * To be named: the launch of scale in compute, and the copy in upload it should have waited for.
 * What a kernel does with its pointers is not known, so this is possible, never confirmed. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void upload(float *device, const float *host, cudaStream_t stream)
{
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    CHECK(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
}

CULPRIT void compute(const float *values, float *results, cudaStream_t stream)
{
    scale<<<BLOCKS(COUNT), 0, stream>>>(values, results, COUNT, 2.0f);
    CHECK(cudaGetLastError());
}

int main()
{
    load_kernels();
    cudaStream_t copies, kernels;
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking));
    float *host, *values, *results;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&values, COUNT * sizeof(float)));
    CHECK(cudaMalloc(&results, COUNT * sizeof(float)));
    CHECK(cudaMemset(values, 0, COUNT * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
    set_all(host, COUNT, 1.0f);

    upload(values, host, copies);
    compute(values, results, kernels);

    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(host, results, COUNT * sizeof(float), cudaMemcpyDeviceToHost));
    printf("right: %d of %d\n", count_equal(host, COUNT, 2.0f), COUNT);
    CHECK(cudaFree(values));
    CHECK(cudaFree(results));
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(copies));
    CHECK(cudaStreamDestroy(kernels));
    return 0;
}
