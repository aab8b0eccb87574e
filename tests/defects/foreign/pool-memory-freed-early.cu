/* cudaFree of memory from a pool does not wait, unlike cudaFree of cudaMalloc's: a copy out of it
 * is still queued.
 *
 * On hardware: the copy engine faults: the wait returns cudaErrorLaunchFailure, and so does every
 * call after it.
 * To be named: the cudaFree in give_back, and the copy in copy_back that it did not wait for. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void copy_back(float *host, const float *device, cudaStream_t stream)
{
    CHECK(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
}

CULPRIT void give_back(float *device)
{
    CHECK(cudaFree(device));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *device, *host;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMallocAsync(&device, COUNT * sizeof(float), stream));
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 1.0f);
    delay<<<1, 1, 0, stream>>>(DELAY_MS);
    copy_back(host, device, stream);
    give_back(device);
    cudaError_t error = cudaStreamSynchronize(stream);
    printf("sync: %s, right: %d of %d\n", cudaGetErrorName(error), count_equal(host, COUNT, 1.0f),
           COUNT);
    CHECK(cudaStreamDestroy(stream));
    CHECK(cudaFreeHost(host));
    return 0;
}
