/* A result is copied back with the direction of an upload: the target lies on the host, the source
 * on the device.
 *
 * On hardware: the copy returns cudaErrorInvalidValue and copies nothing (with pinned memory it
 * would be taken for what it is and work).
 * To be named: the cudaMemcpyAsync in copy_back. */
#include "foreign.h"

enum { COUNT = 1 << 16 };

CULPRIT void copy_back(float *host, const float *device, cudaStream_t stream)
{
    cudaError_t error = cudaMemcpyAsync(host, device, COUNT * sizeof(float),
                                        cudaMemcpyHostToDevice, stream);
    printf("copy: %s\n", cudaGetErrorName(error));
}

int main()
{
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    float *host = (float *)calloc(COUNT, sizeof(float)), *device;
    CHECK(cudaMalloc(&device, COUNT * sizeof(float)));
    fill<<<BLOCKS(COUNT), 0, stream>>>(device, COUNT, 1.0f);
    copy_back(host, device, stream);
    cudaError_t error = cudaStreamSynchronize(stream);
    printf("sync: %s, right: %d of %d\n", cudaGetErrorName(error), count_equal(host, COUNT, 1.0f),
           COUNT);
    free(host);
    CHECK(cudaFree(device));
    CHECK(cudaStreamDestroy(stream));
    return 0;
}
