/* Memory is freed in stream order, and the copy of the result is queued after the free.
 *
 * On hardware: the driver still knows the address: the copy returns cudaErrorInvalidValue, nothing
 * arrives.
 * To be named: the copy in copy_back, and the cudaFreeAsync in give_back. */
#include "foreign.h"

enum { COUNT = 1 << 20 };

CULPRIT void give_back(float *device, cudaStream_t stream)
{
    CHECK(cudaFreeAsync(device, stream));
}

CULPRIT void copy_back(float *host, const float *device, cudaStream_t stream)
{
    cudaError_t error = cudaMemcpyAsync(host, device, COUNT * sizeof(float),
                                        cudaMemcpyDeviceToHost, stream);
    printf("copy: %s\n", cudaGetErrorName(error));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *device, *host;
    CHECK(cudaMallocHost(&host, COUNT * sizeof(float)));
    CHECK(cudaMallocAsync(&device, COUNT * sizeof(float), stream));
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 1.0f);
    give_back(device, stream);
    copy_back(host, device, stream);
    cudaError_t error = cudaStreamSynchronize(stream);
    printf("sync: %s, right: %d of %d\n", cudaGetErrorName(error), count_equal(host, COUNT, 1.0f),
           COUNT);
    CHECK(cudaFreeHost(host));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
